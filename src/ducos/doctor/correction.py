"""The shift to undo before super-resolving: what the user knows, or what the doctor measures.

A wrong correction is worse than none, so "auto" acts only where `examine` would warn.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ducos.doctor.colour import is_misaligned
from ducos.doctor.registration import misalignment
from ducos.errors import InputError
from ducos.io import DepthMap


@dataclass(frozen=True)
class Correction:
    """x, y: pixels of the colour image by which the depth lies too far right and down."""

    x: float = 0.0
    y: float = 0.0
    note: str = ""


def parse_shift(text: str) -> Correction | None:
    """A shift such as "12,-3" or "off"; None for "auto", which needs a pair to look at."""
    if text == "auto":
        return None
    if text == "off":
        return Correction()
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"shift is off, auto, or pixels of the colour image that the depth lies too far right "
            f"and down, such as 12,-3; got {text!r}"
        ) from None
    return Correction(x, y, f"the depth is moved back by {x:g} px across and {y:g} px down")


def shift_to_undo(text: str, image: NDArray[np.float32], low: DepthMap) -> Correction:
    """The correction that `text` asks for, of a pair of colours (H, W, 3) and depth (h, w)."""
    given = parse_shift(text)
    if given is not None:
        return given
    found = misalignment(image, low.depth, low.valid)
    if not found.certain:
        return Correction(note=f"not moved: cannot tell whether the pair is off, {found.reason}")
    where = f"{found.x:.1f} px across and {found.y:.1f} px down (± {found.spread:.1f})"
    ratio = max(image.shape[0] / low.depth.shape[0], image.shape[1] / low.depth.shape[1])
    if not is_misaligned(found, ratio):
        return Correction(note=f"not moved: aligned as far as can be told, {where}")
    return Correction(found.x, found.y, f"the depth is moved back by {where}")
