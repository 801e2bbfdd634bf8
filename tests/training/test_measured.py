"""Training on a sensor's own maps: image and map are cut together and nothing is resampled."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ducos.data.pair import Pair
from ducos.errors import InputError
from ducos.training.augmentations import strengths
from ducos.training.config import load_config
from ducos.training.loop import train
from ducos.training.measured import common_ratio, cut_measured, patch_sides
from ducos.training.patches import PatchBatches
from ducos.training.samples import Batch


def pair_of(ratio: Fraction, low_size: tuple[int, int] = (24, 30), number: int = 0) -> Pair:
    """Each value tells its place: target = row + column / 1000 of its centre, in map pixels."""
    h, w = low_size
    H, W = int(h * ratio), int(w * ratio)

    def places(n: int, m: int, unit: float) -> np.ndarray:
        rows = (np.arange(n) + 0.5)[:, None] * unit
        columns = (np.arange(m) + 0.5)[None] * unit
        return (10 + rows + columns / 1000).astype(np.float32)

    target = places(H, W, 1 / float(ratio))
    low = places(h, w, 1.0)
    rgb = np.repeat((target / 100)[..., None], 3, 2).astype(np.float32)
    low_valid = np.ones((h, w), bool)
    low_valid[::7, ::5] = False
    return Pair(str(number), rgb, target, np.ones((H, W), bool), low, low_valid)


class Pairs:
    name, unit = "pairs", "m"

    def __init__(self, pairs: list[Pair]):
        self.pairs = pairs

    @property
    def scenes(self) -> list[str]:
        return [pair.name for pair in self.pairs]

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Pair:
        return self.pairs[index]


def batch(
    pairs: list[Pair], augmentation: dict[str, float], step: int = 0, crop: int = 32
) -> Batch:
    return PatchBatches(
        Pairs(pairs),
        batch_size=len(pairs),
        crop=crop,
        scales=(2.0, 8.0),
        degradations={"sensor": 1.0},
        augmentations=augmentation,
        seed=3,
    )[step]


@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(4), Fraction(8, 3), Fraction(5, 2)])
def test_a_patch_and_its_map_show_the_same_place(ratio: Fraction) -> None:
    pair = pair_of(ratio)
    sides = patch_sides([pair], ratio, 32)
    assert sides[0] == sides[1] * ratio
    rng = np.random.default_rng(0)
    places = set()
    for _ in range(20):
        patch = cut_measured(pair, ratio, sides, rng)
        assert patch.target.shape == patch.valid.shape == patch.rgb.shape[:2] == (sides[0],) * 2
        assert patch.low.shape == patch.low_valid.shape == (sides[1],) * 2
        # Both fields of view have one centre, which the values tell.
        assert patch.target.mean() == pytest.approx(patch.low.mean(), abs=1e-4)
        assert (pair.target[patch.top, patch.left]) == patch.target[0, 0]
        places.add((patch.top, patch.left))
    assert len(places) > 5


@pytest.mark.parametrize("flip", [False, True])
def test_a_batch_holds_the_sensors_values_in_place(flip: bool) -> None:
    pairs = [pair_of(Fraction(8, 3), number=n) for n in range(4)]
    for step in range(6):
        b = batch(pairs, strengths(flip=flip), step)
        assert b.low.shape[-1] * 8 == b.target.shape[-1] * 3
        low, target = b.range.undo(b.low), b.range.undo(b.target)
        for i in range(len(pairs)):
            measured = low[i][b.low_valid[i]]
            known = set(np.round(pairs[0].low.ravel(), 3))
            assert set(np.round(measured.numpy(), 3)) <= known  # never resampled
            # Every corner of the map sees what the same corner of the truth sees.
            for corner in (np.s_[0, 0], np.s_[0, -1], np.s_[-1, 0], np.s_[-1, -1]):
                if b.low_valid[i, 0][corner]:
                    assert float(low[i, 0][corner] - target[i, 0][corner]) == pytest.approx(
                        0, abs=0.45
                    )
            assert not b.low_valid[i].all()  # its holes come along


def test_colour_is_changed_and_nothing_else() -> None:
    pairs = [pair_of(Fraction(4))]
    plain = batch(pairs, strengths(flip=False))
    coloured = batch(
        pairs, strengths(flip=False, colour=1.0, zoom=0.5, invert=1.0, quantise=1.0, shift=2.0)
    )
    assert not torch.equal(plain.rgb, coloured.rgb)
    known = plain.low_valid  # colours guide what is filled into holes
    assert torch.equal(plain.low[known], coloured.low[known])
    assert torch.equal(plain.target, coloured.target)
    assert not coloured.inverse.any()


def test_mistakes_are_named() -> None:
    without = pair_of(Fraction(4))
    without.low = None
    with pytest.raises(InputError, match="has no low-resolution map"):
        common_ratio([without])
    with pytest.raises(InputError, match=r"2\.000, 4\.000"):
        common_ratio([pair_of(Fraction(4)), pair_of(Fraction(2))])
    with pytest.raises(InputError, match="every 97 pixels"):
        patch_sides([pair_of(Fraction(4))], Fraction(640, 97), 64)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_folder_with_sensor_maps_can_be_trained_on(mixed: bool, tmp_path: Path) -> None:
    """Files as a user has them, through the config and the whole loop."""
    folder = tmp_path / "mine"
    for kind in ("rgb", "depth", "low"):
        (folder / kind).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(4):
        low = rng.integers(800, 3000, (18, 24)).astype(np.uint16)
        full = low.repeat(2, 0).repeat(2, 1)
        Image.fromarray(low).save(folder / "low" / f"{number}.png")
        Image.fromarray(full).save(folder / "depth" / f"{number}.png")
        colour = np.stack([(full // 16).astype(np.uint8)] * 3, -1)
        Image.fromarray(colour).save(folder / "rgb" / f"{number}.png")
    config = tmp_path / "mine.toml"
    shares = "sensor = 0.5\nbicubic = 0.5" if mixed else "sensor = 1.0"
    config.write_text(
        f"""
[model]
name = "djf"
kwargs = {{filters = [4, 4, 4, 4]}}
[data]
train = "folder:{folder}"
validation_share = 0.25
crop = 32
[data.degradations]
{shares}
[dual]
constraints = []
[train]
steps = 4
batch_size = 2
validate_every = 2
validation_scales = [4.0]
"""
    )
    assert train(load_config(config), tmp_path / "run", quiet=True) is not None
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    scores = [row for row in map(json.loads, lines) if "validation_relative_rmse" in row]
    assert all("validation_relative_sensor" in row for row in scores)
    assert all(("validation_relative_x4" in row) == mixed for row in scores)
