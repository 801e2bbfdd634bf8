"""Depth maps in: which unit the numbers are in, then which pixels are measurements."""

import json
import math
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ducos.arrays import AnyArray, Floats, Mask
from ducos.errors import InputError
from ducos.files.formats import read_stored
from ducos.files.images import as_float32, as_mask, read_mask, single_plane
from ducos.files.paths import PathLike
from ducos.files.units import FARTHEST, Meaning, given_meaning, guessed_meaning, stated_meaning

SCATTERED = 0.1  # of the pixels: fewer, without areas, are points
_LARGEST_LEVEL = 1e18  # of relative maps: the squares of larger numbers overflow float32


@dataclass
class DepthMap:
    """Depth that knows what it is.

    depth: (h, w) float32 in metres, or in the file's own levels when `unit` is `relative`; 0 where
        invalid.
    valid: (h, w) bool, True where measured. At least one pixel is.
    unit: of the stored values: m, cm, mm, custom or relative.
    scale: metres (or levels) per stored value.
    note: one sentence on how the unit was decided; guessed: True if by guessing.
    about: what the writer of the file said about it, see `write_depth`.
    confidence: (h, w) in (0, 1] where valid, how far each measurement is trusted; None: all alike.
    """

    depth: Floats
    valid: Mask
    unit: str
    scale: float
    note: str
    guessed: bool = False
    about: dict[str, Any] = field(default_factory=dict)
    confidence: Floats | None = None

    @property
    def is_scattered(self) -> bool:
        """Whether it is points rather than a map: few pixels, and next to none with all neighbours.

        Sweeps of a LiDAR are lines, points of structure from motion are single pixels.
        """
        share = float(self.valid.mean())
        if share >= SCATTERED or min(self.valid.shape) < 3:
            return False
        whole = self.valid[:, :-2] & self.valid[:, 1:-1] & self.valid[:, 2:]
        whole = whole[:-2] & whole[1:-1] & whole[2:]
        return float(whole.sum()) < 0.1 * float(self.valid.sum())

    def trusted(self, confidence: Floats) -> "DepthMap":
        """The same map with a confidence (h, w); what is not trusted at all becomes a hole."""
        if confidence.shape != self.depth.shape:
            raise InputError(
                f"the confidence has shape {confidence.shape}, the depth {self.depth.shape}; make "
                "them equal"
            )
        valid = self.valid & (confidence > 0)
        if not valid.any():
            raise InputError("the confidence is 0 at every measurement; nothing is left to use")
        depth = np.where(valid, self.depth, np.float32(0))
        return replace(self, depth=depth, valid=valid, confidence=np.where(valid, confidence, 0))


def read_depth(
    path: PathLike,
    unit: str = "auto",
    *,
    scale: float | None = None,
    mask: ArrayLike | PathLike | None = None,
    min_depth: float | None = None,
    max_depth: float | None = None,
    invalid_zero: bool | None = None,
    key: str | None = None,
) -> DepthMap:
    """Depth map of a PNG, TIFF, EXR, NPY, NPZ, PFM or HDF5 file; for the arguments see `as_depth`.

    Args:
        mask: array as in `as_depth`, or the name of a mask file.
        key: array of an NPZ or HDF5 file, or channel of an EXR file, that holds the depth.
    """
    stored = read_stored(path, key)
    plane = single_plane(stored.array, f"{path}")
    if stored.valid is not None and stored.valid.shape != plane.shape:
        raise InputError(
            f"{path} holds depth of shape {plane.shape} with a mask of shape {stored.valid.shape}; "
            "they must be equal"
        )
    stated = stated_meaning(f"{path}", stored.facts)
    depth = _interpret(
        plane,
        f"{path}",
        unit=unit,
        scale=scale,
        stated=stated,
        mask=read_mask(mask) if isinstance(mask, (str, os.PathLike)) else mask,
        own_valid=stored.valid,
        min_depth=min_depth,
        max_depth=max_depth,
        invalid_zero=invalid_zero,
    )
    depth.about = _about(stored.facts.get("depth_about", ""))
    return depth


def as_depth(
    array: ArrayLike,
    unit: str = "auto",
    *,
    scale: float | None = None,
    mask: ArrayLike | None = None,
    min_depth: float | None = None,
    max_depth: float | None = None,
    invalid_zero: bool | None = None,
) -> DepthMap:
    """Depth map of an array in memory, by the same rules as a file.

    Args:
        array: (h, w), (h, w, 1) or (1, h, w), any integer or floating type; masked arrays keep
            their mask.
        unit: of the array's values: m, cm, mm, relative, or auto to guess.
        scale: metres per value for any other unit (TUM: 1/5000, KITTI: 1/256). With
            unit="relative", levels per value.
        mask: (h, w), non-zero where the depth may be used.
        min_depth, max_depth: metres (levels if relative); what lies outside is invalid.
        invalid_zero: whether 0 is a hole; by default it is, except in relative maps.
    """
    own_mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    return _interpret(
        single_plane(array, "the depth array"),
        "the depth array",
        unit=unit,
        scale=scale,
        stated=None,
        mask=mask,
        own_valid=None if own_mask is None else single_plane(~own_mask, "the array's own mask"),
        min_depth=min_depth,
        max_depth=max_depth,
        invalid_zero=invalid_zero,
    )


