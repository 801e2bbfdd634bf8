"""The regression of measurements on colours: exact where it can be, and blind to holes."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from ducos.models import create
from ducos.models.guide import RIDGE, applied, follow, regress, shrunk, solve
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


def test_a_fit_is_what_least_squares_with_a_ridge_gives() -> None:
    """Every 3×3 window of a repeated 3×3 map holds the same values, so that all fits are one."""
    guide, low = noise(1, 2, 3, 3), noise(1, 1, 3, 3, seed=1)
    x = guide[0].flatten(1).T - guide[0].flatten(1).mean(1)
    y = low.flatten() - low.mean()
    gram = x.T @ x / 9 + RIDGE * torch.eye(2, dtype=DOUBLE)
    expected = torch.linalg.solve(gram, x.T @ y / 9)
    repeated = [m.repeat(1, 1, 3, 3) for m in (guide, low)]
    slopes = regress(repeated[0], repeated[1], None)[0, :2, 4, 4]
    torch.testing.assert_close(slopes, expected)


def test_values_filled_into_holes_do_not_count() -> None:
    guide, low = noise(1, 3, 9, 9), noise(1, 1, 9, 9, seed=1)
    valid = torch.ones(1, 1, 9, 9, dtype=torch.bool)
    valid[..., 4, 4] = False
    filled = low.clone()
    filled[..., 4, 4] += 0.2
    fits = [regress(guide, m, valid) for m in (low, filled)]
    without = [regress(guide, m, None) for m in (low, filled)]
    assert (fits[0] - fits[1]).abs().max() < 0.01 * (without[0] - without[1]).abs().max()


def test_a_flat_image_leaves_the_mean_of_the_measurements() -> None:
    low = noise(1, 1, 6, 7)
    fit = regress(torch.full((1, 3, 6, 7), 0.4, dtype=DOUBLE), low, None)
    assert fit[:, :3].abs().max() < 1e-9
    assert fit[:, 3].amin() > low.amin()
    assert fit[:, 3].amax() < low.amax()


def test_the_guided_depth_stays_within_a_contrast_of_bicubic() -> None:
    rgb, low = noise(1, 3, 24, 24), noise(1, 1, 6, 6, seed=1)
    up = bicubic(low, (24, 24))
    contrast = 0.05 * torch.ones_like(up)
    guided = follow(rgb, low, None, up, contrast)
    assert (guided - up).abs().max() <= 0.05 + 1e-12
    assert (guided - up).abs().max() > 0.04


def test_gradcheck() -> None:
    rgb, low = noise(1, 3, 6, 8), noise(1, 1, 3, 4, seed=1).requires_grad_()
    valid = noise(1, 1, 3, 4, seed=2) > 0.3

    def guided(low: Tensor) -> Tensor:
        fit = regress(shrunk(rgb, (3, 4)), low, valid)
        up = torch.zeros(1, 1, 3, 4, dtype=DOUBLE)
        return applied(fit, shrunk(rgb, (3, 4)), up, up + 100)

    assert gradcheck(guided, low)


def test_a_guided_network_looks_at_the_image_from_the_start() -> None:
    torch.manual_seed(0)
    model = create("ducos-compact").eval()
    rgb, low = noise(1, 3, 64, 64).float(), noise(1, 1, 8, 8, seed=1).float()
    with torch.no_grad():
        coloured, grey = (model(image, low).depth for image in (rgb, torch.full_like(rgb, 0.5)))
    assert (coloured - grey).abs().mean() > 1e-3
