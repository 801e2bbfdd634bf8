"""What the image says in the sensor's units: the measurements, regressed on the image locally.

Around each low-resolution pixel the measurements are explained as linear in the colours, in closed
form, as a guided filter does (He et al., 2010). The coefficients are few; interpolated and applied
to the image at full resolution they give a depth whose edges are the image's. Where colour and
depth have nothing to do with each other it is wrong, and the network learns to tell. Left to find
this relation by itself, a small network hardly looks at the image (dev/LOG.md).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.deferred import exporting
from ducos.resize import Size, area, bilinear, precise

WINDOWS = {3: 1.0, 7: 2.0}
"""Side of the neighbourhood in measurements -> local contrasts that its depth may lie from bicubic.

The small one follows every detail of the map. The large one sees enough of both sides of an edge
that a sensor has moved, blurred or frayed to put it where the colours change."""
RIDGE = 1e-4  # variance of a guide in [0, 1] below which it explains nothing
HOLE = 1e-3  # weight of a filled-in value beside a measurement


def shrunk(guide: Tensor, size: Size) -> Tensor:
    """Mean of the guide (B, n, H, W) in each pixel of a map of `size`."""
    return area(guide, size)


def regress(guide: Tensor, low: Tensor, valid: Tensor | None, side: int = 3) -> Tensor:
    """Local linear regression of low (B, 1, h, w) on a guide (B, n, h, w) of the same size, over
    side × side measurements.

    Returns:
        (B, n + 1, h, w): slopes and intercept, each the mean of the fits around a pixel.
    """
    n = guide.shape[1]
    kind, guide, low = low.dtype, precise(guide), precise(low)  # differences of products follow
    centred = low - 0.5
    one = torch.ones_like(low)
    weight = one if valid is None else valid.to(low.dtype) + HOLE
    x = guide.split(1, 1)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    products = [x[i] * x[j] for i, j in pairs]
    terms = torch.cat([one, centred, *x, *(g * centred for g in x), *products], 1)
    sums = box_mean(weight * terms, side)
    count, *sums = sums.split(1, 1)
    y, *means = (total / count for total in sums)
    mean, xy, xx = means[:n], means[n : 2 * n], means[2 * n :]
    matrix = [[one] * n for _ in range(n)]
    for (i, j), product in zip(pairs, xx, strict=True):
        covariance = product - mean[i] * mean[j]
        matrix[i][j] = matrix[j][i] = covariance + RIDGE if i == j else covariance
    slopes = solve(matrix, [xy[i] - mean[i] * y for i in range(n)])
    intercept = y + 0.5
    for slope, m in zip(slopes, mean, strict=True):
        intercept = intercept - slope * m
    return box_mean(torch.cat([*slopes, intercept], 1), side).to(kind)


def solve(matrix: Sequence[Sequence[Tensor]], right: Sequence[Tensor]) -> list[Tensor]:
    """x of `matrix` x = `right` at every pixel, by elimination.

    The matrix is symmetric and positive definite, so no pivot is needed; for three or four unknowns
    this takes an eighth of the time of a batch of small factorisations.
    """
    n = len(right)
    rows = [list(row) for row in matrix]
    x = list(right)
    for k in range(n):
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            for j in range(k + 1, n):
                rows[i][j] = rows[i][j] - factor * rows[k][j]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - rows[k][j] * x[j]
        x[k] = x[k] / rows[k][k]
    return x


def box_mean(x: Tensor, side: int) -> Tensor:
    """Mean of the side × side pixels around each; beyond the border, its pixels are repeated."""
    if exporting():  # runtimes pool float32 only
        for axis in (2, 3):
            x = running_sum(x, side, axis) / side
        return x
    beyond = (side // 2,) * 4
    return F.avg_pool2d(F.pad(x, beyond, mode="replicate"), side, 1)


def running_sum(x: Tensor, side: int, axis: int) -> Tensor:
    """Sum of the `side` pixels around each along an axis: sums of 1, 2, 4, ... pixels, put together
    as the binary digits of `side` say."""
    n = x.shape[axis]
    index = torch.arange(n + side - 1, device=x.device) - side // 2
    sums, start, total = x.index_select(axis, index.clamp(0, n - 1)), 0, None
    for digit in range(side.bit_length()):
        width = 2**digit
        if side & width:
            part = sums.narrow(axis, start, n)
            total, start = part if total is None else total + part, start + width
        if 2 * width <= side:
            count = n + side - 2 * width
            sums = sums.narrow(axis, 0, count) + sums.narrow(axis, width, count)
    assert total is not None
    return total


def fits(guide: Tensor, low: Tensor, valid: Tensor | None, windows: Sequence[int]) -> Tensor:
    """`regress` over each of the windows: guide (B, n, h, w), low and valid (B, 1, h, w) ->
    (B, (n + 1) windows, h, w)."""
    return torch.cat([regress(guide, low, valid, side) for side in windows], 1)


def applied(
    coefficients: Tensor, guide: Tensor, up: Tensor, contrast: Tensor, windows: Sequence[int]
) -> Tensor:
    """`fits` at full size (B, (n + 1) windows, H, W), applied to the guide (B, n, H, W): a depth
    for each window, (B, windows, H, W), not far from `up`, or the fit is not to be believed."""
    depths = []
    for side, fit in zip(windows, coefficients.chunk(len(windows), 1), strict=True):
        depth = (fit[:, :-1] * guide).sum(1, keepdim=True) + fit[:, -1:]
        away = WINDOWS[side] * contrast
        depths.append(torch.minimum(torch.maximum(depth, up - away), up + away))
    return torch.cat(depths, 1)


def follow(
    guide: Tensor,
    low: Tensor,
    valid: Tensor | None,
    up: Tensor,
    contrast: Tensor,
    windows: Sequence[int] = (3,),
) -> Tensor:
    """The guided depths: guide (B, n, H, W), low and valid (B, 1, h, w), up and contrast
    (B, 1, H, W) -> (B, windows, H, W)."""
    small = shrunk(guide, (low.shape[-2], low.shape[-1]))
    coefficients = bilinear(fits(small, low, valid, windows), (up.shape[-2], up.shape[-1]))
    return applied(coefficients, guide, up, contrast, windows)
