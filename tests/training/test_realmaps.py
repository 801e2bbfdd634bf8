"""Ground truth and low-resolution maps that look like those of real cameras."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ducos.arrays import Floats, Mask
from ducos.data.pair import Pair
from ducos.degrade import DEGRADATIONS
from ducos.training.augmentations import AUGMENTATIONS, strengths
from ducos.training.changes import (
    add_noise,
    cast_shadows,
    fray_edges,
    grow_silhouettes,
    occluded,
    round_disparity,
)
from ducos.training.patches import PatchBatches
from ducos.training.samples import Batch
from tests.training.test_patches import Depths, assert_same

OF_TRUTH = ("fatten", "ragged", "disparity_steps")
OF_INPUT = ("shadow_holes", "input_noise")
EVERY = dict.fromkeys((*OF_TRUTH, *OF_INPUT), 1.0)


class Boxes(Depths):
    """A box at 1 m, drawn per scene, before a wall at 2 to 2.2 m."""

    def __getitem__(self, index: int) -> Pair:
        pair = super().__getitem__(index)
        target = np.linspace(2, 2.2, self.size[1], dtype=np.float32)[None].repeat(self.size[0], 0)
        top, left = 10 + index, 12 + 2 * index
        target[top : top + 20, left : left + 25] = 1
        return Pair(pair.name, pair.rgb, np.where(pair.valid, target, 0), pair.valid)


def batches(
    degradation: str = "area",
    chosen: dict[str, float] | None = None,
    *,
    scales: tuple[float, float] = (2.0, 4.0),
    anisotropy: float = 0.0,
    invalid: float = 0.1,
    seed: int = 0,
    crop: int = 40,
) -> PatchBatches:
    return PatchBatches(
        Boxes(invalid=invalid),
        batch_size=4,
        crop=crop,
        scales=scales,
        degradations={degradation: 1.0},
        augmentations=strengths(**(chosen or {})),
        seed=seed,
        anisotropy=anisotropy,
    )


def step_edge(near: float = 1.0, far: float = 3.0) -> tuple[Floats, Mask]:
    """Near on the left half of 64x64 pixels, far on the right; all of it valid."""
    edge = np.where(np.arange(64) < 32, near, far).astype(np.float32)[None].repeat(64, 0)
    return edge, np.ones(edge.shape, bool)


def slope() -> tuple[Floats, Mask]:
    """A floor from 1 to 2 m, without an edge."""
    floor = np.linspace(1, 2, 64, dtype=np.float32)[:, None].repeat(64, 1)
    return floor, np.ones(floor.shape, bool)


def drawn(count: int = 60) -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in range(count)]


# Ground truth


def test_fatten_moves_an_edge_either_way_and_keeps_its_two_values() -> None:
    edge, valid = step_edge()
    moves = []
    for rng in drawn():
        moved = grow_silhouettes(edge, valid, rng)
        assert set(np.unique(moved)) == {1.0, 3.0}
        moves.append((moved == 1).sum(1) - 32)
    typical = np.array([move.mean() for move in moves])
    assert np.abs(moves).max() <= 5
    assert 0.5 < (typical > 0).mean() < 0.85  # most are fattened, the others shrunk
    assert 1 <= np.median(np.abs(typical)) < 2.5
    assert np.abs(typical).max() > 3
    assert np.median([move.std() for move in moves]) > 0.3  # varies along the edge
    assert np.abs(np.diff(moves, axis=1)).mean() < 0.3  # smoothly


def test_fatten_only_across_leaves_level_edges_alone() -> None:
    edge, valid = step_edge()
    level = edge.T.copy()
    still = [np.array_equal(grow_silhouettes(level, valid, rng), level) for rng in drawn()]
    assert 0.15 < np.mean(still) < 0.55


def test_ragged_edges_are_in_blocks_and_keep_their_two_values() -> None:
    edge, valid = step_edge()
    jumps, moves = [], []
    for rng in drawn():
        moved, known = fray_edges(edge, valid, rng)
        assert known.all()
        assert set(np.unique(moved)) == {1.0, 3.0}
        assert np.array_equal(moved[:, :26], edge[:, :26])
        assert np.array_equal(moved[:, 38:], edge[:, 38:])
        places = (moved == 1).sum(1) - 32
        moves.append(np.abs(places).mean())
        jumps.append((np.diff(places) != 0).mean())
    assert 0.3 < np.median(moves) < 1.5
    assert 0.05 < np.median(jumps) < 0.5  # constant over a few rows, then another place


def test_ragged_edges_take_holes_along() -> None:
    edge, valid = step_edge()
    valid[15:45, 38:56] = False
    garbage = np.where(valid, edge, 1000).astype(np.float32)
    for rng in drawn(20):
        moved, known = fray_edges(garbage, valid, rng)
        assert set(np.unique(moved[known])) == {1.0, 3.0}
        assert not known[22:38, 45:49].any()


@pytest.mark.parametrize("seed", range(8))
def test_slanted_surfaces_stay_as_they_are(seed: int) -> None:
    floor, valid = slope()
    assert np.array_equal(grow_silhouettes(floor, valid, np.random.default_rng(seed)), floor)
    assert np.array_equal(fray_edges(floor, valid, np.random.default_rng(seed))[0], floor)


@pytest.mark.parametrize("change", [grow_silhouettes, round_disparity])
def test_holes_neither_bleed_nor_grow(change: Any) -> None:
    edge, valid = step_edge()
    valid[10:30, 25:40] = False
    for garbage in (0.0, 1000.0, np.nan):
        stored = np.where(valid, edge, garbage).astype(np.float32)
        for seed in range(10):
            result = change(stored, valid, np.random.default_rng(seed))
            expected = change(
                np.where(valid, edge, 7).astype(np.float32), valid, np.random.default_rng(seed)
            )
            assert np.array_equal(result[valid], expected[valid])


def test_disparity_steps_are_even_in_inverse_depth() -> None:
    floor = np.linspace(1, 2, 2000, dtype=np.float32)[:, None].repeat(3, 1)
    valid = np.ones(floor.shape, bool)
    counts = []
    for rng in drawn():
        stepped = round_disparity(floor, valid, rng)
        np.testing.assert_allclose(stepped, floor, rtol=0.05)
        levels = np.unique(1 / stepped.astype(np.float64))
        gaps = np.diff(levels)
        if gaps.max() < 1.1 * gaps.min():
            counts.append(float(1 / np.median(floor)) / gaps.mean())
    assert 15 < len(counts) < 45  # the others are smoothed between steps
    assert 19 < min(counts) < 40
    assert max(counts) < 410
    edge, valid = step_edge()
    for rng in drawn(20):  # no depth between two surfaces
        assert len(np.unique(round_disparity(edge, valid, rng))) == 2


def test_what_is_too_far_for_a_step_keeps_its_depth() -> None:
    far, valid = step_edge(1, 1e4)
    far[:, 40:] = 1
    for rng in drawn(10):
        stepped = round_disparity(far, valid, rng)
        assert (stepped[:, 34:38] == 1e4).all()


def test_the_truth_of_a_sensors_patch_stays() -> None:
    for name in OF_TRUTH:
        plain, changed = batches("tof"), batches("tof", {name: 1.0})
        assert_same(plain[0], changed[0])


@pytest.mark.parametrize("name", OF_TRUTH)
def test_the_low_map_is_made_of_the_changed_truth(name: str) -> None:
    batch = batches("area", {name: 1.0}, invalid=0.0)[0]
    plain = batches(invalid=0.0)[0]
    assert not torch.equal(batch.target[0], plain.target[0])
    size = (int(batch.low.shape[-2]), int(batch.low.shape[-1]))
    again, _ = DEGRADATIONS["area"](batch.target, batch.valid, None, size)
    torch.testing.assert_close(again, batch.low, rtol=0, atol=1e-5)


# Holes


def test_a_shadow_lies_on_the_far_side_and_is_as_wide_as_the_disparities_differ() -> None:
    depth = np.full((3, 40), 2, np.float32)
    depth[:, 15:25] = 1
    valid = np.ones(depth.shape, bool)
    for baseline, expected in ((7.0, slice(12, 15)), (-7.0, slice(25, 28)), (1.0, slice(0, 0))):
        hidden = np.zeros(depth.shape, bool)
        hidden[:, expected] = True  # 7 (1/1 - 1/2) = 3.5: three whole pixels
        assert np.array_equal(occluded(np.float32(1) / depth, valid, baseline), hidden)


@pytest.mark.parametrize("inverse", [False, True])
def test_shadow_holes_are_beside_near_things_on_one_side(inverse: bool) -> None:
    depth = np.full((60, 60), 3.0, np.float32)
    depth[:, 25:35] = 1
    valid = np.ones(depth.shape, bool)
    low = np.float32(1) / depth if inverse else depth
    widths, specks = [], []
    for rng in drawn():
        lost = ~cast_shadows(low, valid, inverse, rng)
        whole = lost.mean(0) > 0.9  # columns
        left, right = int(whole[:25].sum()), int(whole[35:].sum())
        assert not whole[25:35].any()
        assert left == 0 or right == 0
        if left:
            assert whole[25 - left : 25].all()
        if right:
            assert whole[35 : 35 + right].all()
        widths.append(left - right)
        specks.append(lost[:, ~whole].mean())
    assert 8 <= np.abs(widths).max() <= 12
    assert np.abs(widths).min() >= 1
    assert min(widths) < 0 < max(widths)
    assert 0 < np.median(specks) < 0.01


def test_at_least_half_of_the_measurements_stay() -> None:
    comb = np.where(np.arange(64) % 8 < 2, 1.0, 5.0).astype(np.float32)[None].repeat(64, 0)
    valid = np.random.default_rng(0).random(comb.shape) < 0.7
    for rng in drawn():
        kept = cast_shadows(np.where(valid, comb, 0), valid, False, rng)
        assert not (kept & ~valid).any()
        assert kept.sum() >= valid.sum() / 2
    nothing = np.zeros_like(valid)
    assert not cast_shadows(comb, nothing, False, np.random.default_rng(0)).any()
    one = np.ones((1, 1), np.float32)
    assert cast_shadows(one, one > 0, False, np.random.default_rng(0)).all()


@pytest.mark.parametrize("name", ["area", "tof"])
def test_shadow_holes_leave_values_and_truth_alone(name: str) -> None:
    plain, holed = batches(name)[0], batches(name, {"shadow_holes": 1.0})[0]
    assert not torch.equal(plain.low_valid, holed.low_valid)
    assert not (holed.low_valid & ~plain.low_valid).any()
    torch.testing.assert_close(in_metres(plain), in_metres(holed))


def in_metres(batch: Batch) -> Tensor:
    return batch.range.undo(batch.target)


# Noise


def test_input_noise_has_the_deviation_that_it_reports() -> None:
    ramp = np.linspace(1, 4, 100, dtype=np.float32)[None].repeat(100, 0)
    valid = np.ones(ramp.shape, bool)
    valid[:, :5] = False
    shares, growths = [], []
    for rng in drawn():
        noisy, sigma = add_noise(ramp, valid, rng)
        noise = noisy - ramp
        assert (noise[~valid] == 0).all()
        assert noise[valid].std() == pytest.approx(sigma, rel=0.02)
        shares.append(sigma / float(np.ptp(ramp[valid])))
        growths.append(noise[:, 90:].std() / noise[:, 5:15].std())
    assert 0.001 <= min(shares) < 0.002
    assert 0.01 < max(shares) <= 0.0151
    squared = np.array(growths) > 3
    assert 0.3 < squared.mean() < 0.7
    assert 0.8 < np.median(np.array(growths)[~squared]) < 1.2
    assert 7 < np.median(np.array(growths)[squared]) < 11  # (3.85 / 1.3)² = 8.8


def test_a_batch_says_how_noisy_its_maps_are_and_the_truth_is_not() -> None:
    source, plain = batches("area", {"input_noise": 0.5}), batches()
    seen = set()
    for step in range(4):
        noisy, clean = source[step], plain[step]
        assert torch.equal(noisy.valid, clean.valid)
        torch.testing.assert_close(in_metres(noisy), in_metres(clean))
        assert noisy.noise.shape == (4,)
        lows = (batch.range.undo(batch.low) for batch in (noisy, clean))
        error = torch.sub(*lows)
        for i in range(4):
            deviation = (error[i] / noisy.range.span[i])[noisy.low_valid[i]].square().mean().sqrt()
            assert float(noisy.noise[i]) == pytest.approx(float(deviation), rel=1e-3, abs=1e-6)
            seen.add(bool(noisy.noise[i] > 0))
        assert not clean.noise.any()
        assert torch.equal(noisy.part(1, 3).noise, noisy.noise[1:3])
        assert torch.equal(noisy.to(torch.device("cpu")).noise, noisy.noise)
    assert seen == {True, False}


def test_noise_is_for_maps_without_their_own() -> None:
    assert_same(batches("tof")[0], batches("tof", {"input_noise": 1.0})[0])


# The scale of each axis


def test_anisotropic_maps_have_two_scales_within_the_range() -> None:
    source = batches(anisotropy=0.5, scales=(1.0, 8.0), crop=48)
    sizes = [tuple(source[step].low.shape[-2:]) for step in range(60)]
    different = [size for size in sizes if size[0] != size[1]]
    assert 0.25 < len(different) / len(sizes) < 0.65
    assert any(h > w for h, w in different)
    assert any(h < w for h, w in different)
    assert all(6 <= side <= 48 for size in sizes for side in size)
    assert all(max(size) / min(size) < 1.9 for size in sizes)  # 5 / 3, and rounding


def test_without_anisotropy_nothing_is_drawn() -> None:
    for step in range(3):
        assert_same(batches()[step], batches(anisotropy=0.0)[step])
        square = batches(anisotropy=1e-9)[step]
        assert square.low.shape[-2] == square.low.shape[-1]


# Purity


def test_at_strength_0_every_batch_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {"invert": 0.5, "holes": 0.5, "colour": 0.5, "edge_jitter": 0.5}
    expected = [batches("area", others)[step] for step in range(3)]
    off = [batches("area", others | dict.fromkeys(EVERY, 0.0))[step] for step in range(3)]
    shorter = {name: entry for name, entry in AUGMENTATIONS.items() if name not in EVERY}
    monkeypatch.setattr("ducos.training.augmentations.AUGMENTATIONS", shorter)
    without = [batches("area", others)[step] for step in range(3)]
    for a, b, c in zip(expected, off, without, strict=True):
        assert_same(a, b)
        assert_same(a, c)
        assert not a.noise.any()


def test_a_batch_follows_from_seed_and_step_alone() -> None:
    chosen = {"invert": 0.5, **dict.fromkeys(EVERY, 0.7)}
    once, again = (batches("area", chosen, anisotropy=0.5) for _ in range(2))
    expected = [once[step] for step in range(4)]
    for step in (3, 0, 2, 2, 1):
        assert_same(again[step], expected[step])
        assert torch.equal(again[step].noise, expected[step].noise)
    assert not torch.equal(once[0].rgb, batches("area", chosen, seed=1)[0].rgb)


@pytest.mark.parametrize("invalid", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 20.0)])
def test_everything_at_once_is_finite(invalid: float, scales: tuple[float, float]) -> None:
    source = batches(
        "area", {"invert": 0.5, **EVERY}, invalid=invalid, scales=scales, anisotropy=0.5
    )
    for step in range(4):
        batch = source[step]
        for name in ("rgb", "low", "target", "noise"):
            assert getattr(batch, name).isfinite().all(), name


# Resampling at every ratio


@pytest.mark.parametrize("name", ["nearest", "last-pixel", "area", "bicubic"])
def test_resamplings_at_ratio_1_give_the_map_back(name: str) -> None:
    target = 1 + torch.rand(2, 1, 33, 40, generator=torch.Generator().manual_seed(0))
    valid = torch.rand(2, 1, 33, 40, generator=torch.Generator().manual_seed(1)) < 0.9
    low, low_valid = DEGRADATIONS[name](target, valid, None, (33, 40))
    assert torch.equal(low_valid, valid)
    torch.testing.assert_close(low, torch.where(valid, target, 0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["nearest", "last-pixel", "area", "bicubic"])
@pytest.mark.parametrize("size", [(32, 39), (29, 17), (13, 37), (2, 2)])
def test_resamplings_at_odd_ratios_stay_in_place(name: str, size: tuple[int, int]) -> None:
    """A plane stays that plane: sampled at the centres, at the far corner by `last-pixel`."""
    rows, columns = torch.arange(33.0)[:, None] + 0.5, torch.arange(40.0) + 0.5
    plane = (5 + 0.1 * rows + 0.2 * columns)[None, None]
    low, low_valid = DEGRADATIONS[name](plane, torch.ones_like(plane) > 0, None, size)
    assert low.shape[-2:] == size
    assert low_valid.all()
    y, x = ((torch.arange(n) + 0.5) * full / n for n, full in zip(size, (33, 40), strict=True))
    if name == "last-pixel":
        y, x = ((torch.arange(n) + 1.0) * full / n for n, full in zip(size, (33, 40), strict=True))
        y, x = y.ceil() - 0.5, x.ceil() - 0.5
    expected = 5 + 0.1 * y[:, None] + 0.2 * x
    loose = {"nearest": 0.151, "area": 0.02, "bicubic": 0.06 * max(33 / size[0], 40 / size[1])}
    torch.testing.assert_close(low[0, 0], expected, rtol=0, atol=loose.get(name, 1e-4))
