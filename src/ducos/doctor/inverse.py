"""Whether a map holds distances or their inverse, which is what many depth networks give.

A camera sees a flat surface so that the *inverse* of its distance is linear in the pixel's place;
the distance itself is bent. So where a window shows one slanted surface, a plane fits the inverse
of metres better than the metres, and the numbers of an inverse map better than their inverse.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ducos.arrays import Floats, Mask
from ducos.doctor.findings import Finding
from ducos.files import DepthMap

LONGEST_SIDE = 320  # pixels at which it is looked at
WINDOW, APART = 25, 8  # pixels
SLANTED = 1.15, 2.0  # from the nearest to the farthest within a window
LARGEST_JUMP = 0.25  # of that, from pixel to pixel: more is an edge
FEWEST = 40  # windows
BENT = -0.2  # median logarithm of how bent the numbers are over how bent their inverse is
AGREED = 0.7  # of the windows
GRAIN = 1e-4  # of the slope: rounding is no bend


def check_inverse(low: DepthMap) -> Iterator[Finding]:
    """inverse: of floating-point numbers whose unit was guessed to be metric."""
    if not low.guessed or low.unit == "relative":
        return
    stored = low.depth[low.valid] / low.scale
    if np.abs(stored - np.rint(stored)).max() <= 1e-4 * max(1.0, float(stored.max())):
        return  # whole numbers: those of networks are not
    bends = straightness(low.depth, low.valid)
    if len(bends) < FEWEST:
        return
    middle, share = float(np.median(bends)), float((bends < 0).mean())
    if middle < BENT and share >= AGREED:
        yield Finding(
            "inverse",
            "warning",
            "flat surfaces are straight in the stored numbers and bent in their inverse: this looks"
            " like inverse depth (disparity), near things having large numbers, as many depth"
            " networks give it",
            "such a map is no measurement: pass it as --prior beside one, or turn it into metres "
            "before (1 / value, with its scale)",
            {"median_log_bend": middle, "share": share, "windows": len(bends)},
        )


def straightness(depth: Floats, valid: Mask) -> NDArray[np.float64]:
    """Of each window on a slanted surface, the logarithm of how bent the numbers (h, w) are over
    how bent their inverse is: below 0, if they are the straight ones."""
    shrink = max(1, round(max(depth.shape) / LONGEST_SIDE))
    h, w = (side // shrink for side in depth.shape)
    if min(h, w) < WINDOW:
        return np.empty(0)
    blocks = (h, shrink, w, shrink)
    inside = np.s_[: h * shrink, : w * shrink]
    known = valid[inside].reshape(blocks).all(axis=(1, 3))
    plane = np.where(valid, depth, 1)[inside].reshape(blocks).mean((1, 3), dtype=np.float64)
    whole = windows(np.asarray(known)).all((1, 2))
    seen = windows(plane)[whole]
    nearest, farthest = seen.min((1, 2)), seen.max((1, 2))
    slanted = (nearest > 0) & (farthest > SLANTED[0] * nearest) & (farthest < SLANTED[1] * nearest)
    seen, span = seen[slanted], (farthest - nearest)[slanted]
    if not len(seen):
        return np.empty(0)
    steps = [np.abs(np.diff(seen, axis=axis)).max((1, 2)) for axis in (1, 2)]
    smooth = seen[np.maximum(*steps) < LARGEST_JUMP * span]
    return np.log((bend(smooth) + GRAIN) / (bend(1 / smooth) + GRAIN))


def windows(plane: NDArray[Any]) -> NDArray[Any]:
    """(N, WINDOW, WINDOW) of a plane (h, w)."""
    every = sliding_window_view(plane, (WINDOW, WINDOW))[::APART, ::APART]
    return every.reshape(-1, WINDOW, WINDOW)


def bend(seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a plane leaves of each window (N, n, n), as a share of its deviation."""
    place = np.arange(WINDOW) - WINDOW // 2
    ones = np.ones(WINDOW * WINDOW)
    across, down = np.tile(place, WINDOW), np.repeat(place, WINDOW)
    axes, _ = np.linalg.qr(np.stack([ones, across, down], 1))
    values = seen.reshape(-1, WINDOW * WINDOW)
    values = values - values.mean(1, keepdims=True)
    left = values - (values @ axes) @ axes.T
    return np.asarray(np.sqrt(np.square(left).mean(1) / np.square(values).mean(1)))
