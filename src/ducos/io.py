"""Files <-> arrays: units, invalid codes, masks, colours. Nothing else in the project knows them.

Depth inside the project is float32 metres with a bool mask, True where valid. On the way in:

- invalid are 0, negative values, NaN, +-inf, 65535, the largest number of an integer type of 16 or
  more bits, all beyond `FARTHEST`, and what the caller's mask or range or the file's own mask
  excludes;
- the unit is what the caller says, else what the file says, else a guess; `DepthMap.note` tells
  which, in a sentence meant to be printed;
- `relative` maps (disparity, 8-bit levels, normalised depth) keep their numbers, and there 0 is a
  value (the far end of the scale), as are negative numbers; `invalid_zero=True` makes 0 a hole.

On the way out every format that can carry it states the unit, the metres per stored value and the
code of a hole, and `read_depth` obeys that. NPY and PFM cannot: they hold metres.

Round trips through EXR, TIFF, NPY, NPZ, PFM and HDF5 are exact; PNG is exact to half its step.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.errors import InputError
from ducos.formats import (
    WRITTEN_AS,
    AnyArray,
    Mask,
    PathLike,
    atomic_write,
    check_output,
    read_picture,
    read_stored,
    write_pixels,
    write_stored,
)

__all__ = [
    "FARTHEST",
    "PALETTES",
    "UNITS",
    "DepthMap",
    "Written",
    "as_depth",
    "as_rgb",
    "atomic_write",
    "check_output",
    "colourise",
    "read_depth",
    "read_mask",
    "read_rgb",
    "write_depth",
    "write_image",
]

Floats = NDArray[np.float32]

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
"""Metres per stored value; the other units are `relative` (no metres) and `custom` (a scale)."""

FARTHEST = 60_000.0
"""Metres; what is farther is the sky of a renderer (65504, 1e10, the largest float) or a code."""

_LARGEST_LEVEL = 1e18  # of relative maps: the squares of larger numbers overflow float32

_NAMES = {"m": "metres", "cm": "centimetres", "mm": "millimetres", "relative": "relative levels"}


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
    """

    depth: Floats
    valid: Mask
    unit: str
    scale: float
    note: str
    guessed: bool = False
    about: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Meaning:
    """What one stored value means, and how that was found out: given, read or guessed."""

    unit: str
    scale: float
    how: str
    words: str
    zero_is_hole: bool = True

    @property
    def note(self) -> str:
        return f"unit {self.how}: {self.words}"


# Reading depth


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
    plane = _single_plane(stored.array, f"{path}")
    if stored.valid is not None and stored.valid.shape != plane.shape:
        raise InputError(
            f"{path} holds depth of shape {plane.shape} with a mask of shape {stored.valid.shape}; "
            "they must be equal"
        )
    stated = _stated_meaning(f"{path}", stored.facts)
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
        _single_plane(array, "the depth array"),
        "the depth array",
        unit=unit,
        scale=scale,
        stated=None,
        mask=mask,
        own_valid=None if own_mask is None else _single_plane(~own_mask, "the array's own mask"),
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
    stated: _Meaning | None,
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
        plane = _as_float32(plane)  # 65535 does not exist in half precision
    valid = _no_code(plane)
    if own_valid is not None:
        valid &= own_valid
    if mask is not None:
        valid &= _as_mask(mask, "the mask", plane.shape)

    meaning = _given_meaning(unit, scale)
    if meaning is None:
        meaning = stated or _guessed_meaning(plane, valid)
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


def _single_plane(values: ArrayLike, name: str) -> AnyArray:
    """Numbers (h, w) of (h, w), (h, w, 1) or (1, h, w)."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as problem:
        raise InputError(f"{name} is no array: {problem}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is of type {array.dtype}; give integers or floating point")
    if array.size == 0:
        raise InputError(f"{name} has zero size, shape {array.shape}; give a real map")
    if array.ndim == 2:
        return array
    if array.ndim == 3 and array.shape[2] == 1:
        return array[:, :, 0]
    if array.ndim == 3 and array.shape[0] == 1:
        return array[0]
    if array.ndim == 3 and (array.shape[2] in (2, 3, 4) or array.shape[0] in (2, 3, 4)):
        channels = array.shape[2] if array.shape[2] in (2, 3, 4) else array.shape[0]
        raise InputError(
            f"{name} has {channels} channels, shape {array.shape}, but depth has one; "
            "a colour picture of depth cannot be turned back, give the raw depth"
        )
    raise InputError(f"{name} has shape {array.shape}; depth must be (h, w), one map at a time")


def _as_float32(array: AnyArray) -> Floats:
    """A float32 copy; what is too large becomes infinite, quietly."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


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


# The unit: given, stated or guessed


