"""The mixing tail: what it promises whatever its weights are, and what it is before training."""

import math

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline
from torch import Tensor, nn

from ducos.models import DuCosCompact
from ducos.models.ducos.around import TAPS, Around, gather, window_of
from ducos.models.ducos.mixing import BEYOND, MixingTail, expected_error, within_reach
from ducos.resize import fill_holes

RATIOS = [(1, 1), (2, 2), (1.5, 3.4), (11.6, 2.7), (5, 1)]


def mixer(
    *,
    corrections: int = 0,
    steepenings: int = 0,
    learned: bool = False,
    focus: bool = True,
    detail: bool = True,
) -> DuCosCompact:
    """A small network with the mixing tail.

    learned: large random weights in place of zeros, as if training had gone anywhere.
    focus, detail: False switches these maps of the tail off.
    """
    torch.manual_seed(3)
    model = DuCosCompact(
        None,
        channels=8,
        iterations=1,
        guided=False,
        corrections=corrections,
        steepenings=steepenings,
    ).eval()
    predict: nn.Conv2d = model.tail.predict
    group = model.tail.stride**2
    with torch.no_grad():
        if learned:
            predict.weight.normal_(0, 2)
        else:
            predict.weight.zero_()
        for on, index, off_bias in ((focus, TAPS**2 + 1, -60.0), (detail, TAPS**2 + 2, 0.0)):
            if not on:
                rows = slice(index * group, (index + 1) * group)
                predict.weight[rows] = 0
                predict.bias[rows] = off_bias
    return model


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def full_size(low: Tensor, ratio: tuple[float, float]) -> tuple[int, int]:
    return round(low.shape[-2] * ratio[0]), round(low.shape[-1] * ratio[1])


def run(
    model: DuCosCompact, low: Tensor, size: tuple[int, int], valid: Tensor | None = None
) -> Tensor:
    with torch.no_grad():
        return model(noise(low.shape[0], 3, *size, seed=9), low, valid).depth


def cubic_spline(n: int, N: int) -> np.ndarray:
    """(N, n): weight of each of n measurements at each of N pixels; edge measurements repeat."""
    kernel = BSpline.basis_element([-2, -1, 0, 1, 2], extrapolate=False)
    centre = (np.arange(N) + 0.5) * n / N - 0.5
    weights = np.zeros((N, n))
    for index in range(-3, n + 3):
        weights[:, min(max(index, 0), n - 1)] += np.nan_to_num(kernel(index - centre))
    return weights


@pytest.mark.parametrize("ratio", RATIOS)
def test_without_preferences_it_is_cubic_spline_smoothing(ratio: tuple[float, float]) -> None:
    low = noise(2, 1, 7, 6)
    H, W = full_size(low, ratio)
    ours = run(mixer(focus=False), low, (H, W))
    expected = cubic_spline(7, H) @ low.numpy() @ cubic_spline(6, W).T
    np.testing.assert_allclose(ours.numpy(), expected, atol=2e-5)


def test_before_training_it_is_close_to_that() -> None:
    low = noise(1, 1, 7, 6)
    torch.manual_seed(0)
    quiet = {"corrections": 0, "steepenings": 0}
    fresh = DuCosCompact(None, channels=8, iterations=1, guided=False, **quiet)
    expected = cubic_spline(7, 28) @ low.numpy() @ cubic_spline(6, 24).T
    difference = run(fresh.eval(), low, (28, 24)).numpy() - expected
    assert np.sqrt((difference**2).mean()) < 0.15 * low.std().item()


@pytest.mark.parametrize("corrections", [0, 2])
def test_the_result_is_continuous_in_position(corrections: int) -> None:
    """Twice as many pixels halve every step between neighbours; a jump would keep its size."""
    low = noise(1, 1, 1, 12, seed=1)
    model = mixer(corrections=corrections)
    steps = []
    for W in (12 * 96, 12 * 192):
        row = run(model, low, (4, W))[0, 0, 0]
        steps.append((row[1:] - row[:-1]).abs().max().item())
    assert steps[1] < 0.6 * steps[0]


def test_the_result_is_continuous_in_ratio() -> None:
    """One more output pixel changes little at corresponding places."""
    low = noise(1, 1, 6, 6)
    model = mixer(corrections=2)
    a, b = run(model, low, (160, 160)), run(model, low, (161, 161))
    there = torch.nn.functional.interpolate(b, (160, 160), mode="bilinear", antialias=True)
    assert (a - there).abs().max() < 0.03


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("level", [0.0, 0.3, 1.0])
def test_a_constant_map_stays_constant(
    ratio: tuple[float, float], learned: bool, level: float
) -> None:
    low = torch.full((1, 1, 5, 6), level)
    valid = noise(1, 1, 5, 6) > 0.3
    model = mixer(corrections=2, learned=learned)
    for mask in (None, valid):
        depth = run(model, low, full_size(low, ratio), mask)
        torch.testing.assert_close(depth, torch.full_like(depth, level), rtol=0, atol=1e-4)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("learned", [False, True])
