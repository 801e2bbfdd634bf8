"""Bytes <-> arrays: one section per file format, nothing about what the numbers mean (see `io`).

Every reader keeps three promises, whatever the bytes:

- the only exception is `InputError`, one sentence for the user;
- a size the file merely declares is checked against `MAX_PIXELS` before anything is allocated;
- a truncated file is refused, never read as far as it goes, and so is one that fails a checksum
  of its format (PNG, NPZ, compressed TIFF and EXR; raw numbers have none).

TIFF, EXR and HDF5 are decoded in a child process: their libraries print to the terminal, unpack
without a bound, or crash on damaged files (HDF5 did on 1 of about 1500 randomly damaged ones), and
no `except` catches that. The child costs about 0.2 s and is bounded in time and memory.
"""

import ast
import json
import math
import os
import re
import secrets
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from ducos.errors import InputError

AnyArray = NDArray[Any]
Mask = NDArray[np.bool_]
PathLike = str | os.PathLike[str]
Facts = Mapping[str, str]
Layers = Mapping[str, AnyArray]

MAX_PIXELS = 400_000_000
"""A file that declares more pixels than this is refused; the largest phone sensors have half."""

CHILD_SECONDS = 120.0
"""A TIFF, EXR or HDF5 file that takes longer to decode is refused."""

_PIXELS_PER_BYTE = 10_000  # more than a black 1-bit PNG or the flattest JPEG reaches
_LONGEST_FACT = 100_000  # bytes of text a file may hold about itself


@dataclass
class Stored:
    """What a file holds: the array as stored, what it says about itself, its mask if it has one.

    facts: `depth_unit`, `depth_scale`, `depth_invalid`, `depth_about`; those the file states.
    """

    array: AnyArray
    facts: dict[str, str] = field(default_factory=dict)
    valid: Mask | None = None


# Reading


def read_stored(path: PathLike, key: str | None = None) -> Stored:
    """Read the array of any supported file; the content decides the format, not the suffix.

    Args:
        key: which array of an NPZ or HDF5 file, or which channel of an EXR file, to read.
    """
    source = existing_file(path)
    name = format_of(source)
    if name not in _READERS:
        kind = "empty" if source.stat().st_size == 0 else "not a format that holds depth"
        raise InputError(
            f"{source} is {kind}; give a PNG, TIFF, EXR, NPY, NPZ, PFM or HDF5 file "
            "(JPEG and the like are lossy pictures, not depth)"
        )
    if name in _DECODED_BY_CHILD:
        return _decode_in_child(source, name, key)
    with _refusing(source, name):
        return _READERS[name](source, key)


def existing_file(path: PathLike) -> Path:
    """The path, if a regular file that may be read is there; pipes and devices could hang."""
    try:
        source = Path(path)
        mode = source.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist; check the name and the folder") from None
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(f"{str(path)!r} is no readable file: {_one_line(problem)}") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
        raise InputError(f"{source} is {kind}; give the name of one file")
    try:
        source.open("rb").close()
    except OSError as problem:
        raise InputError(f"{source} may not be read: {_one_line(problem)}") from None
    return source


_SIGNATURES = {
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
}


def format_of(source: Path) -> str | None:
    """Name of the format by the file's first bytes, or None."""
    with _refusing(source, "a file"), source.open("rb") as stream:
        head = stream.read(16)
    return next((name for start, name in _SIGNATURES.items() if head.startswith(start)), None)


