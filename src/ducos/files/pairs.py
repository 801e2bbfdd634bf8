"""Which colour image belongs to which depth map: folders, lists of time stamps, and CSV files.

A folder is laid out in one of three ways:

    associations.txt, or rgb.txt and depth.txt     the TUM RGB-D style; nearest time stamps pair up
    rgb/<id>.*   depth/<id>.*   mask/<id>.*        matched by name without ending
    <id>_rgb.*   <id>_depth.*   <id>_mask.*        matched by <id>

Masks, and maps of confidence in the same way, are optional. A CSV file has the columns rgb and
depth, and maybe mask, confidence and out; its paths are relative to it.
Datasets have ground truth under `depth`, and maybe low-resolution maps under `low`; they are found
by the same rules (kinds=DATASET_KINDS), and their CSV files may have a column scale.
"""

import csv
import io
import warnings
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from PIL import Image

from ducos.errors import InputError
from ducos.files.formats import DEPTH_MAPS, WRITTEN_AS
from ducos.files.paths import existing_file, read_text

LAYOUTS = (
    "rgb/<id>.* with depth/<id>.*, or <id>_rgb.* with <id>_depth.*, or TUM's rgb.txt with depth.txt"
)
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm")
LARGEST_DELAY = 0.02  # seconds between colour and depth of one pair, as in the TUM tools
PREVIEWS = "preview"
LONGEST_NAME = 240  # bytes; file systems end at 255, and endings are added
LONGEST_LIST = 100_000_000  # bytes of a CSV file or of a list of time stamps
# What may accompany a pair -> endings of its files.
KINDS = {"mask": PICTURES, "confidence": (*PICTURES, *DEPTH_MAPS)}
# What a batch keeps in the folder of its results, beside them.
RESERVED = (".unfinished", "journal.jsonl", "journal.damaged", "failures.csv")
DATASET_KINDS = {"low": DEPTH_MAPS}


@dataclass(frozen=True)
class FramePair:
    """Files of one pair.

    out: where its result goes below the batch's folder, such as "scene1/004"; the suffix, if it
        has one of a depth format, goes before the batch's.
    low: of a dataset: the low-resolution map whose ground truth is `depth`; scale: metres per
        stored value, if a CSV file says so.
    """

    rgb: Path
    depth: Path
    out: str
    mask: Path | None = None
    confidence: Path | None = None
    low: Path | None = None
    scale: float | None = None


@dataclass(frozen=True)
class Failure:
    """A frame without result, and why."""

    name: str
    rgb: str
    depth: str
    reason: str


@dataclass
class Found:
    """What a folder or CSV file holds; unmatched: images without depth map, or the reverse."""

    pairs: list[FramePair]
    layout: str
    unmatched: list[Failure] = field(default_factory=list)


def find_pairs(source: str | Path, kinds: Mapping[str, tuple[str, ...]] = KINDS) -> Found:
    """Pairs of a folder in one of the layouts above, or of a CSV file.

    kinds: what may accompany a pair, with the endings of its files.
    """
    source = Path(source).expanduser()
    if source.is_file():
        return Found(pairs_of_manifest(source, kinds), "manifest")
    if not source.is_dir():
        raise InputError(f"got {source}, which does not exist; expected a folder or a CSV file")
    if (source / "associations.txt").is_file():
        found = Found(pairs_of_associations(source), "tum")
    elif (source / "rgb.txt").is_file() and (source / "depth.txt").is_file():
        found = Found(pairs_by_time(source), "tum")
    elif (source / "rgb").is_dir() and (source / "depth").is_dir():
        found = pairs_by_name(
            "folders", kinds, lambda kind, endings: _by_id(source / kind, endings, suffix="")
        )
    else:
        found = pairs_by_name(
            "suffixes", kinds, lambda kind, endings: _by_id(source, endings, suffix=f"_{kind}")
        )
    if not found.pairs:
        alone = "".join(f" ({each.name}: {each.reason})" for each in found.unmatched[:1])
        raise InputError(f"no pairs in {source}{alone}; expected {LAYOUTS}, or give a CSV file")
    return found


