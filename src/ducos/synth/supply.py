"""Where a scene gets its things from: models of the assets folder where there are some, own forms
otherwise and in between."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ducos.synth import furniture, objects, plants, seats
from ducos.synth.assets import Asset, Catalogue
from ducos.synth.materials import Material, Random, metal, vary
from ducos.synth.mesh import Mesh
from ducos.synth.palette import Maker, Palette
from ducos.synth.scene import Scene

TEXTURE_USES = ("floor", "wall", "wood", "fabric", "other")

MAKERS: dict[str, tuple[Maker, ...]] = {
    "table": (furniture.table, furniture.table, furniture.desk),
    "low table": (furniture.coffee_table,),
    "desk": (furniture.desk,),
    "chair": (seats.chair, seats.chair, seats.chair, seats.stool),
    "office chair": (seats.office_chair, seats.office_chair, seats.chair),
    "sofa": (seats.sofa, seats.sofa, seats.armchair),
    "armchair": (seats.armchair,),
    "bed": (seats.bed,),
    "nightstand": (furniture.nightstand,),
    "case": (furniture.chest, furniture.wardrobe, furniture.open_rack, furniture.chest),
    "bookcase": (furniture.bookcase,),
    "television": (furniture.television,),
    "counter": (furniture.counter,),
    "radiator": (furniture.radiator,),
    "lamp": (furniture.floor_lamp,),
    "other": (furniture.coat_stand, seats.stool, furniture.open_rack, furniture.floor_lamp),
}
MODEL_SHARE = 0.6  # of furniture whose role exists in the catalogue
SCANNED_SHARE = 0.7  # of small things, if there are scanned objects
SMALL_MODEL_SHARE = 0.2  # of the remaining small things


class Supply:
    """Draws meshes for one scene and remembers which assets it used."""

    def __init__(self, rng: Random, catalogue: Catalogue) -> None:
        self.rng = rng
        self.catalogue = catalogue
        self.used: set[str] = set()
        files = {
            use: [catalogue.path(asset) for asset in catalogue.by_role.get(("texture", use), [])]
            for use in TEXTURE_USES
        }
        pictures = catalogue.by_role.get(("picture", "picture"), [])
        self.palette = Palette(rng, files, [catalogue.path(asset) for asset in pictures])

    def furniture(self, role: str) -> Mesh:
        """A piece of furniture for a role of MAKERS or of the catalogue."""
        if role not in MAKERS or self.rng.random() < MODEL_SHARE:
            asset = self.catalogue.pick(self.rng, "model", role)
            if asset is not None:
                return self.model(asset)
        makers = MAKERS[role]
        return makers[int(self.rng.integers(len(makers)))](self.rng, self.palette)

    def plant(self) -> Mesh:
        """A plant to stand on the floor."""
        asset = self.catalogue.pick(self.rng, "model", "plant")
        if asset is not None and self.rng.random() < 0.5:
            return self.model(asset)
        return plants.plant(self.rng, self.palette, self.rng.uniform(0.5, 1.3))

    def hanging(self, role: str) -> tuple[Mesh, Asset] | None:
        """A door or a thing that hangs on a wall, from the catalogue only."""
        asset = self.catalogue.pick(self.rng, "model", role)
        return None if asset is None else (self.model(asset), asset)

    def small(self) -> Mesh:
        """Clutter."""
        scanned = self.catalogue.pick(self.rng, "model", "scanned")
        if scanned is not None and self.rng.random() < SCANNED_SHARE:
            mesh = self.model(scanned)
            _, depth, height = mesh.size
            topples = height > depth and self.rng.random() < objects.LYING_SHARE
            return objects.tilted(mesh, np.pi / 2) if topples else mesh
        model = self.catalogue.pick(self.rng, "model", "small")
        if model is not None and self.rng.random() < SMALL_MODEL_SHARE:
            return self.model(model)
        return objects.small_object(self.rng, self.palette)

    def hdri(self) -> Path | None:
        asset = self.catalogue.pick(self.rng, "hdri", "hdri")
        if asset is None:
            return None
        self.used.add(asset.key)
        return self.catalogue.path(asset)

    def model(self, asset: Asset) -> Mesh:
        """An asset's mesh, its materials varied so that no two uses look the same."""
        self.used.add(asset.key)
        mesh = self.catalogue.load_model(asset)
        scanned = asset.role == "scanned"
        return replace(mesh, materials=tuple(self._retouch(m, scanned) for m in mesh.materials))

    def _retouch(self, material: Material, scanned: bool) -> Material:
        rng, draw = self.rng, self.rng.random()
        if material.image is not None:
            if not scanned and not material.cutout and draw < 0.1:
                return self.palette.furniture()
            hue = rng.uniform(-0.5, 0.5) if draw > 0.9 and not scanned else 0.0
            adjust = (hue, rng.uniform(0.7, 1.1), rng.uniform(0.75, 1.15))
            return replace(material, adjust=adjust, roughness=rng.uniform(0.25, 0.9))
        if draw < 0.3:
            return self.palette.furniture()
        if draw < 0.4:
            return self.palette.textile()
        if draw < 0.45:
            return metal(rng)
        colour = vary(rng, material.colours[0], 0.3)
        return Material("mottled", (colour, vary(rng, colour, 0.12)), 0.1, material.roughness)

    def sources(self, scene: Scene) -> set[str]:
        """Keys of every asset in the scene: the models and skies drawn here, and textures."""
        keys = {
            self.catalogue.path(asset): asset.key
            for asset in self.catalogue.assets.values()
            if asset.kind in ("texture", "picture")
        }
        images = {
            m.image
            for thing in scene.things
            for m in thing.mesh.materials
            if isinstance(m.image, Path)
        }
        return self.used | {keys[image] for image in images if image in keys}
