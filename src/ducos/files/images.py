"""Planes of numbers, masks and colour images, out of the many forms people keep them in."""

from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from ducos.arrays import AnyArray, Floats, Mask
from ducos.errors import InputError
from ducos.files.formats import read_picture, read_stored
from ducos.files.paths import PathLike


def single_plane(values: ArrayLike, name: str) -> AnyArray:
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
            "a colour-coded depth image cannot be converted back, give the raw depth"
        )
    raise InputError(f"{name} has shape {array.shape}; depth must be (h, w), one map at a time")


def as_float32(array: AnyArray) -> Floats:
    """A float32 copy; what is too large becomes infinite, quietly."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def read_mask(path: PathLike, key: str | None = None) -> Mask:
    """Mask (h, w) of any supported file: True where the value, or any colour of it, is not 0."""
    array = read_stored(path, key).array
    if array.ndim == 3 and array.shape[2] in (2, 4):
        array = array[:, :, :-1]  # alpha
    if array.ndim == 3 and array.shape[2] == 3:
        array = array.max(axis=2)
    return as_mask(array, f"{path}")


def as_mask(mask: ArrayLike, name: str, shape: tuple[int, ...] | None = None) -> Mask:
    """Bool (h, w) of any numbers; of the depth's shape, if that is given."""
    values = single_plane(mask, name)
    if shape is not None and values.shape != shape:
        raise InputError(f"{name} has shape {values.shape}, the depth {shape}; make them equal")
    return cast(Mask, values != 0)


def read_confidence(path: PathLike, key: str | None = None) -> Floats:
    """Confidence (h, w) in [0, 1] of any supported file, see `as_confidence`."""
    return as_confidence(read_stored(path, key).array, f"{path}")


def as_confidence(values: ArrayLike, name: str = "the confidence") -> Floats:
    """Confidence (h, w) in [0, 1] of 8-bit or 16-bit levels, of floats in [0, 1], or of ARKit's
    0 (low), 1 (medium), 2 (high)."""
    plane = single_plane(values, name)
    if plane.dtype.kind == "b":
        return as_float32(plane)
    lowest, highest = plane.min(), plane.max()
    if plane.dtype.kind in "iu":
        if lowest < 0:
            raise InputError(f"{name} holds {lowest}; a confidence is 0 or more")
        levels = 2 if highest <= 2 else 255 if highest <= 255 else 65535
        return as_float32(plane / levels)
    if not (lowest >= 0 and highest <= 1):  # also refuses NaN
        raise InputError(
            f"{name} holds floats in [{lowest:g}, {highest:g}]; give [0, 1], or 8-bit levels"
        )
    return as_float32(plane)


def read_prior(path: PathLike, key: str | None = None) -> Floats:
    """Relative depth (h, w) of any supported file, see `as_prior`."""
    stored = read_stored(path, key)
    return as_prior(stored.array, f"{path}", stored.valid)


def as_prior(values: ArrayLike, name: str = "the prior", valid: Mask | None = None) -> Floats:
    """Relative depth (h, w) as a monocular model gives it, in any unit, inverse or not; NaN where
    it says nothing."""
    plane = as_float32(single_plane(values, name))
    known = np.isfinite(plane) if valid is None else np.isfinite(plane) & valid
    if not known.any():
        raise InputError(f"{name} has no finite value; give a depth of the image, or leave it out")
    return np.where(known, plane, np.float32(np.nan))


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
        rgb = as_float32(values)
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
    return np.ascontiguousarray(rgb if rgb.shape[2] == 3 else rgb.repeat(3, 2), np.float32)
