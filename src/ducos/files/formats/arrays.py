"""NPY, NPZ, PFM and PGM: bare arrays behind a short header, read and written with numpy alone.

The header of NPY is parsed here because numpy's reader takes its declared length on trust.
"""

import ast
import math
import re
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from ducos.arrays import AnyArray
from ducos.errors import InputError
from ducos.files.formats.limits import LONGEST_FACT, check_inflation, check_size
from ducos.files.formats.stored import Facts, Layers, Stored


def read_npy(source: Path, key: str | None) -> Stored:
    with source.open("rb") as stream:
        return Stored(_npy_array(source, stream, source.stat().st_size))


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, Fortran order, dtype and the header's length in bytes; never a pickle."""
    head = stream.read(12)
    if len(head) < 12 or not head.startswith(b"\x93NUMPY"):
        raise ValueError("no NPY header")
    wide = head[6] >= 2
    length = int.from_bytes(head[8:12] if wide else head[8:10], "little")
    if length > 10_000:
        raise ValueError(f"its header declares {length} bytes")
    start = 12 if wide else 10
    text = (head[start:] + stream.read(length - (12 - start))).decode("latin1")
    with warnings.catch_warnings(action="ignore"):  # Python's, about odd numbers in the header
        header = ast.literal_eval(text.strip())
    shape, descr = header["shape"], header["descr"]
    if not isinstance(descr, str) or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"its header declares the type {descr!r} and the shape {shape!r}")
    return tuple(shape), bool(header["fortran_order"]), np.dtype(descr), start + length


def _npy_array(source: Path, stream: IO[bytes], size: int, most: int | None = None) -> AnyArray:
    """The array of an NPY stream of `size` bytes, or ValueError above `most` bytes."""
    shape, fortran, dtype, start = _npy_header(stream)
    if dtype.hasobject:
        raise InputError(f"{source} holds pickled Python objects, which are never loaded")
    check_size(source, shape)
    needed = math.prod(shape) * dtype.itemsize
    check_size(source, (max(1, needed),), 1)
    if needed > size - start:
        raise ValueError(f"it declares {needed} bytes of data and holds {max(0, size - start)}")
    if most is not None and needed > most:
        raise ValueError(f"it declares {needed} bytes where at most {most} make sense")
    data = stream.read(needed)
    if len(data) != needed:
        raise ValueError("its data end early")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def read_npz(source: Path, key: str | None) -> Stored:
    """One array of the archive, with the mask and the facts that `write_npz` keeps beside it."""
    with zipfile.ZipFile(source) as archive:
        _check_archive(source, archive)
        members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        shapes: dict[str, tuple[int, ...]] = {}
        for name, entry in members.items():
            with (
                suppress(ValueError, SyntaxError, KeyError, TypeError),
                archive.open(entry) as head,
            ):
                shape, _, dtype, _ = _npy_header(head)
                if dtype.kind in "iuf":
                    shapes[name] = shape

        def array(name: str, most: int | None = None) -> AnyArray:
            with archive.open(members[name]) as stream:
                return _npy_array(source, stream, members[name].file_size, most)

        chosen = chosen_array(source, list(members), shapes, key)
        facts = {
            f"depth_{name}": str(array(name, LONGEST_FACT)[()])
            for name in ("unit", "scale", "invalid", "about")
            if name in members
        }
        valid = array("valid") if chosen == "depth" and "valid" in members else None
        return Stored(array(chosen), facts, None if valid is None else valid != 0)


MOST_MEMBERS = 1000  # of an archive; each has a header to look at


def _check_archive(source: Path, archive: zipfile.ZipFile) -> None:
    """Refuse, before anything is unpacked, what can unpack without a bound or without an end.

    Python's readers of bzip2 and LZMA unpack a whole block however little is asked for.
    """
    entries = archive.infolist()
    if len(entries) > MOST_MEMBERS:
        raise InputError(f"{source} holds {len(entries)} arrays, the limit is {MOST_MEMBERS}")
    for entry in entries:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"{source} is packed in a way that numpy does not write (method "
                f"{entry.compress_type}); save it again with numpy.savez_compressed"
            )
        check_inflation(source, entry.file_size, entry.compress_size)


