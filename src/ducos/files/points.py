"""Points in space: PLY, PCD, CSV and COLMAP's points3D, as LiDARs and structure from motion write.

Only positions are taken. Whatever the bytes, the only exception is `InputError`, and no size that
a header declares is believed before the file is known to be long enough for it.
"""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray
from ducos.errors import InputError, needed
from ducos.files.formats.limits import refusing
from ducos.files.paths import PathLike, existing_file

Places = NDArray[np.float64]
LARGEST = 2_000_000_000  # bytes of a file that is read at once
LONGEST_HEADER = 20_000  # bytes
FORMS = "PLY, PCD, CSV (x, y, z or u, v, depth) or COLMAP's points3D.txt or points3D.bin"
PLY_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2",
    "ushort": "u2", "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
PCD_TYPES = {"I": "i", "U": "u", "F": "f"}
PIXELS = (("u", "v"), ("column", "row"), ("px", "py"))  # columns of a CSV of pixels
DEPTHS = ("depth", "z", "d")


@dataclass
class Points:
    """Where things are.

    places: (N, 3), in the file's unit. pixels: whether a place is column, row and depth instead of
    a point in space. ids: (N,) of COLMAP, or None.
    """

    places: Places
    pixels: bool = False
    ids: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.places)


def is_points(path: object) -> bool:
    """Whether a path names points rather than a depth map, by its ending."""
    return isinstance(path, str | Path) and (
        Path(path).suffix.lower() in (".ply", ".pcd", ".csv")
        or Path(path).name.lower() in ("points3d.txt", "points3d.bin")
    )


def read_points(path: PathLike) -> Points:
    """Points of a file; those that are not finite are left out."""
    source = existing_file(path)
    if source.stat().st_size > LARGEST:
        raise InputError(f"{source} is longer than {LARGEST / 1e9:g} GB; thin it out first")
    suffix = source.suffix.lower()
    reader = READERS.get(suffix)
    if reader is None or (suffix in (".txt", ".bin") and not is_points(source)):
        raise InputError(f"{source} is no file of points; expected {FORMS}")
    with refusing(source, f"{suffix} points"):
        found = reader(source)
    sound = np.isfinite(found.places).all(1) & (np.abs(found.places) < 1e9).all(1)
    if not sound.any():
        raise InputError(f"{source} holds no point; expected {FORMS}")
    ids = None if found.ids is None else found.ids[sound]
    return Points(found.places[sound], found.pixels, ids)


def read_ply(source: Path) -> Points:
    """The vertices; other elements must stand behind them, as everybody writes them."""
    content = source.read_bytes()
    head, mark, _ = content[:LONGEST_HEADER].partition(b"end_header")
    if not head.startswith(b"ply") or not mark:
        raise InputError(f"{source} is no PLY file; expected one that begins with `ply`")
    lines = [line.split() for line in head.decode("ascii").splitlines()]
    form = next(line[1] for line in lines if line[:1] == ["format"])
    start = content.index(b"\n", len(head)) + 1
    elements = [number for number, line in enumerate(lines) if line[:1] == ["element"]]
    if not elements or lines[elements[0]][1] != "vertex":
        raise InputError(f"{source} does not begin with its vertices; write the vertices first")
    count = int(lines[elements[0]][2])
    until = elements[1] if len(elements) > 1 else len(lines)
    own = [line for line in lines[elements[0] + 1 : until] if line[:1] == ["property"]]
    if any(line[1] == "list" for line in own):
        raise InputError(f"{source} has lists in its vertices, which is not understood")
    names = [line[2] for line in own]
    if form == "ascii":
        table = numbers_of(content[start:], count, len(names), source)
        return Points(xyz(dict(zip(names, table.T)), source))
    order = {"binary_little_endian": "<", "binary_big_endian": ">"}[form]
    kind = np.dtype([(line[2], order + PLY_TYPES[line[1]]) for line in own])
    return Points(xyz(records(content, start, count, kind, source), source))