def _given_meaning(unit: str, scale: float | None) -> _Meaning | None:
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
        return _Meaning("relative", step, "given", "relative levels", zero_is_hole=False)
    if scale is not None:
        known = next((name for name, metres in UNITS.items() if metres == scale), "custom")
        return _Meaning(known, float(scale), "given", _step(scale))
    if unit == "auto":
        return None
    return _Meaning(unit, UNITS[unit], "given", _NAMES[unit])


def _stated_meaning(name: str, facts: Mapping[str, str]) -> _Meaning | None:
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
    return _Meaning(unit, scale, "read from the file", words, zero_is_hole)


def _guessed_meaning(plane: AnyArray, valid: Mask) -> _Meaning:
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
        return _Meaning("relative", 1.0, "guessed", f"relative levels ({why})", zero_is_hole=False)
    median = float(np.median(positive)) if positive.size else 0.0
    unit = "mm" if whole or median > 100 else "m"
    words = f"{_NAMES[unit]} ({kind}, median {median:.4g})"
    metres = median * UNITS[unit]
    if not 0.1 <= metres <= (8 if whole else 100):  # depth cameras end at about 10 m
        words += f"; a median of {metres:.3g} m is unusual, so pass unit or scale if this is wrong"
    return _Meaning(unit, UNITS[unit], "guessed", words)


def _step(scale: float) -> str:
    """A scale for people: `0.25 mm per step`."""
    return f"{scale * 1000:.6g} mm per step" if scale < 0.01 else f"{scale:.6g} m per step"


def _about(text: str) -> dict[str, Any]:
    """The writer's remarks; unreadable ones are none, they never decide anything."""
    try:
        remarks = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return remarks if isinstance(remarks, dict) else {}


# Masks


def read_mask(path: PathLike, key: str | None = None) -> Mask:
    """Mask (h, w) of any supported file: True where the value, or any colour of it, is not 0."""
    array = read_stored(path, key).array
    if array.ndim == 3 and array.shape[2] in (2, 4):
        array = array[:, :, :-1]  # alpha
    if array.ndim == 3 and array.shape[2] == 3:
        array = array.max(axis=2)
    return _as_mask(array, f"{path}")


def _as_mask(mask: ArrayLike, name: str, shape: tuple[int, ...] | None = None) -> Mask:
    """Bool (h, w) of any numbers; of the depth's shape, if that is given."""
    values = _single_plane(mask, name)
    if shape is not None and values.shape != shape:
        raise InputError(f"{name} has shape {values.shape}, the depth {shape}; make them equal")
    return cast(Mask, values != 0)


# Colour


def read_rgb(path: PathLike) -> Floats:
    """Colour image (H, W, 3) in [0, 1] of a PNG, JPEG, TIFF, BMP, WebP or PPM file.

    Upright by its EXIF orientation; grey becomes three equal channels; alpha is dropped.
    """
    return as_rgb(read_picture(path), f"{path}")


def as_rgb(array: ArrayLike, name: str = "the image") -> Floats:
    """Colour image (H, W, 3) float32 in [0, 1] of an array in memory.

    Args:
        array: uint8, uint16 or floating point in [0, 1]; (H, W), (H, W, 1), (H, W, 3), (H, W, 4)
            with alpha last, or (3, H, W).
    """
    try:
        values = np.asarray(array)
    except (ValueError, TypeError, RuntimeError) as problem:
        raise InputError(f"{name} is no array: {problem}") from None
    if values.size == 0:
        raise InputError(f"{name} has zero size, shape {values.shape}; give a real image")
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim == 3 and values.shape[2] not in (1, 2, 3, 4) and values.shape[0] == 3:
        values = values.transpose(1, 2, 0)
    if values.ndim != 3 or values.shape[2] not in (1, 2, 3, 4):
        raise InputError(f"{name} has shape {np.shape(array)}; an image is (H, W, 3)")
    if values.shape[2] in (2, 4):
        values = values[:, :, :-1]  # alpha
    if values.dtype.kind == "f":
        rgb = _as_float32(values)
        lowest, highest = float(rgb.min()), float(rgb.max())
        if not (lowest >= -0.01 and highest <= 1.01):  # also refuses NaN
            raise InputError(
                f"{name} has floating-point colours in [{lowest:g}, {highest:g}]; they must be in "
                "[0, 1], so divide by 255 or pass uint8"
            )
        rgb = rgb.clip(0, 1)
    elif values.dtype in (np.uint8, np.uint16):
        rgb = np.divide(values, np.iinfo(values.dtype).max, dtype=np.float32)
    else:
        raise InputError(
            f"{name} is of type {values.dtype}; give uint8, uint16 or floats in [0, 1]"
        )
    return np.ascontiguousarray(np.broadcast_to(rgb, (*rgb.shape[:2], 3)), np.float32)


