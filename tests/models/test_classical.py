"""Classical methods: exact where theory says so, sharp where colour says so, blind to holes."""

import ast
import inspect
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models.classical.align import Align, fit_hyperbola
from ducos.models.classical.bilateral_solver import FastBilateralSolver, solve_on_grid
from ducos.models.classical.interpolation import Bicubic, Bilinear, Nearest
from ducos.models.classical.opencv_filters import DomainTransform, FastGlobalSmoother
from ducos.models.classical.window_filters import (
    GuidedFilter,
    JointBilateral,
    WeightedMedian,
    weighted_median,
)
from ducos.prompts.prompt import Prompt
from ducos.resize import bicubic, bilinear

GUIDED: dict[str, type[nn.Module]] = {
    "joint-bilateral": JointBilateral,
    "weighted-median": WeightedMedian,
    "guided-filter": GuidedFilter,
    "domain-transform": DomainTransform,
    "fast-global-smoother": FastGlobalSmoother,
    "fast-bilateral-solver": FastBilateralSolver,
}
ALL: dict[str, type[nn.Module]] = {"nearest": Nearest, "bilinear": Bilinear, **GUIDED}


def ramp(H: int, W: int, h: int, w: int, amplitude: float) -> tuple[Tensor, Tensor]:
    """The same slanted plane around 0.5, sampled at pixel centres of two sizes."""

    def plane(rows: int, columns: int) -> Tensor:
        y = (torch.arange(rows) + 0.5) / rows - 0.5
        x = (torch.arange(columns) + 0.5) / columns - 0.5
        return (0.5 + amplitude * (0.4 * y[:, None] + 0.6 * x))[None, None].float()

    return plane(H, W), plane(h, w)


