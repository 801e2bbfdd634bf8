"""Maps as images for people: palettes, and files that any viewer shows."""

import math
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from ducos.errors import InputError
from ducos.files import (
    MADE_BY,
    PathLike,
    as_float32,
    as_mask,
    atomic_write,
    check_output,
    single_plane,
    write_pixels,
)

PALETTES = ("turbo", "viridis", "magma", "inferno", "grey")  # in the order of palettes.png

_HOLE_COLOUR = 48  # dark grey, in none of the palettes but grey

_PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".bmp": "BMP"}


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
    plane = as_float32(single_plane(values, "the map to colour"))
    shown = np.isfinite(plane)
    if valid is not None:
        shown &= as_mask(valid, "the mask", plane.shape)
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


@cache
def _palette(name: str) -> NDArray[np.uint8]:
    """(256, 3) colours."""
    if name not in PALETTES:
        raise InputError(f"palette {name!r} is unknown; use {', '.join(PALETTES)}")
    if name == "grey":
        return np.arange(256, dtype=np.uint8)[:, None].repeat(3, 1)
    with Image.open(Path(__file__).parent / "palettes.png") as rows:  # turbo: Apache-2.0; rest: CC0
        return np.asarray(rows)[PALETTES.index(name)]


def check_image_output(path: PathLike) -> str:
    """The format that an image will have at this path; InputError if it cannot be written."""
    suffix = check_output(path).suffix.lower()
    if suffix not in _PICTURES:
        raise InputError(f"{path}: no image format has this suffix; use {', '.join(_PICTURES)}")
    return _PICTURES[suffix]


def write_image(path: PathLike, image: ArrayLike) -> None:
    """Write a uint8 image (H, W, 3) or (H, W), atomically, in the format of the suffix."""
    pixels = np.asarray(image)
    if (
        pixels.dtype != np.uint8
        or pixels.size == 0
        or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3))
    ):
        raise InputError(f"an image is uint8 (H, W, 3), got {pixels.dtype} {pixels.shape}")
    kind = check_image_output(path)
    with atomic_write(path) as temporary:
        write_pixels(temporary, pixels, kind, quality=95, exif=_remark())


def _remark() -> bytes:
    """EXIF data that name this software, by which a later run knows a picture of ours."""
    from PIL import Image

    about = Image.Exif()
    about[0x0131] = MADE_BY
    return about.tobytes()