# Writing depth


@dataclass
class Written:
    """What `write_depth` put on disk.

    states_unit: whether the file carries its unit; saturated: valid pixels beyond the largest
    number, stored as that number; holes: invalid pixels.
    """

    path: str
    format: str
    unit: str
    scale: float
    states_unit: bool
    saturated: int
    holes: int


_LARGEST = 65534  # of a 16-bit PNG; 65535 is everybody's code for a hole


def write_depth(
    path: PathLike,
    depth: ArrayLike,
    valid: ArrayLike | None = None,
    *,
    unit: str | None = None,
    scale: float | Literal["finest"] | None = None,
    saturate: bool = False,
    layers: Mapping[str, ArrayLike] | None = None,
    about: Mapping[str, str | int | float | bool] | None = None,
) -> Written:
    """Write metres (h, w) in the format of the suffix, atomically, with the unit in the file.

    .png is 16 bits; .exr, .tif, .npy, .npz, .pfm and .h5 are float32. A hole is 0, or in relative
    maps, where 0 is a value, 65535 (PNG) or NaN.

    Args:
        depth: metres, or levels with unit="relative". What is not finite, or in metres not in
            (0, FARTHEST], becomes a hole.
        valid: (h, w), non-zero where depth is to be kept.
        unit: of the stored numbers: m, cm, mm or relative; by default mm in PNG, m elsewhere.
        scale: metres per stored number instead of a unit; "finest" (PNG) takes the finest step
            (1, 2 or 5 times a power of ten) that reaches the farthest pixel. PNG of a relative map
            takes the finest by itself.
        saturate: store what lies beyond the largest 16-bit number as that number and count it,
            instead of refusing.
        layers: more maps (h, w) to keep beside the depth, such as sigma (.npz, .exr, .h5).
        about: remarks to keep in the file, such as the method; not in .npy and .pfm.
    """
    suffix = check_output(path).suffix.lower()
    if suffix not in WRITTEN_AS:
        raise InputError(f"{path}: no depth format has this suffix; use {', '.join(WRITTEN_AS)}")
    kind = WRITTEN_AS[suffix]
    relative = unit == "relative"
    plane = _as_float32(_single_plane(depth, "the depth to write"))
    kept = np.isfinite(plane) if relative else (plane > 0) & (plane <= FARTHEST)
    if valid is not None:
        kept &= _as_mask(valid, "the mask", plane.shape)
    if not kept.any():
        raise InputError(f"{path} was not written: the depth map has no valid pixel")
    extra = _checked_layers(path, kind, plane.shape, layers or {})

    if scale == "finest" or (relative and scale is None):
        # Floating point is as fine as it gets.
        scale = _finest_step(float(plane[kept].max())) if kind == "PNG" else 1.0
    if unit is None:
        unit = "auto" if scale is not None else "mm" if kind == "PNG" else "m"
    meaning = _given_meaning(unit, scale)
    if meaning is None:
        raise InputError("unit 'auto' is for reading; write m, cm, mm or relative")
    if kind in ("NPY", "PFM") and meaning.scale != 1:
        raise InputError(f"{path} cannot carry a unit and so holds metres; drop unit and scale")

    hole: float = 0
    saturated = 0
    stored: AnyArray
    if kind == "PNG":
        hole = 65535 if relative else 0
        stored, saturated = _sixteen_bits(path, plane, kept, meaning, saturate)
    else:
        hole = math.nan if relative else 0
        stored = plane if meaning.scale == 1 else (plane / meaning.scale).astype(np.float32)
    stored = np.where(kept, stored, stored.dtype.type(hole))

    facts = {
        "depth_unit": meaning.unit,
        "depth_scale": repr(meaning.scale),
        "depth_invalid": str(hole),
    }
    if about:
        facts["depth_about"] = json.dumps(dict(about))
    if kind in ("NPZ", "HDF5"):
        extra["valid"] = kept
    write_stored(path, stored, facts, extra)
    return Written(
        path=str(path),
        format=kind,
        unit=meaning.unit,
        scale=meaning.scale,
        states_unit=kind not in ("NPY", "PFM"),
        saturated=saturated,
        holes=int(kept.size - kept.sum()),
    )


