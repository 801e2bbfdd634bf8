"""What a result owes to its measurements: where each pixel comes from, and whether it agrees."""

import numpy as np

from ducos.arrays import AnyArray, Floats, Mask, Size
from ducos.filters import maximum
from ducos.sampling import area, nearest


def trace(valid: Mask, size: Size) -> AnyArray:
    """`result.SOURCES` of each output pixel, (H, W) uint8, from the input's mask (h, w)."""
    # Per measurement first: there are fewer of them.
    source = np.where(valid, 1, np.where(maximum(valid, 5), 2, 3)).astype(np.uint8)
    return nearest(source, size)


def disagreement(depth: Floats, low: Floats, valid: Mask) -> float:
    """RMS difference between the result, downsampled to the input's size as an ideal sensor would
    measure it, and the valid input."""
    shrunk = area(depth, (low.shape[0], low.shape[1]))
    return float(np.sqrt(((shrunk - low)[valid] ** 2).mean()))
