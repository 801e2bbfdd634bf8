"""Pairs that lie in image files: one row of paths and units per pair, and how it is read.

Most datasets are no more than a list of such rows; their loaders only know where the files are and
what one stored code means.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from ducos.data.pair import Array, Mask, Pair
from ducos.errors import InputError
from ducos.hints import check_sensor


@dataclass(frozen=True)
class PairFiles:
    """Where one pair lies and what its codes mean: value = code × scale + offset.

    scale: None when nobody said: whole numbers are then thousandths, floating-point numbers ones.
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
        return replace(read_pair(self.files[index]), sensor=self.sensor)


def read_pair(files: PairFiles) -> Pair:
    """Read the files of one pair and check that they fit together."""
    rgb = read_colour(files.rgb)
    target, valid = read_depth(files.depth, files)
    if rgb.shape[:2] != target.shape:
        raise InputError(
            f"{files.depth} is {_size(target)} but {files.rgb} is {_size(rgb)}; the ground truth"
            " must have the size of the colour image; give a smaller sensor map as the pair's low"
        )
    pair = Pair(files.name, rgb, target, valid)
    if files.low is not None:
        pair.low, pair.low_valid = read_depth(files.low, files)
    return pair


def read_depth(path: Path, meaning: PairFiles) -> tuple[Array, Mask]:
    """Depth (H, W) in the dataset's unit and the mask of measured pixels; holes are 0."""
    codes = read_codes(path)
    valid = np.isfinite(codes)
    if meaning.invalid is not None:
        valid &= codes != meaning.invalid
    scale = meaning.scale
    if scale is None:
        scale = 0.001 if np.issubdtype(codes.dtype, np.integer) else 1.0
    # In double precision, so that 16-bit codes reach float32 with one rounding only.
    values = codes.astype(np.float64) * scale + meaning.offset
    return np.where(valid, values, 0.0).astype(np.float32), valid


def read_colour(path: Path) -> Array:
    """Colour image (H, W, 3) in [0, 1]; grey images are repeated over the three channels."""
    with _opened(path) as image:
        if image.mode.startswith(("I", "F")):
            # Pillow would clip such values at 255 without a word.
            raise InputError(
                f"{path} is not an 8-bit picture; expected the colour image of the pair"
            )
        return np.asarray(image.convert("RGB"), dtype=np.float32) / np.float32(255)


def read_codes(path: Path) -> np.ndarray:
    """The numbers (H, W) as stored: 8/16-bit PNG or TIFF, float TIFF, or NPY."""
    if path.suffix.lower() == ".npy":
        if not path.is_file():
            raise InputError(f"{path} does not exist")
        codes = np.load(path, allow_pickle=False)
    else:
        with _opened(path) as image:
            codes = np.asarray(image)
    if codes.ndim != 2:
        raise InputError(
            f"{path} has shape {codes.shape}; a depth map has one channel: give the map itself, not"
            " a coloured picture of it"
        )
    return codes


def _opened(path: Path) -> Image.Image:
    try:
        return Image.open(path)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except UnidentifiedImageError:
        raise InputError(
            f"{path} is not an image that can be read; expected PNG, JPEG or TIFF"
        ) from None


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
