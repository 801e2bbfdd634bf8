"""Maps that real cameras made: `<capture>/rgb.*`, `depth.*` and `meta.json`, without ground truth.

The camera's own map is the target: a result can be asked to give it back. `meta.json` states
`scale` (metres per stored value), maybe `sensor` (one of SENSORS) and `farthest` (metres from which
a value is none; null: all are).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ducos.arrays import Floats, Size
from ducos.data.files import FileDataset, PairFiles, existing_folder, found, read_target
from ducos.data.pair import Pair
from ducos.errors import InputError
from ducos.files import read_rgb
from ducos.hints import check_sensor

LAYOUT = "a folder of captures, each with rgb.*, depth.* and meta.json"


class Captures(FileDataset):
    """The dataset's name is the folder's; an image of another size is brought to its map's."""

    def __init__(self, root: str | Path):
        folder = existing_folder(root, LAYOUT)
        self.stated = {path.parent.name: _stated(path) for path in folder.glob("*/meta.json")}
        rows = [_row(folder / name, about) for name, about in self.stated.items()]
        super().__init__(folder.resolve().name, "m", found(rows, folder, LAYOUT))

    def __getitem__(self, index: int) -> Pair:
        files = self.files[index]
        about = self.stated[files.name]
        depth, valid = read_target(files.depth, files, self.unit)
        if about.get("farthest"):
            valid = valid & (depth < about["farthest"])
        H, W = depth.shape
        rgb = at_size(read_rgb(files.rgb), (H, W))
        depth = np.where(valid, depth, np.float32(0))
        return Pair(files.name, rgb, depth, valid, sensor=about.get("sensor") or "unknown")


def at_size(rgb: Floats, size: Size) -> Floats:
    """The image (H, W, 3) at another size, by mean over areas."""
    if rgb.shape[:2] == size:
        return rgb
    planes = [Image.fromarray(np.ascontiguousarray(rgb[..., c])) for c in range(3)]
    resized = [plane.resize(size[::-1], Image.Resampling.BOX) for plane in planes]
    return np.stack([np.asarray(plane, np.float32) for plane in resized], -1)


def _stated(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        float(about["scale"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} does not state the scale; expected JSON with scale = metres per stored value"
        ) from None
    check_sensor(about.get("sensor") or "unknown")
    return dict(about)


def _row(folder: Path, about: Mapping[str, Any]) -> PairFiles:
    files = {kind: sorted(folder.glob(f"{kind}.*")) for kind in ("rgb", "depth")}
    for kind, paths in files.items():
        if len(paths) != 1:
            raise InputError(f"{folder} has {len(paths)} files {kind}.*, expected one")
    return PairFiles(folder.name, files["rgb"][0], files["depth"][0], scale=float(about["scale"]))