@contextmanager
def _refusing(source: Path, name: str) -> Iterator[None]:
    """Turn whatever a decoder raises on bad bytes into one sentence.

    The list of what decoders raise is open (OSError, SyntaxError, KeyError, struct.error,
    MemoryError, ...), hence the broad clause; here it guards third-party decoding only.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        raise InputError(
            f"{source} could not be read as {name}: {_one_line(problem)}; "
            "the file is damaged, truncated or of another kind"
        ) from problem


def _one_line(problem: BaseException) -> str:
    reason = problem.strerror if isinstance(problem, OSError) else None
    text = " ".join((reason or str(problem)).split()) or type(problem).__name__
    return text if len(text) <= 160 else text[:157] + "..."


def _check_size(source: Path, shape: tuple[int, ...]) -> None:
    """Refuse an empty or a gigantic array by its declared shape, before it is allocated."""
    if math.prod(shape) <= 0:
        raise InputError(f"{source} holds an array of zero size, shape {shape}; give a real map")
    pixels = math.prod(sorted(shape)[-2:])
    if pixels > MAX_PIXELS or math.prod(shape) > 4 * MAX_PIXELS:
        raise InputError(
            f"{source} declares an array of shape {shape}; the limit is "
            f"{MAX_PIXELS // 1_000_000} megapixels, crop or tile it first"
        )


def _check_length(source: Path, shape: tuple[int, ...]) -> None:
    """Refuse a file far too short for what it declares: sparse formats would make it up."""
    if math.prod(shape) > max(16_000_000, _PIXELS_PER_BYTE * source.stat().st_size):
        sides = " x ".join(map(str, shape[::-1]))
        raise InputError(
            f"{source} declares {sides} pixels but is too short to hold them; the file is "
            "truncated or damaged"
        )


# PNG, through Pillow, which is strict about truncation; 16-bit colour is the one thing it lacks


_pillow_globals = threading.Lock()  # held while its size limit or the warnings are changed


@contextmanager
def _open_picture(source: Path, formats: tuple[str, ...]) -> Iterator[Any]:
    """Open with Pillow under our own size limit instead of its process-wide one."""
    from PIL import Image

    with _pillow_globals, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about damaged EXIF data, beside the point here
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            picture = Image.open(source, formats=formats)
        finally:
            Image.MAX_IMAGE_PIXELS = before
    with picture:
        _check_size(source, (picture.height, picture.width))
        _check_length(source, (picture.height, picture.width))
        yield picture


def _verify_png(source: Path) -> None:
    """Check the checksum of every chunk, which decoding alone does not."""
    with _open_picture(source, ("PNG",)) as picture:
        picture.verify()


def _read_png(source: Path, key: str | None) -> Stored:
    _verify_png(source)
    with _open_picture(source, ("PNG",)) as picture:
        facts = {
            name: str(text)
            for name, text in picture.info.items()
            if isinstance(name, str) and name.startswith("depth_")
        }
        # The indices of a palette are no values, so a palette counts as colour.
        return Stored(np.asarray(picture.convert("RGB") if picture.mode == "P" else picture), facts)


# NPY and NPZ. The header is parsed here because numpy's reader takes its declared length on trust


def _read_npy(source: Path, key: str | None) -> Stored:
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
    _check_size(source, shape)
    needed = math.prod(shape) * dtype.itemsize
    if needed > size - start:
        raise ValueError(f"it declares {needed} bytes of data and holds {max(0, size - start)}")
    if most is not None and needed > most:
        raise ValueError(f"it declares {needed} bytes where at most {most} make sense")
    data = stream.read(needed)
    if len(data) != needed:
        raise ValueError("its data end early")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _read_npz(source: Path, key: str | None) -> Stored:
    with zipfile.ZipFile(source) as archive:
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

        chosen = _chosen_array(source, list(members), shapes, key)
        facts = {
            f"depth_{name}": str(array(name, _LONGEST_FACT)[()])
            for name in ("unit", "scale", "invalid", "about")
            if name in members
        }
        valid = array("valid") if chosen == "depth" and "valid" in members else None
        return Stored(array(chosen), facts, None if valid is None else valid != 0)


def _chosen_array(
    source: Path, names: list[str], shapes: Mapping[str, tuple[int, ...]], key: str | None
) -> str:
    """The key asked for; else `depth`; else the only numeric array with at least two axes."""
    if key is not None:
        if key not in names:
            raise InputError(f"{source} has no array {key!r}; it has {_listed(names)}")
        return key
    if "depth" in names:
        return "depth"
    maps = [name for name, shape in shapes.items() if len(shape) >= 2]
    if len(maps) != 1:
        raise InputError(
            f"{source} has no array 'depth' but {_listed(names)}; say which with key=..."
        )
    return maps[0]


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    return (shown + (", ..." if len(names) > 8 else "")) or "nothing"


# PFM


_PFM_HEADER = re.compile(rb"(P[fF])\s+(\d{1,9})\s+(\d{1,9})\s+([-+.\deE]{1,30})\s")


def _read_pfm(source: Path, key: str | None) -> Stored:
    """Rows are stored bottom first; the sign of the third number is the byte order.

    Its magnitude is ignored, as all readers of stereo benchmarks do.
    """
    with source.open("rb") as stream:
        header = _PFM_HEADER.match(stream.read(128))
        if header is None:
            raise ValueError("no PFM header")
        width, height, order = int(header[2]), int(header[3]), float(header[4])
        shape = (height, width, 3) if header[1] == b"PF" else (height, width)
        _check_size(source, shape)
        count = math.prod(shape)
        if source.stat().st_size - header.end() < 4 * count:
            raise ValueError(f"it declares {width} x {height} pixels and ends before the last one")
        stream.seek(header.end())
        values = np.frombuffer(stream.read(4 * count), "<f4" if order < 0 else ">f4")
    return Stored(values.reshape(shape)[::-1])


# TIFF. Decoded in the child


def _read_tiff(source: Path, key: str | None) -> Stored:
    """The first page, upright. tifffile knows all number types, Pillow all compressions."""
    import tifffile

    with tifffile.TiffFile(source) as file:
        page = cast(tifffile.TiffPage, file.pages[0])
        size = (page.imagelength, page.imagewidth, page.samplesperpixel)
        _check_size(source, size)
        _check_length(source, size[:2])
        _limit_memory(math.prod(size))
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
    with _open_picture(source, ("TIFF",)) as picture:
        if picture.mode in ("P", "CMYK", "YCbCr", "LAB", "RGBX"):
            return Stored(np.asarray(picture.convert("RGB")), facts)
        return Stored(np.asarray(picture), facts)


def upright(array: AnyArray, orientation: int) -> AnyArray:
    """Undo an EXIF orientation (1 to 8; others count as 1) of (H, W, ...)."""
    if orientation in (5, 6, 7, 8):
        array = array.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        array = array[::-1]
    if orientation in (2, 3, 6, 7):
        array = array[:, ::-1]
    return array


def _facts_of_text(text: str) -> dict[str, str]:
    """Facts from a JSON description; other people's descriptions give none."""
    with suppress(ValueError, RecursionError):
        stated = json.loads(text[:_LONGEST_FACT])
        if isinstance(stated, dict):
            return {k: str(v) for k, v in stated.items() if k.startswith("depth_")}
    return {}