def test_the_mean_stays_within_the_neighbours(ratio: tuple[float, float], learned: bool) -> None:
    """Without detail and corrections nothing leaves the range of the neighbours."""
    low, valid = noise(2, 1, 7, 6), noise(2, 1, 7, 6, seed=4) > 0.4
    size = full_size(low, ratio)
    depth = run(mixer(learned=learned, detail=False), low, size, valid)
    neighbours = gather(low, window_of((7, 6), size, low))
    assert (depth >= neighbours.amin(1, keepdim=True) - 1e-4).all()
    assert (depth <= neighbours.amax(1, keepdim=True) + 1e-4).all()


def test_a_filled_in_neighbour_weighs_an_eighth() -> None:
    """Without preferences: as near and as like as a measurement, e⁻² of its weight."""
    hole = torch.zeros(1, 16, 1, 1, dtype=torch.bool)
    hole[:, :8] = True
    flat = torch.zeros(1, 16, 1, 1)
    weights = MixingTail.weigh(flat, flat, hole).flatten()
    torch.testing.assert_close(weights[:8], weights[8:] * math.exp(-2))
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))
    torch.testing.assert_close(MixingTail.weigh(flat, flat, None), torch.full_like(flat, 1 / 16))


@pytest.mark.parametrize("learned", [False, True])
def test_corrections_do_not_hand_back_what_was_filled_in(learned: bool) -> None:
    """Only measurements are facts: with none, corrections change nothing."""
    low, nothing = noise(1, 1, 6, 6), torch.zeros(1, 1, 6, 6, dtype=torch.bool)
    plain, corrected = (
        run(mixer(learned=learned, corrections=n), low, (24, 24), nothing) for n in (0, 4)
    )
    torch.testing.assert_close(plain, corrected)


def test_without_any_measurement_near_the_filled_values_serve() -> None:
    low, valid = noise(1, 1, 6, 6), torch.zeros(1, 1, 6, 6, dtype=torch.bool)
    model = mixer(focus=False)
    torch.testing.assert_close(run(model, low, (24, 24), valid), run(model, low, (24, 24)))


def test_corrections_bring_the_shrunk_result_closer_to_the_measurements() -> None:
    from ducos.resize import bicubic

    low = noise(1, 1, 8, 8)
    errors = []
    for corrections in (0, 1, 2, 4):
        depth = run(mixer(corrections=corrections), low, (64, 64))
        errors.append((bicubic(depth, (8, 8)) - low).square().mean().sqrt().item())
    assert errors[0] > errors[1] > errors[2] > errors[3]


def test_sigma_is_small_on_planes_and_large_at_steps() -> None:
    low = torch.zeros(1, 1, 8, 8)
    low[..., 4:] = 1
    with torch.no_grad():
        sigma = mixer()(noise(1, 3, 64, 64), low).aux["sigma"]
    assert sigma.shape == (1, 1, 64, 64)
    assert sigma[..., 28:36].min() > 0.3
    assert sigma[..., :12].max() < 2e-3


def test_the_reach_ends_where_it_says() -> None:
    """Neighbours of 1 and 3: a share BEYOND of their range below and above, nothing else moves."""
    low = torch.ones(1, 1, 8, 8)
    low[..., 4:] = 3.0
    around = Around.of(torch.zeros(1, 3, 16, 16), low, None)
    for far, end in ((-9.0, 1 - BEYOND * 2), (2.0, 2.0), (9.0, 3 + BEYOND * 2)):
        depth = within_reach(torch.full((1, 1, 16, 16), far), around)
        assert depth[0, 0, 8, 8].item() == pytest.approx(end)
        assert depth[0, 0, 8, 1].item() == pytest.approx(1.0)  # where all neighbours are 1


@pytest.mark.parametrize("corrections", [0, 4])
def test_whatever_is_learned_the_result_stays_near_the_measurements(corrections: int) -> None:
    low = noise(1, 1, 9, 7, seed=4)
    model = mixer(corrections=corrections, learned=True)
    depth = run(model, low, (63, 50))
    neighbours = gather(low, window_of((9, 7), (63, 50), low))
    lowest, highest = neighbours.amin(1, keepdim=True), neighbours.amax(1, keepdim=True)
    beyond = BEYOND * (highest - lowest) + 1e-6
    assert (depth >= lowest - beyond).all()
    assert (depth <= highest + beyond).all()


def test_doubt_scales_sigma_within_bounds() -> None:
    spread, contrast = torch.tensor([[[[0.04]]]]), torch.tensor([[[[0.5]]]])
    rough = 0.2 + 0.05 + 1e-3
    for doubt, factor in ((0.0, 1.0), (1e6, math.exp(4)), (-1e6, math.exp(-4))):
        sigma = expected_error(spread, contrast, torch.tensor([[[[doubt]]]]))
        assert sigma.item() == pytest.approx(rough * factor, rel=1e-4)


