"""Pairs that lie in image files: one row of paths and units per pair, and how it is read.

Most datasets are no more than a list of such rows; their loaders only know where the files are and
what one stored code means.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import Mask
from ducos.data.pair import Floats, Pair
from ducos.errors import InputError, one_line
from ducos.files import read_depth, read_rgb, read_text
from ducos.hints import check_sensor


@dataclass(frozen=True)
class PairFiles:
    """Where one pair lies and what its codes mean: value = code × scale + offset.

    scale: None when nobody said: the file states it, or it is guessed as `ducos upscale` does.
    invalid: the code of a hole, or None when every finite code is a measurement.
    scene: what `split_by_scene` keeps together; the pair's own name when empty.
    """

    name: str
    rgb: Path
    depth: Path
    low: Path | None = None
    scale: float | None = 0.001
    offset: float = 0.0
    invalid: float | None = 0.0
    scene: str = ""


def json_object(path: Path) -> dict[str, Any]:
    """What a file beside the maps states about them."""
    try:
        stated = json.loads(read_text(path))
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{path} cannot be understood: {one_line(problem)}") from None
    if not isinstance(stated, dict):
        raise InputError(f"{path} holds {type(stated).__name__}; expected a JSON object")
    return stated


class FileDataset:
    """A dataset given by its rows; sensor: what made the low-resolution maps, one of SENSORS."""

    def __init__(self, name: str, unit: str, files: Iterable[PairFiles], sensor: str = "unknown"):
        check_sensor(sensor)
        self.name = name
        self.unit = unit
        self.files = list(files)
        self.sensor = sensor

    @property
    def scenes(self) -> Sequence[str]:
        return [row.scene or row.name for row in self.files]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Pair:
        return replace(read_pair(self.files[index], self.unit), sensor=self.sensor)


def read_pair(files: PairFiles, unit: str) -> Pair:
    """Read the files of one pair and check that they fit together."""
    rgb = read_rgb(files.rgb)
    target, valid = read_target(files.depth, files, unit)
    if rgb.shape[:2] != target.shape:
        raise InputError(
            f"{files.depth} is {_size(target)} but {files.rgb} is {_size(rgb)}; the ground truth"
            " must have the size of the colour image; give a smaller sensor map as the pair's low"
        )
    pair = Pair(files.name, rgb, target, valid)
    if files.low is not None:
        pair.low, pair.low_valid = read_target(files.low, files, unit)
    return pair


def read_target(path: Path, meaning: PairFiles, unit: str) -> tuple[Floats, Mask]:
    """Depth (H, W) in the dataset's unit and the mask of measured pixels; holes are 0."""
    plain = meaning.offset == 0
    stored = read_depth(
        path,
        unit="relative" if unit == "level" or not plain else "auto",
        scale=meaning.scale if plain else 1.0,
        invalid_zero=meaning.invalid == 0,
    )
    depth, valid = stored.depth, stored.valid
    if meaning.invalid:  # another code than 0
        valid = valid & (depth != np.float32(meaning.invalid * stored.scale))
    if not plain:
        # In double precision, so that 16-bit codes reach float32 with one rounding only.
        scaled = depth.astype(np.float64) * (1.0 if meaning.scale is None else meaning.scale)
        depth = (scaled + meaning.offset).astype(np.float32)
    return np.where(valid, depth, np.float32(0)), valid


def _size(array: np.ndarray) -> str:
    return f"{array.shape[1]}×{array.shape[0]}"


def existing_folder(path: str | Path, layout: str) -> Path:
    """The folder, or an error that says what should be in it."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected {layout}")
    return folder


def chosen(what: str, value: str, choices: Iterable[str]) -> str:
    """The value, or an error that lists the choices."""
    choices = list(choices)
    if value not in choices:
        raise InputError(f"{what} must be one of {', '.join(choices)}, got {value!r}")
    return value


def found(files: Sequence[PairFiles], folder: Path, layout: str) -> list[PairFiles]:
    """The rows, in order of their names, or an error when the folder holds none."""
    if not files:
        raise InputError(f"no pairs in {folder}; expected {layout}")
    return sorted(files, key=lambda row: row.name)


def without_low(files: Iterable[PairFiles]) -> list[PairFiles]:
    """Rows for the synthetic protocols, which make the low-resolution map from the target."""
    return [replace(row, low=None) for row in files]
