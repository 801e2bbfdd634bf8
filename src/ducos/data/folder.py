"""The user's own pairs: a folder with telling names, or a CSV file that lists them.

A folder is laid out in one of two ways:

    rgb/<id>.*   depth/<id>.*   low/<id>.*            matched by name without ending
    <id>_rgb.*   <id>_depth.*   <id>_low.*            matched by <id>

Low-resolution maps are optional, but then for all pairs or none. Other layouts that `ducos batch`
knows are taken as well.
What their numbers mean is said by the arguments or by a `dataset.json` in the folder:

    {"scale": 0.001, "invalid": 0, "unit": "m"}       metres = number × scale; 0 marks a hole

Without either, the unit is read or guessed as everywhere in ducos; 0 and NaN are holes.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ducos.data.files import (
    FileDataset,
    PairFiles,
    chosen,
    existing_folder,
    found,
    json_object,
)
from ducos.errors import InputError
from ducos.files import DATASET_KINDS, find_pairs

LAYOUT = "rgb/<id>.*, depth/<id>.*, maybe low/<id>.*; or <id>_rgb.*, <id>_depth.*, maybe <id>_low.*"
COLUMNS = "columns rgb, depth, and maybe low and scale"


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
        files = with_meaning(dataset_pairs(folder), unit, scale, invalid)
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
        files: list[PairFiles] = []
        for pair in dataset_pairs(path, COLUMNS):
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
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            f'scale must be a number and invalid a number or "none", got {scale!r} and {invalid!r}'
        ) from None
    return [replace(row, scale=scale, invalid=hole) for row in files]


def dataset_pairs(source: Path, layout: str = LAYOUT) -> list[PairFiles]:
    """Rows of the pairs that `ducos.files` finds; a dataset has no image without its depth map."""
    found_pairs = find_pairs(source, DATASET_KINDS)
    alone = [each.name for each in found_pairs.unmatched]
    listed = found_pairs.layout == "manifest"  # then every row says for itself
    without = [pair.out for pair in found_pairs.pairs if pair.low is None and not listed]
    for what, names in (("depth", alone), ("low", without)):
        if names and (what == "depth" or len(names) < len(found_pairs.pairs)):
            raise InputError(
                f"{source}: rgb and {what} have no common file for {', '.join(names[:3])}"
                f"{' ...' if len(names) > 3 else ''}; expected {layout}"
            )
    rows = [
        PairFiles(pair.out, pair.rgb, pair.depth, pair.low, pair.scale)
        for pair in found_pairs.pairs
    ]
    return found(rows, source, layout)


def _side_car(path: Path) -> dict:
    if not path.is_file():
        return {}
    stated = json_object(path)
    unknown = stated.keys() - {"scale", "invalid", "unit"}
    if unknown:
        raise InputError(f"{path} has {', '.join(sorted(unknown))}; expected scale, invalid, unit")
    if "invalid" in stated and stated["invalid"] is None:  # JSON's own word for "none"
        stated["invalid"] = "none"
    return stated
