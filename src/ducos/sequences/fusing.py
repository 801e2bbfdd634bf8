"""Posed frames as one coloured cloud: points of all frames, averaged in small cubes of space."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.cameras import Cloud
from ducos.errors import InputError

FARTHEST = 20.0  # metres from the camera: beyond it depth says little about where things are
MOST_CUBES = 50_000_000


class Fused:
    """Add one frame after the other; then `save`. A cube is kept if so many frames saw it."""

    def __init__(self, side: float, frames: int = 2):
        self.side, self.frames = side, frames
        self.added = 0
        self.cubes = np.empty((0, 3), np.int32)
        self.sums = np.empty((0, 7))  # x y z red green blue, and in how many frames

    def add(self, result: Any, pose: NDArray[np.float64]) -> None:
        """A frame's result, and where its camera stood: camera to world (4, 4)."""
        cloud = result.cloud()
        near = cloud.points[:, 2] < FARTHEST
        world = cloud.points[near] @ pose[:3, :3].T + pose[:3, 3]
        values = np.concatenate([world, cloud.colours[near], np.ones((len(world), 1))], 1)
        cubes, values = grouped(np.floor(world / self.side).astype(np.int32), values)
        values /= values[:, -1:]  # each frame counts once, however many of its pixels saw a cube
        self.cubes, self.sums = grouped(
            np.concatenate([self.cubes, cubes]), np.concatenate([self.sums, values])
        )
        self.added += 1
        if len(self.cubes) > MOST_CUBES:
            raise InputError(
                f"the fused cloud has more than {MOST_CUBES} points; make the cubes larger than "
                f"{self.side:g} m (--cube)"
            )

    def cloud(self) -> Cloud:
        """The points that enough frames agree on; of a single frame, all."""
        kept = self.sums[self.sums[:, -1] >= min(self.frames, self.added)]
        means = kept[:, :6] / kept[:, 6:]
        return Cloud(means[:, :3].astype(np.float32), np.rint(means[:, 3:]).astype(np.uint8))

    def save(self, path: str | Path) -> int:
        """Write it as .ply; how many points."""
        cloud = self.cloud()
        cloud.save(path)
        return len(cloud)


def grouped(cubes: NDArray[np.int32], values: NDArray[np.float64]) -> tuple[Any, Any]:
    """Each cube once, with the sum of its values."""
    order = np.lexsort(cubes.T)
    cubes, values = cubes[order], values[order]
    first = np.ones(len(cubes), bool)
    first[1:] = (cubes[1:] != cubes[:-1]).any(1)
    starts = np.flatnonzero(first)
    return cubes[starts], np.add.reduceat(values, starts) if len(starts) else values
