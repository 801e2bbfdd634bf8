"""Cloth that falls over things: folds of one fabric before itself, and creases that are no edges.

Position-based dynamics: the vertices of a sheet fall, the distances between neighbours are put
right a few times a step, and what has entered a solid is pushed out again. The sheet does not meet
itself. A coarse sheet finds the large folds, a finer one adds the small.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, zoom

from ducos.synth.materials import Material, Random
from ducos.synth.mesh import Mesh
from ducos.synth.shapes import grid

Points = NDArray[np.float64]

SPACING = 0.014  # metres between the vertices that fall
STEP = 1 / 60  # seconds
GRAVITY = 2.5  # gentler than the earth's: so few rounds of repairs would let the cloth stretch
DRAG = 0.03  # share of the speed lost in the air per step
GRIP = 0.7  # share of the way along a surface that friction takes back
REPAIRS = 8  # rounds per step of putting distances right
# Neighbours (rows, columns apart) whose distance is kept, and how stiffly: threads, the diagonals
# between them, and the next but one against bending.
BONDS = ((0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.5), (1, -1, 0.5), (0, 2, 0.15), (2, 0, 0.15))


@dataclass(frozen=True)
class Solid:
    """A cuboid that stands on the floor: its middle at x, y, its top at z, `width` along its own x
    and `depth` along its own y, turned around z by `angle`."""

    x: float
    y: float
    z: float
    width: float
    depth: float
    angle: float = 0.0

    def push_out(self, points: Points, margin: float) -> NDArray[np.bool_]:
        """Move points (..., 3) that are inside, or nearer than `margin`, to the nearer of the top
        and the closest side; returns which were."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        turn = np.array([[c, s], [-s, c]])
        local = (points[..., :2] - (self.x, self.y)) @ turn.T
        half = np.array([self.width, self.depth]) / 2 + margin
        beyond = np.abs(local) - half  # negative inside
        above = points[..., 2] - self.z - margin
        inside = (beyond < 0).all(-1) & (above < 0)
        side = beyond.argmax(-1)
        nearest = np.take_along_axis(beyond, side[..., None], -1)[..., 0]
        up, out = inside & (above >= nearest), inside & (above < nearest)
        points[up, 2] = self.z + margin
        if out.any():
            moved, axis = local[out], side[out]
            rows = np.arange(len(axis))
            moved[rows, axis] = np.copysign(half[axis], moved[rows, axis])
            points[out, :2] = moved @ turn + (self.x, self.y)
        return inside


def draped(
    rng: Random,
    material: Material,
    solids: list[Solid],
    at: tuple[float, float],
    size: tuple[float, float],
    slack: float,
) -> Mesh:
    """A cloth of size (width, depth) metres that fell on the solids around `at`, in room
    coordinates.

    slack: by that share the cloth is wider than the place it falls from, which makes creases.
    """
    rows, columns = (max(8, round(side / (2 * SPACING))) for side in (size[1], size[0]))
    angle = rng.uniform(0, 2 * np.pi)
    v, u = np.meshgrid(np.linspace(-0.5, 0.5, rows), np.linspace(-0.5, 0.5, columns), indexing="ij")
    flat = np.stack([u * size[0], v * size[1]], -1) / (1 + slack)
    c, s = np.cos(angle), np.sin(angle)
    start = max([solid.z for solid in solids], default=0.0) + 0.03
    sheet = np.empty((rows, columns, 3))
    sheet[..., :2] = flat @ np.array([[c, s], [-s, c]]) + at
    ripples = gaussian_filter(rng.normal(size=(rows, columns)), rng.uniform(1.5, 4), mode="nearest")
    sheet[..., 2] = start + 0.02 * ripples / max(float(np.abs(ripples).max()), 1e-9)
    sheet = _fallen(sheet, size, solids, steps=130)
    finer = (2 * rows - 1, 2 * columns - 1)
    sheet = _resampled(sheet, finer)
    sheet += rng.normal(0, 0.001, sheet.shape)
    sheet = _fallen(sheet, size, solids, steps=40)
    sheet = _resampled(sheet, (2 * finer[0] - 1, 2 * finer[1] - 1))
    for solid in solids:  # their corners are sharper than the sheet was
        solid.push_out(sheet, 0.003)
    return grid(sheet, material)


def _resampled(sheet: Points, shape: tuple[int, int]) -> Points:
    """The sheet through (R, C) vertices instead, smooth in between."""
    factors = (shape[0] / sheet.shape[0], shape[1] / sheet.shape[1], 1)
    return np.asarray(zoom(sheet, factors, order=3, mode="nearest"))


def _fallen(sheet: Points, size: tuple[float, float], solids: list[Solid], steps: int) -> Points:
    """The sheet (R, C, 3) of a cloth of this size, `steps` later; the floor is at z = 0."""
    apart = np.array([size[1] / (sheet.shape[0] - 1), size[0] / (sheet.shape[1] - 1)])
    margin = 0.75 * float(apart.max())
    place, before = sheet.copy(), sheet.copy()
    for _ in range(steps):
        speed = (place - before) * (1 - DRAG)
        before = place.copy()
        place = place + speed
        place[..., 2] -= GRAVITY * STEP**2
        for _ in range(REPAIRS):
            for down, right, stiffness in BONDS:
                rest = float(np.hypot(down * apart[0], right * apart[1]))
                _keep_apart(place, down, right, rest, stiffness)
        touching = place[..., 2] < margin
        place[touching, 2] = margin
        for solid in solids:
            touching |= solid.push_out(place, margin)
        place[touching] += GRIP * (before - place)[touching] * (1, 1, 0.5)
        for solid in solids:
            solid.push_out(place, margin)
    return place


def _keep_apart(place: Points, down: int, right: int, rest: float, stiffness: float) -> None:
    """Put the distance of each vertex and the one (down, right) of it right, in place: a part of
    the pairs at a time, so that no vertex is moved by two at once."""
    rows, columns = place.shape[:2]
    left, far = max(0, -right), max(0, right)
    here = (slice(0, rows - down), slice(left, columns - far))
    there = (slice(down, rows), slice(left + right, columns - far + right))
    axis, stride = (0, down) if down else (1, right)
    for start in range(2 * stride):
        part = (slice(None),) * axis + (slice(start, None, 2 * stride),)
        a, b = place[here][part], place[there][part]
        gap = b - a
        long = np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))[..., None]
        shift = 0.5 * stiffness * (1 - rest / np.maximum(long, 1e-9)) * gap
        a += shift  # views: the sheet itself
        b -= shift