def inputs_of(pairs: Sequence[FramePair]) -> list[Path]:
    """Every file that these pairs read."""
    kinds = ("rgb", "depth", *KINDS, *DATASET_KINDS)
    return [path for pair in pairs for kind in kinds if (path := getattr(pair, kind))]


def picture_size(path: Path) -> tuple[int, int] | None:
    """Width and height from the file's header; None where there is none to read."""
    try:
        existing_file(path)  # a pipe would wait for ever
        with warnings.catch_warnings(action="ignore"), Image.open(path) as picture:
            return picture.size
    except Exception:  # whatever is wrong with it, its reader will say
        return None


# Names


def pairs_by_name(
    layout: str,
    kinds: Mapping[str, tuple[str, ...]],
    files: Callable[[str, tuple[str, ...]], dict[str, Path]],
) -> Found:
    """Pairs whose files have the same id; files(kind, endings) gives those of rgb, depth, ..."""
    rgb, depth = files("rgb", PICTURES), files("depth", DEPTH_MAPS)
    more: dict[str, Any] = {kind: files(kind, endings) for kind, endings in kinds.items()}
    both = sorted(rgb.keys() & depth.keys())
    alone = [
        Failure(name, str(rgb.get(name, "")), str(depth.get(name, "")), f"it has no {missing} file")
        for missing, there, other in (("depth", rgb, depth), ("rgb", depth, rgb))
        for name in sorted(there.keys() - other.keys())
    ]
    pairs = [
        FramePair(rgb[name], depth[name], name, **{kind: m.get(name) for kind, m in more.items()})
        for name in both
    ]
    return Found(pairs, layout, alone)


def _by_id(folder: Path, endings: tuple[str, ...], *, suffix: str) -> dict[str, Path]:
    """Files <id><suffix>.<ending> of a folder, which need not exist, by their id."""
    files: dict[str, Path] = {}
    for path in sorted(folder.glob(f"*{suffix}.*")):
        name = path.stem.removesuffix(suffix)
        if path.suffix.lower() not in endings or path.name.startswith("."):
            continue
        if name in files:
            raise InputError(f"{path} and {files[name].name} have the same name; remove one")
        files[name] = path
    return files


# Time stamps


def pairs_of_associations(folder: Path) -> list[FramePair]:
    """Lines `time rgb time depth`; some tools write depth first, which the file names show."""
    pairs = []
    for number, words in _stamped_lines(folder / "associations.txt", 4):
        first, second = words[1], words[3]
        if "depth" in first and "depth" not in second:
            first, second = second, first
        if "depth" not in second and number == 1:
            raise InputError(
                f"{folder / 'associations.txt'} names {first} and {second}; expected a path with "
                "`depth` in it for the depth map"
            )
        pairs.append(FramePair(folder / first, folder / second, Path(first).stem))
    return pairs


def pairs_by_time(folder: Path) -> list[FramePair]:
    """Each image with the depth map nearest in time; both are used once, closest pairs first."""
    rgb, depth = (_stamps(folder / name) for name in ("rgb.txt", "depth.txt"))
    matched = together([t for t, _ in rgb], [t for t, _ in depth], LARGEST_DELAY)
    return [
        FramePair(folder / rgb[i][1], folder / depth[j][1], Path(rgb[i][1]).stem)
        for i, j in matched
    ]


def together(
    first: Sequence[float], second: Sequence[float], within: float
) -> list[tuple[int, int]]:
    """Numbers (i, j) of moments that belong together, closest first served, each used once."""
    order = sorted(range(len(second)), key=lambda j: second[j])
    ordered = [second[j] for j in order]
    close = []
    for i, time in enumerate(first):
        after = bisect(ordered, time)
        for n in (after - 1, after):
            if 0 <= n < len(ordered) and abs(ordered[n] - time) <= within:
                close.append((abs(ordered[n] - time), i, order[n]))
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in sorted(close):
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    return sorted(partner.items())


def _stamps(path: Path) -> list[tuple[float, str]]:
    try:
        return sorted((float(words[0]), words[1]) for _, words in _stamped_lines(path, 2))
    except ValueError as problem:
        raise InputError(f"{path}: {problem}; expected lines of `time file`") from None


