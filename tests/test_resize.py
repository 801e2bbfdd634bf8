"""Resampling against Pillow, its pixel-centre rule, and that holes never bleed."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from ducos.kernels import LIKE_COLOUR, UNLIKE_WEIGHT
from ducos.resize import (
    _next_valid,
    area,
    bicubic,
    bilinear,
    continued,
    fill_holes,
    from_cells,
    grown,
    low_size,
    masked_bicubic,
    moved,
    nearest,
    pad_to_multiple,
    to_cells,
)

SIDES = st.integers(1, 40)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def pillow(x: Tensor, size: tuple[int, int], how: Image.Resampling) -> np.ndarray:
    image = Image.fromarray(x[0, 0].numpy())
    return np.asarray(image.resize((size[1], size[0]), how))


# The resamplers


@given(h=SIDES, w=SIDES, H=SIDES, W=SIDES)
@example(h=5, w=3, H=7, W=1)
@example(h=3, w=5, H=1, W=7)
@example(h=9, w=1, H=4, W=1)
def test_bicubic_is_pillows(h: int, w: int, H: int, W: int) -> None:
    x = noise(1, 1, h, w, seed=h * 41 + w)
    theirs = pillow(x, (H, W), Image.Resampling.BICUBIC)
    np.testing.assert_allclose(bicubic(x, (H, W))[0, 0].numpy(), theirs, rtol=0, atol=1e-5)


@given(h=SIDES, w=SIDES, H=SIDES, W=SIDES)
@example(h=5, w=3, H=7, W=1)
@example(h=3, w=5, H=1, W=7)
@example(h=9, w=1, H=4, W=1)
def test_bilinear_is_pillows(h: int, w: int, H: int, W: int) -> None:
    x = noise(1, 1, h, w, seed=h * 41 + w)
    theirs = pillow(x, (H, W), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(bilinear(x, (H, W))[0, 0].numpy(), theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", [1.5, 2.7, 3.4, 5.3, 11.6])
def test_bicubic_is_pillows_at_the_fields_arbitrary_scales(scale: float) -> None:
    x = noise(1, 1, 96, 131)
    small = low_size((96, 131), scale)
    shrunk = bicubic(x, small)
    np.testing.assert_allclose(
        shrunk[0, 0].numpy(), pillow(x, small, Image.Resampling.BICUBIC), rtol=0, atol=1e-5
    )
    np.testing.assert_allclose(
        bicubic(shrunk, (96, 131))[0, 0].numpy(),
        pillow(shrunk, (96, 131), Image.Resampling.BICUBIC),
        rtol=0,
        atol=1e-5,
    )


@given(h=SIDES, w=SIDES, H=SIDES, W=SIDES)
def test_every_resampler_commutes_with_flipping(h: int, w: int, H: int, W: int) -> None:
    x = noise(1, 2, h, w)
    for resize in (bicubic, bilinear):
        flipped = resize(x.flip(-1, -2), (H, W)).flip(-1, -2)
        torch.testing.assert_close(resize(x, (H, W)), flipped, rtol=0, atol=1e-5)


@given(n=SIDES, N=SIDES)
def test_nearest_takes_the_pixel_that_holds_the_centre(n: int, N: int) -> None:
    x = torch.arange(n, dtype=torch.float64)[None, None, None]
    centre = (np.arange(N) + 0.5) * n / N
    taken = nearest(x, (1, N))[0, 0, 0].numpy()
    on_border = np.abs(centre - np.round(centre)) < 1e-9  # between two pixels: either is nearest
    np.testing.assert_array_equal(taken[~on_border], np.floor(centre[~on_border]))
    assert (np.abs(taken + 0.5 - centre) <= 0.5 + 1e-9).all()


@pytest.mark.parametrize("resize", [bicubic, bilinear])
@pytest.mark.parametrize(("n", "N"), [(12, 24), (12, 31), (10, 116), (9, 9)])
def test_a_ramp_stays_a_ramp(resize: object, n: int, N: int) -> None:
    position = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    ramp = position.expand(1, 1, 4, n)
    grown = resize(ramp, (4, N))[0, 0, 0]  # type: ignore[operator]
    expected = (torch.arange(N, dtype=torch.float64) + 0.5) / N
    inside = (expected > 2 / n) & (expected < 1 - 2 / n)
    torch.testing.assert_close(grown[inside], expected[inside], rtol=0, atol=1e-12)


def test_one_column() -> None:
    """torch's antialiased resampling goes wrong where the result is one pixel wide."""
    x = noise(1, 1, 2, 1)
    for resize in (bicubic, bilinear):
        grown = resize(x, (8, 1))[0, 0, :, 0]
        assert torch.equal(grown, resize(x.mT, (1, 8))[0, 0, 0])
        assert (grown[0] < grown[-1]) == (x[0, 0, 0, 0] < x[0, 0, 1, 0])