@pytest.mark.parametrize(("n", "N"), [(1, 1), (1, 9), (2, 3), (5, 5), (7, 80), (9, 31)])
def test_the_window_surrounds_each_pixel(n: int, N: int) -> None:
    like = torch.zeros(1, dtype=torch.float64)
    window = window_of((n, n), (N, N), like)
    centre = (np.arange(N) + 0.5) * n / N - 0.5
    first = np.floor(centre).astype(int)
    expected = np.clip(first[:, None] + np.arange(-1, 3), 0, n - 1)
    np.testing.assert_array_equal(window.rows.numpy(), expected)
    np.testing.assert_array_equal(window.columns.numpy(), expected)
    assert torch.cat([window.row_phase, window.column_phase]).min() >= 0
    assert torch.cat([window.row_phase, window.column_phase]).max() < 1
    np.testing.assert_allclose(window.row_phase.numpy(), centre - first, atol=1e-12)
    np.testing.assert_allclose(window.column_phase.numpy(), centre - first, atol=1e-12)


def test_gather_reads_row_by_row() -> None:
    low = torch.arange(30.0).reshape(1, 1, 5, 6)
    window = window_of((5, 6), (5, 6), low)  # ratio 1: the pixel itself is the second tap
    around = gather(low, window)[0, :, 2, 3].reshape(TAPS, TAPS)
    assert torch.equal(around, low[0, 0, 1:5, 2:6])


def test_gradients_are_finite_on_flat_maps_and_in_holes() -> None:
    model = mixer(corrections=2, learned=True).train()
    low = torch.zeros(1, 1, 5, 5)
    valid = noise(1, 1, 5, 5) > 0.7
    model(noise(1, 3, 20, 20), low, valid).depth.square().sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            assert parameter.grad.isfinite().all(), name


def test_holes_are_filled_before_not_here() -> None:
    """What `super_resolve` does: fill, then run. The result is finite everywhere."""
    low, valid = noise(1, 1, 6, 6), noise(1, 1, 6, 6, seed=2) > 0.6
    filled = fill_holes(torch.where(valid, low, torch.nan), valid)
    assert run(mixer(corrections=2, learned=True), filled, (31, 45), valid).isfinite().all()


def edge(slope: float = 0.0, step: float = 1.0) -> Tensor:
    """A slanted plane with a step in the middle, (1, 1, 8, 8)."""
    column = torch.arange(8.0)
    return (0.2 + slope * column + step * (column >= 4)).expand(1, 1, 8, 8) / 2


def between(depth: Tensor, low: Tensor) -> float:
    """Mean distance to the nearer end of the range, as a share of the range."""
    place = (depth - low.min()) / (low.max() - low.min())
    return float(torch.minimum(place, 1 - place).mean())


def test_steepening_leaves_less_between_two_surfaces() -> None:
    low = edge()
    shares = [
        between(run(mixer(steepenings=n, focus=False), low, (16, 16)), low) for n in (0, 2, 4)
    ]
    assert shares[0] > 1.05 * shares[1]
    assert shares[1] > shares[2]


def test_steepening_leaves_slanted_planes_alone() -> None:
    low = edge(slope=0.1, step=0.0)
    plain, steep = (run(mixer(steepenings=n, focus=False), low, (32, 32)) for n in (0, 2))
    inner = (..., slice(8, -8), slice(8, -8))  # at its border the repeated measurements bend it
    torch.testing.assert_close(steep[inner], plain[inner], atol=2e-4, rtol=0)


def test_steepening_keeps_the_range_and_ratio_1() -> None:
    low = noise(1, 1, 9, 7)
    plain, steep = (run(mixer(steepenings=n, learned=True), low, (36, 28)) for n in (0, 2))
    assert steep.min() >= plain.min() - 1e-6
    assert steep.max() <= plain.max() + 1e-6
    same, at_ratio_1 = (run(mixer(steepenings=n, learned=True), low, (9, 7)) for n in (0, 2))
    assert torch.equal(same, at_ratio_1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("holes", [False, True])
def test_the_weights_of_an_exported_graph_are_the_same(holes: bool) -> None:
    """There the softmax is written out; logits of any size, traced from others."""
    size = (2, 16, 5, 4)
    some, others = (
        (scale * noise(*size, seed=n), noise(*size, seed=n + 1), 1.0 * (noise(*size) > 0.7))
        for n, scale in ((0, 1.0), (10, 300.0))
    )
    some, others = (maps if holes else (*maps[:2], None) for maps in (some, others))
    graph = torch.jit.trace(
        lambda *maps: MixingTail.weigh(*maps, *([] if holes else [None])),
        some if holes else some[:2], check_trace=False,
    )  # fmt: skip
    for maps in (some, others):
        expected = MixingTail.weigh(*maps)
        assert expected.sum(1).sub(1).abs().max() < 1e-5
        torch.testing.assert_close(graph(*(maps if holes else maps[:2])), expected)