def _stamped_lines(path: Path, count: int) -> list[tuple[int, list[str]]]:
    """Numbered lines of `count` words, without comments."""
    lines = read_text(path, LONGEST_LIST, errors="replace").splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    for number, words in enumerate(rows, start=1):
        if len(words) != count:
            raise InputError(f"{path} row {number} has {len(words)} words, expected {count}")
    return list(enumerate(rows, start=1))


# CSV


def pairs_of_manifest(path: Path, kinds: Mapping[str, tuple[str, ...]]) -> list[FramePair]:
    """Rows of a CSV file; without an `out` a result is named after its colour image."""
    try:
        reader = csv.DictReader(io.StringIO(read_text(path, LONGEST_LIST), newline=""))
        rows = list(reader)
        columns = list(reader.fieldnames or [])
    except csv.Error as problem:
        raise InputError(f"{path} is no CSV file ({problem}); {LAYOUTS} is a folder") from None
    known = ("rgb", "depth", "out", *kinds, *(("scale",) if "low" in kinds else ()))
    unknown = set(columns) - set(known)
    if not {"rgb", "depth"} <= set(columns) or unknown or not rows:
        raise InputError(
            f"{path} has {len(rows)} rows and the columns {', '.join(columns)[:200]}; expected at "
            f"least one row and the columns rgb, depth, and maybe {', '.join(known[2:])}"
        )
    pairs = []
    for line, row in enumerate(rows, start=2):  # line 1 is the header
        if not row["rgb"] or not row["depth"]:
            raise InputError(f"{path} line {line} lacks a file; fill in rgb and depth")
        for column in known:
            _check_name(row.get(column) or "", f"{path} line {line}")
        rgb, depth = path.parent / row["rgb"], path.parent / row["depth"]
        more = {kind: path.parent / row[kind] for kind in kinds if row.get(kind)}
        try:
            scale = float(row["scale"]) if row.get("scale") else None
        except ValueError:
            raise InputError(
                f"{path} line {line}: scale must be a number, got {row['scale']!r}"
            ) from None
        pairs.append(FramePair(rgb, depth, row.get("out") or rgb.stem, scale=scale, **more))
    return pairs


def _check_name(text: str, place: str) -> None:
    """Refuse what no file can be called."""
    if not text.isprintable() or len(text) > 4000:
        raise InputError(f"{place} has a name with control characters or without an end; fix it")
    for part in PurePosixPath(text).parts:
        if len(part.encode(errors="replace")) > LONGEST_NAME:
            raise InputError(
                f"{place} has the name {part[:40]!r}... of {len(part)} characters; the limit is "
                f"{LONGEST_NAME} bytes"
            )


# Where results go


def result_names(pairs: Sequence[FramePair], suffix: str) -> list[str]:
    """Each pair's result below the folder of results, such as scene1/004.png; all different."""
    if suffix.lower() not in WRITTEN_AS:
        raise InputError(f"got the suffix {suffix!r}, expected one of {', '.join(WRITTEN_AS)}")
    names: dict[PurePosixPath, str] = {}
    first: dict[PurePosixPath, Path] = {}
    for pair in pairs:
        name = PurePosixPath(pair.out)
        if name.is_absolute() or ".." in name.parts or not name.name:
            raise InputError(f"got the result {pair.out!r}, expected a name below the -o folder")
        _check_name(pair.out, "a result")
        if name.parts[0] in RESERVED:
            raise InputError(f"got the result {pair.out!r}, but {name.parts[0]} is a batch's own")
        if name.parts[0] == PREVIEWS:
            raise InputError(f"got the result {pair.out!r}, but {PREVIEWS}/ is for preview images")
        # The end of a time stamp such as 1305031102.175304 is no suffix.
        if name.suffix.lower() not in WRITTEN_AS:
            name = name.with_name(name.name + suffix)
        bare = name.with_suffix("")  # by which pictures are named
        if bare in names:
            raise InputError(
                f"the results of {first[bare]} and {pair.rgb} would both be {bare}; give them "
                "different names in a CSV file with a column out"
            )
        names[bare], first[bare] = str(name), pair.rgb
    return list(names.values())
