"""Every resampling of arrays: the rule of `kernels`, by matrices along each axis.

`resize` says the same for tensors, and a test holds the two against each other. A matrix of a large
image would be nearly empty, so it is cut into blocks: the work grows with the pixels. Any rows of
the result can be had alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray, Size
from ducos.kernels import (
    LIKE_COLOUR,
    UNLIKE_WEIGHT,
    after_and_phase,
    antialiased_weights,
    area_weights,
    nearest_index,
    padded_index,
    spline,
)

TAPS = 4
BLOCK = 64  # rows of the result whose weights are made at once
Weights = Callable[[AnyArray, AnyArray, int, int], AnyArray]
Span = tuple[int, int]


def bicubic(x: AnyArray, size: Size, rows: Span | None = None) -> AnyArray:
    """Pillow's bicubic of (..., h, w) to (..., H, W), or to these rows of it; see `resize`."""
    return by_matrices(x, size, partial(antialiased, "bicubic"), rows)


def bilinear(x: AnyArray, size: Size, rows: Span | None = None) -> AnyArray:
    """Antialiased bilinear of (..., h, w) to (..., H, W); never leaves the range of its input."""
    return by_matrices(x, size, partial(antialiased, "bilinear"), rows)


def area(x: AnyArray, size: Size) -> AnyArray:
    """Mean of the pixels of (..., H, W) that each pixel of a smaller (..., h, w) touches."""
    return by_matrices(x, size, area_weights)


def spline_mean(x: AnyArray, size: Size, rows: Span | None = None) -> AnyArray:
    """Mean of the 4×4 pixels of (..., h, w) around each pixel, weighted by a cubic B-spline."""
    return by_matrices(x, size, _spline, rows)


def nearest(x: AnyArray, size: Size) -> AnyArray:
    """Value of the source pixel whose area holds the target pixel's centre."""
    i, j = (nearest_index(np.arange(N), n, N) for n, N in zip(x.shape[-2:], size))
    return x[..., i[:, None], j]


def moved(x: AnyArray, right: int, down: int, beyond: float | None = None) -> AnyArray:
    """Maps (..., H, W) moved by whole pixels; what comes in repeats the border, or is `beyond`."""
    if right == down == 0:
        return x
    H, W = x.shape[-2:]
    rows, columns = (np.arange(H) - down)[:, None], np.arange(W) - right
    out = x[..., rows.clip(0, H - 1), columns.clip(0, W - 1)]
    if beyond is None:
        return out
    inside = (rows >= 0) & (rows < H) & (columns >= 0) & (columns < W)
    return np.where(inside, out, np.asarray(beyond, x.dtype))