def read_pcd(source: Path) -> Points:
    """Point Cloud Library: ascii, binary, and binary_compressed through imagecodecs."""
    content = source.read_bytes()
    found = re.search(rb"^DATA\s+(\w+)[^\n]*\n", content[:LONGEST_HEADER], re.MULTILINE)
    if not found:
        raise InputError(f"{source} is no PCD file; expected a header that ends with DATA")
    lines = (line.split() for line in content[: found.start()].decode("ascii").splitlines())
    header = {line[0]: line[1:] for line in lines if line and not line[0].startswith("#")}
    names, data = header["FIELDS"], found.group(1).decode()
    counts = [int(n) for n in header.get("COUNT", ["1"] * len(names))]
    points = int(header["POINTS"][0]) if "POINTS" in header else (
        int(header["WIDTH"][0]) * int(header["HEIGHT"][0])
    )  # fmt: skip
    if data == "ascii":
        table = numbers_of(content[found.end() :], points, sum(counts), source)
        starts = np.cumsum([0, *counts])
        return Points(xyz({name: table[:, n] for name, n in zip(names, starts)}, source))
    types = [f"<{PCD_TYPES[t]}{int(n)}" for t, n in zip(header["TYPE"], header["SIZE"])]
    # The names of padding may repeat; positions may not.
    fields = [(name if name in "xyz" else f"{n} {name}", kind, (count,) if count > 1 else ())
              for n, (name, kind, count) in enumerate(zip(names, types, counts))]  # fmt: skip
    kind = np.dtype(fields)
    if data == "binary":
        return Points(xyz(records(content, found.end(), points, kind, source), source))
    if data != "binary_compressed":
        raise InputError(f"{source} has data {data!r}; expected ascii, binary or binary_compressed")
    packed, whole = (int(n) for n in np.frombuffer(content, "<u4", 2, found.end()))
    body = content[found.end() + 8 :][:packed]
    if whole != points * kind.itemsize or len(body) != packed or whole > 300 * packed:
        raise InputError(f"{source} is truncated, or its header states a wrong size")
    loose = needed("imagecodecs", "captures").lzf_decode(body, out=whole)
    if len(loose) != whole:
        raise InputError(f"{source} is damaged: it unpacks to {len(loose)} bytes, not {whole}")
    columns, start = {}, 0
    for name, form, shape in fields:  # one field after the other, not one point after the other
        size = np.dtype((form, shape)).itemsize * points
        if name in "xyz":
            columns[name] = np.frombuffer(loose[start : start + size], form)
        start += size
    return Points(xyz(columns, source))


def read_csv(source: Path) -> Points:
    """Columns by their names in the first line, or without names the first three."""
    text = source.read_text(encoding="utf-8-sig")
    first, _, rest = text.partition("\n")
    separator = next((each for each in ",;\t" if each in first), None)
    names = [name.strip().strip('"').lower().lstrip("/") for name in first.split(separator)]
    try:
        [float(name) for name in names]
        columns, body = ["x", "y", "z"], text
    except ValueError:
        columns, body = names, rest
    across = next((pair for pair in PIXELS if set(pair) <= set(columns)), None)
    depth = next((name for name in DEPTHS if name in columns), None)
    wanted = (*across, depth) if across and depth else ("x", "y", "z")
    if not set(wanted) <= set(columns):
        raise InputError(
            f"{source} has the columns {', '.join(names)[:120]}; expected x, y, z, or u, v, depth"
        )
    indices = [columns.index(str(name)) for name in wanted]
    places = np.loadtxt(
        io.StringIO(body), delimiter=separator, usecols=indices, ndmin=2, dtype=np.float64
    )
    return Points(places.reshape(-1, 3), pixels=across is not None and depth is not None)


def read_colmap_text(source: Path) -> Points:
    """POINT3D_ID X Y Z R G B ERROR TRACK[]"""
    lines = source.read_text(encoding="utf-8-sig").splitlines()
    rows = [line.split(maxsplit=4)[:4] for line in lines if line.strip() and line[0] != "#"]
    ids = np.array([int(row[0]) for row in rows], np.int64)
    return Points(np.array([row[1:4] for row in rows], np.float64).reshape(-1, 3), ids=ids)


def read_colmap_binary(source: Path) -> Points:
    """The same in binary: id, x y z, colour, error, and a track of varying length."""
    content = source.read_bytes()
    head = np.dtype([("id", "<u8"), ("xyz", "<f8", 3), ("rgb", "u1", 3), ("error", "<f8"),
                     ("track", "<u8")])  # fmt: skip
    count = int(np.frombuffer(content, "<u8", 1)[0])
    if count * head.itemsize > len(content):
        raise InputError(f"{source} is too short for the {count} points that it declares")
    rows, place = [], 8
    for _ in range(count):
        row = np.frombuffer(content, head, 1, place)[0]
        rows.append(row)
        place += head.itemsize + 8 * int(row["track"])
    if not rows:
        return Points(np.empty((0, 3)))
    table = np.array(rows)
    return Points(table["xyz"].astype(np.float64), ids=table["id"].astype(np.int64))


READERS: dict[str, Callable[[Path], Points]] = {
    ".ply": read_ply,
    ".pcd": read_pcd,
    ".csv": read_csv,
    ".txt": read_colmap_text,
    ".bin": read_colmap_binary,
}


def records(content: bytes, start: int, count: int, kind: np.dtype, source: Path) -> AnyArray:
    """count rows of a table, if the file is long enough for them."""
    if count < 0 or start + count * kind.itemsize > len(content):
        raise InputError(f"{source} is too short for the {count} points that it declares")
    return np.frombuffer(content, kind, count, start)


def numbers_of(text: bytes, count: int, width: int, source: Path) -> AnyArray:
    """(count, width) numbers, one line each."""
    if not 0 <= 2 * count * width <= len(text) + 1:
        raise InputError(f"{source} is too short for the {count} points that it declares")
    lines = io.StringIO(text.decode("ascii"))
    return np.loadtxt(lines, ndmin=2, max_rows=count, usecols=range(width)).reshape(count, width)


def xyz(table: AnyArray | dict[str, AnyArray], source: Path) -> Places:
    """(N, 3) of three columns."""
    names = table.keys() if isinstance(table, dict) else table.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise InputError(f"{source} has no x, y and z, but {', '.join(names)[:120]}")
    return np.stack([np.asarray(table[axis], np.float64).ravel() for axis in "xyz"], 1)