def _sixteen_bits(
    path: PathLike, plane: Floats, kept: Mask, meaning: _Meaning, saturate: bool
) -> tuple[NDArray[np.uint16], int]:
    """Rounded steps, and how many lay beyond the largest; a hair above 0 m is a step, no hole."""
    steps = np.rint(np.where(kept, plane, 0) / meaning.scale)
    lowest = 0 if meaning.unit == "relative" else 1
    if steps.min() < 0:
        raise InputError(f"{path} cannot hold negative levels; write .exr, .npz or .tif instead")
    saturated = int((steps > _LARGEST).sum())
    if saturated and not saturate:
        farthest = float(plane[kept].max())
        raise InputError(
            f"{path} cannot hold {farthest:.6g} at {meaning.scale:g} per step: 16 bits end at "
            f"{_LARGEST * meaning.scale:.6g}; pass scale='finest' "
            f"({_finest_step(farthest):g} would fit) or write .exr, .npz or .tif"
        )
    return steps.clip(lowest, _LARGEST).astype(np.uint16), saturated


def _finest_step(largest: float) -> float:
    """Smallest of 1, 2, 5 x 10^k with which 16 bits reach `largest`."""
    least = largest / _LARGEST
    if least <= 0:
        return 1.0
    power = math.floor(math.log10(least))
    steps = (float(f"{digit}e{exponent}") for exponent in (power, power + 1) for digit in (1, 2, 5))
    return next(step for step in steps if step >= least)


def _checked_layers(
    path: PathLike, kind: str, shape: tuple[int, ...], layers: Mapping[str, ArrayLike]
) -> dict[str, AnyArray]:
    taken = ("depth", "valid", "unit", "scale", "invalid", "about", "file", "Z")
    if layers and kind not in ("NPZ", "EXR", "HDF5"):
        raise InputError(f"{path} holds one map; for {', '.join(layers)} write .npz, .exr or .h5")
    arrays = {name: np.asarray(layer) for name, layer in layers.items()}
    for name, layer in arrays.items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", name) or name in taken:
            raise InputError(f"layer {name!r} needs another name: letters, digits and _")
        if layer.shape != shape or layer.dtype.kind not in "biuf":
            raise InputError(
                f"layer {name!r} is {layer.dtype} {layer.shape}; must be numbers {shape}"
            )
    return arrays


# Pictures for people


PALETTES = ("turbo", "viridis", "magma", "inferno", "grey")
_HOLE_COLOUR = 48  # dark grey, in none of the palettes but grey


def colourise(
    values: ArrayLike,
    valid: ArrayLike | None = None,
    *,
    lowest: float | None = None,
    highest: float | None = None,
    palette: str = "turbo",
) -> NDArray[np.uint8]:
    """Picture (H, W, 3) uint8 of a map (H, W); invalid pixels are dark grey.

    Args:
        lowest, highest: values of the palette's ends; by default the 2nd and 98th percentile of
            the valid pixels, so that outliers do not wash out the rest.
    """
    plane = _as_float32(_single_plane(values, "the map to colour"))
    shown = np.isfinite(plane)
    if valid is not None:
        shown &= _as_mask(valid, "the mask", plane.shape)
    sample = plane[shown]
    if lowest is None:
        lowest = float(np.percentile(sample, 2)) if sample.size else 0.0
    if highest is None:
        highest = float(np.percentile(sample, 98)) if sample.size else 1.0
    if not (math.isfinite(lowest) and math.isfinite(highest) and lowest <= highest):
        raise InputError(f"the colour range [{lowest}, {highest}] is none; give lowest <= highest")
    share = np.full(plane.shape, 0.5, np.float32)
    if highest > lowest:
        share[shown] = ((sample - lowest) / (highest - lowest)).clip(0, 1)
    colours = _palette(palette)[np.rint(255 * share).astype(np.uint8)]
    colours[~shown] = _HOLE_COLOUR
    return colours


def _palette(name: str) -> NDArray[np.uint8]:
    """(256, 3) colours."""
    import cv2

    if name not in PALETTES:
        raise InputError(f"palette {name!r} is unknown; use {', '.join(PALETTES)}")
    levels = np.arange(256, dtype=np.uint8)
    if name == "grey":
        return np.repeat(levels[:, None], 3, axis=1)
    table = getattr(cv2, f"COLORMAP_{name.upper()}")
    return cast(NDArray[np.uint8], cv2.applyColorMap(levels[:, None], table)[:, 0, ::-1].copy())


_PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".bmp": "BMP"}


def write_image(path: PathLike, image: ArrayLike) -> None:
    """Write a uint8 picture (H, W, 3) or (H, W), atomically, in the format of the suffix."""
    pixels = np.asarray(image)
    if (
        pixels.dtype != np.uint8
        or pixels.size == 0
        or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3))
    ):
        raise InputError(f"a picture is uint8 (H, W, 3), got {pixels.dtype} {pixels.shape}")
    suffix = check_output(path).suffix.lower()
    if suffix not in _PICTURES:
        raise InputError(f"{path}: no picture has this suffix; use {', '.join(_PICTURES)}")
    with atomic_write(path) as temporary:
        write_pixels(temporary, pixels, _PICTURES[suffix], quality=95)
