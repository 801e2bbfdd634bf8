"""Classical methods: nothing is learned, so they are the honest floor under every network.

Each redraws the low-resolution map along the edges of the colour image; every length below is
in low-resolution pixels, so that one default serves every ratio. Defaults were chosen on rendered
scenes, never on a benchmark. Depth is never rounded to 8 or 16 bits.

OpenCV supplies the domain transform and the fast global smoother. The rest is written here: its
joint bilateral and guided filters know neither a low-resolution grid nor holes, its weighted median
sorts floats into 256 levels, and its bilateral solver is left out of the published wheels.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models.prediction import Prediction
from ducos.normalise import range_of
from ducos.prompts.prompt import PromptModel, run_prompt
from ducos.resize import bicubic, bilinear, nearest

Float = TypeVar("Float", np.float32, np.float64)
Array = NDArray[np.float32]
# Weight of a hole's filled value: next to nothing beside a measurement, all there is without one.
FILLED = 1e-4
# Logarithm of the weight of a tap outside the image: any real tap outweighs it entirely.
OUTSIDE = -1e9
# Largest γ of `Align`: the farthest point is then a thousand times as far as the nearest one.
MOST_BEND = 1e3


class Nearest(nn.Module):
    """Each output pixel takes the measurement whose area holds its centre."""

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        return Prediction(nearest(low, image_size(rgb)))


class Bilinear(nn.Module):
    """Linear interpolation between measurements; never overshoots."""

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        return Prediction(bilinear(low, image_size(rgb)))


def image_size(rgb: Tensor) -> tuple[int, int]:
    return rgb.shape[-2], rgb.shape[-1]


def upsampling_ratio(rgb: Tensor, low: Tensor) -> float:
    """Image pixels per low-resolution pixel, the larger of both axes."""
    return max(rgb.shape[-2] / low.shape[-2], rgb.shape[-1] / low.shape[-1])


def low_coordinates(H: int, W: int, low: Tensor) -> tuple[Tensor, Tensor]:
    """Where each row (H,) and column (W,) of the image lies, in pixels of low (B, 1, h, w)."""
    h, w = low.shape[-2:]
    rows = torch.arange(H, dtype=low.dtype, device=low.device)
    columns = torch.arange(W, dtype=low.dtype, device=low.device)
    return (rows + 0.5) * (h / H) - 0.5, (columns + 0.5) * (w / W) - 0.5


def trust(low: Tensor, valid: Tensor | None) -> Tensor:
    """One where measured, next to nothing where filled; (B, 1, h, w)."""
    return torch.ones_like(low) if valid is None else valid.to(low.dtype).clamp_min(FILLED)


class JointBilateral(nn.Module):
    """Joint bilateral upsampling (Kopf et al. 2007), holes left out.

    Each output pixel is the mean of the measurements around it, weighted by distance and by
    likeness of its colour to the mean colour of the measurement's area.

    Args:
        radius: measurements on each side, so (2 radius + 1)² are averaged.
        sigma_space: in low-resolution pixels.
        sigma_colour: in units of the [0, 1] colour cube.
    """

    def __init__(self, *, radius: int = 2, sigma_space: float = 0.45, sigma_colour: float = 0.1):
        super().__init__()
        self.radius = radius
        self.sigma_space = sigma_space
        self.sigma_colour = sigma_colour

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        (H, W), (h, w) = image_size(rgb), low.shape[-2:]
        colour = bilinear(rgb, (h, w))  # mean colour of each measurement's area
        log_trust = trust(low, valid).log()
        row, column = low_coordinates(H, W, low)
        nearest_row, nearest_column = row.round().long(), column.round().long()

        # A running softmax: exact for weights far below the smallest float, one tap in memory.
        peak = torch.full((len(low), 1, H, W), OUTSIDE, dtype=low.dtype, device=low.device)
        total, weighted = torch.zeros_like(peak), torch.zeros_like(peak)
        for down in range(-self.radius, self.radius + 1):
            for right in range(-self.radius, self.radius + 1):
                i, j = nearest_row + down, nearest_column + right
                inside = ((i >= 0) & (i < h))[:, None] & ((j >= 0) & (j < w))  # (H, W)
                rows, columns = i.clamp(0, h - 1)[:, None], j.clamp(0, w - 1)
                distance = (row - i)[:, None].square() + (column - j).square()
                unlikeness = (rgb - colour[:, :, rows, columns]).square().sum(1, keepdim=True)
                log_weight = (
                    log_trust[:, :, rows, columns]
                    - distance / (2 * self.sigma_space**2)
                    - unlikeness / (2 * self.sigma_colour**2)
                ).masked_fill(~inside, OUTSIDE)
                new_peak = torch.maximum(peak, log_weight)
                fade, weight = (peak - new_peak).exp(), (log_weight - new_peak).exp()
                total = total * fade + weight
                weighted = weighted * fade + weight * low[:, :, rows, columns]
                peak = new_peak
        return Prediction(weighted / total)


class WeightedMedian(nn.Module):
    """Median of the bicubic map around each pixel, weighted by colour likeness (Ma et al. 2013).

    The result is always one of the values around: flying pixels between two surfaces vanish.

    Args:
        radius, spacing: (2 radius + 1)² taps, `spacing` low-resolution pixels apart.
        sigma_colour: in units of the [0, 1] colour cube.
    """

    BAND = 64  # output rows worked on at a time, to bound memory

    def __init__(self, *, radius: int = 3, spacing: float = 0.25, sigma_colour: float = 0.1):
        super().__init__()
        self.radius = radius
        self.spacing = spacing
        self.sigma_colour = sigma_colour

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        H, W = image_size(rgb)
        step = max(1, round(self.spacing * upsampling_ratio(rgb, low)))
        reach = step * self.radius
        offsets = range(0, 2 * reach + 1, step)
        upsampled = bicubic(low, (H, W))
        # outside the image nothing is trusted
        confidence = F.pad(nearest(trust(low, valid), (H, W)), [reach] * 4)
        padded_depth = F.pad(upsampled, [reach] * 4)
        padded_rgb = F.pad(rgb, [reach] * 4)

        bands = []
        for top in range(0, H, self.BAND):
            band = rgb[:, :, top : top + self.BAND]
            rows = band.shape[-2]
            values, weights = [], []
            for down in offsets:
                for right in offsets:
                    tap = (..., slice(top + down, top + down + rows), slice(right, right + W))
                    unlikeness = (band - padded_rgb[tap]).square().sum(1, keepdim=True)
                    likeness = torch.exp(-unlikeness / (2 * self.sigma_colour**2))
                    values.append(padded_depth[tap])
                    weights.append(likeness * confidence[tap])
            bands.append(weighted_median(torch.cat(values, 1), torch.cat(weights, 1)))
        return Prediction(torch.cat(bands, 2))


def weighted_median(values: Tensor, weights: Tensor) -> Tensor:
    """Smallest value with at least half the weight at or below it: (B, K, H, W) -> (B, 1, H, W)."""
    values, order = values.sort(1)
    cumulated = weights.gather(1, order).cumsum(1)
    index = (cumulated < 0.5 * cumulated[:, -1:]).sum(1, keepdim=True)
    return values.gather(1, index)


def array(x: Tensor, kind: type[Float]) -> NDArray[Float]:
    """For the libraries that know no tensors."""
    return np.ascontiguousarray(x.detach().cpu().numpy(), dtype=kind)


def smooth_each(
    rgb: Tensor, depth: Tensor, weight: Tensor, smoother: Callable[[Array, Array], Array]
) -> Tensor:
    """Weighted smoothing of each image of a batch: smooth(weight · depth) / smooth(weight).

    Args:
        rgb: (B, 3, H, W); depth, weight: (B, 1, H, W), weight positive.
        smoother: (colour (H, W, 3) in [0, 1], map (H, W)) -> map (H, W), a linear averaging.
    """
    smoothed = []
    for colour, values, weights in zip(rgb, depth[:, 0], weight[:, 0]):
        guide = array(colour.permute(1, 2, 0), np.float32)
        shares = array(weights, np.float32)
        numerator = smoother(guide, shares * array(values, np.float32))
        smoothed.append(torch.from_numpy(numerator / smoother(guide, shares)))
    return torch.stack(smoothed)[:, None].to(depth)


def eight_bit(colour: Array) -> NDArray[np.uint8]:
    """(H, W, 3) in [0, 1] -> bytes, for filters that take no other guide; depth stays float."""
    return np.clip(colour * 255 + 0.5, 0, 255).astype(np.uint8)


class GuidedFilter(nn.Module):
    """Around each measurement depth is a linear function of colour (He et al. 2010).

    The functions are fitted at low resolution, where both images are sharp, then upsampled and
    applied to the full colour image (He, Sun 2015). Holes take no part in the fits.

    Args:
        radius: of the square windows, in low-resolution pixels.
        epsilon: colour variance below which a window counts as flat.
    """

    def __init__(self, *, radius: int = 1, epsilon: float = 1e-4):
        super().__init__()
        self.radius = radius
        self.epsilon = epsilon

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        # Variances are differences of large numbers: float64, on the small image only.
        colour = bilinear(rgb, (low.shape[-2], low.shape[-1])).double()
        depth, weight = low.double(), trust(low, valid).double()
        total = self.box(weight)

        def mean(x: Tensor) -> Tensor:
            return self.box(weight * x) / total

        mean_colour, mean_depth = mean(colour), mean(depth)
        products = (colour[:, :, None] * colour[:, None]).flatten(1, 2)  # (B, 9, h, w)
        spread = (
            mean(products).unflatten(1, (3, 3)) - mean_colour[:, :, None] * mean_colour[:, None]
        )
        common = mean(colour * depth) - mean_colour * mean_depth  # (B, 3, h, w)
        ridge = self.epsilon * torch.eye(3).to(depth)
        slope = torch.linalg.solve(
            spread.permute(0, 3, 4, 1, 2) + ridge, common.permute(0, 2, 3, 1)
        ).permute(0, 3, 1, 2)
        shift = mean_depth - (slope * mean_colour).sum(1, keepdim=True)
        # every pixel lies in many windows: take the mean of their answers
        size = image_size(rgb)
        slope = bilinear(mean(slope).to(low), size)
        shift = bilinear(mean(shift).to(low), size)
        return Prediction((slope * rgb).sum(1, keepdim=True) + shift)

    def box(self, x: Tensor) -> Tensor:
        """Mean over the window of each pixel, over what of it lies inside the image."""
        width = 2 * self.radius + 1
        return F.avg_pool2d(x, width, stride=1, padding=self.radius, count_include_pad=False)


class DomainTransform(nn.Module):
    """Means along rows and columns stretched by their colour changes (Gastal, Oliveira 2011).

    Args:
        sigma_space: in low-resolution pixels.
        sigma_colour: in units of [0, 1] colour.
    """

    def __init__(self, *, sigma_space: float = 0.7, sigma_colour: float = 0.3):
        super().__init__()
        self.sigma_space = sigma_space
        self.sigma_colour = sigma_colour

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        import cv2

        sigma_space = self.sigma_space * upsampling_ratio(rgb, low)

        def smoother(colour: Array, values: Array) -> Array:
            filtered = cv2.ximgproc.dtFilter(colour, values, sigma_space, self.sigma_colour)
            return filtered.astype(np.float32, copy=False)

        size = image_size(rgb)
        weight = nearest(trust(low, valid), size)
        return Prediction(smooth_each(rgb, bicubic(low, size), weight, smoother))


def measured_share(low: Tensor, valid: Tensor | None, H: int, W: int, sigma: float) -> Tensor:
    """How far to believe the bicubic map: a bump around each measurement's centre, (B, 1, H, W).

    Between measurements bicubic values are guesses, and across an edge wrong ones.
    """
    row, column = low_coordinates(H, W, low)
    distance = (row - row.round()).square()[:, None] + (column - column.round()).square()
    bump = torch.exp(-distance / (2 * sigma**2))
    return nearest(trust(low, valid), (H, W)) * bump


class FastGlobalSmoother(nn.Module):
    """Weighted least squares: close to the measurements, smooth except at edges (Min et al. 2014).

    Args:
        reach: how far a measurement smooths, in low-resolution pixels.
        sigma_colour: in units of [0, 1] colour.
        sigma_measured: width of the trusted bump around a measurement, in low-resolution pixels.
    """

    def __init__(
        self, *, reach: float = 0.5, sigma_colour: float = 0.03, sigma_measured: float = 0.15
    ):
        super().__init__()
        self.reach = reach
        self.sigma_colour = sigma_colour
        self.sigma_measured = sigma_measured

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        import cv2

        # a smoothness weight of L² spreads a value over about L pixels
        smoothness = (self.reach * upsampling_ratio(rgb, low)) ** 2

        def smoother(colour: Array, values: Array) -> Array:
            filtered = cv2.ximgproc.fastGlobalSmootherFilter(
                eight_bit(colour), values, smoothness, 255 * self.sigma_colour
            )
            return filtered.astype(np.float32, copy=False)

        H, W = image_size(rgb)
        weight = measured_share(low, valid, H, W, self.sigma_measured)
        return Prediction(smooth_each(rgb, bicubic(low, (H, W)), weight, smoother))


class FastBilateralSolver(nn.Module):
    """Least squares on a bilateral grid (Barron, Poole 2016), read out by local planes.

    Pixels of like place and colour share one unknown. The solver makes unknowns agree with the
    trusted depth in them and with their neighbours on the grid. The original paints each cell with
    its one value, which shows as steps on slanted surfaces; here a cell is painted with the plane
    through its own and its neighbours' values.

    Args:
        sigma_space: side of a cell, in low-resolution pixels.
        sigma_luma, sigma_chroma: side of a cell, in units of [0, 1] colour.
        smoothness: pull between neighbouring cells, relative to the trust in the depth.
        sigma_measured: width of the trusted bump around a measurement, in low-resolution pixels.
    """

    def __init__(
        self,
        *,
        sigma_space: float = 0.5,
        sigma_luma: float = 0.03,
        sigma_chroma: float = 0.03,
        smoothness: float = 5.0,
        sigma_measured: float = 0.15,
    ):
        super().__init__()
        self.sigma_space = sigma_space
        self.sigma_luma = sigma_luma
        self.sigma_chroma = sigma_chroma
        self.smoothness = smoothness
        self.sigma_measured = sigma_measured

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        H, W = image_size(rgb)
        cell = max(2.0, self.sigma_space * upsampling_ratio(rgb, low))
        upsampled = bicubic(low, (H, W))
        weight = measured_share(low, valid, H, W, self.sigma_measured)
        solved = []
        for colour, values, weights in zip(rgb, upsampled[:, 0], weight[:, 0]):
            depth = solve_on_grid(
                self.grid_position(array(colour.permute(1, 2, 0), np.float64), cell),
                array(values, np.float64).ravel(),
                array(weights, np.float64).ravel(),
                self.smoothness,
            )
            solved.append(torch.from_numpy(depth.reshape(1, H, W)))
        return Prediction(torch.stack(solved).to(low))

    def grid_position(self, colour: NDArray[np.float64], cell: float) -> NDArray[np.float64]:
        """Row, column, luma and two chromas of each pixel of (H, W, 3), in cells: (H·W, 5)."""
        H, W, _ = colour.shape
        rows, columns = np.meshgrid(np.arange(H), np.arange(W), indexing="ij")
        red, green, blue = np.moveaxis(colour, -1, 0)
        luma = 0.299 * red + 0.587 * green + 0.114 * blue
        axes = [
            rows / cell,
            columns / cell,
            luma / self.sigma_luma,
            0.564 * (blue - luma) / self.sigma_chroma,
            0.713 * (red - luma) / self.sigma_chroma,
        ]
        return np.stack(axes, -1).reshape(H * W, 5)


def solve_on_grid(
    position: NDArray[np.float64],
    depth: NDArray[np.float64],
    weight: NDArray[np.float64],
    smoothness: float,
) -> NDArray[np.float64]:
    """Bilateral solver for N pixels at `position` (N, 5) of the grid, the first two being space."""
    from scipy import sparse
    from scipy.sparse.linalg import cg

    # Cells that hold pixels, found by one number per cell with a margin for neighbours.
    cell = np.floor(position).astype(np.int64)
    cell -= cell.min(0) - 1
    strides = np.concatenate([[1], np.cumprod(cell.max(0)[:-1] + 2)])
    codes, of_pixel = np.unique(cell @ strides, return_inverse=True)
    pixels = np.arange(len(depth))
    splat = sparse.csr_matrix((np.ones(len(depth)), (of_pixel, pixels)))  # (cells, N)

    # Blur: each cell with its two neighbours along every axis, weights 1 2 1.
    blur = sparse.identity(len(codes), format="csr") * (2.0 * len(strides))
    for stride in strides:
        place = np.minimum(np.searchsorted(codes, codes + stride), len(codes) - 1)
        found = np.flatnonzero(codes[place] == codes + stride)
        link = sparse.csr_matrix((np.ones(len(found)), (found, place[found])), shape=blur.shape)
        blur = blur + link + link.T

    # Scale the blur so that its rows and columns sum to the cells' pixel counts.
    count = splat @ np.ones(len(depth))
    scale = np.ones(len(codes))
    for _ in range(10):
        scale = np.sqrt(scale * count / (blur @ scale))
    total = scale * (blur @ scale)
    laplacian = sparse.diags(total) - sparse.diags(scale) @ blur @ sparse.diags(scale)

    trusted = splat @ weight
    wanted = splat @ (weight * depth)
    matrix = (smoothness * laplacian + sparse.diags(trusted)).tocsr()
    start = wanted / trusted
    preconditioner = sparse.diags(1 / matrix.diagonal())
    value, _ = cg(matrix, wanted, x0=start, M=preconditioner, rtol=1e-6, maxiter=200)

    # Plane through each cell and its neighbours, by weighted least squares.
    share = sparse.diags(1 / (blur @ count)) @ blur @ sparse.diags(count)
    centre = (splat @ position[:, :2]) / count[:, None]  # (cells, 2)
    mean_centre, mean_value = share @ centre, share @ value
    outer = (centre[:, :, None] * centre[:, None, :]).reshape(-1, 4)
    spread = (share @ outer).reshape(-1, 2, 2) - mean_centre[:, :, None] * mean_centre[:, None, :]
    slant = share @ (centre * value[:, None]) - mean_centre * mean_value[:, None]
    slope = np.linalg.solve(spread + 1e-3 * np.eye(2), slant[:, :, None])[:, :, 0]
    away = position[:, :2] - centre[of_pixel]
    return value[of_pixel] + (slope[of_pixel] * away).sum(1)


class Align(nn.Module):
    """A foundation model's relative depth, fitted to the measurements: no super-resolution at all.

    One scale and one shift per image, robust to outliers. An inverse prompt p (it grows towards the
    camera) is bent to depth first: metric depth is 1 / (a p + b), and our [0, 1] depth is metric
    depth scaled and shifted, so it equals scale · p / (1 + γ p) + shift for some γ ≥ 0, which is
    searched for.

    Args:
        prompt: any prompt with a depth head.
    """

    def __init__(self, prompt: PromptModel):
        super().__init__()
        self.prompt = prompt

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        prompt_depth = run_prompt(self.prompt, rgb).depth
        if prompt_depth is None:
            raise InputError(
                "got a prompt without depth, expected one with a depth head; "
                "choose a prompt such as depth-anything-v2-s"
            )
        relative = range_of(prompt_depth).apply(prompt_depth)
        h, w = low.shape[-2:]
        # ten thousand measurements are plenty for three numbers
        every = max(1, round((h * w / 10_000) ** 0.5))
        p, depth, weight = (
            x[..., ::every, ::every].double().flatten(1)
            for x in (bilinear(relative, (h, w)), low, trust(low, valid))
        )
        if self.prompt.inverse:
            bend, scale, shift = fit_hyperbola(p, depth, weight)
        else:
            scale, shift = fit_line(p, depth, weight)
            bend = torch.zeros_like(scale)
        bend, scale, shift = (x.to(low)[:, :, None, None] for x in (bend, scale, shift))
        aux = {"prompt_depth": prompt_depth, "prompt_inverse": self.prompt.inverse}
        return Prediction(scale * relative / (1 + bend * relative) + shift, aux)


def fit_line(x: Tensor, y: Tensor, weight: Tensor, iterations: int = 20) -> tuple[Tensor, Tensor]:
    """Slope and shift, each (B, 1), of y ≈ slope · x + shift; outliers hardly count.

    Args:
        x, y: (B, N); weight: (B, N), prior trust in each pair.
    """
    robust = weight
    for _ in range(iterations):
        share = robust / robust.sum(1, keepdim=True)
        mean_x, mean_y = (share * x).sum(1, keepdim=True), (share * y).sum(1, keepdim=True)
        variance = (share * (x - mean_x).square()).sum(1, keepdim=True)
        slope = (share * (x - mean_x) * (y - mean_y)).sum(1, keepdim=True) / (variance + 1e-12)
        shift = mean_y - slope * mean_x
        error = (slope * x + shift - y).abs()
        typical = weighted_median(error[:, :, None, None], weight[:, :, None, None])[:, :, 0, 0]
        # Cauchy's weights: an error many times the typical one hardly pulls
        robust = weight / (1 + (error / (2 * typical + 1e-9)).square())
    return slope, shift


def fit_hyperbola(p: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """γ, scale and shift, each (B, 1), of y ≈ scale · p / (1 + γ p) + shift, for p in [0, 1].

    For a given γ it is a line; γ is searched on a grid that narrows around the best mean error.
    """
    best, width = torch.full_like(p[:, :1], 0.5), 0.5  # on a logarithmic axis from 0 to 1
    for _ in range(8):
        candidates = [(best + width * step / 4).clamp(0, 1) for step in range(-4, 5)]
        errors = []
        for candidate in candidates:
            bent = p / (1 + bend_at(candidate) * p)
            scale, shift = fit_line(bent, y, weight)
            errors.append((weight * (scale * bent + shift - y).abs()).sum(1, keepdim=True))
        winner = torch.cat(errors, 1).argmin(1, keepdim=True)  # (B, 1)
        best, width = torch.cat(candidates, 1).gather(1, winner), width / 3
    bend = bend_at(best)
    return bend, *fit_line(p / (1 + bend * p), y, weight)


def bend_at(place: Tensor) -> Tensor:
    """γ from 0 (place 0) to MOST_BEND (place 1), evenly in the logarithm of 1 + γ."""
    return torch.expm1(place * math.log1p(MOST_BEND))
