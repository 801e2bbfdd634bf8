"""The shift to undo before super-resolving: what the user knows, or what the doctor measures.

A wrong correction is worse than none, so "auto" acts only where `examine` would warn; "check" only
says so, and nothing where all seems well. The frames of one rig share one shift, which is measured
over many of them together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ducos.doctor.colour import is_misaligned
from ducos.doctor.refinement import View
from ducos.doctor.registration import common_misalignment
from ducos.errors import InputError
from ducos.files import DepthMap

MEASURED = ("auto", "check")


@dataclass(frozen=True)
class Correction:
    """x, y: pixels of the colour image by which the depth lies too far right and down.

    note: what was done, or not, and why; warns: whether that should worry the user.
    """

    x: float = 0.0
    y: float = 0.0
    note: str = ""
    warns: bool = False


def parse_shift(text: str) -> Correction | None:
    """A shift such as "12,-3" or "off"; None for "auto" and "check", which need a pair."""
    if text in MEASURED:
        return None
    if text == "off":
        return Correction()
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"shift is check, auto, off, or pixels of the colour image that the depth lies too far "
            f"right and down, such as 12,-3; got {text!r}"
        ) from None
    return Correction(x, y, f"the depth is moved back by {x:g} px across and {y:g} px down")


def shift_to_undo(text: str, image: NDArray[np.float32], low: DepthMap) -> Correction:
    """The correction that `text` asks for, of a pair of colours (H, W, 3) and depth (h, w)."""
    return common_shift(text, [View(image, low.depth, low.valid)])


def common_shift(text: str, views: Sequence[View]) -> Correction:
    """The one correction that `text` asks for, of views of one rig; all have the same sizes."""
    given = parse_shift(text)
    if given is not None:
        return given
    found = common_misalignment(views)
    (H, W), (h, w) = views[0].rgb.shape[:2], views[0].depth.shape
    where = f"{found.x:.1f} px across and {found.y:.1f} px down (± {found.spread:.1f})"
    if is_misaligned(found, max(H / h, W / w)):
        if text == "auto":
            return Correction(found.x, found.y, f"the depth is moved back by {where}")
        seems = f"the depth seems to lie {where} beside the picture"
        return Correction(note=f"{seems}; --shift auto moves it back", warns=True)
    if text == "check":
        return Correction()
    if not found.certain:
        return Correction(note=f"not moved: cannot tell whether it is off, {found.reason}")
    return Correction(note=f"not moved: aligned as far as can be told, {where}")