def test_same_size_is_untouched() -> None:
    x = noise(2, 1, 7, 5)
    assert torch.equal(bicubic(x, (7, 5)), x)
    assert torch.equal(bilinear(x, (7, 5)), x)


def test_bilinear_never_leaves_the_range() -> None:
    x = (noise(1, 1, 9, 9) > 0.5).float()
    for size in ((31, 40), (4, 3)):
        grown = bilinear(x, size)
        assert grown.min() >= -1e-6
        assert grown.max() <= 1 + 1e-6


@pytest.mark.parametrize(
    ("size", "scale", "expected"),
    [((480, 640), 4, (120, 160)), ((481, 643), 8, (60, 80)), ((100, 90), 11.6, (8, 7)),
     ((3, 5), 16, (1, 1)), ((30, 40), 1.5, (20, 26))],
)  # fmt: skip
def test_low_size_floors_and_never_vanishes(
    size: tuple[int, int], scale: float, expected: tuple[int, int]
) -> None:
    assert low_size(size, scale) == expected


# Holes


def holed(h: int, w: int, seed: int = 0, share: float = 0.3) -> tuple[Tensor, Tensor]:
    x, valid = noise(1, 1, h, w, seed=seed), noise(1, 1, h, w, seed=seed + 1000) > share
    valid[..., h // 2, w // 2] = True
    return x, valid


@given(h=SIDES, w=SIDES, H=SIDES, W=SIDES, seed=st.integers(0, 99))
def test_whatever_is_stored_in_a_hole_changes_nothing(
    h: int, w: int, H: int, W: int, seed: int
) -> None:
    x, valid = holed(h, w, seed)
    reference, mask = masked_bicubic(x, valid, (H, W))
    for stored in (0.0, 1e9, -torch.inf, torch.nan):
        values, same_mask = masked_bicubic(torch.where(valid, x, stored), valid, (H, W))
        assert torch.equal(values, reference)
        assert torch.equal(mask, same_mask)
    assert reference.isfinite().all()


@given(h=SIDES, w=SIDES, H=SIDES, W=SIDES, seed=st.integers(0, 99))
def test_holes_neither_bleed_nor_ring(h: int, w: int, H: int, W: int, seed: int) -> None:
    """Nothing leaves the valid range by more than bicubic's own overshoot does without holes."""
    x, valid = holed(h, w, seed)
    x = x + 5  # a hole read as 0 would be seen at once
    lowest, highest = x[valid].min(), x[valid].max()
    overshoot = 0.6 * (highest - lowest) + 1e-4  # sum of |negative weights| of the 2-D kernel
    values, _ = masked_bicubic(torch.where(valid, x, torch.nan), valid, (H, W))
    assert values.min() >= lowest - overshoot
    assert values.max() <= highest + overshoot


@given(h=SIDES, w=SIDES, H=SIDES, W=SIDES, seed=st.integers(0, 99))
def test_a_constant_map_with_holes_stays_constant(
    h: int, w: int, H: int, W: int, seed: int
) -> None:
    _, valid = holed(h, w, seed, share=0.8)
    values, _ = masked_bicubic(torch.where(valid, 3.25, torch.nan), valid, (H, W))
    torch.testing.assert_close(values, torch.full((1, 1, H, W), 3.25), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [(33, 47), (5, 4), (40, 3)])
def test_without_holes_masked_bicubic_is_bicubic(size: tuple[int, int]) -> None:
    x = noise(2, 1, 13, 11)
    values, mask = masked_bicubic(x, torch.ones_like(x, dtype=torch.bool), size)
    assert torch.equal(values, bicubic(x, size))
    assert mask.all()


def test_mask_follows_the_nearest_pixel_when_growing() -> None:
    x, valid = holed(6, 7)
    _, mask = masked_bicubic(x, valid, (12, 21))
    expected = valid.repeat_interleave(2, 2).repeat_interleave(3, 3)
    assert torch.equal(mask, expected)


def test_mask_follows_the_larger_part_when_shrinking() -> None:
    valid = torch.ones(1, 1, 12, 12, dtype=torch.bool)
    valid[..., :4, :4] = False  # one low-resolution pixel, entirely
    _, mask = masked_bicubic(noise(1, 1, 12, 12), valid, (3, 3))
    expected = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    expected[..., 0, 0] = False
    assert torch.equal(mask, expected)


@given(h=SIDES, w=SIDES, seed=st.integers(0, 99), share=st.floats(0, 1))
def test_filling_keeps_valid_pixels_and_the_valid_range(
    h: int, w: int, seed: int, share: float
) -> None:
    x, valid = holed(h, w, seed, share)
    filled = fill_holes(torch.where(valid, x, torch.nan), valid)
    assert torch.equal(filled[valid], x[valid])
    assert filled.min() >= x[valid].min() - 1e-6
    assert filled.max() <= x[valid].max() + 1e-6


def test_filling_continues_what_is_near() -> None:
    """Left half 1, right half 5: a hole in the left half must be filled from the left."""
    x = torch.cat([torch.ones(1, 1, 16, 16), torch.full((1, 1, 16, 16), 5.0)], 3)
    valid = torch.ones_like(x, dtype=torch.bool)
    valid[..., 6:9, 3:6] = False
    filled = fill_holes(torch.where(valid, x, torch.nan), valid)
    assert (filled[..., 6:9, 3:6] - 1).abs().max() < 0.05


@given(h=SIDES, w=SIDES, seed=st.integers(0, 99), share=st.floats(0, 1))
def test_guided_filling_keeps_valid_pixels_and_the_valid_range(
    h: int, w: int, seed: int, share: float
) -> None:
    x, valid = holed(h, w, seed, share)
    guide = noise(1, 3, h, w, seed=seed + 1)
    filled = fill_holes(torch.where(valid, x, torch.nan), valid, guide)
    assert torch.equal(filled[valid], x[valid])
    assert filled.min() >= x[valid].min() - 1e-5
    assert filled.max() <= x[valid].max() + 1e-5


def test_an_edge_in_a_hole_lies_where_the_colours_change() -> None:
    """Near on the left, far on the right, and a wide hole across; its colours end at column 21."""
    x = torch.ones(1, 1, 32, 32)
    x[..., 21:] = 5.0
    guide = torch.stack([x[:, 0] / 5, torch.full((1, 32, 32), 0.5), 1 - x[:, 0] / 5], 1)
    valid = torch.ones_like(x, dtype=torch.bool)
    valid[..., 10:22, 11:25] = False
    plain, guided = (fill_holes(torch.where(valid, x, torch.nan), valid, g) for g in (None, guide))
    hole = ~valid
    assert (guided - x)[hole].abs().mean() < 0.4 * (plain - x)[hole].abs().mean()
    assert (guided[..., 10:22, 20] < 2.5).all()
    assert (guided[..., 10:22, 21] > 4).all()


def filled_by_hand(
    smooth: np.ndarray, weight: np.ndarray, guide: np.ndarray, far: float
) -> np.ndarray:
    """What `fill_holes` says it does, pixel by pixel: (h, w), (h, w), (C, h, w) -> (h, w)."""
    h, w = smooth.shape
    typical = (weight * smooth).sum() / weight.sum()
    trust = weight * np.clip(smooth / typical, 0.05, 20) ** far
    out = smooth.copy()
    for y, x in zip(*np.nonzero(weight == 0), strict=True):
        votes, values = [], []
        for down, right in ((0, -1), (0, 1), (-1, 0), (1, 0)):
            for step in range(1, max(h, w)):
                row, column = y + step * down, x + step * right
                if not (0 <= row < h and 0 <= column < w):
                    break
                if weight[row, column] > 0:
                    unlike = ((guide[:, row, column] - guide[:, y, x]) ** 2).sum()
                    alike = np.exp(-unlike / (2 * LIKE_COLOUR**2)) + UNLIKE_WEIGHT
                    votes.append(trust[row, column] * alike / step**2)
                    values.append(smooth[row, column])
                    break
        if votes:
            out[y, x] = np.average(values, weights=votes)
    return out


@pytest.mark.parametrize("far", [0.0, 2.0])
@pytest.mark.parametrize("kind", ["few", "many", "weights"])
def test_guided_filling_is_what_it_says(kind: str, far: float) -> None:
    """Valid pixels at all borders, holes without any valid pixel in sight, weights between."""
    rng = np.random.default_rng(len(kind))
    x = rng.uniform(0.5, 4, (9, 12))
    weight = (rng.random((9, 12)) < {"few": 0.08, "many": 0.6, "weights": 0.4}[kind]).astype(float)
    weight[[0, -1, 3], [2, 5, 0]] = weight[4, -1] = 1
    if kind == "weights":
        weight *= rng.choice([0.25, 0.5, 1.0], weight.shape)
    guide = 0.5 + rng.uniform(-0.1, 0.1, (3, 9, 12))
    maps = (torch.tensor(each)[None, None] for each in (x, weight))
    low, valid = maps
    given = low, (valid if kind == "weights" else valid > 0)
    smooth = continued(*given)[0, 0].numpy()
    filled = fill_holes(*given, torch.tensor(guide)[None], far)[0, 0].numpy()
    np.testing.assert_allclose(filled, filled_by_hand(smooth, weight, guide, far), rtol=1e-9)


def test_a_guide_of_another_size_is_averaged() -> None:
    x, valid = noise(1, 1, 6, 8), noise(1, 1, 6, 8, seed=5) > 0.5
    guide = noise(1, 3, 18, 32, seed=6)
    small = guide.view(1, 3, 6, 3, 8, 4).mean((3, 5))
    torch.testing.assert_close(fill_holes(x, valid, guide), fill_holes(x, valid, small))


def test_each_level_halves_by_valid_means() -> None:
    """By hand: level 0 leaves holes at 0, level 1 takes the means of the valid in 2×2 pixels."""
    x = torch.tensor([[1.0, 3, 5, 9], [2, 9, 9, 9]])[None, None]
    valid = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]).bool()[None, None]
    zeroed = torch.where(valid, x, 0)
    assert torch.equal(continued(x, valid, 0), zeroed)
    coarse = torch.tensor([[[[2.0, 5.0]]]])
    expected = torch.where(valid, x, bilinear(coarse, (2, 4)))
    torch.testing.assert_close(continued(x, valid, 1), expected)
    weights = torch.tensor([[1, 0.5, 1, 0], [0.25, 0, 0, 0]])[None, None]
    coarse = torch.tensor([[[[(1 + 1.5 + 0.5) / 1.75, 5.0]]]])
    expected = torch.where(valid, x, bilinear(coarse, (2, 4)))
    torch.testing.assert_close(continued(x, weights, 1), expected)


