"""Middlebury (30 pairs) and Lu (6 pairs): the field's two test sets in 8-bit levels, not metres.

Both come as Lu et al. prepared them, holes filled: `<name>_output_color.png` beside
`<name>_output_depth.png`, in one folder or in sub-folders RGB and Depth (some copies of Lu spell
`ouput`). The levels are disparity codes for Middlebury and inverted, rescaled depth for Lu; errors
are reported on them as they are, and no pixel is masked.
"""

import re
from pathlib import Path

from ducos.data.files import FileDataset, PairFiles, existing_folder, found
from ducos.errors import InputError

LAYOUT = "<name>_output_color.png and <name>_output_depth.png, together or in RGB/ and Depth/"
_FILE = re.compile(r"(?P<name>.+)_out?put_(?P<kind>color|depth)\.png")


class Middlebury(FileDataset):
    """The 30 hole-filled Middlebury pairs of the field: 8-bit disparity codes."""

    def __init__(self, root: str | Path):
        super().__init__("middlebury", "level", _files(root))


class Lu(FileDataset):
    """The 6 pairs of Lu et al.: 8-bit codes."""

    def __init__(self, root: str | Path):
        super().__init__("lu", "level", _files(root))


def _files(root: str | Path) -> list[PairFiles]:
    folder = existing_folder(root, LAYOUT)
    paths: dict[str, dict[str, Path]] = {"color": {}, "depth": {}}
    for path in [*folder.glob("*.png"), *folder.glob("RGB/*.png"), *folder.glob("Depth/*.png")]:
        if match := _FILE.fullmatch(path.name):
            paths[match["kind"]][match["name"]] = path
    alone = sorted(paths["color"].keys() ^ paths["depth"].keys())
    if alone:
        raise InputError(f"{folder}: no partner for {', '.join(alone[:3])}; expected {LAYOUT}")
    files = [
        PairFiles(name, rgb, paths["depth"][name], scale=1.0, invalid=None)
        for name, rgb in paths["color"].items()
    ]
    return found(files, folder, LAYOUT)
