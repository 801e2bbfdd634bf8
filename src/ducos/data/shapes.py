"""Scenes out of thin air: slanted planes, discs and boxes, for tests and the first training run.

Each scene is a wall with several flat things in front of it, seen by a pinhole camera. On a plane
the *inverse* depth is linear in image coordinates, so each surface is three numbers and the nearest
one wins. Depth jumps at every silhouette, and so does the colour, except for a few things painted
like the wall; every surface carries a texture whose colour edges mean nothing for depth.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ducos.data.pair import Pair
from ducos.errors import InputError

Grid = NDArray[np.float64]

WALL = 3.6  # metres, at the image centre
NEAREST_THING, FARTHEST_THING = 0.65, 3.0  # metres, at a thing's centre
THINGS = (5, 10)
SLANT = 0.2  # inverse depth changes by at most this share of itself from the centre to the rim
LIKE_THE_WALL = 0.15  # share of the things that have the wall's colour
CAMERA_NOISE = 0.01


class Shapes:
    """`count` scenes; scene i depends on the seed and i alone."""

    name = "shapes"
    unit = "m"

    def __init__(self, count: int, height: int = 120, width: int = 160, seed: int = 0):
        if min(count, height, width) < 1:
            raise InputError(
                f"count, height and width must be positive, got {count}, {height} and {width}"
            )
        self.count, self.height, self.width, self.seed = count, height, width, seed

    @property
    def scenes(self) -> Sequence[str]:
        return [f"{index:05d}" for index in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Pair:
        if not 0 <= index < self.count:
            raise IndexError(index)
        rng = np.random.default_rng([self.seed, index])
        surfaces = [_wall(rng)]
        for _ in range(rng.integers(*THINGS, endpoint=True)):
            surfaces.append(_thing(rng, wall_paint=surfaces[0][1]))
        # Depth is that of the pixel's centre, but a camera's pixel averages colour over its area.
        _, inverse_depth = _nearest(surfaces, self.height, self.width)
        fine, _ = _nearest(surfaces, 2 * self.height, 2 * self.width)
        rgb = fine.reshape(self.height, 2, self.width, 2, 3).mean((1, 3))
        rgb += rng.normal(0, CAMERA_NOISE, rgb.shape)
        target = (1 / inverse_depth).astype(np.float32)
        valid = np.ones(target.shape, np.bool_)
        return Pair(f"{index:05d}", rgb.clip(0, 1).astype(np.float32), target, valid)


# A paint gives the colour (..., 3) at image coordinates; a surface gives its inverse depth there
# (0, infinitely far, outside its outline). x and y run over [-1, 1] along the shorter image side.
Paint = Callable[[Grid, Grid], Grid]
InverseDepth = Callable[[Grid, Grid], Grid]


def _nearest(
    surfaces: Sequence[tuple[InverseDepth, Paint]], height: int, width: int
) -> tuple[Grid, Grid]:
    """Colour (height, width, 3) and inverse depth (height, width) of the nearest surface."""
    half = min(height, width) / 2
    x, y = np.meshgrid(
        (np.arange(width) + 0.5 - width / 2) / half, (np.arange(height) + 0.5 - height / 2) / half
    )
    rgb = np.zeros((height, width, 3))
    inverse_depth = np.zeros((height, width))
    for surface, paint in surfaces:
        candidate = surface(x, y)
        is_nearer = candidate > inverse_depth
        inverse_depth = np.where(is_nearer, candidate, inverse_depth)
        rgb[is_nearer] = paint(x[is_nearer], y[is_nearer])
    return rgb, inverse_depth


def _wall(rng: Generator) -> tuple[InverseDepth, Paint]:
    slant = rng.uniform(-SLANT, SLANT, 2) / 2

    def inverse_depth(x: Grid, y: Grid) -> Grid:
        # Bent flat beyond the unit square, so that wide images stay within 5 m.
        return (1 + slant[0] * x.clip(-1, 1) + slant[1] * y.clip(-1, 1)) / WALL

    return inverse_depth, _paint(rng, rng.uniform(0.2, 0.9, 3))


def _thing(rng: Generator, wall_paint: Paint) -> tuple[InverseDepth, Paint]:
    centre = 1 / rng.uniform(NEAREST_THING, FARTHEST_THING)
    at_x, at_y = rng.uniform(-1.2, 1.2), rng.uniform(-0.9, 0.9)
    half_width, half_height = rng.uniform(0.1, 0.5, 2)
    turn = rng.uniform(0, np.pi)
    slant = rng.uniform(-SLANT, SLANT, 2) / 2
    is_disc = rng.random() < 0.5

    def inverse_depth(x: Grid, y: Grid) -> Grid:
        # Own coordinates of the thing: 1 at its rim.
        across = ((x - at_x) * np.cos(turn) + (y - at_y) * np.sin(turn)) / half_width
        along = ((y - at_y) * np.cos(turn) - (x - at_x) * np.sin(turn)) / half_height
        inside = np.hypot(across, along) < 1 if is_disc else np.maximum(abs(across), abs(along)) < 1
        return np.where(inside, centre * (1 + slant[0] * across + slant[1] * along), 0)

    colour = rng.uniform(0.05, 0.95, 3)
    paint = _paint(rng, colour)
    return inverse_depth, wall_paint if rng.random() < LIKE_THE_WALL else paint


def _paint(rng: Generator, colour: Grid) -> Paint:
    """Stripes, checks or plain, over a gentle shading."""
    kind = rng.choice(["plain", "stripes", "checks"])
    second = (colour + rng.uniform(-0.3, 0.3, 3)).clip(0, 1)
    frequency = rng.uniform(4, 20, 2)
    phase = rng.uniform(0, 2 * np.pi, 2)
    shading = rng.uniform(-0.15, 0.15, 2)

    def paint(x: Grid, y: Grid) -> Grid:
        waves = np.sin(frequency[0] * x + phase[0]), np.sin(frequency[1] * y + phase[1])
        is_second = {
            "plain": np.zeros(x.shape, np.bool_),
            "stripes": waves[0] > 0,
            "checks": waves[0] * waves[1] > 0,
        }[kind]
        light = 1 + shading[0] * x + shading[1] * y
        return np.where(is_second[..., None], second, colour) * light[..., None]

    return paint
