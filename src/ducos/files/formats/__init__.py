"""Bytes <-> arrays: one module per family of formats; what the numbers mean is said by `units`.

Every reader keeps three promises, whatever the bytes:

- the only exception is `InputError`, one sentence for the user;
- a size the file merely declares is checked against `MAX_BYTES` before anything is allocated;
- a truncated file is refused, never read as far as it goes, and so is one that fails a checksum
  of its format (PNG, NPZ, compressed TIFF and EXR; raw numbers have none).

TIFF, EXR, HDF5 and 16-bit colour PNG are decoded in a child process (`child`): no `except` here
would catch what their libraries do on damaged files.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ducos.arrays import AnyArray
from ducos.errors import InputError
from ducos.files.formats.arrays import (
    read_npy,
    read_npz,
    read_pfm,
    read_pgm,
    write_npy,
    write_npz,
    write_pfm,
)
from ducos.files.formats.child import READERS_IN_CHILD, decode_in_child
from ducos.files.formats.exr import write_exr
from ducos.files.formats.hdf5 import write_hdf5
from ducos.files.formats.limits import RGB_BYTES, refusing
from ducos.files.formats.pictures import (
    open_picture,
    orientation_of,
    read_png,
    upright,
    verify_png,
    write_png,
)
from ducos.files.formats.stored import Facts, Layers, Stored
from ducos.files.formats.tiff import write_tiff
from ducos.files.paths import PathLike, atomic_write, existing_file

READERS = {"PNG": read_png, "NPY": read_npy, "NPZ": read_npz, "PFM": read_pfm, "PGM": read_pgm}
"""Format -> reader in this process; `READERS_IN_CHILD` has the others."""

SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
    b"v/1\x01": "EXR",
    b"\x93NUMPY": "NPY",
    b"PK\x03\x04": "NPZ",
    b"\x89HDF\r\n\x1a\n": "HDF5",
    b"MATLAB 7.3": "HDF5",
    b"Pf": "PFM",
    b"PF": "PFM",
    b"P5": "PGM",
}

WRITERS = {
    "PNG": write_png,
    "TIFF": write_tiff,
    "EXR": write_exr,
    "NPY": write_npy,
    "NPZ": write_npz,
    "PFM": write_pfm,
    "HDF5": write_hdf5,
}

WRITTEN_AS = {
    ".png": "PNG",
    ".exr": "EXR",
    ".npy": "NPY",
    ".npz": "NPZ",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".pfm": "PFM",
    ".h5": "HDF5",
    ".hdf5": "HDF5",
}
"""Suffix -> format of the depth files we write."""

DEPTH_MAPS = (*WRITTEN_AS, ".pgm")
"""Suffixes of the depth files we read."""

LIBRARIES = {"EXR": "OpenEXR", "HDF5": "h5py", "TIFF": "tifffile"}
"""Format -> library that reads and writes it; not everybody's install has these."""


def check_format(name: str) -> None:
    """InputError if the library of a format is missing; nothing is imported."""
    library = LIBRARIES.get(name)
    if library and find_spec(library) is None:
        raise InputError(
            f"{name} files need the library {library}: pip install 'ducos[formats]', or use .png, "
            ".npz or .pfm"
        )


def read_stored(path: PathLike, key: str | None = None) -> Stored:
    """Read the array of any supported file; the content decides the format, not the suffix.

    Args:
        key: which array of an NPZ or HDF5 file, or which channel of an EXR file, to read.
    """
    source = existing_file(path)
    name = format_of(source)
    if name is None:
        kind = "empty" if source.stat().st_size == 0 else "not a format that holds depth"
        raise InputError(
            f"{source} is {kind}; give a PNG, TIFF, EXR, NPY, NPZ, PFM, PGM or HDF5 file "
            "(JPEG and the like are lossy images, not depth)"
        )
    check_format(name)
    if name in READERS_IN_CHILD:
        return decode_in_child(source, name, key)
    with refusing(source, name):
        return READERS[name](source, key)


def format_of(source: Path) -> str | None:
    """Name of the format by the file's first bytes, or None."""
    with refusing(source, "a file"), source.open("rb") as stream:
        head = stream.read(16)
    return next((name for start, name in SIGNATURES.items() if head.startswith(start)), None)


def read_picture(path: PathLike) -> AnyArray:
    """Colour image as stored, upright: (H, W) or (H, W, C), uint8, uint16 or float."""
    source = existing_file(path)
    name = format_of(source)
    if name == "TIFF":
        check_format(name)
        return decode_in_child(source, name, None).array
    with refusing(source, "a picture (PNG, JPEG, TIFF, BMP, WebP or PPM)"):
        deep_colour = False
        if name == "PNG":
            verify_png(source)
            with source.open("rb") as stream:
                bits, colour_type = stream.read(26)[24:]
            deep_colour = bits == 16 and colour_type != 0
        with open_picture(source, ("PNG", "JPEG", "BMP", "WEBP", "PPM"), RGB_BYTES) as picture:
            picture.load()
            if deep_colour:  # Pillow has found it sound but keeps 8 bits only
                pixels = decode_in_child(source, "16-bit colour PNG", None).array
            elif picture.mode.startswith("I"):  # 16-bit grey, which convert("RGB") would clip
                pixels = np.asarray(picture).astype(np.uint16)
            else:
                pixels = np.asarray(picture.convert("RGB"))
            return upright(pixels, orientation_of(picture))


def write_stored(path: PathLike, array: AnyArray, facts: Facts, layers: Layers) -> None:
    """Write an array (h, w) in the format of the path's suffix, atomically.

    Args:
        array: uint16 for PNG, float32 for all others.
        facts: as in `Stored`; layers: more maps by name (NPZ, EXR, HDF5 only).
    """
    with atomic_write(path) as temporary:
        WRITERS[WRITTEN_AS[temporary.suffix.lower()]](temporary, array, facts, layers)
