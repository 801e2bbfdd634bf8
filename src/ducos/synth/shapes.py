"""The handful of forms everything in a scene is built from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.synth.materials import Material, Random
from ducos.synth.mesh import Floats, Ints, Mesh, Vector, project

BOX_SIDES = ("left", "right", "front", "back", "bottom", "top")  # -x +x -y +y -z +z


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
    half: Floats = (full / 2).astype(np.float32)
    bevel = min(bevel, 0.45 * float(full.min()))
    points = _box_points(half, bevel)
    corners, sizes = _box_faces(bevel > 0)
    metric = project(points, corners, sizes)
    for side in range(6):  # grain along the longer side of each face
        across = [a for a in range(3) if a != side // 2]
        if full[across[1]] > full[across[0]]:
            metric[4 * side : 4 * side + 4] = metric[4 * side : 4 * side + 4, ::-1]
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32)
    uv = np.concatenate([square] * 6 + [np.full((len(corners) - 24, 2), 0.5, np.float32)])
    materials = [material]
    slots = np.zeros(len(sizes), np.int32)
    for name, other_material in (sides or {}).items():
        slots[BOX_SIDES.index(name)] = len(materials)
        materials.append(other_material)
    base = np.asarray(at, np.float32) + np.array([0, 0, half[2]], np.float32)
    return Mesh(points + base, corners, sizes, uv, metric, slots, tuple(materials))


def _box_points(half: Floats, bevel: float) -> Floats:
    """(24, 3): each corner of the cuboid three times, once on each of its faces."""
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float32)
    points = np.repeat(signs * (half - bevel), 3, axis=0).astype(np.float32).reshape(8, 3, 3)
    for axis in range(3):
        points[:, axis, axis] = signs[:, axis] * half[axis]
    return points.reshape(24, 3)


@cache
def _box_faces(bevelled: bool) -> tuple[Ints, Ints]:
    """Corners and face sizes: the six sides, then 12 edges and 8 corners if bevelled."""
    index = np.arange(24).reshape(8, 3)
    rings = [  # corner 4x + 2y + z; seen from outside, from bottom left, anticlockwise
        [2, 0, 1, 3],
        [4, 6, 7, 5],
        [0, 4, 5, 1],
        [6, 2, 3, 7],
        [2, 6, 4, 0],
        [1, 5, 7, 3],
    ]
    faces: list[list[int]] = [index[ring, k // 2].tolist() for k, ring in enumerate(rings)]
    if bevelled:
        points = _box_points(np.full(3, 0.5, np.float32), 0.1)
        for k, ring in enumerate(rings):
            for other in range(k + 1, 6):
                shared = [corner for corner in ring if corner in rings[other]]
                if len(shared) == 2:
                    a, b = index[shared]
                    edge = [a[k // 2], b[k // 2], b[other // 2], a[other // 2]]
                    faces.append(_outward(edge, points))
        faces += [_outward(list(corner), points) for corner in index]
    sizes = np.array([len(face) for face in faces], np.int32)
    return np.concatenate(faces).astype(np.int32), sizes


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


def smooth_path(rng: Random, start: Floats, end: Floats, sway: float, count: int = 24) -> Floats:
    """(count, 3) points from start to end, swaying sideways by about `sway` metres."""
    share = np.linspace(0, 1, count)[:, None]
    path = start * (1 - share) + end * share
    for wave in (1, 2, 3):
        path = path + np.sin(np.pi * wave * share) * rng.normal(0, sway / wave, 3)
    return path.astype(np.float32)
