"""Batches with stored prompt features: the same patches, and features of exactly those patches."""

from pathlib import Path

import torch
from torch import Tensor, nn

from ducos.data import open_dataset
from ducos.prompts import Prompt
from ducos.training.augmentations import strengths
from ducos.training.patches import PatchBatches
from ducos.training.prompt_cache import FeatureCache
from ducos.training.samples import Batch


class Echo(nn.Module):
    """Answers with the image itself, so stored features can be compared with the patch."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(()), requires_grad=False)

    def forward(self, rgb: Tensor) -> Prompt:
        return Prompt((self.gain * rgb,) * 4, rgb[:, :1])


def batches(cache: FeatureCache | None, augmentation: dict[str, float]) -> PatchBatches:
    return PatchBatches(
        open_dataset("shapes:4"),
        batch_size=4,
        crop=64,
        scales=(4.0, 4.0),
        degradations={"bicubic": 1.0},
        augmentations=augmentation,
        seed=0,
        cache=cache,
    )


def test_stored_features_are_those_of_the_patches(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, Echo())
    for augmentation, tolerance in (
        (strengths(), 1e-3),  # half precision
        (strengths(zoom=0.5, shift=2.0), 0.02),  # two ways to shrink and displace, on average
    ):
        for step in range(3):
            batch = batches(cache, augmentation)[step]
            assert batch.prompt is not None
            assert batch.prompt.depth is not None
            for map in batch.prompt.features:
                assert (map - batch.rgb).abs().mean() < tolerance
            assert (batch.prompt.depth - batch.rgb[:, :1]).abs().mean() < tolerance


def test_a_cache_changes_nothing_else(tmp_path: Path) -> None:
    augmentation = strengths(zoom=0.5, shift=2.0, colour=0.5, holes=0.5)
    plain = batches(None, augmentation)[5]
    stored = batches(FeatureCache(tmp_path, Echo()), augmentation)[5]
    assert plain.prompt is None
    for name in ("rgb", "low", "low_valid", "target", "valid", "inverse"):
        assert torch.equal(getattr(plain, name), getattr(stored, name)), name
    half: Batch = stored.part(2, 4)
    assert half.prompt is not None
    assert stored.prompt is not None
    assert torch.equal(half.prompt.features[1], stored.prompt.features[1][2:])
