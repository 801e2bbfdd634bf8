"""What stored numbers mean in metres: given by the caller, stated by the file, or guessed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from ducos.errors import InputError

if TYPE_CHECKING:
    from ducos.arrays import AnyArray, Mask

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
"""Metres per stored value; the other units are `relative` (no metres) and `custom` (a scale)."""

_NAMES = {"m": "metres", "cm": "centimetres", "mm": "millimetres", "relative": "relative levels"}

FARTHEST = 60_000.0
"""Metres; what is farther is the sky of a renderer (65504, 1e10, the largest float) or a code."""


@dataclass
class Meaning:
    """What one stored value means, and how that was found out: given, read or guessed."""

    unit: str
    scale: float
    how: str
    words: str
    zero_is_hole: bool = True

    @property
    def note(self) -> str:
        return f"unit {self.how}: {self.words}"


def given_meaning(unit: str, scale: float | None) -> Meaning | None:
    """What the caller said about the unit, or None for auto."""
    if unit not in ("auto", "relative", *UNITS):
        raise InputError(f"unit {unit!r} is unknown; use auto, relative, {', '.join(UNITS)}")
    if scale is not None:
        if not (isinstance(scale, Real) and math.isfinite(scale) and scale > 0):
            raise InputError(f"scale is metres per stored value, a positive number; got {scale!r}")
        if scale >= 100:
            raise InputError(
                f"scale is metres per stored value, got {scale:g}; for {scale:g} steps per metre "
                f"pass {1 / scale:g}"
            )
        if unit in UNITS:
            raise InputError(f"got unit {unit!r} and a scale; give one of the two")
    if unit == "relative":
        step = 1.0 if scale is None else float(scale)
        return Meaning("relative", step, "given", "relative levels", zero_is_hole=False)
    if scale is not None:
        known = next((name for name, metres in UNITS.items() if metres == scale), "custom")
        return Meaning(known, float(scale), "given", _step(scale))
    if unit == "auto":
        return None
    return Meaning(unit, UNITS[unit], "given", _NAMES[unit])


def stated_meaning(name: str, facts: Mapping[str, str]) -> Meaning | None:
    """What the file says about itself, or None if it says nothing."""
    unit, scale_text = facts.get("depth_unit"), facts.get("depth_scale")
    if unit is None and scale_text is None:
        return None
    unit = "custom" if unit is None else unit
    try:
        scale = UNITS.get(unit, 1.0) if scale_text is None else float(scale_text)
    except ValueError:
        scale = math.nan
    if unit not in ("custom", "relative", *UNITS) or not (math.isfinite(scale) and scale > 0):
        raise InputError(
            f"{name} states the unit {unit[:40]!r} with scale {str(scale_text)[:40]!r}, which "
            "makes no sense; write the file again, or give its bare array and a unit"
        )
    usual = unit == "relative" or scale == UNITS.get(unit)
    words = _NAMES[unit] if usual else _step(scale)
    hole = facts.get("depth_invalid")
    zero_is_hole = unit != "relative" if hole is None else hole == "0"
    return Meaning(unit, scale, "read from the file", words, zero_is_hole)


def guessed_meaning(plane: "AnyArray", valid: "Mask") -> Meaning:
    """Guess by number type and size; only positive valid pixels have a say.

    8-bit integers are levels. Wider integers are millimetres: RealSense, Kinect, Orbbec, ARKit and
    most dataset PNGs. Floating point is metres (ARKit, ZED, renderers) up to a median of 100 and
    millimetres above; a map whose largest value is exactly 1 has been normalised.
    """
    whole = plane.dtype.kind != "f"
    bits = 8 * plane.dtype.itemsize
    kind = f"{bits}-bit integers" if whole else "floating point"
    positive = plane[valid & (plane > 0) & (whole or plane < FARTHEST)]
    normalised = not whole and positive.size > 0 and positive.max() == 1
    if normalised or (whole and bits == 8):
        why = f"{kind}, largest value exactly 1" if normalised else kind
        return Meaning("relative", 1.0, "guessed", f"relative levels ({why})", zero_is_hole=False)
    import numpy as np  # here: options are checked, and help is printed, without it

    median = float(np.median(positive)) if positive.size else 0.0
    unit = "mm" if whole or median > 100 else "m"
    words = f"{_NAMES[unit]} ({kind}, median {median:.4g})"
    metres = median * UNITS[unit]
    if not 0.1 <= metres <= (8 if whole else 100):  # depth cameras end at about 10 m
        words += f"; a median of {metres:.3g} m is unusual, so pass unit or scale if this is wrong"
    return Meaning(unit, UNITS[unit], "guessed", words)


def _step(scale: float) -> str:
    """A scale for people: `0.25 mm per step`."""
    return f"{scale * 1000:.6g} mm per step" if scale < 0.01 else f"{scale:.6g} m per step"
