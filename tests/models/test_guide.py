"""The regression of measurements on colours: exact where it can be, and blind to holes."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from ducos.models import create
from ducos.models.ducos.guide import RIDGE, WINDOWS, applied, fits, follow, regress, shrunk, solve
from ducos.resize import bicubic

DOUBLE = torch.float64


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_solve_equals_a_factorisation(n: int) -> None:
    factor = noise(2, 5, 6, n, n + 2) - 0.5
    matrix = factor @ factor.mT + 1e-3 * torch.eye(n, dtype=DOUBLE)
    right = noise(2, 5, 6, n, seed=1)
    rows = [[matrix[..., i, j][:, None] for j in range(n)] for i in range(n)]
    solution = torch.cat(solve(rows, [right[..., i][:, None] for i in range(n)]), 1)
    expected = torch.linalg.solve(matrix, right[..., None])[..., 0].permute(0, 3, 1, 2)
    torch.testing.assert_close(solution, expected)


def test_depth_linear_in_the_colours_comes_back_at_full_resolution() -> None:
    rgb = noise(1, 3, 32, 48)
    slopes = torch.tensor([0.3, -0.2, 0.1], dtype=DOUBLE)[None, :, None, None]
    truth = (slopes * rgb).sum(1, keepdim=True) + 0.2
    low = (slopes * shrunk(rgb, (8, 12))).sum(1, keepdim=True) + 0.2
    up = bicubic(low, (32, 48))
    guided = follow(rgb, low, None, up, torch.ones_like(up))
    # Not exactly: the ridge of 1e-4 takes its share of slopes fitted to a variance of 5e-3.
    assert (guided - truth).square().mean() < 0.03 * (up - truth).square().mean()


@pytest.mark.parametrize("side", WINDOWS)
def test_a_fit_is_what_least_squares_with_a_ridge_gives(side: int) -> None:
    """Every n×n window of a repeated n×n map holds the same values, so that all fits are one."""
    guide, low = noise(1, 2, side, side), noise(1, 1, side, side, seed=1)
    x = guide[0].flatten(1).T - guide[0].flatten(1).mean(1)
    y = low.flatten() - low.mean()
    gram = x.T @ x / side**2 + RIDGE * torch.eye(2, dtype=DOUBLE)
    expected = torch.linalg.solve(gram, x.T @ y / side**2)
    repeated = [m.repeat(1, 1, 3, 3) for m in (guide, low)]
    middle = side + side // 2
    slopes = regress(repeated[0], repeated[1], None, side)[0, :2, middle, middle]
    torch.testing.assert_close(slopes, expected)


def test_a_wide_fit_puts_a_frayed_edge_where_the_colours_change() -> None:
    """A sensor's edge runs to and fro, by a pixel of its map, about the picture's straight one."""
    H, W = 48, 64
    rgb = torch.full((1, 3, H, W), 0.2, dtype=DOUBLE)
    rgb[..., W // 2 :] = 0.8
    truth = (rgb[:, :1] > 0.5).to(DOUBLE)
    low = torch.zeros(1, 1, 12, 16, dtype=DOUBLE)
    for row in range(12):
        low[..., row, 8 + (1, -1, 0)[row % 3] :] = 1
    up = bicubic(low, (H, W))
    near, wide = follow(rgb, low, None, up, torch.ones_like(up), list(WINDOWS)).split(1, 1)
    errors = [float((x - truth).square().mean().sqrt()) for x in (up, near, wide)]
    assert errors[2] < 0.75 * errors[1] < 0.75 * errors[0]


def test_a_new_guide_hardly_counts_at_first() -> None:
    torch.manual_seed(0)
    tail = create("ducos-compact", wide=True).tail
    lean = tail.predict.bias.view(-1, 16)[-2:, 0]
    assert lean.tolist() == [0.0, -2.0]


def test_values_filled_into_holes_do_not_count() -> None:
    guide, low = noise(1, 3, 9, 9), noise(1, 1, 9, 9, seed=1)
    valid = torch.ones(1, 1, 9, 9, dtype=torch.bool)
    valid[..., 4, 4] = False
    filled = low.clone()
    filled[..., 4, 4] += 0.2
    with_mask = [regress(guide, m, valid) for m in (low, filled)]
    without = [regress(guide, m, None) for m in (low, filled)]
    assert (with_mask[0] - with_mask[1]).abs().max() < 0.01 * (without[0] - without[1]).abs().max()


def test_a_flat_image_leaves_the_mean_of_the_measurements() -> None:
    low = noise(1, 1, 6, 7)
    fit = regress(torch.full((1, 3, 6, 7), 0.4, dtype=DOUBLE), low, None)
    assert fit[:, :3].abs().max() < 1e-9
    assert fit[:, 3].amin() > low.amin()
    assert fit[:, 3].amax() < low.amax()


def test_the_guided_depths_stay_near_bicubic() -> None:
    rgb, low = noise(1, 3, 24, 24), noise(1, 1, 6, 6, seed=1)
    up = bicubic(low, (24, 24))
    contrast = 0.05 * torch.ones_like(up)
    away = (follow(rgb, low, None, up, contrast, list(WINDOWS)) - up).abs().amax((0, 2, 3))
    assert 0.04 < away[0] <= 0.05 + 1e-12
    assert 0.05 < away[1] <= 0.10 + 1e-12


def test_gradcheck() -> None:
    rgb, low = noise(1, 3, 6, 8), noise(1, 1, 3, 4, seed=1).requires_grad_()
    valid = noise(1, 1, 3, 4, seed=2) > 0.3

    def guided(low: Tensor) -> Tensor:
        small = shrunk(rgb, (3, 4))
        up = torch.zeros(1, 1, 3, 4, dtype=DOUBLE)
        windows = list(WINDOWS)
        return applied(fits(small, low, valid, windows), small, up, up + 100, windows)

    assert gradcheck(guided, low)


def test_a_guided_network_looks_at_the_image_from_the_start() -> None:
    torch.manual_seed(0)
    model = create("ducos-compact").eval()
    rgb, low = noise(1, 3, 64, 64).float(), noise(1, 1, 8, 8, seed=1).float()
    with torch.no_grad():
        coloured, grey = (model(image, low).depth for image in (rgb, torch.full_like(rgb, 0.5)))
    assert (coloured - grey).abs().mean() > 1e-3