def test_weights_reach_the_levels_below() -> None:
    """Two levels down a mean of 16 pixels counts each by its weight; without weights each 2×2 mean
    counts alike, however many pixels it has."""
    x = torch.zeros(1, 1, 8, 4)
    x[0, 0, :2, 0], x[0, 0, 0, 2] = 1.0, 4.0
    valid = x > 0
    plain = continued(x, valid, 2)[0, 0, 3, 3]
    weighted = continued(x, valid * torch.where(x == 1, 0.1, 1.0), 2)[0, 0, 3, 3]
    # Means two levels down: (1 + 4) / 2 and (2 · 0.1 · 1 + 1 · 4) / 1.2; the lower half is empty.
    assert float(weighted / plain) == pytest.approx((4.2 / 1.2) / 2.5, rel=1e-5)


# Of a map (1, 1, 9, 13), its validity, and an image (1, 3, 18, 26); sizes are those of the other.
EXPORTED: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "bicubic, growing": lambda x, valid, guide: bicubic(x, guide.shape[2:]),
    "bicubic, shrinking": lambda x, valid, guide: bicubic(guide, x.shape[2:]),
    "bilinear, mixed": lambda x, valid, guide: bilinear(x[..., :8], (guide.shape[2], x.shape[2])),
    "grown": lambda x, valid, guide: grown(x, guide.shape[2:]),
    "area": lambda x, valid, guide: area(guide, x.shape[2:]),
    "padded": lambda x, valid, guide: pad_to_multiple(x, 8),
    "padded by more than it has": lambda x, valid, guide: pad_to_multiple(x, 32),
    "cells": lambda x, valid, guide: to_cells(guide[..., :16, :24], 4),
    "pixels of cells": lambda x, valid, guide: from_cells(to_cells(guide[..., :16, :24], 4), 2),
    "filled": lambda x, valid, guide: fill_holes(x, valid > 0.6),
    "filled with a guide": lambda x, valid, guide: fill_holes(x, valid > 0.6, guide, 1.0),
    "masked": lambda x, valid, guide: masked_bicubic(x, valid > 0.6, guide.shape[2:])[0],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXPORTED)
