"""Pictures and numbers inside containers: decoded from memory, with a bound on what they unpack to.

Whatever a library raises on bad bytes becomes one sentence (`refusing`).
"""

import json
import warnings
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ducos.arrays import AnyArray, Bytes
from ducos.errors import InputError
from ducos.files import MAX_BYTES, RGB_BYTES, existing_file, refusing

MAX_PIXELS = MAX_BYTES // RGB_BYTES
PIXELS_PER_BYTE = 10_000  # more than the flattest JPEG or PNG reaches
MOST_TEXT = 64 << 20  # bytes of metadata: an hour of poses has a tenth of it


def check_pixels(name: object, width: int, height: int, stored: int | None = None) -> None:
    """Refuse what declares no pixels, more than memory is for, or more than its bytes can hold."""
    pixels = width * height
    limit = MAX_PIXELS if stored is None else min(MAX_PIXELS, max(10**6, PIXELS_PER_BYTE * stored))
    if min(width, height) < 1 or pixels > limit:
        raise InputError(
            f"{name} declares {width}×{height} pixels, which do not fit its "
            "length or the memory limit; the recording is damaged"
        )


def picture(content: bytes, name: object) -> AnyArray:
    """A PNG, JPEG, WebP or TIFF picture as stored: (h, w) or (h, w, 3); 8 or 16 bits, or floats."""
    with (
        refusing(Path(str(name)), "a picture"),
        warnings.catch_warnings(action="ignore"),
        Image.open(BytesIO(content), formats=("PNG", "JPEG", "WEBP", "TIFF")) as opened,
    ):
        check_pixels(name, *opened.size, len(content))
        if opened.mode in ("I;16", "I;16B", "I;16L", "I", "F", "L"):
            array = np.asarray(opened)
            return array.astype(np.uint16) if opened.mode == "I" else array
        return np.asarray(opened.convert("RGB"))


def colour(content: bytes, name: object) -> Bytes:
    """(H, W, 3) uint8 of a compressed picture."""
    array = picture(content, name)
    if array.dtype != np.uint8:
        raise InputError(f"{name} holds {array.dtype} where an 8-bit colour image belongs")
    return array if array.ndim == 3 else np.repeat(array[..., None], 3, 2)


def inflated(content: bytes, length: int, name: object) -> bytes:
    """zlib data that unpack to exactly so many bytes; a bomb is cut off."""
    with refusing(Path(str(name)), "zlib data"):
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(content, length + 1)
    return exactly(plain, length, name)


def lzfse(content: bytes, length: int, name: object) -> bytes:
    """LZFSE data (Apple's) that unpack to exactly so many bytes; a bomb is cut off."""
    from ducos.errors import needed

    codecs = needed("imagecodecs", "captures")
    with refusing(Path(str(name)), "LZFSE data"):
        plain = bytes(codecs.lzfse_decode(content, out=length + 1))
    return exactly(plain, length, name)


def exactly(plain: bytes, length: int, name: object) -> bytes:
    """The bytes, if there are as many as the recording's sizes call for."""
    if len(plain) != length:
        more = "more" if len(plain) > length else f"{len(plain)}"
        raise InputError(f"{name} unpacks to {more} bytes, expected {length}; it is damaged")
    return plain


def json_table(content: bytes | str, name: object) -> dict[str, Any]:
    """A JSON object."""
    if len(content) > MOST_TEXT:
        raise InputError(f"{name} has {len(content) >> 20} MB of metadata; expected less than 64")
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{name} is no JSON: {problem}; the recording is damaged") from None
    if not isinstance(table, dict):
        raise InputError(f"{name} holds a JSON {type(table).__name__}, expected an object")
    return table


def read_text(path: Path) -> str:
    """A small text file; strange bytes are replaced, since only numbers are taken from it."""
    existing_file(path)  # a pipe would be waited for without end
    with refusing(path, "text"):
        if path.stat().st_size > MOST_TEXT:
            raise InputError(f"{path} is {path.stat().st_size >> 20} MB long; expected a text file")
        return path.read_text(encoding="utf-8-sig", errors="replace")


def number_table(path: Path, columns: int | None = None) -> AnyArray:
    """(rows, columns) float64 of text: separated by blanks or commas, # starts a comment.

    A first line of words is a heading. Rows of another length are refused.
    """
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.split("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            if not rows:
                continue  # the heading
            raise InputError(f"{path} line {number} holds {line[:40]!r}, not numbers") from None
    widths = {len(row) for row in rows}
    if len(widths) != 1 or (columns is not None and widths != {columns}):
        expected = f"rows of {columns}" if columns else "rows of equal length"
        raise InputError(f"{path} has rows of {sorted(widths)} numbers; expected {expected}")
    return np.array(rows)
