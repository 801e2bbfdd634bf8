"""Meshes as plain arrays.

Nothing here knows Blender: a scene is described with NumPy first and handed to the renderer last,
so furniture, placement and layout can be tested without it. Metres, z up, the front of an object
faces -y, its base stands on z = 0 and its footprint is centred on the origin unless said otherwise.

Each face corner carries two texture coordinates. `uv` runs over [0, 1] and holds a picture (a
label, a poster); `metric` is in metres and holds patterns, its first axis along the longer side of
a board so that wood grain runs the way a joiner would cut it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.synth.materials import Material

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Mesh:
    """V vertices, F polygons with L corners in all.

    vertices: (V, 3). corners: (L,) vertex of each corner, face after face. face_sizes: (F,) corners
    per face. uv, metric: (L, 2). slots: (F,) index into materials.
    """

    vertices: Floats
    corners: Ints
    face_sizes: Ints
    uv: Floats
    metric: Floats
    slots: Ints
    materials: tuple[Material, ...]

    def transformed(self, matrix: ArrayLike) -> "Mesh":
        """The mesh under a 3x3 or 4x4 matrix; texture coordinates stay as they are."""
        matrix = np.asarray(matrix, np.float32)
        moved = self.vertices @ matrix[:3, :3].T
        if matrix.shape == (4, 4):
            moved = moved + matrix[:3, 3]
        return replace(self, vertices=moved.astype(np.float32))

    def moved(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> "Mesh":
        return replace(self, vertices=self.vertices + np.array([x, y, z], np.float32))

    def turned(self, angle: float, axis: str = "z") -> "Mesh":
        return self.transformed(rotation(angle, axis))

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        return self.vertices.min(0), self.vertices.max(0)

    @property
    def size(self) -> Floats:
        low, high = self.bounds
        return high - low

    def triangles(self) -> Ints:
        """(T, 3) vertex indices: each polygon cut into a fan."""
        starts = np.concatenate([[0], np.cumsum(self.face_sizes)[:-1]])
        counts = self.face_sizes - 2
        first = np.repeat(starts, counts)
        step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        corner = np.stack([first, first + step + 1, first + step + 2], 1)
        return self.corners[corner].astype(np.int32)

    def surface_points(self, rng: np.random.Generator, spacing: float = 0.007) -> Floats:
        """(N, 3) points about `spacing` metres apart, plus up to 4000 vertices (thin tips)."""
        a, b, c = (self.vertices[column] for column in self.triangles().T)
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1).astype(np.float64) / 2 + 1e-12
        count = int(np.clip(area.sum() / spacing**2, 2500, 80000))
        chosen = rng.choice(len(area), count, p=area / area.sum())
        s, t = rng.random((2, count, 1)).astype(np.float32)
        outside = s + t > 1
        s, t = np.where(outside, 1 - s, s), np.where(outside, 1 - t, t)
        spread = a[chosen] + s * (b[chosen] - a[chosen]) + t * (c[chosen] - a[chosen])
        corners = self.vertices
        if len(corners) > 4000:
            corners = corners[rng.choice(len(corners), 4000, replace=False)]
        return np.concatenate([spread, corners]).astype(np.float32)


def rotation(angle: float, axis: str = "z") -> Floats:
    """(3, 3) rotation by an angle in radians around one coordinate axis."""
    c, s = np.cos(angle), np.sin(angle)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    matrix = np.eye(3, dtype=np.float32)
    matrix[i, i] = matrix[j, j] = c
    matrix[i, j], matrix[j, i] = -s, s
    return matrix


def join(parts: Sequence[Mesh]) -> Mesh:
    """One mesh of many. Each part's pattern is shifted, so that no two boards look alike."""
    slot_of: dict[Material, int] = {}  # materials compare by identity
    slots, corners, metric, offset = [], [], [], 0
    for index, part in enumerate(parts):
        table = [slot_of.setdefault(material, len(slot_of)) for material in part.materials]
        slots.append(np.array(table, np.int32)[part.slots])
        corners.append(part.corners + offset)
        offset += len(part.vertices)
        shift = np.array([index * 0.7548 % 1, index * 0.5698 % 1], np.float32) * 3
        metric.append(part.metric + shift)
    return Mesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate(corners).astype(np.int32),
        np.concatenate([part.face_sizes for part in parts]),
        np.concatenate([part.uv for part in parts]),
        np.concatenate(metric).astype(np.float32),
        np.concatenate(slots),
        tuple(slot_of),
    )


def polygons(vertices: ArrayLike, faces: ArrayLike, material: Material) -> Mesh:
    """Faces (F, K) of one corner count over vertices (V, 3); patterns projected from the side."""
    points = np.asarray(vertices, np.float32)
    indices = np.asarray(faces, np.int32)
    count, corner_count = indices.shape
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32)
    uv = square[np.arange(corner_count) % 4]
    sizes = np.full(count, corner_count, np.int32)
    return Mesh(
        points,
        indices.ravel(),
        sizes,
        np.tile(uv, (count, 1)),
        project(points, indices.ravel(), sizes),
        np.zeros(count, np.int32),
        (material,),
    )


def project(vertices: Floats, corners: Ints, face_sizes: Ints) -> Floats:
    """(L, 2) metric coordinates: each face seen along the axis its normal is closest to."""
    starts = np.concatenate([[0], np.cumsum(face_sizes)[:-1]])
    a, b, c = (vertices[corners[starts + k]] for k in range(3))
    main = np.abs(np.cross(b - a, c - a)).argmax(1)
    first = np.array([1, 0, 0])[main]
    second = np.array([2, 2, 1])[main]
    points = vertices[corners]
    row = np.arange(len(corners))
    flat = [points[row, np.repeat(axis, face_sizes)] for axis in (first, second)]
    return np.stack(flat, 1).astype(np.float32)
