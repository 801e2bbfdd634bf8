"""Whether a depth map lies on its image as it is, or would if it were mirrored or turned.

Around the jumps of the depth, how much of it is a linear function of the colours? On the right
picture half to nine tenths of it; on a mirrored one colours change elsewhere than depth does, and
a fifth to two fifths are explained by chance. Pictures are symmetric in their edges more often than
in this: benchmarks/doctor_orientation.py has the figures of both.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray, Floats, Mask
from ducos.doctor.fit import explained_by
from ducos.filters import box_mean, gaussian
from ducos.sampling import bilinear, continued, nearest

UPRIGHT = "as it is"
LONGEST_SIDE = 200  # pixels at which it is looked at
WINDOW = 7  # pixels, of a window in which depth is explained
REACH = WINDOW // 2
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


def orientation_shares(
    rgb: Floats, depth: Floats, valid: Mask, least: float = 0.0
) -> dict[str, float]:
    """How much of the depth the colours explain if the map was mirrored or turned so, and as it is.

    rgb: (H, W, 3); depth, valid: (h, w). Quarter turns are tried only if the depth map stands where
    the image lies, or the reverse. Empty where the depth has too few jumps; and, to save half of
    the time, if no other way explains more than `least`.
    """
    (H, W), (h, w) = rgb.shape[:2], depth.shape
    turned = (H > W and h < w) or (H < W and h > w)
    shrink = LONGEST_SIDE / max(H, W)
    size = (max(WINDOW, round(H * shrink)), max(WINDOW, round(W * shrink)))
    colours = bilinear(np.moveaxis(rgb, -1, 0), size)
    shares: dict[str, float] = {}
    # As it is comes last, and then has its place among equals: the first.
    for name, undo in [*(QUARTERS if turned else FLIPS).items()][::-1]:
        if name == UPRIGHT and max(shares.values(), default=0.0) <= least:
            return {}
        plane, known = logarithm(undo(depth).copy(), undo(valid).copy(), size)
        steep = np.hypot(gaussian(plane, 1.0, (1, 0)), gaussian(plane, 1.0, (0, 1)))
        limit = np.quantile(steep[known], 1 - JUMPS) if known.any() else 0.0
        windows = Windows.of(plane, known, known & (steep >= max(float(limit), 1e-6)))
        # As it is, it may lie beside the picture; to be called mirrored it must fit well in place.
        reach = 2 if name == UPRIGHT else 1
        tried = [
            windows.explained_by(np.roll(colours, (STEP * down, STEP * right), (1, 2)))
            for down in range(-reach, reach + 1)
            for right in range(-reach, reach + 1)
        ]
        if min(tried) >= 0:
            shares[name] = max(tried)
    return dict(reversed(shares.items()))


def logarithm(
    depth: Floats, valid: Mask, size: tuple[int, int]
) -> tuple[NDArray[np.float64], Mask]:
    """Logarithm of the depth at this size, and where it was measured; relative maps may hold 0."""
    filled = continued(depth, valid)
    span = max(float(depth[valid].max() - depth[valid].min()), 1e-9)
    plane = bilinear(np.log(filled.clip(0) + 0.05 * span), size).astype(np.float64)
    return plane, nearest(valid, size)


class Windows(NamedTuple):
    """Around N of the jumps of a depth map (H, W), each n pixels, beyond the border too.

    places: (n, N), in maps with a border of half a window; weight: (n, N), 1 where it was measured;
    plane: (n, N), its logarithm, with a weighted mean of 0.
    """

    places: NDArray[np.intp]
    weight: NDArray[np.float32]
    plane: NDArray[np.float32]

    @classmethod
    def of(cls, plane: NDArray[np.float64], known: Mask, jumps: Mask) -> "Windows":
        """Those that were measured for the most part."""
        weight = known.astype(np.float32)
        rows, columns = np.nonzero(jumps & (box_mean(weight, (WINDOW, WINDOW)) > 0.5))
        width, steps = plane.shape[1] + 2 * REACH, np.arange(WINDOW)
        places = (steps[:, None] * width + steps).reshape(-1, 1) + (rows * width + columns)
        inside = bordered(weight).take(places)
        return cls(places, inside, centred(bordered(plane).take(places), inside))

    def explained_by(self, colours: Floats) -> float:
        """Mean share of the variance of the depth in the windows that a linear function of the
        colours (3, H, W) explains; -1 if there are too few windows."""
        if self.places.shape[1] < FEWEST:
            return -1.0
        patches = np.stack([bordered(colour).take(self.places) for colour in colours])
        explained = explained_by(centred(patches, self.weight), self.plane, GRAIN, self.weight)
        variance = (self.weight * self.plane**2).sum(0) / self.weight.sum(0)
        return float((explained / np.maximum(variance, 1e-9)).clip(0, 1).mean())


def bordered(x: AnyArray) -> NDArray[np.float32]:
    """(H, W) with a border of 0 around it, half a window wide."""
    return np.pad(x.astype(np.float32), REACH)


def centred(x: AnyArray, weight: AnyArray) -> NDArray[np.float32]:
    """(..., n, N) without the weighted mean of each window."""
    return np.asarray(x - ((weight * x).sum(-2) / weight.sum(0))[..., None, :], np.float32)