def _interpret(
    plane: AnyArray,
    name: str,
    *,
    unit: str,
    scale: float | None,
    stated: Meaning | None,
    mask: ArrayLike | None,
    own_valid: Mask | None,
    min_depth: float | None,
    max_depth: float | None,
    invalid_zero: bool | None,
) -> DepthMap:
    """Stored values (h, w) -> DepthMap: decide the unit, then which pixels are valid."""
    if plane.dtype.kind == "b":
        raise InputError(f"{name} is a mask (bool); depth must be integers or floating point")
    if plane.dtype == np.float16:
        plane = as_float32(plane)  # 65535 does not exist in half precision
    valid = _no_code(plane)
    if own_valid is not None:
        valid &= own_valid
    if mask is not None:
        valid &= as_mask(mask, "the mask", plane.shape)

    meaning = given_meaning(unit, scale)
    if meaning is None:
        meaning = stated or guessed_meaning(plane, valid)
    elif stated is not None:
        meaning.words += f" (the file states {stated.words})"
        if meaning.unit == "relative":
            meaning.zero_is_hole = stated.zero_is_hole
    if invalid_zero is not None:
        meaning.zero_is_hole = invalid_zero
    if meaning.unit != "relative":
        valid &= plane != 65535  # the 16-bit code, also when cast to floating point
        with np.errstate(over="ignore"):  # a tiny scale puts the limit beyond float32
            valid &= plane <= FARTHEST / meaning.scale
        valid &= _not_negative(plane, valid, name)

    depth = np.empty(plane.shape, np.float32)
    with np.errstate(all="ignore"):  # invalid pixels may overflow
        # In float64, so that 1834 mm is the float32 nearest to 1.834; ufuncs buffer, no big copy.
        np.multiply(plane, meaning.scale, out=depth, dtype=np.float64, casting="unsafe")
    valid &= np.isfinite(depth) & (np.abs(depth) <= _LARGEST_LEVEL)
    if meaning.zero_is_hole:
        valid &= depth != 0  # not plane != 0: the smallest numbers times a scale vanish too
    if min_depth is not None or max_depth is not None:
        nearest = -math.inf if min_depth is None else min_depth
        farthest = math.inf if max_depth is None else max_depth
        if not nearest <= farthest:
            raise InputError(f"min_depth {min_depth} must not be above max_depth {max_depth}")
        valid &= (depth >= nearest) & (depth <= farthest)
    if not valid.any():
        raise InputError(_why_nothing_is_valid(plane, name, meaning.note))
    depth[~valid] = 0
    guessed = meaning.how == "guessed"
    return DepthMap(depth, valid, meaning.unit, meaning.scale, meaning.note, guessed)


def _no_code(plane: AnyArray) -> Mask:
    """True where a value is a number and no sensor's code for `nothing measured`."""
    if plane.dtype.kind == "f":
        return np.isfinite(plane)
    if plane.dtype.itemsize == 1:
        return np.ones(plane.shape, bool)  # 255 is the near end of 8-bit levels
    return (plane != 65535) & (plane != np.iinfo(plane.dtype).max)


def _not_negative(plane: AnyArray, valid: Mask, name: str) -> Mask:
    """A few negative pixels are noise and become holes; many mean another convention."""
    negative = (plane < 0) & valid
    count, of = int(negative.sum()), int((valid & (plane != 0)).sum())
    if count > 0.1 * of:
        raise InputError(
            f"{name} has negative depth in {100 * count / of:.0f} % of its measured pixels; depth "
            "is positive and grows away from the camera, so flip the sign if yours points the "
            "other way, or pass unit='relative' if it is no distance"
        )
    return ~negative


def _why_nothing_is_valid(plane: AnyArray, name: str, note: str) -> str:
    """Count the pixels by what is wrong with them."""
    number = np.isfinite(plane)
    code = number & ~_no_code(plane) | (plane == 65535)
    counts = {
        "are NaN or infinite": ~number,
        "are 0": plane == 0,
        "are codes such as 65535": code,
        "are negative": number & (plane < 0),
        f"lie outside mask or range ({note})": number & (plane > 0) & ~code,
    }
    reasons = [f"{int(hit.sum())} {words}" for words, hit in counts.items() if hit.any()]
    return f"{name} has no valid pixel: of its {plane.size} values {', '.join(reasons)}"


def _about(text: str) -> dict[str, Any]:
    """The writer's remarks; unreadable ones are none, they never decide anything."""
    try:
        remarks = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return remarks if isinstance(remarks, dict) else {}
