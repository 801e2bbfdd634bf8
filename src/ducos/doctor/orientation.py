"""Whether a depth map lies on its image as it is, or would if it were mirrored or turned.

Around the jumps of the depth, how much of it is a linear function of the colours? On the right
picture half to nine tenths of it; on a mirrored one colours change elsewhere than depth does, and
a fifth to two fifths are explained by chance. Pictures are symmetric in their edges more often than
in this: benchmarks/doctor_orientation.py has the figures of both.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray, Floats, Mask
from ducos.filters import box_mean, gaussian
from ducos.sampling import bilinear, continued, nearest

UPRIGHT = "as it is"
LONGEST_SIDE = 200  # pixels at which it is looked at
WINDOW = 7  # pixels, of a window in which depth is explained
STEP = 3  # pixels from one tried shift to the next: less than half a window
JUMPS = 0.07  # of the measured pixels: the strongest changes of depth
FEWEST = 30  # windows
GRAIN = 2e-4  # variance of colours below which they are noise

FLIPS: dict[str, Callable[[AnyArray], AnyArray]] = {
    UPRIGHT: lambda plane: plane,
    "mirrored left to right": lambda plane: plane[:, ::-1],
    "mirrored top to bottom": lambda plane: plane[::-1],
    "turned by 180°": lambda plane: plane[::-1, ::-1],
}
QUARTERS: dict[str, Callable[[AnyArray], AnyArray]] = {
    "turned by 90° clockwise": lambda plane: np.rot90(plane, 1),
    "turned by 90° counter-clockwise": lambda plane: np.rot90(plane, -1),
    "transposed": lambda plane: plane.T,
}


def orientation_shares(rgb: Floats, depth: Floats, valid: Mask) -> dict[str, float]:
    """How much of the depth the colours explain if the map was mirrored or turned so, and as it is.

    rgb: (H, W, 3); depth, valid: (h, w). Quarter turns are tried only if the depth map stands where
    the image lies, or the reverse. Empty where the depth has too few jumps.
    """
    (H, W), (h, w) = rgb.shape[:2], depth.shape
    turned = (H > W and h < w) or (H < W and h > w)
    shrink = LONGEST_SIDE / max(H, W)
    size = (max(WINDOW, round(H * shrink)), max(WINDOW, round(W * shrink)))
    colours = bilinear(np.moveaxis(rgb, -1, 0), size).astype(np.float64)
    shares = {}
    for name, undo in (QUARTERS if turned else FLIPS).items():
        plane, known = logarithm(undo(depth).copy(), undo(valid).copy(), size)
        steep = np.hypot(gaussian(plane, 1.0, (1, 0)), gaussian(plane, 1.0, (0, 1)))
        limit = np.quantile(steep[known], 1 - JUMPS) if known.any() else 0.0
        jumps = known & (steep >= max(float(limit), 1e-6))
        # As it is, it may lie beside the picture; to be called mirrored it must fit well in place.
        reach = 2 if name == UPRIGHT else 1
        tried = [
            explained(np.roll(colours, (STEP * down, STEP * right), (1, 2)), plane, known, jumps)
            for down in range(-reach, reach + 1)
            for right in range(-reach, reach + 1)
        ]
        if min(tried) >= 0:
            shares[name] = max(tried)
    return shares


def logarithm(
    depth: Floats, valid: Mask, size: tuple[int, int]
) -> tuple[NDArray[np.float64], Mask]:
    """Logarithm of the depth at this size, and where it was measured; relative maps may hold 0."""
    filled = continued(depth, valid)
    span = max(float(depth[valid].max() - depth[valid].min()), 1e-9)
    plane = bilinear(np.log(filled.clip(0) + 0.05 * span), size).astype(np.float64)
    return plane, nearest(valid, size)


def explained(
    colours: NDArray[np.float64], plane: NDArray[np.float64], known: Mask, jumps: Mask
) -> float:
    """Mean share of the variance of plane (H, W), in windows at its jumps, that a linear function
    of the colours (3, H, W) explains; -1 if there are too few windows."""
    weight = known.astype(np.float64)
    chosen = np.nonzero(jumps & (box_mean(weight, (WINDOW, WINDOW)) > 0.5))
    if len(chosen[0]) < FEWEST:
        return -1.0
    whole = window_sums(weight, chosen)

    def mean(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return window_sums(weight * x, chosen) / whole

    level = mean(plane)
    variance = mean(plane * plane) - level**2
    centres = [mean(colour) for colour in colours]
    shared = np.stack([mean(c * plane) - m * level for c, m in zip(colours, centres)], -1)
    own = np.empty((*level.shape, 3, 3))
    for i in range(3):
        for j in range(i, 3):
            both = mean(colours[i] * colours[j]) - centres[i] * centres[j]
            own[..., i, j] = own[..., j, i] = both
    slope = np.linalg.solve(own + GRAIN * np.eye(3), shared[..., None])[..., 0]
    share = (slope * shared).sum(-1) / np.maximum(variance, 1e-9)
    return float(share.clip(0, 1).mean())


def window_sums(x: NDArray[np.float64], chosen: tuple[AnyArray, ...]) -> NDArray[np.float64]:
    """Sums of x (H, W) over the windows around the chosen rows and columns; beyond the border it
    is 0."""
    (H, W), reach = x.shape, WINDOW // 2
    padded = np.zeros((H + 2 * reach, W + 2 * reach))
    padded[reach : reach + H, reach : reach + W] = x
    pairs = padded[:-1] + padded[1:]
    down = pairs[:H] + pairs[2 : 2 + H] + pairs[4 : 4 + H] + padded[6 : 6 + H]  # WINDOW rows
    pairs = down[:, :-1] + down[:, 1:]
    row, left = chosen
    sums = pairs[row, left] + pairs[row, left + 2] + pairs[row, left + 4] + down[row, left + 6]
    return np.asarray(sums)