def chosen_array(
    source: Path, names: list[str], shapes: Mapping[str, tuple[int, ...]], key: str | None
) -> str:
    """The key asked for; else `depth`; else the only numeric array with at least two axes."""
    if key is not None:
        if key not in names:
            raise InputError(f"{source} has no array {key!r}; it has {listed(names)}")
        return key
    if "depth" in names:
        return "depth"
    maps = [name for name, shape in shapes.items() if len(shape) >= 2]
    if len(maps) != 1:
        raise InputError(
            f"{source} has no array 'depth' but {listed(names)}; say which with key=..."
        )
    return maps[0]


def listed(names: list[str]) -> str:
    """The first names, for a message; a file may hold thousands."""
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    return (shown + (", ..." if len(names) > 8 else "")) or "nothing"


def write_npy(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    with path.open("wb") as stream:  # given a name, numpy may append another suffix
        np.save(stream, array, allow_pickle=False)


def write_npz(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    """Maps and facts as arrays by name: `depth`, the layers, `unit`, `scale`, `invalid`, ..."""
    arrays: dict[str, Any] = {"depth": array, **layers}
    for name, value in facts.items():
        short = name.removeprefix("depth_")
        arrays[short] = np.array(float(value) if short == "scale" else value)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


_PFM_HEADER = re.compile(rb"(P[fF])\s+(\d{1,9})\s+(\d{1,9})\s+([-+.\deE]{1,30})\s")


def read_pfm(source: Path, key: str | None) -> Stored:
    """Rows are stored bottom first; the sign of the third number is the byte order.

    Its magnitude is ignored, as all readers of stereo benchmarks do.
    """
    with source.open("rb") as stream:
        header = _PFM_HEADER.match(stream.read(128))
        if header is None:
            raise ValueError("no PFM header")
        width, height, order = int(header[2]), int(header[3]), float(header[4])
        shape = (height, width, 3) if header[1] == b"PF" else (height, width)
        check_size(source, shape)
        count = math.prod(shape)
        if source.stat().st_size - header.end() < 4 * count:
            raise ValueError(f"it declares {width} x {height} pixels and ends before the last one")
        stream.seek(header.end())
        values = np.frombuffer(stream.read(4 * count), "<f4" if order < 0 else ">f4")
    return Stored(values.reshape(shape)[::-1])


_PGM_NUMBER = re.compile(rb"(?:\s|#[^\n]*\n)+(\d{1,7})")


def read_pgm(source: Path, key: str | None) -> Stored:
    """Grey values of 8 bits, or of 16 with the higher byte first, as tools of the Kinect's time
    write depth. Pillow would stretch them to the full range."""
    with source.open("rb") as stream:
        head, end, numbers = stream.read(1000), len(b"P5"), list[int]()
        for _ in ("width", "height", "largest value"):
            number = _PGM_NUMBER.match(head, end)
            if number is None:
                raise ValueError("no PGM header")
            numbers.append(int(number[1]))
            end = number.end()
        width, height, largest = numbers
        end += 1  # one white space, then the values
        if not 0 < largest < 65536:
            raise ValueError(f"it declares {largest} as its largest value")
        check_size(source, (height, width))
        kind = np.dtype(">u2" if largest > 255 else "u1")
        count = width * height
        if source.stat().st_size - end < kind.itemsize * count:
            raise ValueError(f"it declares {width} x {height} pixels and ends before the last one")
        stream.seek(end)
        values = np.frombuffer(stream.read(kind.itemsize * count), kind)
    return Stored(values.astype(kind.newbyteorder("=")).reshape(height, width))


def write_pfm(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    height, width = array.shape
    head = f"Pf\n{width} {height}\n-1.0\n".encode()
    path.write_bytes(head + array[::-1].astype("<f4").tobytes())
