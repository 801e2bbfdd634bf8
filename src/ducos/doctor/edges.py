"""Edges of an image and of a depth map, and how well they agree at every shift.

An edge is a complex number: its length is the strength, its angle twice the edge's direction.
"""

from itertools import pairwise

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from ducos.arrays import Floats, Mask
from ducos.filters import dilated, fast_length, gaussian, turned
from ducos.sampling import bicubic, bilinear, continued, nearest

LONGEST_SIDE = 640  # pixels at which edges are compared; larger images are shrunk
SEARCH = 0.04  # of the longest side: the largest shift looked for, on either side
EDGE_SHARE = 0.04  # of the pixels: the strongest depth edges are compared
SMALLEST_JUMP = 0.02  # of the depth per low-resolution pixel: below it there is no edge


def working_size(H: int, W: int) -> tuple[tuple[int, int], int]:
    """Size at which edges are compared, and the largest shift in its pixels."""
    shrink = min(1.0, LONGEST_SIDE / max(H, W))
    size = (max(1, round(H * shrink)), max(1, round(W * shrink)))
    return size, max(4, round(SEARCH * max(size)))


def colour_edges(rgb: Floats, size: tuple[int, int]) -> NDArray[np.complex64]:
    """Doubled-angle edges (H, W): strength relative to that of the surroundings.

    Dividing by the mean strength around makes a faint silhouette in the shade count as much as a
    strong one in the light, and keeps busy texture from drowning both.
    """
    planes = bilinear(turned(rgb), size)
    strongest = np.zeros(size, np.complex64)
    for plane in planes:
        edge = _doubled_angle(plane, 1.0)
        strongest = np.where(np.abs(edge) > np.abs(strongest), edge, strongest)
    strength = np.sqrt(np.abs(strongest))
    around = gaussian(strength, max(size) / 40)
    floor = 0.3 * float(strength.mean()) + 1e-3
    direction = strongest / np.maximum(np.abs(strongest), 1e-12)
    return (direction * strength / (around + floor)).astype(np.complex64)


def depth_edges(depth: Floats, valid: Mask, size: tuple[int, int]) -> NDArray[np.complex64]:
    """Doubled-angle edges (H, W) of the strongest jumps between measured pixels; 0 elsewhere."""
    filled = continued(depth, valid)
    span = max(float(depth[valid].max() - depth[valid].min()), 1e-9)
    # Steps count relative to the distance; relative maps may hold zeros, hence the floor.
    logarithm = np.log(np.maximum(filled, 0) + np.float32(0.05 * span))
    h, w = depth.shape
    ratio = max(1.0, size[0] / h, size[1] / w)
    plane = bicubic(logarithm, size)
    edge = _doubled_angle(plane, max(1.0, 0.4 * ratio))
    measured = nearest(valid, size)
    # A jump next to a hole is where filling began, not where a thing ends.
    near_hole = dilated(~measured, round(1.5 * ratio) + 1)
    edge[near_hole] = 0
    strength = np.sqrt(np.abs(edge)) * ratio
    enough = np.quantile(strength, 1 - EDGE_SHARE)
    limit = max(float(enough), SMALLEST_JUMP)
    # All strong jumps count alike: one object close to the camera is not the whole picture.
    kept = np.where(strength > limit, np.minimum(strength / limit, 2.0), 0)
    return (edge / np.maximum(np.abs(edge), 1e-20) * kept).astype(np.complex64)


def _doubled_angle(plane: Floats, sigma: float) -> NDArray[np.complex64]:
    """Squared complex gradient: its angle is twice the edge's, equal for both signs."""
    across = gaussian(plane, sigma, (0, 1))
    down = gaussian(plane, sigma, (1, 0))
    gradient = across + 1j * down
    return (gradient * gradient).astype(np.complex64)


def agreement(
    colour: NDArray[np.complex64], depth: NDArray[np.complex64], reach: int, blocks: int
) -> NDArray[np.floating]:
    """(blocks², 2 reach + 1, 2 reach + 1): agreement of each block's depth edges, 0 without any.

    Index [b, reach + dy, reach + dx] is the score if the depth lay (dx, dy) too far right and down,
    that is, what colour edges there are under the depth edges moved back by (dx, dy).
    """
    H, W = colour.shape
    padded = np.pad(colour, reach)
    rows = np.linspace(0, H, blocks + 1).round().astype(int)
    columns = np.linspace(0, W, blocks + 1).round().astype(int)
    results = np.zeros((blocks, blocks, 2 * reach + 1, 2 * reach + 1))
    for i, (top, bottom) in enumerate(pairwise(rows)):
        for j, (left, right) in enumerate(pairwise(columns)):
            block = depth[top:bottom, left:right]
            if not block.any():
                continue
            around = padded[top : bottom + 2 * reach, left : right + 2 * reach]
            shape = (fast_length(around.shape[0]), fast_length(around.shape[1]))
            # Parallel edges count fully, edges at 45° half, crossing ones not at all.
            spectrum = fft.fft2(around, shape) * np.conj(fft.fft2(block, shape))
            spectrum += fft.fft2(np.abs(around), shape) * np.conj(fft.fft2(np.abs(block), shape))
            score = 0.5 * fft.ifft2(spectrum).real[: 2 * reach + 1, : 2 * reach + 1]
            results[i, j] = score[::-1, ::-1]
    return results.reshape(blocks * blocks, *results.shape[2:])
