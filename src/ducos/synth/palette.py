"""The materials of one room, drawn together so that they look chosen by the same person."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ducos.synth import prints
from ducos.synth.materials import (
    Image,
    Material,
    Random,
    bricks,
    carpet,
    lacquer,
    leather,
    marble,
    metal,
    paint,
    picture,
    planks,
    plaster,
    printed_paper,
    stripes,
    terrazzo,
    tiled,
    tiles,
    weave,
    wood,
)
from ducos.synth.mesh import Mesh

Recipe = Callable[[Random], Material]


def mixture(rng: Random, *choices: tuple[float, Recipe]) -> Material:
    """One of the recipes, drawn with these weights."""
    weights = np.array([weight for weight, _ in choices])
    index = int(rng.choice(len(choices), p=weights / weights.sum()))
    return choices[index][1](rng)


class Palette:
    """The materials of one room.

    textures: files of tileable textures by use ("floor", "wall", "wood", "fabric", "other"); empty
    without assets. pictures: photographs for posters and covers, used beside the drawn ones.
    """

    def __init__(
        self,
        rng: Random,
        textures: dict[str, list[Path]] | None = None,
        pictures: list[Path] | None = None,
    ) -> None:
        self.rng = rng
        self.textures = textures or {}
        self.pictures = pictures or []
        self.woods = [self._wood() for _ in range(int(rng.integers(1, 4)))]
        self.textiles = [self.cloth() for _ in range(4)]
        self.paints = [paint(rng) for _ in range(3)]
        self.metals = [metal(rng), lacquer(rng), metal(rng)]
        self.spines = [picture(prints.spine(rng), rng) for _ in range(12)]
        self.covers = [picture(self._cover_image(), rng) for _ in range(10)]

    def _pick(self, materials: list[Material]) -> Material:
        return materials[int(self.rng.integers(len(materials)))]

    def _texture(self, use: str, low: float, high: float, chance: float) -> Material | None:
        files = self.textures.get(use, [])
        if not files or self.rng.random() > chance:
            return None
        return tiled(
            files[int(self.rng.integers(len(files)))], self.rng, self.rng.uniform(low, high)
        )

    def _wood(self) -> Material:
        return self._texture("wood", 0.4, 1.5, 0.5) or wood(self.rng)

    def _cover_image(self) -> Image:
        if self.pictures and self.rng.random() < 0.4:
            return self.pictures[int(self.rng.integers(len(self.pictures)))]
        return prints.cover(self.rng)

    def wood(self) -> Material:
        return self._pick(self.woods)

    def textile(self) -> Material:
        return self._pick(self.textiles)

    def metal(self) -> Material:
        return self._pick(self.metals)

    def cover(self) -> Material:
        return self._pick(self.covers)

    def spine(self) -> Material:
        if self.rng.random() < 0.45:
            return self._pick(self.spines)
        return lacquer(self.rng)

    def furniture(self) -> Material:
        """Case furniture and tables: mostly wood, some painted, little else."""
        draw = self.rng.random()
        if draw < 0.62:
            return self.wood()
        if draw < 0.9:
            return self._pick(self.paints)
        return mixture(self.rng, (1, metal), (1, marble), (2, lacquer))

    def cloth(self) -> Material:
        """A new textile."""
        textured = self._texture("fabric", 0.15, 0.8, 0.35)
        return textured or mixture(
            self.rng,
            (4, weave),
            (2, stripes),
            (1.5, lambda rng: printed_paper(rng, rng.uniform(0.08, 0.4))),
            (1, leather),
        )

    def floor(self) -> Material:
        textured = self._texture("floor", 0.6, 2.2, 0.55)
        return textured or mixture(
            self.rng, (5, planks), (3, tiles), (1.5, carpet), (0.7, terrazzo), (0.8, marble)
        )

    def wall(self) -> Material:
        textured = self._texture("wall", 0.6, 2.0, 0.3)
        return textured or mixture(
            self.rng,
            (6, plaster),
            (2, lambda rng: printed_paper(rng, rng.uniform(0.25, 0.9))),
            (1, bricks),
            (1, tiles),
            (0.7, planks),
        )

    def poster(self) -> Material:
        if self.pictures and self.rng.random() < 0.5:
            return picture(self.pictures[int(self.rng.integers(len(self.pictures)))], self.rng)
        return picture(prints.poster(self.rng), self.rng)

    def small(self) -> Material:
        """Anything a small object may be made of; patterns are finer than on furniture."""
        textured = self._texture("other", 0.05, 0.3, 0.3)
        drawn = textured or mixture(
            self.rng,
            (5, lacquer),
            (2, paint),
            (2, wood),
            (1, metal),
            (1.5, stripes),
            (1.5, lambda rng: printed_paper(rng, rng.uniform(0.03, 0.15))),
            (1, weave),
            (0.6, marble),
            (0.6, terrazzo),
        )
        return replace(drawn, scale=drawn.scale * 0.5) if drawn.pattern != "weave" else drawn


Maker = Callable[[Random, Palette], Mesh]
