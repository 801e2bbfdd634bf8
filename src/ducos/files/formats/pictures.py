"""Pictures, through Pillow, which is strict about truncation: PNG depth, and colour of any kind.

16-bit colour is the one thing Pillow lacks; `read_deep_png` is for that.
"""

import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import AnyArray
from ducos.errors import needed
from ducos.files.formats.limits import DEPTH_BYTES, check_length, check_size, limit_memory
from ducos.files.formats.stored import Facts, Layers, Stored

DEPTH_PNG = 4  # zlib's level: 6, the usual one, takes 2.5 times as long for files 8 % shorter

_pillow_globals = threading.Lock()  # held while its size limit or the warnings are changed


@contextmanager
def open_picture(source: Path, formats: tuple[str, ...], each: int = DEPTH_BYTES) -> Iterator[Any]:
    """Open with Pillow under our own size limit instead of its process-wide one.

    each: bytes that a pixel will take in the work ahead.
    """
    from PIL import Image

    with _pillow_globals, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about damaged EXIF data, beside the point here
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            picture = Image.open(source, formats=formats)
        finally:
            Image.MAX_IMAGE_PIXELS = before
    with picture:
        check_size(source, (picture.height, picture.width), each)
        check_length(source, (picture.height, picture.width))
        yield picture


def verify_png(source: Path) -> None:
    """Check the checksum of every chunk, which decoding alone does not."""
    with open_picture(source, ("PNG",)) as picture:
        picture.verify()


def read_png(source: Path, key: str | None) -> Stored:
    """Grey values or colours of 8 bits, grey of 16; facts from the text chunks."""
    verify_png(source)
    with open_picture(source, ("PNG",)) as picture:
        facts = {
            name: str(text)
            for name, text in picture.info.items()
            if isinstance(name, str) and name.startswith("depth_")
        }
        # The indices of a palette are no values, so a palette counts as colour.
        return Stored(np.asarray(picture.convert("RGB") if picture.mode == "P" else picture), facts)


def read_deep_png(source: Path, key: str | None) -> Stored:
    """Colour at 16 bits. Decoded in the child, since libpng prints what it dislikes."""
    cv2 = needed("cv2", "formats")
    with source.open("rb") as stream:
        sides = np.frombuffer(stream.read(24)[16:], ">u4")
    limit_memory(4 * math.prod(map(int, sides)))
    bgr = cv2.imdecode(np.fromfile(source, np.uint8), cv2.IMREAD_UNCHANGED)
    if bgr is None:
        raise ValueError("its 16-bit colours could not be decoded")
    return Stored(bgr[..., 2::-1])  # blue, green, red (, alpha)


def orientation_of(picture: Any) -> int:
    """The EXIF orientation of a picture that Pillow has open, for `upright`."""
    with _pillow_globals, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return int(picture.getexif().get(0x0112, 1))


def upright(array: AnyArray, orientation: int) -> AnyArray:
    """Undo an EXIF orientation (1 to 8; others count as 1) of (H, W, ...)."""
    if orientation in (5, 6, 7, 8):
        array = array.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        array = array[::-1]
    if orientation in (2, 3, 6, 7):
        array = array[:, ::-1]
    return array


def write_png(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    """Grey of 16 bits, with the facts in text chunks."""
    from PIL.PngImagePlugin import PngInfo

    text = PngInfo()
    for name, value in facts.items():
        text.add_text(name, value)
    write_pixels(path, array, "PNG", pnginfo=text, compress_level=DEPTH_PNG)


def write_pixels(path: Path, pixels: AnyArray, name: str, **options: Any) -> None:
    """Write a picture in Pillow's format `name`. options: of Pillow."""
    from PIL import Image

    memory = BytesIO()  # Pillow does not notice when the disk fills up under a JPEG
    Image.fromarray(pixels).save(memory, format=name, **options)
    path.write_bytes(memory.getbuffer())
