"""Parts of a dataset, cut so that no scene is on both sides."""

from collections.abc import Sequence

import numpy as np

from ducos.data.pair import Dataset, Pair
from ducos.errors import InputError


class Subset:
    """Some pairs of a dataset, in the order of `indices`."""

    def __init__(self, dataset: Dataset, indices: Sequence[int], name: str):
        self.dataset = dataset
        self.indices = list(indices)
        self.name = name
        self.unit = dataset.unit

    @property
    def scenes(self) -> Sequence[str]:
        every_scene = self.dataset.scenes
        return [every_scene[index] for index in self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Pair:
        return self.dataset[self.indices[index]]


def split_by_scene(dataset: Dataset, fraction: float, seed: int = 0) -> tuple[Subset, Subset]:
    """Hold out whole scenes for validation.

    Args:
        fraction: share of the scenes (not of the pairs) to hold out, in (0, 1); at least one scene
            stays on either side.
        seed: which scenes; the choice depends on nothing but the seed and the scene names.

    Returns:
        the training part and the held-out part.
    """
    if not 0 < fraction < 1:
        raise InputError(f"the held-out fraction must lie between 0 and 1, got {fraction}")
    scene_of_pair = dataset.scenes
    scenes = sorted(set(scene_of_pair))
    if len(scenes) < 2:
        raise InputError(
            f"{dataset.name} shows {len(scenes)} scene(s); holding one out needs two or more"
        )
    shuffled = np.random.default_rng(seed).permutation(scenes)
    count = min(max(round(fraction * len(scenes)), 1), len(scenes) - 1)
    held_out = set(shuffled[:count].tolist())
    train = [i for i, scene in enumerate(scene_of_pair) if scene not in held_out]
    validation = [i for i, scene in enumerate(scene_of_pair) if scene in held_out]
    return (
        Subset(dataset, train, f"{dataset.name}-train"),
        Subset(dataset, validation, f"{dataset.name}-validation"),
    )
