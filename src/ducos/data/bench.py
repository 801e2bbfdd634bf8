"""A benchmark folder of scenes: `<scene>/rgb.png`, `depth.png`, `meta.json`, maybe `lr_depth.png`.

`meta.json` states the unit: value = pixel × `scale_to_unit` + (`offset` or 0); pixels equal to
`invalid_value` are holes (null: none). The low-resolution map has the same scale.
"""

from pathlib import Path

from ducos.data.files import FileDataset, PairFiles, existing_folder, found, json_object
from ducos.errors import InputError

LAYOUT = "a folder of scenes, each with rgb.png, depth.png (16-bit) and meta.json"


class Bench(FileDataset):
    """The dataset's name is the folder's; sensor: what made the low-resolution maps."""

    def __init__(self, root: str | Path, sensor: str = "unknown"):
        folder = existing_folder(root, LAYOUT)
        metas = sorted(folder.glob("*/meta.json"))
        if not metas and any(folder.glob("*/*/meta.json")):
            choices = sorted({path.parent.parent.name for path in folder.glob("*/*/meta.json")})
            raise InputError(
                f"{folder} holds several datasets; name one of them: {', '.join(choices)}"
            )
        files = []
        units = set()
        for path in metas:
            about = json_object(path)
            missing = {"unit", "scale_to_unit", "invalid_value"} - about.keys()
            if missing:
                raise InputError(f"{path} does not state {', '.join(sorted(missing))}")
            files.append(_row(path.parent, about))
            units.add("m" if about["unit"] == "metre" else "level")
        files = found(files, folder, LAYOUT)
        if len(units) > 1:
            raise InputError(f"{folder} mixes metres and levels; split it into two folders")
        super().__init__(folder.resolve().name, units.pop(), files, sensor)


def _row(scene: Path, about: dict) -> PairFiles:
    low = scene / "lr_depth.png"
    for name in ("scale_to_unit", "offset", "invalid_value"):
        if not isinstance(about.get(name), int | float | None):
            raise InputError(f"{scene / 'meta.json'}: {name} must be a number or null")
    return PairFiles(
        name=scene.name,
        rgb=scene / "rgb.png",
        depth=scene / "depth.png",
        low=low if low.exists() else None,
        scale=about["scale_to_unit"],
        offset=about.get("offset") or 0.0,
        invalid=about["invalid_value"],
    )
