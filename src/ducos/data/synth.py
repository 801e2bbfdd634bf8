"""Rendered training rooms: `<scene>_<view>_rgb.jpg|png`, `_depth.png`, `.json`.

Depth is planar, 16-bit, in units of 0.25 mm (so it ends at 16.4 m); 0 is a hole. Several views show
one scene, whose number stands before the underscore: see `split_by_scene`.
"""

from dataclasses import replace
from pathlib import Path

from ducos.data.files import FileDataset, existing_folder
from ducos.data.folder import dataset_pairs

LAYOUT = "<scene>_<view>_rgb.jpg (or .png) and <scene>_<view>_depth.png"
METRES_PER_CODE = 0.00025


class Synth(FileDataset):
    """Pairs rendered by `ducos synth`.

    Args:
        scenes: only those of the first so many scenes; 0 takes all.
    """

    def __init__(self, root: str | Path, scenes: int = 0):
        folder = existing_folder(root, LAYOUT)
        files = [
            replace(row, scale=METRES_PER_CODE, scene=row.name.split("_")[0])
            for row in dataset_pairs(folder, LAYOUT)
        ]
        if scenes:
            chosen = sorted({row.scene for row in files if row.scene})[:scenes]
            files = [row for row in files if row.scene in chosen]
        super().__init__("synth", "m", files)
