"""Meshes as plain arrays, and the handful of forms everything in a scene is built from.

Nothing here knows Blender: a scene is described with NumPy first and handed to the renderer last,
so furniture, placement and layout can be tested without it. Metres, z up, the front of an object
faces -y, its base stands on z = 0 and its footprint is centred on the origin unless said otherwise.

Each face corner carries two texture coordinates. `uv` runs over [0, 1] and holds a picture (a
label, a poster); `metric` is in metres and holds patterns, its first axis along the longer side of
a board so that wood grain runs the way a joiner would cut it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.synth.materials import Material

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Vector = tuple[float, float, float]

BOX_SIDES = ("left", "right", "front", "back", "bottom", "top")  # -x +x -y +y -z +z


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

    def surface_points(self, rng: np.random.Generator, count: int) -> Floats:
        """(N, 3) points spread evenly over the surface, plus up to 4000 vertices (thin tips)."""
        a, b, c = (self.vertices[column] for column in self.triangles().T)
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1).astype(np.float64) + 1e-12
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
    materials: list[Material] = []
    slots, corners, metric, offset = [], [], [], 0
    for index, part in enumerate(parts):
        table = np.empty(len(part.materials), np.int32)
        for i, material in enumerate(part.materials):
            if not any(material is known for known in materials):
                materials.append(material)
            table[i] = next(k for k, known in enumerate(materials) if known is material)
        slots.append(table[part.slots])
        corners.append(part.corners + offset)
        offset += len(part.vertices)
        metric.append(part.metric + np.float32([index * 0.7548 % 1, index * 0.5698 % 1]) * 3)
    return Mesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate(corners).astype(np.int32),
        np.concatenate([part.face_sizes for part in parts]),
        np.concatenate([part.uv for part in parts]),
        np.concatenate(metric).astype(np.float32),
        np.concatenate(slots),
        tuple(materials),
    )


def polygons(vertices: ArrayLike, faces: ArrayLike, material: Material) -> Mesh:
    """Faces (F, K) of one corner count over vertices (V, 3); patterns projected from the side."""
    points = np.asarray(vertices, np.float32)
    indices = np.asarray(faces, np.int32)
    count, corner_count = indices.shape
    square = np.float32([(0, 0), (1, 0), (1, 1), (0, 1)])
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


def box(
    size: ArrayLike,
    material: Material,
    at: ArrayLike = (0.0, 0.0, 0.0),
    bevel: float = 0.0,
    sides: Mapping[str, Material] | None = None,
) -> Mesh:
    """A cuboid standing on `at` (centre of its base), with chamfered edges if bevel > 0.

    sides: other materials for some of BOX_SIDES.
    """
    full = np.asarray(size, np.float32)
    half = full / 2
    bevel = min(bevel, 0.45 * float(full.min()))
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float32)
    # Corner k of the cuboid becomes three vertices, one on each of its faces.
    vertices = np.repeat(signs * (half - bevel), 3, axis=0).reshape(8, 3, 3)
    for axis in range(3):
        vertices[:, axis, axis] = signs[:, axis] * half[axis]
    index = np.arange(24).reshape(8, 3)

    def corner(x: int, y: int, z: int) -> int:
        return 4 * x + 2 * y + z

    flat = [  # seen from outside, starting bottom left, anticlockwise; order of BOX_SIDES
        [corner(0, 1, 0), corner(0, 0, 0), corner(0, 0, 1), corner(0, 1, 1)],
        [corner(1, 0, 0), corner(1, 1, 0), corner(1, 1, 1), corner(1, 0, 1)],
        [corner(0, 0, 0), corner(1, 0, 0), corner(1, 0, 1), corner(0, 0, 1)],
        [corner(1, 1, 0), corner(0, 1, 0), corner(0, 1, 1), corner(1, 1, 1)],
        [corner(0, 1, 0), corner(1, 1, 0), corner(1, 0, 0), corner(0, 0, 0)],
        [corner(0, 0, 1), corner(1, 0, 1), corner(1, 1, 1), corner(0, 1, 1)],
    ]
    faces = [index[ring, side // 2].tolist() for side, ring in enumerate(flat)]
    if bevel > 0:
        for side, ring in enumerate(flat):
            for other in range(side + 1, 6):
                shared = [k for k in ring if k in flat[other]]
                if len(shared) == 2:
                    a, b = shared
                    edge = [index[a, side // 2], index[b, side // 2]]
                    edge += [index[b, other // 2], index[a, other // 2]]
                    faces.append(_outward(edge, vertices.reshape(-1, 3)))
        faces += [_outward(list(index[k]), vertices.reshape(-1, 3)) for k in range(8)]
    sizes = np.array([len(face) for face in faces], np.int32)
    corners = np.concatenate(faces).astype(np.int32)
    points = vertices.reshape(-1, 3)
    metric = project(points, corners, sizes)
    for side in range(6):  # grain along the longer side of each face
        across = [a for a in range(3) if a != side // 2]
        if full[across[1]] > full[across[0]]:
            metric[4 * side : 4 * side + 4] = metric[4 * side : 4 * side + 4, ::-1]
    square = np.float32([(0, 0), (1, 0), (1, 1), (0, 1)])
    uv = np.concatenate([square] * 6 + [np.full((len(corners) - 24, 2), 0.5, np.float32)])
    materials = [material]
    slots = np.zeros(len(faces), np.int32)
    for name, other_material in (sides or {}).items():
        slots[BOX_SIDES.index(name)] = len(materials)
        materials.append(other_material)
    base = np.asarray(at, np.float32) + np.float32([0, 0, half[2]])
    return Mesh(points + base, corners, sizes, uv, metric, slots, tuple(materials))


def _outward(face: list[int], vertices: Floats) -> list[int]:
    """The face, turned so that its normal points away from the origin."""
    a, b, c = vertices[face[:3]]
    outside = np.dot(np.cross(b - a, c - a), vertices[face].mean(0)) > 0
    return [int(k) for k in (face if outside else face[::-1])]


def grid(points: ArrayLike, material: Material, wrap: bool = False) -> Mesh:
    """A sheet through points (R, C, 3); `wrap` closes it in the second direction."""
    array = np.asarray(points, np.float32)
    rows, columns = array.shape[:2]
    if wrap:
        array = np.concatenate([array, array[:, :1]], 1)
        columns += 1
    index = np.arange(rows * columns).reshape(rows, columns)
    faces = np.stack([index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]], -1)
    corners = faces.reshape(-1).astype(np.int32)

    def lengths(axis: int) -> Floats:
        steps = np.linalg.norm(np.diff(array, axis=axis), axis=2)
        first = np.zeros_like(array[..., 0][:1] if axis == 0 else array[..., 0][:, :1])
        return np.concatenate([first, np.cumsum(steps, axis)], axis).astype(np.float32)

    along, around = lengths(0), lengths(1)
    # A common scale around, else patterns on a tapering vessel would shear.
    around = np.linspace(0, 1, columns, dtype=np.float32)[None] * around[:, -1].max()
    around = np.broadcast_to(around, (rows, columns))
    share_along = along / max(float(along.max()), 1e-9)
    share_around = np.broadcast_to(np.linspace(0, 1, columns, dtype=np.float32), (rows, columns))
    uv = np.stack([share_around, share_along], -1).reshape(-1, 2)[corners]
    metric = np.stack([along, around], -1).reshape(-1, 2)[corners]
    count = len(corners) // 4
    return Mesh(
        array.reshape(-1, 3),
        corners,
        np.full(count, 4, np.int32),
        uv.astype(np.float32),
        metric.astype(np.float32),
        np.zeros(count, np.int32),
        (material,),
    )


def lathe(profile: ArrayLike, material: Material, segments: int = 32) -> Mesh:
    """A profile (K, 2) of (radius, height) turned around the z axis."""
    radius, height = np.asarray(profile, np.float32).T
    angle = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    x, y = radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle)
    z = np.repeat(height[:, None], segments, 1)
    turned = grid(np.stack([x, y, z], -1), material, wrap=True)
    # Flat parts (a table top, a lid) are cut from a board: their pattern is straight, not round.
    flat = np.abs(np.diff(height)) < 0.5 * np.abs(np.diff(radius))
    corners = np.repeat(flat, segments * 4)
    metric = np.where(corners[:, None], turned.vertices[turned.corners][:, :2], turned.metric)
    return replace(turned, metric=metric)


def cylinder(radius: float, height: float, material: Material, at: Vector = (0, 0, 0)) -> Mesh:
    """A closed cylinder standing on `at`, its rims slightly rounded."""
    rim = min(0.002, 0.2 * radius, 0.2 * height)
    profile = [(0, 0), (radius - rim, 0), (radius, rim), (radius, height - rim)]
    profile += [(radius - rim, height), (0, height)]
    segments = 24 if radius > 0.02 else 12
    return lathe(profile, material, segments).moved(*at)


def ellipsoid(size: ArrayLike, material: Material, at: Vector = (0, 0, 0)) -> Mesh:
    """An ellipsoid of these three diameters standing on `at`."""
    diameters = np.asarray(size, np.float32)
    angle = np.linspace(0, np.pi, 17)
    ball = lathe(np.stack([np.sin(angle), 1 - np.cos(angle)], 1) / 2, material, 28)
    ball = replace(ball, metric=ball.metric * diameters.mean())
    return ball.transformed(np.diag(diameters)).moved(*at)


def cushion(
    size: ArrayLike, material: Material, at: Vector = (0, 0, 0), soft: float = 0.35
) -> Mesh:
    """A padded cuboid standing on `at`: soft 0 is nearly a box, 1 an ellipsoid."""
    half = np.asarray(size, np.float32) / 2
    polar = np.linspace(0, np.pi, 17)[:, None]
    around = np.linspace(0, 2 * np.pi, 32, endpoint=False)[None]

    def power(value: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sign(value) * np.abs(value) ** max(soft, 0.05)

    x = power(np.sin(polar)) * power(np.cos(around))
    y = power(np.sin(polar)) * power(np.sin(around))
    z = np.broadcast_to(-power(np.cos(polar)), x.shape)
    points = np.stack([x, y, z], -1) * half
    return grid(points, material, wrap=True).moved(at[0], at[1], at[2] + float(half[2]))


def tube(
    path: ArrayLike, radius: float | Sequence[float], material: Material, sides: int = 8
) -> Mesh:
    """A round tube along a path (K, 3); the radius may change along it."""
    points = np.asarray(path, np.float64)
    tangent = np.gradient(points, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True) + 1e-12
    normal = np.cross(tangent, [0.31, 0.2, 0.93])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-12
    other = np.cross(tangent, normal)
    angle = np.linspace(0, 2 * np.pi, sides, endpoint=False)[None, :, None]
    radii = np.broadcast_to(np.asarray(radius, np.float64), len(points))[:, None, None]
    ring = np.cos(angle) * normal[:, None] + np.sin(angle) * other[:, None]
    shell = points[:, None] + radii * ring
    # The ends shrink to a point, which closes the tube without extra faces of another kind.
    closed = np.concatenate(
        [points[None, :1].repeat(sides, 1), shell, points[None, -1:].repeat(sides, 1)]
    )
    return grid(closed, material, wrap=True)
