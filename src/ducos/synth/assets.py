"""The assets folder: which models, textures, pictures and HDRIs exist, and under which licence.

`prepare.py` fills the folder; this chapter reads it. Layout: `index.json` beside `models/*.npz`
(meshes), `textures/` and `hdri/`. Without a folder the catalogue is empty and every scene is built
from forms alone.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from ducos.errors import InputError
from ducos.synth.materials import Random
from ducos.synth.mesh import Mesh
from ducos.synth.model_file import load_model

INDEX = "index.json"


@dataclass(frozen=True)
class Asset:
    """One entry of the index.

    kind: "model", "texture", "picture" or "hdri". role: what a model is for (see `role_of`), or the
    use of a texture ("floor", "wall", "wood", "fabric", "other"). file: relative to the folder.
    size: width, depth, height in metres; elevation: height its base hangs at; both for models.
    """

    key: str
    kind: str
    role: str
    file: str
    name: str
    source: str
    author: str
    licence: str
    size: tuple[float, float, float] = (0.0, 0.0, 0.0)
    elevation: float = 0.0


ROLE_WORDS = (  # the first role with a word in the model's name wins
    ("plant", ("plant", "fern", "ficus", "bamboo", "cactus", "yucca", "palm", "lily")),
    ("bed", ("bed",)),
    ("sofa", ("sofa", "couch", "armchair", "settee")),
    ("chair", ("chair", "stool", "bench", "seat")),
    ("table", ("table", "desk")),
    ("case", ("chest", "drawer", "dresser", "sideboard", "cabinet", "buffet", "bookcase", "shel")),
    ("case", ("wardrobe", "cupboard", "closet", "rack", "tv", "fridge", "oven", "piano")),
    ("lamp", ("lamp", "light")),
)
INDOOR = ("Living room", "Bedroom", "Office", "Kitchen", "Bathroom", "Miscellaneous", "Lights")


def role_of(
    name: str, category: str, size: tuple[float, float, float], elevation: float, door: bool
) -> str | None:
    """What a furniture model can serve as, or None if rooms have no use for it.

    Roles: door, wall (hangs on one), small (clutter), plant, bed, sofa, chair, table, case, lamp
    and other (anything else that stands on the floor).
    """
    width, depth, height = size
    if door:
        return (
            "door" if 1.8 < height < 2.4 and width < 1.4 and "window" not in name.lower() else None
        )
    if category not in INDOOR or max(size) > 3.0:
        return None
    if elevation > 0.3:
        return "wall" if elevation < 2.2 and depth < 0.7 and max(size) < 2.0 else None
    if max(size) < 0.6:
        return "small" if max(size) > 0.05 else None
    if not 0.25 < height < 2.3 or max(width, depth) < 0.25:
        return None
    lowered = name.lower()
    for role, words in ROLE_WORDS:
        if any(word in lowered for word in words):
            return role
    return "other"


class Catalogue:
    """The assets of one folder, or none."""

    def __init__(self, folder: Path | None = None, assets: Iterable[Asset] = ()) -> None:
        self.folder = folder
        self.assets = {asset.key: asset for asset in assets}

    @classmethod
    def load(cls, folder: Path | None) -> "Catalogue":
        """Read a folder made by `prepare_assets`; None gives an empty catalogue."""
        if folder is None:
            return cls()
        index = folder / INDEX
        if not index.is_file():
            raise InputError(
                f"got assets folder {folder} without {INDEX}, expected one made by prepare_assets; "
                "run it first, or leave the folder out to render forms only"
            )
        entries = json.loads(index.read_text(encoding="utf-8"))
        for entry in entries:
            entry["size"] = tuple(entry["size"])
        return cls(folder, [Asset(**entry) for entry in entries])

    def save(self) -> None:
        """Write the index of this catalogue's folder."""
        assert self.folder is not None
        entries = [asdict(self.assets[key]) for key in sorted(self.assets)]
        text = json.dumps(entries, indent=1, ensure_ascii=False)
        partial = self.folder / f"{INDEX}.partial"
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(self.folder / INDEX)

    def digest(self) -> str:
        """Short fingerprint of the index: another catalogue would draw other scenes."""
        entries = [asdict(self.assets[key]) for key in sorted(self.assets)]
        return hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:16]

    def path(self, asset: Asset) -> Path:
        assert self.folder is not None
        return self.folder / asset.file

    @cached_property
    def by_role(self) -> dict[tuple[str, str], list[Asset]]:
        """Assets by (kind, role), in the order of their keys so that seeds mean the same."""
        table: dict[tuple[str, str], list[Asset]] = {}
        for key in sorted(self.assets):
            asset = self.assets[key]
            table.setdefault((asset.kind, asset.role), []).append(asset)
        return table

    def pick(self, rng: Random, kind: str, role: str) -> Asset | None:
        """A random asset of this kind and role; None if there is none."""
        choices = self.by_role.get((kind, role), [])
        return choices[int(rng.integers(len(choices)))] if choices else None

    def load_model(self, asset: Asset) -> Mesh:
        assert self.folder is not None
        return load_model(self.folder, asset.file)


def licence_table(catalogue: Catalogue, used: dict[str, int]) -> str:
    """Markdown with one row per asset used: what, by whom, licence, in how many scenes."""
    lines = ["# Licences of the assets in this set", ""]
    if not used:
        return "\n".join(
            [*lines, "None: every form, texture and picture was made by this program."]
        )
    lines += ["| asset | author | source | licence | scenes |", "|---|---|---|---|---|"]
    for key in sorted(used):
        asset = catalogue.assets[key]
        row = (asset.name, asset.author, asset.source, asset.licence, str(used[key]))
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |")
    return "\n".join(lines)