def test_the_forms_for_exported_graphs_give_the_same(name: str) -> None:
    """A graph that was traced from some maps, run on these and on others."""
    function, sizes = EXPORTED[name], ((1, 9, 13), (1, 9, 13), (3, 18, 26))
    some, others = ([noise(1, *size, seed=n) for n, size in enumerate(sizes, first)]
                    for first in (0, 7))  # fmt: skip
    graph = torch.jit.trace(function, some, check_trace=False)
    for maps in (some, others):
        torch.testing.assert_close(graph(*maps), function(*maps), atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backwards", [False, True])
def test_an_exported_graph_looks_as_far_for_a_valid_pixel(backwards: bool) -> None:
    """300 pixels, of which the first and the last are valid."""
    known = torch.zeros(1, 1, 1, 300, dtype=torch.bool)
    known[..., [0, -1]] = True
    graph = torch.jit.trace(lambda x: _next_valid(x, 3, backwards), known, check_trace=False)
    for found, expected in zip(graph(known), _next_valid(known, 3, backwards), strict=True):
        assert torch.equal(found, expected)


def test_guided_filling_does_not_mind_the_unit() -> None:
    """Weights by depth are of the typical depth, not of metres."""
    x, valid = 0.5 + 3 * noise(1, 1, 9, 12), noise(1, 1, 9, 12, seed=3) > 0.4
    guide = 0.5 + 0.1 * noise(1, 3, 9, 12, seed=4)
    filled = fill_holes(x, valid, guide, 2.0)
    torch.testing.assert_close(fill_holes(1000 * x, valid, guide, 2.0), 1000 * filled)


def test_filling_a_batch_is_filling_its_images() -> None:
    x, valid = noise(3, 1, 9, 14), noise(3, 1, 9, 14, seed=5) > 0.5
    valid[1] = True
    together = fill_holes(x, valid)
    for i in range(3):
        torch.testing.assert_close(together[i : i + 1], fill_holes(x[i : i + 1], valid[i : i + 1]))


def test_an_image_without_any_measurement_becomes_zero() -> None:
    x = torch.full((2, 1, 7, 9), torch.nan)
    valid = torch.zeros_like(x, dtype=torch.bool)
    valid[1, 0, 3, 3], x[1, 0, 3, 3] = True, 2.0
    filled = fill_holes(x, valid)
    assert (filled[0] == 0).all()
    torch.testing.assert_close(filled[1], torch.full((1, 7, 9), 2.0))


# Padding


@given(H=SIDES, W=SIDES, multiple=st.integers(1, 32))
def test_padding_reaches_multiples_and_keeps_the_image(H: int, W: int, multiple: int) -> None:
    x = noise(1, 2, H, W)
    padded = pad_to_multiple(x, multiple)
    height, width = padded.shape[-2:]
    assert height % multiple == 0
    assert width % multiple == 0
    assert height - H < multiple
    assert width - W < multiple
    assert torch.equal(padded[..., :H, :W], x)
    assert set(padded.flatten().tolist()) <= set(x.flatten().tolist())


def test_padding_mirrors_without_repeating_the_edge_pixel() -> None:
    x = torch.arange(6.0)[None, None, None].expand(1, 1, 7, 6)
    assert pad_to_multiple(x, 8)[0, 0, 0].tolist() == [0, 1, 2, 3, 4, 5, 4, 3]


@pytest.mark.parametrize(("h", "w"), [(9, 4), (4, 9)])
def test_padding_by_all_that_there_is_repeats_the_edge_pixel(h: int, w: int) -> None:
    """A mirror without the edge has one pixel less than that."""
    x = noise(1, 1, h, w)
    padded = pad_to_multiple(x, 8)
    expected = torch.nn.functional.pad(x, (0, -w % 8, 0, -h % 8), mode="replicate")
    assert torch.equal(padded, expected)


def test_padding_repeats_the_edge_pixel_of_tiny_images() -> None:
    assert pad_to_multiple(torch.tensor([[[[1.0, 2.0]]]]), 4)[0, 0].tolist() == [[1, 2, 2, 2]] * 4


@pytest.mark.parametrize("resampler", [bicubic, bilinear])
def test_half_precision_is_the_rounded_result(
    resampler: Callable[[Tensor, tuple[int, int]], Tensor],
) -> None:
    x = noise(1, 2, 9, 7).bfloat16()
    half = resampler(x, (20, 5))
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, resampler(x.float(), (20, 5)).bfloat16())


