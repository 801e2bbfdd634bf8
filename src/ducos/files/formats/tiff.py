"""TIFF. Read in the child process: compressed strips unpack without a bound."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np

from ducos.arrays import AnyArray
from ducos.files.formats.limits import LONGEST_FACT, check_length, check_size, limit_memory
from ducos.files.formats.pictures import open_picture, upright
from ducos.files.formats.stored import Facts, Layers, Stored


def read_tiff(source: Path, key: str | None) -> Stored:
    """The first page, upright. tifffile knows all number types, Pillow all compressions."""
    import tifffile

    with tifffile.TiffFile(source) as file:
        page = cast(tifffile.TiffPage, file.pages[0])
        size = (page.imagelength, page.imagewidth, page.samplesperpixel)
        check_size(source, size)
        check_length(source, size[:2])
        limit_memory(math.prod(size))
        facts = _facts_of_text(page.description)
        end = source.stat().st_size
        if any(a + n > end for a, n in zip(page.dataoffsets, page.databytecounts)):
            raise ValueError("it ends before its last row")
        plain = page.compression in (1, 8, 32946) and page.predictor in (1, 2)
        values_as_stored = page.photometric in (1, 2) and page.dtype is not None
        if plain and values_as_stored and page.bitspersample in (8, 16, 32, 64):
            turn = page.tags.get("Orientation")
            values = page.asarray(maxworkers=1)
            return Stored(upright(values, int(turn.value) if turn else 1), facts)
    with open_picture(source, ("TIFF",)) as picture:
        if picture.mode in ("P", "CMYK", "YCbCr", "LAB", "RGBX"):
            return Stored(np.asarray(picture.convert("RGB")), facts)
        return Stored(np.asarray(picture), facts)


def _facts_of_text(text: str) -> dict[str, str]:
    """Facts from a JSON description; other people's descriptions give none."""
    with suppress(ValueError, RecursionError):
        stated = json.loads(text[:LONGEST_FACT])
        if isinstance(stated, dict):
            return {k: str(v) for k, v in stated.items() if k.startswith("depth_")}
    return {}


def write_tiff(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    """One page, with the facts as a JSON description."""
    import tifffile

    tifffile.imwrite(
        path,
        array,
        photometric="minisblack",
        compression="zlib",
        description=json.dumps(dict(facts)),
        metadata=None,
    )
