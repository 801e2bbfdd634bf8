"""Where things come to rest: a height map of the room, and objects lowered onto it.

The map keeps, per cell of 12 mm, the height of the topmost surface. An object is reduced to the
lowest and highest point above each cell it covers; lowered until it touches, it lands where the
first pair of cells meets. Nothing can intersect what is below it, and a chair placed before a
table ends up under it, because the table's lowest points there are the underside of its top.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ducos.synth.mesh import Floats, Mesh, rotation

Random = np.random.Generator
Pose = NDArray[np.float64]
Spot = Callable[[], tuple[float, float]]

CONTACT = 0.015  # cells this close to touching bear weight, in metres
FOOT = 0.02  # the part of an object this close to its lowest point can bear it
STABLE = 0.45  # share of the feet's half-width the bearing part must reach to either side
OUT_OF_REACH = 9.0  # height of cells on which nothing may land
FLOOR_TOLERANCE = 0.03  # what still counts as standing on the floor: rugs, skirting


@dataclass(frozen=True)
class Footprint:
    """cells: (N, 2) offsets from the object's origin; lowest, highest: (N,) heights above them."""

    cells: NDArray[np.int64]
    lowest: Floats
    highest: Floats

    def level_share(self) -> float:
        """Share of the cells whose surface is level with the object's top."""
        top = float(self.highest.max())
        tolerance = np.clip(0.15 * (top - float(self.lowest.min())), 0.004, CONTACT)
        return float((self.highest > top - tolerance).mean())

    def main_level(self) -> tuple[float, float]:
        """The height most of the object's upper side is at, and the share of cells at it.

        A desk with a mirror or a shelf on it is higher than its top.
        """
        counts, edges = np.histogram(self.highest, bins=np.arange(0.0, 3.0, CONTACT))
        level = float(edges[counts.argmax()] + CONTACT / 2)
        near = np.abs(self.highest - level) < CONTACT
        return float(self.highest[near].max()), float(near.mean())

    def forbidden(self) -> "Footprint":
        """The same footprint, too high for anything to rest on."""
        return Footprint(self.cells, self.lowest, np.full_like(self.highest, OUT_OF_REACH))


@dataclass(frozen=True)
class Landing:
    """z: height of the object's base. support: share of its feet that bears, 0 if it would tip."""

    z: float
    support: float


class HeightMap:
    """Heights over a width x depth floor centred on the origin."""

    def __init__(self, width: float, depth: float, cell: float = 0.012) -> None:
        self.cell = cell
        self.origin = np.array([-width / 2, -depth / 2])
        self.heights = np.zeros((int(width / cell) + 1, int(depth / cell) + 1), np.float32)

    def footprint(self, points: Floats) -> Footprint:
        """Footprint of points (N, 3) around the object's origin."""
        cells = np.round(points[:, :2] / self.cell).astype(np.int64)
        key = (cells[:, 0] << 32) + cells[:, 1]  # sorting one number is faster than sorting pairs
        order = np.argsort(key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=key[order[0]] - 1))
        heights = points[order, 2]
        return Footprint(
            cells[order[first]],
            np.minimum.reduceat(heights, first),
            np.maximum.reduceat(heights, first),
        )

    def index(self, x: float, y: float) -> NDArray[np.int64]:
        return np.round((np.array([x, y]) - self.origin) / self.cell).astype(np.int64)

    def height_at(self, x: float, y: float) -> float:
        i, j = np.clip(self.index(x, y), 0, np.array(self.heights.shape) - 1)
        return float(self.heights[i, j])

    def land(self, footprint: Footprint, x: float, y: float) -> Landing | None:
        """Lower the object at (x, y); None where it would leave the room."""
        cells = footprint.cells + self.index(x, y)
        if (cells < 1).any() or (cells >= np.array(self.heights.shape) - 1).any():
            return None
        ground = self.heights[cells[:, 0], cells[:, 1]]
        z = float((ground - footprint.lowest).max())
        base = float(footprint.lowest.min())
        feet = footprint.lowest < base + FOOT
        bearing = ground[feet] > z + base - CONTACT
        support = float(bearing.mean())
        if bearing.any() and not bearing.all() and self._tips(footprint.cells[feet], bearing):
            support = 0.0
        return Landing(z, support)

    @staticmethod
    def _tips(feet: NDArray[np.int64], bearing: NDArray[np.bool_]) -> bool:
        """Whether the bearing cells fail to reach well to both sides of the middle of the feet."""
        low, high = feet.min(0), feet.max(0)
        middle, reach = (low + high) / 2, STABLE * (high - low) / 2
        bearers = feet[bearing]
        return bool(((bearers.min(0) > middle - reach) | (bearers.max(0) < middle + reach)).any())

    def add(self, footprint: Footprint, x: float, y: float, z: float) -> None:
        """Raise the map under an object whose origin is at (x, y, z), one cell of margin."""
        cells = footprint.cells + self.index(x, y)
        top = footprint.highest + np.float32(z)
        limit = np.array(self.heights.shape) - 1
        for di in (-1, 0, 1):
            for dj in (-1, 0, 1):
                i, j = np.clip(cells + np.array([di, dj]), 0, limit).T
                np.maximum.at(self.heights, (i, j), top)


def mark(rng: Random, ground: HeightMap, mesh: Mesh, pose: Pose) -> None:
    """Raise the map under a mesh that stands at a given pose."""
    turned = mesh.surface_points(rng) @ pose[:3, :3].T.astype(np.float32)
    x, y, z = (float(v) for v in pose[:3, 3])
    ground.add(ground.footprint(turned), x, y, z)


def at(x: float, y: float) -> Spot:
    """Always this place."""
    return lambda: (x, y)


def pose_at(x: float, y: float, z: float, angle: float = 0.0) -> Pose:
    """(4, 4) pose: turned around z, then moved."""
    pose = np.eye(4)
    pose[:3, :3] = rotation(angle)
    pose[:3, 3] = (x, y, z)
    return pose


def drop(
    rng: Random,
    ground: HeightMap,
    mesh: Mesh,
    spot: Spot,
    *,
    tries: int = 10,
    angle: float | None = None,
    min_support: float = 0.33,
    max_height: float = 2.2,
    on_floor: bool = False,
    level_top: float = 0.0,
) -> Pose | None:
    """Find a resting place and mark it on the map; None if no try succeeds.

    Args:
        spot: yields the (x, y) of each try.
        angle: turn around z, random by default.
        min_support: share of the feet that must bear.
        max_height: highest resting place, metres.
        on_floor: only directly on the floor.
        level_top: share of the footprint that must be level with its top, else nothing may come to
            rest on it later: a carton carries a bowl, a plant or a bottle does not.
    """
    points = mesh.surface_points(rng)
    for _ in range(tries):
        turn = rng.uniform(0, 2 * np.pi) if angle is None else angle
        turned = points @ rotation(turn).T
        footprint = ground.footprint(turned)
        x, y = spot()
        landing = ground.land(footprint, x, y)
        if landing is None or landing.support < min_support:
            continue
        base = landing.z + float(footprint.lowest.min())
        if base > (FLOOR_TOLERANCE if on_floor else max_height):
            continue
        if footprint.level_share() < level_top:
            ground.add(footprint.forbidden(), x, y, landing.z)
        else:
            ground.add(footprint, x, y, landing.z)
        return pose_at(x, y, landing.z, turn)
    return None