def test_moving_repeats_the_border_or_fills_in() -> None:
    x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert moved(x, 1, 0).tolist() == [[1, 1, 2], [4, 4, 5]]
    assert moved(x, -2, 1).tolist() == [[3, 3, 3], [3, 3, 3]]
    assert moved(x, -1, -1, beyond=0).tolist() == [[5, 6, 0], [0, 0, 0]]
    assert moved(x > 2, 1, 0, beyond=False).tolist() == [[False, False, False], [False, True, True]]
    assert moved(x, 9, 9, beyond=7).tolist() == [[7, 7, 7], [7, 7, 7]]


def test_moving_leaves_other_axes_alone() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    for beyond in (None, -1.0):
        planes = [moved(plane, 1, -1, beyond) for plane in x[0]]
        assert torch.equal(moved(x, 1, -1, beyond)[0], torch.stack(planes))


@pytest.mark.parametrize("axis", [2, 3])
@pytest.mark.parametrize("backwards", [False, True])
def test_where_no_pixel_is_valid_there_is_no_distance(axis: int, backwards: bool) -> None:
    known = torch.zeros(1, 1, 3, 3, dtype=torch.bool)
    assert (_next_valid(known, axis, backwards)[1] == 0).all()


def test_guided_filling_of_a_batch_is_that_of_its_images() -> None:
    torch.manual_seed(0)
    x, guide = (
        torch.rand(2, 1, 12, 9) * torch.tensor([1.0, 50.0])[:, None, None, None],
        torch.rand(2, 3, 12, 9),
    )
    valid = torch.rand(2, 1, 12, 9) > 0.4
    both = fill_holes(x, valid, guide, 1.0)
    for n in range(2):
        alone = fill_holes(x[n : n + 1], valid[n : n + 1], guide[n : n + 1], 1.0)
        assert torch.allclose(both[n : n + 1], alone, rtol=1e-6)
