"""RGB-D-D (He et al., CVPR 2021): 512×384 colour and depth, with the phone's own 192×144 map.

Files are 16-bit millimetres, hole-filled. Two layouts are in use: the dataset's own,
`<kind>/<kind>_<split>/<id>/<id>_RGB.jpg` with kinds models, plants and portraits, and the flat one
of later repositories, `<Split>/RGBDD_RGB/<id>_RGB.jpg`. The split is 2215 training and 405 test
pairs. The data are given out on request for non-commercial research and show people: do not pass
them on.
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

KINDS = ("models", "plants", "portraits")
LAYOUT = (
    "models/models_test/<id>/<id>_RGB.jpg, <id>_HR_gt.png, <id>_LR_fill_depth.png (also plants and"
    " portraits), or Test/RGBDD_RGB, Test/RGBDD_GT and Test/RGBDD_LR with those files"
)


class RgbddReal(FileDataset):
    """The phone's map is the low-resolution input (a factor of 2.67)."""

    def __init__(self, root: str | Path, split: str = "test"):
        super().__init__("rgbdd-real", "m", _files(root, split), sensor="tof")


class Rgbdd(FileDataset):
    """Colour and ground truth only: the low-resolution input is made from the ground truth."""

    def __init__(self, root: str | Path, split: str = "test"):
        super().__init__("rgbdd", "m", without_low(_files(root, split)))


def _files(root: str | Path, split: str) -> list[PairFiles]:
    folder = existing_folder(root, LAYOUT)
    split = chosen("split", split, ("train", "test"))
    colours = [
        path
        for kind in KINDS
        for path in folder.glob(f"{kind}/{kind}_{split}/*/*_RGB.jpg")  # the dataset's own layout
    ]
    flat = folder / split.capitalize()
    colours += flat.glob("RGBDD_RGB/*_RGB.jpg")
    files = []
    for rgb in colours:
        name = rgb.name.removesuffix("_RGB.jpg")
        is_flat = rgb.parent.parent == flat
        depth_folder = flat / "RGBDD_GT" if is_flat else rgb.parent
        low_folder = flat / "RGBDD_LR" if is_flat else rgb.parent
        files.append(
            PairFiles(
                name,
                rgb,
                depth_folder / f"{name}_HR_gt.png",
                low_folder / f"{name}_LR_fill_depth.png",
            )
        )
    return found(files, folder, LAYOUT)