# EXR. Decoded in the child


def _read_exr(source: Path, key: str | None) -> Stored:
    import OpenEXR

    if hasattr(OpenEXR, "set_global_thread_count"):  # since 3.4; before, there were no threads
        OpenEXR.set_global_thread_count(0)
    with OpenEXR.File(str(source), header_only=True) as file:
        samples = 0
        for part in file.parts:
            low, high = part.header["dataWindow"]
            size = (int(high[1]) - int(low[1]) + 1, int(high[0]) - int(low[0]) + 1)
            _check_size(source, size)
            samples += math.prod(size) * len(part.header["channels"])
            if not np.array_equal(part.header["dataWindow"], part.header["displayWindow"]):
                raise InputError(
                    f"{source} stores only a crop of its picture (its data window differs from "
                    "its display window); save it without cropping"
                )
        if samples > MAX_PIXELS:
            raise InputError(
                f"{source} declares {samples} values in all its channels, the limit is "
                f"{MAX_PIXELS}; save the depth channel alone"
            )
        _limit_memory(samples)
        stated = {k: str(v) for k, v in file.header().items() if k.startswith("depth_")}
        declared_parts = len(file.parts)
    channels: dict[str, AnyArray] = {}
    with OpenEXR.File(str(source), separate_channels=True) as file:
        if len(file.parts) != declared_parts:  # the library has printed why, and goes on
            raise ValueError("its pixels are incomplete")
        for part in file.parts:
            for name, channel in part.channels.items():
                channels.setdefault(name, channel.pixels)
        return Stored(channels[_depth_channel(source, channels, key)].copy(), stated)


