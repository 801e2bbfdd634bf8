"""TOFDSR (Yan et al.; TOFDC re-cropped): 512×384 colour and depth, the phone's 192×144 ToF map.

Files are 16-bit millimetres. `TOFDC_split/<Split>/` holds `RGB/<id>_rgb_crop.png`,
`GT/<id>_tgv_gt_crop.png` (completed) and `LR_Filled/<id>_depth_crop_fill.png` (hole-filled). The
split is 10 000 training and 560 test pairs; if its published list `TOFDSR_Train.txt` or
`TOFDSR_Test.txt` (one `rgb,gt,lr` per line) lies beside the data, it decides which pairs are used.
"""

from pathlib import Path

from ducos.data.files import (
    FileDataset,
    PairFiles,
    chosen,
    existing_folder,
    found,
    without_low,
)
from ducos.data.pair import Pair
from ducos.errors import InputError

# Only this range is scored, as in every published table.
NEAREST, FARTHEST = 0.1, 5.0  # metres

PREFIX = "TOFDC_split"
LAYOUT = (
    f"{PREFIX}/Test/RGB/<id>_rgb_crop.png, GT/<id>_tgv_gt_crop.png and"
    " LR_Filled/<id>_depth_crop_fill.png (Train likewise)"
)


class TofdsrReal(FileDataset):
    """The phone's map is the low-resolution input (a factor of 2.67)."""

    def __init__(self, root: str | Path, split: str = "test"):
        super().__init__("tofdsr-real", "m", _files(root, split), sensor="tof")

    def __getitem__(self, index: int) -> Pair:
        return _masked(super().__getitem__(index))


class Tofdsr(FileDataset):
    """Colour and ground truth only: the low-resolution input is made from the ground truth."""

    def __init__(self, root: str | Path, split: str = "test"):
        super().__init__("tofdsr", "m", without_low(_files(root, split)))

    def __getitem__(self, index: int) -> Pair:
        return _masked(super().__getitem__(index))


def _masked(pair: Pair) -> Pair:
    # The target keeps its values outside the range: they are depth, only not scored.
    pair.valid &= (pair.target >= NEAREST) & (pair.target <= FARTHEST)
    return pair


def _files(root: str | Path, split: str) -> list[PairFiles]:
    folder = existing_folder(root, LAYOUT)
    split = chosen("split", split, ("train", "test")).capitalize()
    data = folder / PREFIX if (folder / PREFIX).is_dir() else folder
    for list_file in (folder / f"TOFDSR_{split}.txt", data / f"TOFDSR_{split}.txt"):
        if list_file.is_file():
            return _listed(list_file, data)
    files = []
    for rgb in (data / split / "RGB").glob("*_rgb_crop.png"):
        name = rgb.name.removesuffix("_rgb_crop.png")
        depth = data / split / "GT" / f"{name}_tgv_gt_crop.png"
        low = data / split / "LR_Filled" / f"{name}_depth_crop_fill.png"
        files.append(PairFiles(name, rgb, depth, low))
    return found(files, folder, LAYOUT)


def _listed(list_file: Path, data: Path) -> list[PairFiles]:
    """Pairs in the order of the list; its paths start at the folder that is called TOFDC_split."""
    files = []
    for number, line in enumerate(list_file.read_text().splitlines(), start=1):
        if not line.strip():
            continue
        parts = [data / part.strip().removeprefix(f"{PREFIX}/") for part in line.split(",")]
        if len(parts) != 3:
            raise InputError(f"{list_file} line {number}: expected rgb,gt,lr, got {line!r}")
        rgb, depth, low = parts
        files.append(PairFiles(rgb.name.removesuffix("_rgb_crop.png"), rgb, depth, low))
    return files