def padded_axes(size: Size, multiple: int) -> tuple[AnyArray, AnyArray]:
    """Which row and which column of an image each one of a padded image repeats: it is mirrored
    where it is large enough, else its last one is repeated."""
    wide = [-(-n // multiple) * multiple for n in size]
    mirrored = int(all(2 * n > N for n, N in zip(size, wide)))
    rows, columns = (padded_index(np.arange(N), n, mirrored) for n, N in zip(size, wide))
    return rows, columns


def by_matrices(x: AnyArray, size: Size, weights: Weights, rows: Span | None = None) -> AnyArray:
    """(..., h, w) -> (..., H, W), or these rows of it; weights: of `kernels`."""
    (h, w), (H, W) = x.shape[-2:], size
    first, last = rows or (0, H)
    top, bottom = _reached(first, last, h, H)
    # The smaller map in between is the cheaper one.
    x = x[..., top:bottom, :]
    if W * (bottom - top) <= w * (last - first):
        x = _across(x, W, weights)
        return _down(x, (top, h), (first, last, H), weights)
    return _across(_down(x, (top, h), (first, last, H), weights), W, weights)


def _down(x: AnyArray, source: Span, target: tuple[int, int, int], weights: Weights) -> AnyArray:
    """Rows first to last of H, of the rows from `top` on of h."""
    (top, h), (first, last, H) = source, target
    if h == H and weights is not _spline:
        return x[..., first - top : last - top, :]
    out = np.empty((*x.shape[:-2], last - first, x.shape[-1]), x.dtype)
    for a in range(first, last, BLOCK):
        b = min(last, a + BLOCK)
        reached, matrix = _matrix((a, b), h, H, weights, x.dtype)
        part = x[..., reached[0] - top : reached[1] - top, :]
        np.matmul(matrix, part, out=out[..., a - first : b - first, :])
    return out


def _across(x: AnyArray, W: int, weights: Weights) -> AnyArray:
    w = x.shape[-1]
    if w == W and weights is not _spline:
        return x
    out = np.empty((*x.shape[:-1], W), x.dtype)
    for a in range(0, W, BLOCK):
        b = min(W, a + BLOCK)
        (first, last), matrix = _matrix((a, b), w, W, weights, x.dtype)
        out[..., a:b] = x[..., first:last] @ matrix.T
    return out


def _matrix(
    rows: Span, n: int, N: int, weights: Weights, kind: Any
) -> tuple[Span, NDArray[np.floating]]:
    """Weights of some rows (b - a, reached), and which of the n they reach."""
    reached = _reached(*rows, n, N)
    matrix = weights(np.arange(*rows)[:, None], np.arange(*reached)[None], n, N)
    return reached, matrix.astype(kind)


def _reached(first: int, last: int, n: int, N: int) -> Span:
    """Which of n count for these of N: a cubic kernel is 4 of the larger pixels wide."""
    reach = 2 * max(n / N, 1) + 2
    return max(0, int(first * n / N - reach)), min(n, int(last * n / N + reach) + 1)


def antialiased(kind: str, i: AnyArray, j: AnyArray, n: int, N: int) -> AnyArray:
    return antialiased_weights(kind, i, j, n, N, max(n, N))


def _spline(i: AnyArray, j: AnyArray, n: int, N: int) -> AnyArray:
    """(N, n): the weights of the 4 neighbours; those beyond a border count for the border."""
    index, weight, _ = taps(i[:, 0], n, N)
    matrix = np.zeros((len(i), j.shape[1]))
    np.add.at(matrix, (np.arange(len(i))[:, None], index - j[0, 0]), weight)
    return matrix


def taps(i: AnyArray, n: int, N: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Of pixels i of N: their 4 neighbours among n, the spline's weights of these, both
    (len(i), 4), and where between two pixels they lie, in [0, 1)."""
    after, halves = after_and_phase(i, n, N)
    # In float32, as torch: local contrasts are small differences, and would differ.
    phase = halves.astype(np.float32) / np.float32(2 * N)
    offsets = np.arange(TAPS) - 1
    distance = abs(offsets.astype(np.float32) - phase[:, None])
    index = after[:, None] - 1 + offsets
    return index.clip(0, n - 1), np.where(distance < 1, *spline(distance)), phase


def fill_holes(
    x: AnyArray, trust: AnyArray, guide: AnyArray | None = None, far: float = 0.0
) -> AnyArray:
    """`resize.fill_holes` of x and trust (h, w); guide (C, h, w), already of that size."""
    smooth = continued(x, trust)
    known = trust > 0
    if guide is None or known.all() or not known.any():
        return smooth
    weight = trust.astype(x.dtype)
    tiny = np.finfo(x.dtype).tiny
    typical = (weight * smooth).sum() / weight.sum()
    trusted = weight * (smooth / max(typical, tiny)).clip(0.05, 20) ** np.float32(far)
    total, mixed = np.zeros_like(x), np.zeros_like(x)
    # Only holes are asked about.
    asked = ~known
    for axis, backwards in ((1, False), (1, True), (0, False), (0, True)):
        there, distance = _next_valid(known, axis, backwards)
        places = np.nonzero(asked & (distance > 0))
        found = list(places)
        found[axis] = there[places]
        said = tuple(found)
        unlike = ((guide[:, said[0], said[1]] - guide[:, places[0], places[1]]) ** 2).sum(0)
        alike = np.exp(unlike / np.float32(-2 * LIKE_COLOUR**2)) + np.float32(UNLIKE_WEIGHT)
        vote = trusted[said] * alike / (distance[places].astype(x.dtype) ** 2)
        total[places] += vote
        mixed[places] += vote * smooth[said]
    return np.where((total > 0) & asked, mixed / np.maximum(total, tiny), smooth)


def _next_valid(known: AnyArray, axis: int, backwards: bool) -> tuple[AnyArray, AnyArray]:
    """Where, along an axis of (h, w), the next valid pixel before (or behind) each is, and how far;
    the distance is 0 if there is none."""
    n = known.shape[axis]
    index = np.arange(n)[:, None] if axis == 0 else np.arange(n)
    index = np.broadcast_to(index, known.shape)
    if backwards:
        turned = np.flip(np.where(known, index, n), axis)
        places = np.flip(np.minimum.accumulate(turned, axis), axis)
    else:
        places = np.maximum.accumulate(np.where(known, index, -1), axis)
    there = places < n if backwards else places >= 0
    return places.clip(0, n - 1), np.where(there, abs(places - index), 0)


def continued(x: AnyArray, trust: AnyArray) -> AnyArray:
    """`resize.continued` of x and trust (h, w): a smooth continuation into holes."""
    weight = trust.astype(x.dtype)
    return _continued(x, weight, bool(((weight > 0) & (weight < 1)).any()))


def _continued(x: AnyArray, weight: AnyArray, weighted: bool) -> AnyArray:
    valid = weight > 0
    x = np.where(valid, x, np.zeros_like(x))
    if valid.all() or x.size == 1:
        return x
    half = ((x.shape[0] + 1) // 2, (x.shape[1] + 1) // 2)
    pooled = area(weight, half)
    coarse = area(weight * x, half) / np.maximum(pooled, np.finfo(x.dtype).tiny)
    coarse = np.where(pooled > 0, coarse, np.zeros_like(coarse))
    below = pooled if weighted else (pooled > 0).astype(x.dtype)
    return np.where(valid, x, bilinear(_continued(coarse, below, weighted), x.shape))


def masked_bicubic(x: AnyArray, valid: AnyArray, size: Size) -> tuple[AnyArray, AnyArray]:
    """`resize.masked_bicubic` of (h, w) where neither side grows: shrunk values and their mask."""
    share = bilinear(valid.astype(x.dtype), size)
    return bicubic(fill_holes(x, valid), size), share > 0.5


def doubted(low: AnyArray, trust: AnyArray, guide: AnyArray, far: float) -> AnyArray:
    """low (h, w) without holes, by its trust; guide (C, h, w). Holes are filled from what is
    trusted; see `upscaling.prediction.doubted`."""
    half = np.float32(0.5) * trust.max()
    firm = trust >= half
    filled = fill_holes(low, np.where(firm, trust, np.zeros_like(trust)), guide, far)
    share = trust / max(half, np.float32(1e-12))
    drawn = np.where(trust > 0, low - filled, np.zeros_like(low))
    return np.where(firm, low, filled + share * drawn)
