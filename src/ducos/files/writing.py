"""Depth maps out: metres to stored numbers, holes to their code, the unit into the file."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.arrays import AnyArray, Floats, Mask
from ducos.errors import InputError
from ducos.files.formats import WRITTEN_AS, check_format, write_stored
from ducos.files.images import as_float32, as_mask, single_plane
from ducos.files.paths import PathLike, check_output
from ducos.files.units import FARTHEST, Meaning, given_meaning

_LARGEST = 65534  # of a 16-bit PNG; 65535 is everybody's code for a hole
FARTHEST_PNG = 0.001 * _LARGEST
"""Metres that a PNG in millimetres holds."""


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


def check_depth_output(path: PathLike) -> str:
    """The format that a depth map will have at this path; InputError if it cannot be written.

    Cheap: call it before the work whose result is to be written.
    """
    suffix = check_output(path).suffix.lower()
    if suffix not in WRITTEN_AS:
        raise InputError(f"{path}: no depth format has this suffix; use {', '.join(WRITTEN_AS)}")
    check_format(WRITTEN_AS[suffix])
    return WRITTEN_AS[suffix]


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
    kind = check_depth_output(path)
    relative = unit == "relative"
    plane = as_float32(single_plane(depth, "the depth to write"))
    kept = np.isfinite(plane) if relative else (plane > 0) & (plane <= FARTHEST)
    if valid is not None:
        kept &= as_mask(valid, "the mask", plane.shape)
    if not kept.any():
        raise InputError(f"{path} was not written: the depth map has no valid pixel")
    extra = _checked_layers(path, kind, plane.shape, layers or {})

    if scale == "finest" or (relative and scale is None):
        # Floating point is as fine as it gets.
        scale = _finest_step(float(plane[kept].max())) if kind == "PNG" else 1.0
    if unit is None:
        unit = "auto" if scale is not None else "mm" if kind == "PNG" else "m"
    meaning = given_meaning(unit, scale)
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
    path: PathLike, plane: Floats, kept: Mask, meaning: Meaning, saturate: bool
) -> tuple[NDArray[np.uint16], int]:
    """Rounded steps, and how many lay beyond the largest; a hair above 0 m is a step, no hole."""
    # In float64: a step for the smallest float32 numbers is no float32.
    steps = np.rint(np.where(kept, plane, 0).astype(np.float64) / meaning.scale)
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
