"""Walls as places: what is taken on them, and where things stand or hang."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ducos.synth.materials import Material
from ducos.synth.mesh import Mesh, Vector, polygons
from ducos.synth.placement import Pose
from ducos.synth.shapes import box


@dataclass
class Opening:
    """A rectangle on a wall: from `left` to `right` along it, from `low` to `high` above floor."""

    left: float
    right: float
    low: float
    high: float

    def overlaps(self, left: float, right: float, low: float, high: float, gap: float) -> bool:
        sideways = right > self.left - gap and left < self.right + gap
        return sideways and high > self.low - gap and low < self.high + gap


@dataclass
class Wall:
    """One wall; positions on it are (along, up), `along` from 0 to `length`, left to right."""

    origin: tuple[float, float]
    normal: tuple[float, float]  # into the room
    length: float
    taken: list[Opening] = field(default_factory=list)

    @property
    def pose(self) -> Pose:
        """Wall coordinates (along, up, into the room) to the room's."""
        x, y = self.normal
        pose = np.eye(4)
        pose[:3, 0], pose[:3, 1], pose[:3, 2] = (-y, x, 0), (0, 0, 1), (x, y, 0)
        pose[:2, 3] = self.origin
        return pose

    def stand(self, along: float, out: float, up: float = 0.0) -> Pose:
        """Pose of an upright object at this place of the wall, facing the room."""
        x, y = self.normal
        pose = np.eye(4)
        pose[:3, 0], pose[:3, 1] = (-y, x, 0), (-x, -y, 0)
        pose[:3, 3] = (self.pose @ [along, up, out, 1.0])[:3]
        return pose

    @property
    def angle(self) -> float:
        """Turn around z that makes an object face the room."""
        x, y = self.normal
        return float(np.arctan2(x, -y))

    def free(self, left: float, right: float, low: float, high: float, gap: float = 0.05) -> bool:
        inside = left > gap and right < self.length - gap
        return inside and not any(o.overlaps(left, right, low, high, gap) for o in self.taken)


def four_walls(width: float, depth: float) -> list[Wall]:
    x, y = width / 2, depth / 2
    return [
        Wall((-x, y), (0.0, -1.0), width),
        Wall((x, y), (-1.0, 0.0), depth),
        Wall((x, -y), (0.0, 1.0), width),
        Wall((-x, -y), (1.0, 0.0), depth),
    ]


def wall_mesh(wall: Wall, height: float, holes: list[Opening], material: Material) -> Mesh:
    """The wall in its own coordinates (along, up), with rectangular holes."""
    xs = sorted({0.0, wall.length, *(v for hole in holes for v in (hole.left, hole.right))})
    ys = sorted({0.0, height, *(v for hole in holes for v in (hole.low, hole.high))})
    points: list[Vector] = []
    faces: list[tuple[int, int, int, int]] = []
    for left, right in pairwise(xs):
        for low, high in pairwise(ys):
            x, y = (left + right) / 2, (low + high) / 2
            if any(h.left < x < h.right and h.low < y < h.high for h in holes):
                continue
            first = len(points)
            points += [(left, low, 0), (right, low, 0), (right, high, 0), (left, high, 0)]
            faces.append((first, first + 1, first + 2, first + 3))
    return polygons(points, faces, material)


def upright(
    size: tuple[float, float, float],
    material: Material,
    at: tuple[float, float, float],
    bevel: float = 0.0,
) -> Mesh:
    """A box centred on `at` in wall coordinates (along, up, out)."""
    return box(size, material, (at[0], at[1], at[2] - size[2] / 2), bevel)
