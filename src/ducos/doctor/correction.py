"""The shift to undo before super-resolving: what the user knows, or what the doctor measures.

A wrong correction is worse than none, so "auto" acts only where `examine` would warn; "check" only
says so, and nothing where all seems well. The frames of one rig share one shift, which is measured
over many of them together.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ducos.doctor.colour import is_misaligned
from ducos.doctor.refinement import View
from ducos.doctor.registration import common_misalignment
from ducos.doctor.shift_option import Correction, parse_shift
from ducos.files import DepthMap


def shift_to_undo(
    shift: str | tuple[float, float], image: NDArray[np.float32], low: DepthMap
) -> Correction:
    """The correction that `shift` asks for, of a pair of colours (H, W, 3) and depth (h, w)."""
    return common_shift(shift, [View(image, low.depth, low.valid)])


def common_shift(shift: str | tuple[float, float], views: Sequence[View]) -> Correction:
    """The one correction that `shift` asks for, of views of one rig; all have the same sizes."""
    given = parse_shift(shift)
    if given is not None:
        return given
    found = common_misalignment(views, in_haste=shift == "check")
    (H, W), (h, w) = views[0].rgb.shape[:2], views[0].depth.shape
    where = f"{found.x:.1f} px across and {found.y:.1f} px down (± {found.spread:.1f})"
    if is_misaligned(found, max(H / h, W / w)):
        if shift == "auto":
            return Correction(found.x, found.y, f"the depth is moved back by {where}")
        seems = f"the depth seems misaligned with the image by {where}"
        return Correction(note=f"{seems}; --shift auto moves it back", warns=True)
    if shift == "check":
        return Correction()
    if not found.certain:
        return Correction(note=f"not moved: cannot tell whether it is off, {found.reason}")
    return Correction(note=f"not moved: aligned as far as can be seen, {where}")
