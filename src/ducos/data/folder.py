"""The user's own pairs: a folder with telling names, or a CSV file that lists them.

A folder is laid out in one of two ways:

    rgb/<id>.*   depth/<id>.*   low/<id>.*            matched by name without ending
    <id>_rgb.*   <id>_depth.*   <id>_low.*            matched by <id>

Low-resolution maps are optional, but then for all pairs or none. Depth files are PNG, TIFF or NPY.
What their numbers mean is said by the arguments or by a `dataset.json` in the folder:

    {"scale": 0.001, "invalid": 0, "unit": "m"}       metres = number × scale; 0 marks a hole

Without either, whole numbers are millimetres and others metres; 0 and NaN are holes.
"""

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ducos.data.files import FileDataset, PairFiles, chosen, existing_folder, found
from ducos.errors import InputError

LAYOUT = "rgb/<id>.*, depth/<id>.*, maybe low/<id>.*; or <id>_rgb.*, <id>_depth.*, maybe <id>_low.*"
COLUMNS = "columns rgb, depth, and maybe low and scale"
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
DEPTH_MAPS = (".png", ".tif", ".tiff", ".npy")


class Folder(FileDataset):
    """Pairs of a folder; the dataset's name is the folder's.

    Args:
        scale: unit per stored number; None takes it from dataset.json, else guesses as above.
        invalid: the stored number of a hole, or "none" when there is no such number; None likewise.
        unit: "m", or "level" for codes without metric meaning (scale 1, no hole); None likewise.
        sensor: what made the low-resolution maps, if known: tof, lidar or stereo.
    """

    def __init__(
        self,
        root: str | Path,
        scale: float | None = None,
        invalid: float | str | None = None,
        unit: str | None = None,
        sensor: str = "unknown",
    ):
        folder = existing_folder(root, LAYOUT)
        stated = _side_car(folder / "dataset.json")
        scale = stated.get("scale") if scale is None else scale
        invalid = stated.get("invalid") if invalid is None else invalid
        unit = unit or stated.get("unit", "m")
        by_folder = (folder / "rgb").is_dir()
        files = pairs_by_folder(folder) if by_folder else pairs_by_suffix(folder, LAYOUT)
        files = with_meaning(files, unit, scale, invalid)
        super().__init__(folder.resolve().name, unit, files, sensor)


class Manifest(FileDataset):
    """Pairs listed in a CSV file; paths are relative to it, a row's `scale` goes before ours."""

    def __init__(
        self,
        path: str | Path,
        scale: float | None = None,
        invalid: float | str | None = None,
        unit: str = "m",
        sensor: str = "unknown",
    ):
        path = Path(path).expanduser()
        if not path.is_file():
            raise InputError(f"{path} does not exist; expected a CSV file with {COLUMNS}")
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            columns = reader.fieldnames or []
        if not {"rgb", "depth"} <= set(columns) or not rows:
            raise InputError(
                f"{path} has {len(rows)} rows and columns {', '.join(columns)}; expected {COLUMNS}"
            )
        files: list[PairFiles] = []
        for line, row in enumerate(rows, start=2):  # line 1 is the header
            pair = _listed(row, path, line)
            files += with_meaning([pair], unit, pair.scale or scale, invalid)
        super().__init__(path.stem, unit, files, sensor)


def with_meaning(
    files: Iterable[PairFiles], unit: str, scale: float | None, invalid: float | str | None
) -> list[PairFiles]:
    """Rows with what was stated about their numbers, and the unit's defaults for the rest."""
    is_level = chosen("unit", unit, ("m", "level")) == "level"
    if scale is None and is_level:
        scale = 1.0
    if invalid is None:
        invalid = "none" if is_level else 0.0
    try:
        hole = None if invalid == "none" else float(invalid)
        scale = None if scale is None else float(scale)
    except ValueError:
        raise InputError(
            f'scale must be a number and invalid a number or "none", got {scale!r} and {invalid!r}'
        ) from None
    return [replace(row, scale=scale, invalid=hole) for row in files]


def pairs_by_folder(folder: Path) -> list[PairFiles]:
    rgb = _by_id(folder / "rgb", PICTURES)
    depth = _by_id(folder / "depth", DEPTH_MAPS)
    return _matched(rgb, depth, _by_id(folder / "low", DEPTH_MAPS), folder, LAYOUT)


def pairs_by_suffix(folder: Path, layout: str) -> list[PairFiles]:
    rgb = _by_id(folder, PICTURES, "_rgb")
    depth = _by_id(folder, DEPTH_MAPS, "_depth")
    return _matched(rgb, depth, _by_id(folder, DEPTH_MAPS, "_low"), folder, layout)


def _by_id(folder: Path, endings: tuple[str, ...], suffix: str = "") -> dict[str, Path]:
    """Files <id><suffix>.<ending> of a folder (which need not exist) by their id."""
    paths: dict[str, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix.lower() in endings and path.stem.endswith(suffix):
            name = path.stem.removesuffix(suffix)
            if name in paths:
                raise InputError(f"{path} and {paths[name].name} have the same name; remove one")
            paths[name] = path
    return paths


def _matched(
    rgb: dict[str, Path], depth: dict[str, Path], low: dict[str, Path], folder: Path, layout: str
) -> list[PairFiles]:
    for what, others in (("depth", depth), ("low", low)):
        alone = sorted(rgb.keys() ^ others.keys())
        is_required = what == "depth" or others
        if alone and is_required:
            raise InputError(
                f"{folder}: rgb and {what} have no common file for {', '.join(alone[:3])}"
                f"{' ...' if len(alone) > 3 else ''}; expected {layout}"
            )
    files = [PairFiles(name, path, depth[name], low.get(name)) for name, path in rgb.items()]
    return found(files, folder, layout)


def _side_car(path: Path) -> dict:
    if not path.is_file():
        return {}
    stated = json.loads(path.read_text())
    unknown = stated.keys() - {"scale", "invalid", "unit"}
    if unknown:
        raise InputError(f"{path} has {', '.join(sorted(unknown))}; expected scale, invalid, unit")
    if "invalid" in stated and stated["invalid"] is None:  # JSON's own word for "none"
        stated["invalid"] = "none"
    return stated


def _listed(row: dict[str, str], path: Path, line: int) -> PairFiles:
    low = path.parent / row["low"] if row.get("low") else None
    try:
        scale = float(row["scale"]) if row.get("scale") else None
    except ValueError:
        raise InputError(
            f"{path} line {line}: scale must be a number, got {row['scale']!r}"
        ) from None
    rgb, depth = path.parent / row["rgb"], path.parent / row["depth"]
    return PairFiles(rgb.stem, rgb, depth, low, scale)