def two_planes(H: int = 96, W: int = 128, scale: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    """rgb, truth, low: two planes that meet at an oblique edge, drawn in two noisy colours."""
    y, x = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    right = x > 50.0 + 0.3 * y
    truth = torch.where(right, 0.8 + 0.0005 * y, 0.2 + 0.001 * x)[None, None].float()
    colours = torch.tensor([[0.7, 0.5, 0.3], [0.2, 0.4, 0.5]])[right.long()]  # (H, W, 3)
    noise = 0.01 * torch.randn(3, H, W, generator=torch.Generator().manual_seed(0))
    return (colours.permute(2, 0, 1) + noise)[None], truth, bicubic(truth, (H // scale, W // scale))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "sizes", [(37, 53, 11, 9), (24, 30, 24, 30), (5, 7, 1, 1), (40, 20, 3, 17)]
)
def test_any_size_and_ratio_and_images_do_not_mix(name: str, sizes: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    H, W, h, w = sizes
    rgb = torch.rand(2, 3, H, W, generator=generator)
    low = torch.rand(2, 1, h, w, generator=generator)
    model = ALL[name]()
    depth = model(rgb, low).depth
    assert depth.shape == (2, 1, H, W)
    assert depth.dtype == low.dtype
    assert bool(depth.isfinite().all())
    alone = torch.cat([model(rgb[k : k + 1], low[k : k + 1]).depth for k in range(2)])
    torch.testing.assert_close(depth, alone)


@pytest.mark.parametrize("name", ALL)
def test_constant_depth_stays_constant(name: str) -> None:
    rgb = torch.rand(1, 3, 40, 56, generator=torch.Generator().manual_seed(0))
    depth = ALL[name]()(rgb, torch.full((1, 1, 5, 7), 0.3)).depth
    torch.testing.assert_close(depth, torch.full_like(depth, 0.3), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", [name for name in ALL if name != "nearest"])
@pytest.mark.parametrize("amplitude", [1.0, 1e-3])
def test_a_smooth_ramp_stays_itself_and_is_not_quantised(name: str, amplitude: float) -> None:
    """An amplitude of 0.001 lies within one 8-bit level; 1e-5 is less than one 16-bit level."""
    truth, low = ramp(192, 256, 48, 64, amplitude)
    depth = ALL[name]()(torch.full((1, 3, 192, 256), 0.5), low).depth
    inside = (..., slice(32, -32), slice(32, -32))  # every smoother is one-sided at the border
    error = (depth - truth)[inside].abs().max().item()
    assert error < (1e-3 if amplitude == 1 else 1e-5)
    assert len(depth[inside].unique()) > 1000


def test_nearest_copies_measurements() -> None:
    low = torch.rand(1, 1, 4, 5, generator=torch.Generator().manual_seed(0))
    depth = Nearest()(torch.zeros(1, 3, 12, 15), low).depth
    assert torch.equal(depth, low.repeat_interleave(3, 2).repeat_interleave(3, 3))


@pytest.mark.parametrize("name", GUIDED)
def test_an_edge_drawn_in_colour_becomes_sharper_than_bicubic(name: str) -> None:
    rgb, truth, low = two_planes()
    error = (GUIDED[name]()(rgb, low).depth - truth).abs().mean()
    bicubic_error = (Bicubic()(rgb, low).depth - truth).abs().mean()
    assert error < 0.8 * bicubic_error


@pytest.mark.parametrize("name", GUIDED)
def test_holes_are_not_believed(name: str) -> None:
    """A wrong value in a hole bends the result when trusted, and hardly when declared a hole."""
    low = torch.full((1, 1, 12, 16), 0.2)
    low[..., 5:7, 8:10] = 1.0
    valid = low < 0.5
    rgb = torch.full((1, 3, 96, 128), 0.5)
    model = GUIDED[name]()
    away = (..., slice(0, 20), slice(None))  # out of reach of the bicubic kernel
    beside = (..., slice(36, 60), slice(48, 64))
    trusted = (model(rgb, low).depth - 0.2).abs()
    declared = (model(rgb, low, valid).depth - 0.2).abs()
    assert trusted[beside].max() > 0.02
    assert declared[beside].max() < 0.5 * trusted[beside].max()
    assert declared[away].max() < 0.01


def test_joint_bilateral_is_kopfs_formula() -> None:
    generator = torch.Generator().manual_seed(0)
    rgb = torch.rand(1, 3, 7, 9, generator=generator, dtype=torch.float64)
    low = torch.rand(1, 1, 3, 4, generator=generator, dtype=torch.float64)
    model = JointBilateral(radius=1, sigma_space=0.6, sigma_colour=0.3)
    colour = bilinear(rgb, (3, 4))
    expected = torch.zeros(7, 9, dtype=torch.float64)
    for i in range(7):
        for j in range(9):
            y, x = (i + 0.5) * 3 / 7 - 0.5, (j + 0.5) * 4 / 9 - 0.5
            total = weighted = 0.0
            for a in range(max(0, round(y) - 1), min(3, round(y) + 2)):
                for b in range(max(0, round(x) - 1), min(4, round(x) + 2)):
                    unlike = (rgb[0, :, i, j] - colour[0, :, a, b]).square().sum().item()
                    far = (y - a) ** 2 + (x - b) ** 2
                    weight = np.exp(-far / (2 * 0.6**2) - unlike / (2 * 0.3**2))
                    total += weight
                    weighted += weight * low[0, 0, a, b].item()
            expected[i, j] = weighted / total
    torch.testing.assert_close(model(rgb, low).depth[0, 0], expected)


def test_weighted_median_counts_a_weight_as_copies() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        values, copies = random.random(7), random.integers(0, 4, 7)
        copies[0] += 1 - copies.sum() % 2  # an odd number of copies has one median
        expected = np.median(np.repeat(values, copies))
        ours = weighted_median(
            torch.from_numpy(values).view(1, 7, 1, 1), torch.from_numpy(copies).view(1, 7, 1, 1)
        )
        assert ours.item() == expected


def test_guided_filter_reproduces_depth_that_is_linear_in_colour() -> None:
    rgb = torch.rand(1, 3, 48, 64, generator=torch.Generator().manual_seed(0))
    mix = torch.tensor([0.3, -0.2, 0.5]).view(1, 3, 1, 1)
    low = (mix * bilinear(rgb, (12, 16))).sum(1, keepdim=True) + 0.1
    truth = (mix * rgb).sum(1, keepdim=True) + 0.1
    depth = GuidedFilter(epsilon=1e-9)(rgb, low).depth
    torch.testing.assert_close(depth, truth, atol=2e-3, rtol=0)


def test_bilateral_solver_minimises_its_energy() -> None:
    """Two cells of one pixel each: the balance of trust and smoothness, solved by hand."""
    position = np.array([[0.5, 0.5, 0, 0, 0], [0.5, 1.5, 0, 0, 0]])
    depth, weight = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    # blur rows are (10, 1) and (1, 10); scaled to sum to one pixel each they are (10, 1) / 11
    pull = 2.0 / 11
    matrix = np.array([[1 + pull, -pull], [-pull, 3 + pull]])
    expected = np.linalg.solve(matrix, weight * depth)
    solved = solve_on_grid(position, depth, weight, smoothness=2.0)
    np.testing.assert_allclose(solved, expected, atol=1e-5)


@pytest.mark.parametrize("name", GUIDED)
def test_opencv_is_imported_only_when_a_filter_runs(name: str) -> None:
    source = inspect.getsource(sys.modules[GUIDED[name].__module__])
    top = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert top
    assert not any("cv2" in ast.unparse(node) for node in top)


class ToyPrompt(nn.Module):
    """Reads its relative depth from the red channel."""

    channels = (1, 1, 1, 1)
    multiple_of = 1
    licence = "none"

    def __init__(self, *, inverse: bool, has_depth: bool = True):
        super().__init__()
        self.inverse = inverse
        self.has_depth = has_depth

    def forward(self, rgb: Tensor) -> Prompt:
        return Prompt((), 7 * rgb[:, :1] - 2 if self.has_depth else None)


@pytest.mark.parametrize("inverse", [False, True])
def test_align_finds_scale_and_shift_among_outliers_and_holes(inverse: bool) -> None:
    """Metric depth 1 to 8 m; the prompt knows it, or its inverse, up to scale and shift."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(1, 1, 6, 8, generator=generator)
    metres = 1 + 7 * bilinear(coarse, (48, 64))
    lowest, span = metres.min(), metres.max() - metres.min()
    relative = 1 / metres if inverse else metres
    rgb = (0.1 + 0.3 * relative / relative.max()).expand(1, 3, 48, 64)
    low = bicubic((metres - lowest) / span, (24, 32))
    outlier = torch.rand(low.shape, generator=generator) < 0.2
    low = torch.where(outlier, torch.rand(low.shape, generator=generator), low)
    valid = torch.ones_like(low, dtype=torch.bool)
    valid[..., :10, :] = False
    low[..., :10, :] = 5.0

    depth = Align(ToyPrompt(inverse=inverse))(rgb, low, valid).depth
    truth = (metres - lowest) / span
    assert (depth - truth).abs().max() < 0.02
    # fitting a line where a hyperbola is due does not work
    if inverse:
        straight = Align(ToyPrompt(inverse=False))(rgb, low, valid).depth
        assert (straight - truth).abs().max() > 0.1


def test_align_finds_known_bends() -> None:
    relative = torch.linspace(0, 1, 200, dtype=torch.float64).expand(2, 200)
    bend = torch.tensor([[0.5], [20.0]], dtype=torch.float64)
    depth = -0.8 * relative / (1 + bend * relative) + 1.1
    found_bend, scale, shift = fit_hyperbola(relative, depth, torch.ones_like(relative))
    torch.testing.assert_close(found_bend, bend, rtol=1e-2, atol=0)
    torch.testing.assert_close(scale, torch.full_like(scale, -0.8), rtol=1e-2, atol=0)
    torch.testing.assert_close(shift, torch.full_like(shift, 1.1), rtol=1e-3, atol=0)


def test_align_survives_a_flat_prompt_and_refuses_one_without_depth() -> None:
    low = torch.rand(1, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    rgb = torch.full((1, 3, 8, 8), 0.5)
    for inverse in (False, True):
        depth = Align(ToyPrompt(inverse=inverse))(rgb, low).depth
        assert bool(depth.isfinite().all())
        assert depth.std() < 1e-6
    with pytest.raises(InputError, match="depth head"):
        Align(ToyPrompt(inverse=False, has_depth=False))(rgb, low)
