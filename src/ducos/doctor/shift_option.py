"""What the user says about where the depth lies on the colour image; read without any arithmetic.

"off" does not look, "check" measures and warns, "auto" also moves the depth back if sure, and two
numbers say it themselves.
"""

import math
from dataclasses import dataclass

from ducos.errors import InputError

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


def parse_shift(shift: str | tuple[float, float]) -> Correction | None:
    """A shift such as (12, -3), "12,-3" or "off"; None for "auto" and "check": they need a pair."""
    if isinstance(shift, str):
        if shift in MEASURED:
            return None
        if shift == "off":
            return Correction()
    try:
        x, y = (float(part) for part in (shift.split(",") if isinstance(shift, str) else shift))
    except (TypeError, ValueError):
        x = y = math.nan
    if not (math.isfinite(x) and math.isfinite(y)):
        raise InputError(
            f"shift is check, auto, off, or pixels of the colour image that the depth lies too far "
            f"right and down, such as 12,-3; got {shift!r}"
        )
    if x == y == 0:
        return Correction()
    return Correction(x, y, f"the depth is moved back by {x:g} px across and {y:g} px down")