def _depth_channel(source: Path, channels: dict[str, AnyArray], key: str | None) -> str:
    """The channel asked for, or the one that is depth by its name or by being the only one."""
    if key is not None:
        if key not in channels:
            raise InputError(f"{source} has no channel {key!r}; it has {_listed(list(channels))}")
        return key
    if "Z" in channels:
        return "Z"
    named = [name for name in channels if "depth" in name.lower().split(".")]
    for only in (named, list(channels)):
        if len(only) == 1:
            return only[0]
    # Renderers and OpenCV often write one value to all three colour channels.
    if {"R", "G", "B"} <= set(channels) and all(
        np.array_equal(channels["R"], channels[other], equal_nan=True) for other in "GB"
    ):
        return "R"
    raise InputError(
        f"{source} has no channel Z but {_listed(list(channels))}; say which holds depth with "
        "key=..."
    )


# HDF5. Decoded in the child


def _read_hdf5(source: Path, key: str | None) -> Stored:
    import h5py

    with h5py.File(source, "r") as file:
        shapes: dict[str, tuple[int, ...]] = {}

        def note(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                shapes[name] = (item.shape or ()) if item.dtype.kind in "iuf" else ()

        file.visititems(note)  # follows no links

        def array(name: str) -> AnyArray:
            dataset = file[name]
            # Data kept elsewhere would let a file show any other file of this machine.
            if dataset.external or dataset.is_virtual or dataset.file.filename != file.filename:
                raise InputError(f"{source} keeps {name!r} in another file; give that file")
            _check_size(source, dataset.shape)
            _check_size(source, dataset.chunks or (1,))
            _check_length(source, dataset.shape)
            _limit_memory(dataset.size + math.prod(dataset.chunks or (0,)))
            return np.asarray(dataset[()])

        chosen = _chosen_array(source, list(shapes), shapes, key)
        facts = {k: str(v) for k, v in file[chosen].attrs.items() if k.startswith("depth_")}
        has_mask = chosen == "depth" and "valid" in shapes
        return Stored(array(chosen), facts, array("valid") != 0 if has_mask else None)


# The child process


_CHILD_PROGRAM = (
    "import json, sys; path, *task = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from ducos.formats import answer_parent; answer_parent(*task)"
)


def _decode_in_child(source: Path, name: str, key: str | None) -> Stored:
    """Decode in a process of its own, so that a crash, a hang or a flood stays there."""
    task = json.dumps([sys.path, name, os.path.abspath(source), str(source), key])
    # Threads reserve memory by the gigabyte, which would count against the child's limit.
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    with tempfile.TemporaryFile() as answer:
        try:
            finished = subprocess.run(
                [sys.executable, "-P", "-c", _CHILD_PROGRAM, task],
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                env=os.environ | one_thread,
                timeout=CHILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"{source} was not decoded within {CHILD_SECONDS:.0f} s; the file is damaged "
                "or needs a simpler form, such as NPZ"
            ) from None
        except OSError as problem:
            raise InputError(
                f"{source} is a {name} file and needs a helper process, which did not start: "
                f"{_one_line(problem)}"
            ) from problem
        if finished.returncode:
            raise InputError(
                f"{source} could not be read as {name}: the library crashed on it or ran out of "
                f"memory (exit code {finished.returncode}); the file is damaged"
            )
        answer.seek(0)
        with _refusing(source, name), np.load(answer, allow_pickle=False) as arrays:
            facts = json.loads(str(arrays["facts"]))
            if "problem" in facts:
                raise InputError(facts["problem"])
            return Stored(arrays["array"], facts, arrays.get("valid"))


def answer_parent(name: str, path: str, shown: str, key: str | None) -> None:
    """The child's whole life: decode one file, write an NPZ with the answer to standard output.

    Args:
        path: where the file is; shown: how the user called it, for messages.
    """
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the libraries print must not end up in the answer
    _limit_memory(0)
    try:
        with _refusing(Path(path), name):
            stored = _READERS[name](Path(path), key)
            if stored.array.dtype.hasobject:
                raise ValueError(f"it holds values of type {stored.array.dtype}")
        arrays = {"array": stored.array, "facts": np.array(json.dumps(stored.facts))}
        if stored.valid is not None:
            arrays["valid"] = stored.valid
    except InputError as problem:
        arrays = {"facts": np.array(json.dumps({"problem": str(problem).replace(path, shown)}))}
    np.savez(answer, **cast(dict[str, Any], arrays))
    answer.close()


def _limit_memory(values: int) -> None:
    """Bound this process, the child, to 1 GiB and what so many declared values honestly need.

    A few kilobytes of a compressed file can unpack to gigabytes, whatever size it declares.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    with suppress(ValueError, OSError):  # a stricter limit is in force, or the system has none
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, ((1 << 30) + 32 * values, resource.RLIM_INFINITY))


# Colour pictures


def read_picture(path: PathLike) -> AnyArray:
    """Colour picture as stored, upright: (H, W) or (H, W, C), uint8, uint16 or float."""
    source = existing_file(path)
    name = format_of(source)
    if name == "TIFF":
        return _decode_in_child(source, name, None).array
    with _refusing(source, "a picture (PNG, JPEG, TIFF, BMP, WebP or PPM)"):
        deep_colour = False
        if name == "PNG":
            _verify_png(source)
            with source.open("rb") as stream:
                bits, colour_type = stream.read(26)[24:]
            deep_colour = bits == 16 and colour_type != 0
        with _open_picture(source, ("PNG", "JPEG", "BMP", "WEBP", "PPM")) as picture:
            picture.load()
            if deep_colour:  # Pillow has found it sound but keeps 8 bits only
                pixels = _decode_in_child(source, "16-bit colour PNG", None).array
            elif picture.mode.startswith("I"):  # 16-bit grey, which convert("RGB") would clip
                pixels = np.asarray(picture).astype(np.uint16)
            else:
                pixels = np.asarray(picture.convert("RGB"))
            with _pillow_globals, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return upright(pixels, int(picture.getexif().get(0x0112, 1)))


def _read_deep_png(source: Path, key: str | None) -> Stored:
    """Colour at 16 bits. Decoded in the child, since libpng prints what it dislikes."""
    import cv2

    with source.open("rb") as stream:
        sides = np.frombuffer(stream.read(24)[16:], ">u4")
    _limit_memory(4 * math.prod(map(int, sides)))
    bgr = cv2.imdecode(np.fromfile(source, np.uint8), cv2.IMREAD_UNCHANGED)
    if bgr is None:
        raise ValueError("its 16-bit colours could not be decoded")
    return Stored(bgr[..., 2::-1])  # blue, green, red (, alpha)


_READERS = {
    "PNG": _read_png,
    "TIFF": _read_tiff,
    "EXR": _read_exr,
    "NPY": _read_npy,
    "NPZ": _read_npz,
    "PFM": _read_pfm,
    "HDF5": _read_hdf5,
    "16-bit colour PNG": _read_deep_png,
}
_DECODED_BY_CHILD = ("TIFF", "EXR", "HDF5", "16-bit colour PNG")


# Writing


def check_output(path: PathLike) -> Path:
    """The file a write to this path will replace, links followed; InputError if it cannot.

    Cheap: call it before the work whose result is to be written.
    """
    try:
        target = Path(os.path.realpath(path))
        folder_is_there = target.parent.is_dir()
        mode = target.stat().st_mode if target.exists() else stat.S_IFREG
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(f"{str(path)!r} cannot be written: {_one_line(problem)}") from None
    if not folder_is_there:
        raise InputError(f"{path} cannot be written: the folder {target.parent} does not exist")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} cannot be written: it is a folder or a device; name a file")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{path} cannot be written: no permission for {target.parent}")
    return target


@contextmanager
def atomic_write(path: PathLike) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it takes its place in one step.

    On any error, also an interrupt, the temporary file goes and what was there stays. A killed
    process can leave the hidden temporary file, never a half-written `path`.
    """
    target = check_output(path)
    temporary = target.with_name(f".ducos-{secrets.token_hex(8)}{target.suffix}")
    try:
        # Created here and not by tempfile: that would make the result private to the user.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        os.replace(temporary, target)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {_one_line(problem)}") from problem
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_stored(path: PathLike, array: AnyArray, facts: Facts, layers: Layers) -> None:
    """Write an array (h, w) in the format of the path's suffix, atomically.

    Args:
        array: uint16 for PNG, float32 for all others.
        facts: as in `Stored`; layers: more maps by name (NPZ, EXR, HDF5 only).
    """
    with atomic_write(path) as temporary:
        _WRITERS[WRITTEN_AS[temporary.suffix.lower()]](temporary, array, facts, layers)


def write_pixels(path: Path, pixels: AnyArray, name: str, **options: Any) -> None:
    """Write a picture in Pillow's format `name`."""
    from PIL import Image

    memory = BytesIO()  # Pillow does not notice when the disk fills up under a JPEG
    Image.fromarray(pixels).save(memory, format=name, **options)
    path.write_bytes(memory.getbuffer())


def _write_png(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    from PIL.PngImagePlugin import PngInfo

    text = PngInfo()
    for name, value in facts.items():
        text.add_text(name, value)
    write_pixels(path, array, "PNG", pnginfo=text)


def _write_tiff(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    import tifffile

    tifffile.imwrite(
        path,
        array,
        photometric="minisblack",
        compression="zlib",
        description=json.dumps(dict(facts)),
        metadata=None,
    )


def _write_exr(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    import OpenEXR

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **facts}
    channels = {"Z": np.ascontiguousarray(array)}
    for name, layer in layers.items():
        whole = layer.dtype.kind in "biu"
        channels[name] = np.ascontiguousarray(layer, np.uint32 if whole else np.float32)
    try:
        with OpenEXR.File(header, channels) as file:
            file.write(str(path))
    except RuntimeError as problem:  # what the library makes of a full disk
        raise OSError(_one_line(problem).replace(str(path), "it")) from problem


def _write_npy(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    with path.open("wb") as stream:  # given a name, numpy may append another suffix
        np.save(stream, array, allow_pickle=False)


def _write_npz(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    arrays: dict[str, Any] = {"depth": array, **layers}
    for name, value in facts.items():
        short = name.removeprefix("depth_")
        arrays[short] = np.array(float(value) if short == "scale" else value)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _write_pfm(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    height, width = array.shape
    head = f"Pf\n{width} {height}\n-1.0\n".encode()
    path.write_bytes(head + array[::-1].astype("<f4").tobytes())


def _write_hdf5(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    import h5py

    memory = BytesIO()  # the library may crash when the disk is full
    with h5py.File(memory, "w") as file:
        for name, values in {"depth": array, **layers}.items():
            file.create_dataset(
                name, data=values, compression="gzip", shuffle=True, fletcher32=True
            )
        file["depth"].attrs.update(facts)
    path.write_bytes(memory.getbuffer())


_WRITERS = {
    "PNG": _write_png,
    "TIFF": _write_tiff,
    "EXR": _write_exr,
    "NPY": _write_npy,
    "NPZ": _write_npz,
    "PFM": _write_pfm,
    "HDF5": _write_hdf5,
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
