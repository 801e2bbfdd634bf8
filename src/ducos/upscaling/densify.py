"""Scattered points made dense.

A network that was trained on maps of a sensor blurs a map in which one pixel of a hundred is
valid. So the points are spread, over a grid of the image: neighbouring cells pull at each other's
depth, strongly where their colours are alike and hardly across an edge of the image, and the points
hold it. That is one sparse linear system (a weighted membrane). Then the same pulls are followed
for some steps from pixel to pixel of the image, where each point holds its own pixel.

A network on top makes it worse (benchmarks/sparse.py has the figures), so one is asked only if it
is named; it then goes on from the grid as from any map.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import Floats, Mask, Size
from ducos.errors import needed
from ducos.files import DepthMap
from ducos.sampling import area, bicubic

CELLS = 80_000  # of the grid at most: a third of a second
LIKE_COLOUR = 0.03  # standard deviation of the colours of one surface
UNLIKE = 0.001  # what pulls across an edge, of what pulls on a surface
HOLD = 100.0  # of a point on its cell, of what pulls on a surface
STEPS = 60  # from pixel to pixel: some 10 pixels far; 200 are hardly better


def densified(low: DepthMap, image: Floats) -> DepthMap:
    """A map without holes of a map (h, w) of scattered points; image: (H, W, 3) in [0, 1].

    Its grid has the map's aspect, at most as many cells as the map has pixels, and at most CELLS.
    """
    size = grid_size(low.depth.shape)
    depth, known = gathered(low.depth, low.valid, size)
    colours = np.moveaxis(area(np.moveaxis(image, -1, 0), size), 0, -1)
    spread = membrane(depth, known, colours.astype(np.float64))
    everywhere = np.ones(size, bool)
    return replace(low, depth=spread.astype(np.float32), valid=everywhere, confidence=None)


def finest(dense: DepthMap, low: DepthMap, image: Floats) -> Floats:
    """(H, W): the spread points `dense` at the size of the image (3, H, W), and sharp there.

    low: the points (h, w) themselves.
    """
    size = (image.shape[1], image.shape[2])
    lowest, highest = float(dense.depth.min()), float(dense.depth.max())
    depth = bicubic(dense.depth[None, None], size)[0, 0].clip(lowest, highest)
    points, known = on_pixels(low, size)
    across, down = (pulls_between(image, axis) for axis in (2, 1))
    hold = np.where(known, np.float32(HOLD), np.float32(0))
    held = hold * points
    total = hold
    total[:, :-1] += across
    total[:, 1:] += across
    total[:-1] += down
    total[1:] += down
    for _ in range(STEPS):
        pulled = held.copy()
        pulled[:, :-1] += across * depth[:, 1:]
        pulled[:, 1:] += across * depth[:, :-1]
        pulled[:-1] += down * depth[1:]
        pulled[1:] += down * depth[:-1]
        depth = pulled / total
    return np.asarray(depth, np.float32)


def pulls_between(image: Floats, axis: int) -> Floats:
    """How much neighbours along an axis of the image (3, H, W) pull at each other."""
    unlike = np.square(np.diff(image, axis=axis)).sum(0)
    return (np.exp(-unlike / (2 * LIKE_COLOUR**2)) + UNLIKE).astype(np.float32)


def on_pixels(low: DepthMap, size: Size) -> tuple[Floats, Mask]:
    """The points (h, w) by the pixels of the image in whose middle they lie."""
    (h, w), (H, W) = low.depth.shape, size
    if h > H or w > W:  # several may lie in one
        return gathered(low.depth, low.valid, size)
    points, known = np.zeros(size, np.float32), np.zeros(size, bool)
    row, column = np.nonzero(low.valid)
    at = (2 * row + 1) * H // (2 * h), (2 * column + 1) * W // (2 * w)
    points[at], known[at] = low.depth[row, column], True
    return points, known


def grid_size(size: tuple[int, ...]) -> Size:
    """(height, width) of the grid for a map of this size."""
    h, w = size
    shrink = min(1.0, (CELLS / (h * w)) ** 0.5)
    return max(1, int(h * shrink)), max(1, int(w * shrink))


def gathered(depth: Floats, valid: Mask, size: Size) -> tuple[Floats, Mask]:
    """The points (h, w) by the cells of a grid, and which cells have any.

    Of several the lower median: a mean of two surfaces would lie between them.
    """
    (h, w), (rows, columns) = depth.shape, size
    row, column = np.nonzero(valid)
    cell = (row * rows // h) * columns + column * columns // w
    order = np.lexsort((depth[row, column], cell))
    cells, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    plane = np.zeros(rows * columns, np.float32)
    plane[cells] = depth[row, column][order][first + (count - 1) // 2]
    known = np.zeros(rows * columns, bool)
    known[cells] = True
    return plane.reshape(size), known.reshape(size)


def membrane(depth: Floats, known: Mask, colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """(h, w): as smooth as the colours (h, w, C) are alike, held where it is known."""
    sparse = needed("scipy.sparse", "torch")
    spsolve = needed("scipy.sparse.linalg", "torch").spsolve

    index = np.arange(depth.size).reshape(depth.shape)
    ends, pulls = [], []
    for here, there in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        unlike = np.square(colours[here] - colours[there]).sum(-1)
        ends.append(np.stack([index[here].ravel(), index[there].ravel()]))
        pulls.append((np.exp(-unlike / (2 * LIKE_COLOUR**2)) + UNLIKE).ravel())
    (one, other), pull = np.concatenate(ends, 1), np.concatenate(pulls)
    side = (depth.size, depth.size)
    links = sparse.csr_array((pull, (one, other)), side)
    links = links + links.T
    hold = HOLD * known.ravel().astype(np.float64)
    balance = sparse.diags_array(links.sum(1) + hold, offsets=0)
    solved = spsolve((balance - links).tocsc(), hold * depth.ravel().astype(np.float64))
    return np.asarray(solved).reshape(depth.shape)


def spread_over(low: DepthMap, dense: DepthMap) -> str:
    """A sentence about points and what they became."""
    (h, w), count = dense.depth.shape, int(low.valid.sum())
    return (
        f"{count} scattered points ({100 * low.valid.mean():.2g} % of the map) were spread over "
        f"{w}×{h} along the edges of the image"
    )
