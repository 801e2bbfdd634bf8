"""Filters of arrays, as `scipy.ndimage` has them, with numpy alone: the plain install has no scipy.

Borders are mirrored with their last pixel repeated, as there. A test holds each against scipy.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ducos.arrays import AnyArray, Mask

BLOCK = 64  # rows of the result whose weights are made at once
SIGMAS = 4.0  # where a Gaussian ends


def gaussian(x: AnyArray, sigma: float | Sequence[float], order: Sequence[int] = ()) -> AnyArray:
    """x, smoothed by so many pixels along each axis; order 1 along one: its derivative there."""
    sigmas = np.broadcast_to(np.asarray(sigma, np.float64), x.ndim)
    for axis, width in enumerate(sigmas.tolist()):
        if width > 1e-15:
            kernel = gaussian_kernel(width, order[axis] if order else 0)
            x = correlate(x, kernel, axis)
    return x


def gaussian_kernel(sigma: float, order: int = 0) -> AnyArray:
    """Weights of the pixels around, from before to behind."""
    radius = int(SIGMAS * sigma + 0.5)
    steps = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 / (sigma * sigma) * steps**2)
    weights = weights / weights.sum()
    return weights if order == 0 else weights * steps / (sigma * sigma)


def correlate(x: AnyArray, kernel: AnyArray | Sequence[float], axis: int) -> AnyArray:
    """Sums of the pixels around each along an axis, times an odd number of weights."""
    weights = np.asarray(kernel, np.float64)
    kind = x.dtype if np.issubdtype(x.dtype, np.floating) else np.dtype(np.float64)
    n, reach = x.shape[axis], len(weights) // 2
    lines = np.moveaxis(x, axis, 0).reshape(n, -1).astype(kind, copy=False)
    out = np.empty_like(lines)
    for first in range(0, n, BLOCK):
        last = min(n, first + BLOCK)
        around = mirrored(np.arange(first - reach, last + reach), n)
        low, high = int(around.min()), int(around.max()) + 1
        matrix = np.zeros((last - first, high - low))
        rows, steps = np.arange(last - first)[:, None], np.arange(len(weights))
        places = rows, around[rows + steps] - low
        if first >= reach and last + reach <= n:
            matrix[places] = weights
        else:  # where pixels are mirrored, some count twice
            np.add.at(matrix, places, weights)
        np.matmul(matrix.astype(kind), lines[low:high], out=out[first:last])
    rest = [size for each, size in enumerate(x.shape) if each != axis]
    return np.moveaxis(out.reshape(n, *rest), 0, axis)


def mirrored(index: AnyArray, n: int) -> AnyArray:
    """Places beyond the border of n pixels, folded back; the last pixel is repeated."""
    index = index % (2 * n)
    return np.where(index < n, index, 2 * n - 1 - index)


def maximum(x: AnyArray, size: int) -> AnyArray:
    """Highest of size × size pixels around each; of an even size, one more before than behind."""
    return _extreme(np.maximum, x, size)


def minimum(x: AnyArray, size: int) -> AnyArray:
    """Lowest of size × size pixels around each."""
    return _extreme(np.minimum, x, size)


def _extreme(of: Callable[..., AnyArray], x: AnyArray, size: int) -> AnyArray:
    for axis in range(x.ndim):
        n = x.shape[axis]
        index = mirrored(np.arange(-(size // 2), n + size - size // 2 - 1), n)
        wide, width = x.take(index, axis), 1
        while width < size:  # by doubling: a window of 13 takes 4 steps
            step = min(width, size - width)
            count = wide.shape[axis] - step
            wide = of(wide.take(range(count), axis), wide.take(range(step, step + count), axis))
            width += step
        x = wide
    return x


def dilated(mask: Mask, times: int = 1) -> Mask:
    """Mask of pixels that are in a mask, or next to it so many times, left, right, up or down."""
    for _ in range(times):
        grown = mask.copy()
        grown[1:] |= mask[:-1]
        grown[:-1] |= mask[1:]
        grown[:, 1:] |= mask[:, :-1]
        grown[:, :-1] |= mask[:, 1:]
        if (grown == mask).all():
            break
        mask = grown
    return mask


def eroded(mask: Mask, times: int = 1) -> Mask:
    """Pixels of which none so near is outside the mask; beyond the border is outside."""
    return ~dilated(~np.pad(mask, times), times)[times:-times, times:-times]


def box_mean(x: AnyArray, size: tuple[int, int]) -> AnyArray:
    """Mean of the pixels of (h, w) around each; beyond the border they are 0."""
    for axis, n in enumerate(size):
        before, behind = n // 2, n - n // 2 - 1
        width = [(before + 1, behind) if each == axis else (0, 0) for each in range(x.ndim)]
        sums = np.cumsum(np.pad(x.astype(np.float64), width), axis)
        count = x.shape[axis]
        ends = (range(n, n + count), range(count))
        x = (sums.take(ends[0], axis) - sums.take(ends[1], axis)) / n
    return x


def areas(mask: Mask) -> AnyArray:
    """Pixels of each connected area of a mask, next to each other left, right, up or down."""
    runs = _runs(mask)
    if not len(runs):
        return np.zeros(0, np.intp)
    parent = list(range(len(runs)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    starts = np.searchsorted(runs[:, 0], np.arange(mask.shape[0] + 1))
    for row in range(1, mask.shape[0]):
        above, here = starts[row - 1], starts[row]
        while above < starts[row] and here < starts[row + 1]:
            if runs[above, 1] < runs[here, 2] and runs[here, 1] < runs[above, 2]:
                parent[root(int(here))] = root(int(above))
            if runs[above, 2] < runs[here, 2]:
                above += 1
            else:
                here += 1
    roots = np.array([root(i) for i in range(len(runs))])
    sizes = np.bincount(roots, runs[:, 2] - runs[:, 1]).astype(np.intp)
    return sizes[sizes > 0]


def _runs(mask: Mask) -> AnyArray:
    """(n, 3): row, first and last + 1 of every run of a mask, from top to bottom."""
    steps = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, first = np.nonzero(steps == 1)
    _, last = np.nonzero(steps == -1)
    return np.stack([rows, first, last], 1)


def fast_length(n: int) -> int:
    """The next number from n on whose Fourier transform is fast: of factors up to 11."""

    def rest(number: int) -> int:
        for factor in (2, 3, 5, 7, 11):
            while number % factor == 0:
                number //= factor
        return number

    while rest(n) > 1:
        n += 1
    return n


def turned(plane: Any) -> AnyArray:
    """(H, W, C) as (C, H, W), in one piece."""
    return np.ascontiguousarray(np.moveaxis(np.asarray(plane), -1, 0))
