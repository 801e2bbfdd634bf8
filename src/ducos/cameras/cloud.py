"""Depth in space: coloured point clouds (PLY), meshes (GLB), and an image to judge them by.

Points are in the colour camera's frame: x right, y down, z forward, metres. GLB files follow glTF
instead (y up, z towards the viewer), so that viewers show them upright.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import Bytes, Floats, Mask
from ducos.cameras.flying import STEEPEST, flying_pixels, jump_tolerance
from ducos.cameras.intrinsics import Camera, Extrinsics
from ducos.cameras.outputs import check_cloud_output, check_mesh_output
from ducos.errors import InputError
from ducos.files import MADE_BY, atomic_write


@dataclass
class Cloud:
    """points (N, 3) float32 metres, colours (N, 3) uint8 RGB."""

    points: Floats
    colours: Bytes

    def __len__(self) -> int:
        return len(self.points)

    def save(self, path: str | Path) -> None:
        """Write it as .ply."""
        write_ply(path, self)


@dataclass
class Mesh:
    """vertices (N, 3) float32 metres, triangles (M, 3) of them, colours (N, 3) uint8."""

    vertices: Floats
    triangles: NDArray[np.int64]
    colours: Bytes

    def save(self, path: str | Path) -> None:
        """Write it as .glb."""
        write_glb(path, self)


def point_cloud(
    depth: Floats,
    valid: Mask,
    rgb: Floats,
    camera: Camera,
    *,
    sigma: Floats | None = None,
    measured: Mask | None = None,
    drop_flying: bool = True,
) -> Cloud:
    """The valid pixels of a depth map in space, each with its colour.

    Args:
        depth, valid: (H, W), metres. rgb: (H, W, 3) in [0, 1].
        camera: of the colour image; rescaled if it states another size.
        sigma: (H, W) metres, if the model has one; measured: (H, W), pixels that are no guess in a
            hole. Both help to tell which pixels fly.
        drop_flying: leave out the pixels of `flying_pixels`.
    """
    _check_shapes(depth, valid, rgb)
    camera = camera.scaled(depth.shape[1], depth.shape[0])
    kept = valid & (depth > 0)
    if drop_flying:
        kept &= ~flying_pixels(depth, kept, camera, sigma, measured)
    v, u = np.nonzero(kept)
    points = camera.directions(u, v) * depth[v, u][:, None].astype(np.float64)
    return Cloud(points.astype(np.float32), _as_bytes(rgb[v, u]))


def reprojected(cloud: Cloud, camera: Camera) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pixel coordinates (N, 2: column, row) and depth (N,) of a cloud: the way back."""
    points = cloud.points.astype(np.float64)
    return np.stack(camera.pixels(points), 1), points[:, 2]


# ------------------------------------------------------------------------------------------ files


def write_ply(path: str | Path, cloud: Cloud) -> None:
    """Binary PLY: float x y z in metres, uchar red green blue."""
    check_cloud_output(path)
    if not len(cloud):
        raise InputError(f"{path} was not written: the cloud has no point")
    vertex = np.empty(len(cloud), np.dtype([("xyz", "<f4", 3), ("rgb", "u1", 3)]))
    vertex["xyz"], vertex["rgb"] = cloud.points, cloud.colours
    header = "\n".join(
        [
            "ply",
            "format binary_little_endian 1.0",
            f"comment {MADE_BY}",
            "comment x right, y down, z forward, metres",
            f"element vertex {len(cloud)}",
            *(f"property float {axis}" for axis in "xyz"),
            *(f"property uchar {name}" for name in ("red", "green", "blue")),
            "end_header\n",
        ]
    )
    with atomic_write(path) as temporary:
        Path(temporary).write_bytes(header.encode("ascii") + vertex.tobytes())


def mesh(
    depth: Floats,
    valid: Mask,
    rgb: Floats,
    camera: Camera,
    *,
    sigma: Floats | None = None,
    measured: Mask | None = None,
    drop_flying: bool = True,
    steepest: float = STEEPEST,
) -> Mesh:
    """The surface through the valid pixels of a depth map; no triangle spans a depth jump.

    Vertices are in the camera's frame; triangles face the camera.
    """
    _check_shapes(depth, valid, rgb)
    H, W = depth.shape
    camera = camera.scaled(W, H)
    kept = valid & (depth > 0)
    if drop_flying:
        kept &= ~flying_pixels(depth, kept, camera, sigma, measured, steepest)
    index = np.arange(H * W).reshape(H, W)
    a, b, c, d = index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]
    corners = np.concatenate(
        [np.stack([a, d, b], -1).reshape(-1, 3), np.stack([b, d, c], -1).reshape(-1, 3)]
    )
    corners = corners[kept.ravel()[corners].all(1)]
    z = depth.ravel()[corners]
    tolerance = jump_tolerance(camera, steepest)
    # The longest side of a triangle is a diagonal.
    whole = z.max(1) - z.min(1) <= math.sqrt(2) * tolerance * z.min(1)
    used, triangles = np.unique(corners[whole], return_inverse=True)
    v, u = used // W, used % W
    vertices = camera.directions(u, v) * depth[v, u][:, None].astype(np.float64)
    return Mesh(vertices.astype(np.float32), triangles.reshape(-1, 3), _as_bytes(rgb[v, u]))


def write_glb(path: str | Path, mesh: Mesh) -> None:
    """Write a coloured mesh as binary glTF, whose y points up and z backwards."""
    check_mesh_output(path)
    import trimesh

    if not len(mesh.triangles):
        raise InputError(f"{path} was not written: no two neighbouring pixels form a surface")
    upright = mesh.vertices * np.array([1, -1, -1], np.float32)
    opaque = np.column_stack([mesh.colours, np.full(len(mesh.colours), 255, np.uint8)])
    surface = trimesh.Trimesh(upright, mesh.triangles, vertex_colors=opaque, process=False)

    def remark(tree: dict[str, Any]) -> None:
        tree["asset"]["extras"] = {"remark": MADE_BY}

    with atomic_write(path) as temporary:
        surface.export(temporary, file_type="glb", tree_postprocessor=remark)


def _as_bytes(colours: Floats) -> Bytes:
    return (colours * 255).round().clip(0, 255).astype(np.uint8)


def _check_shapes(depth: Floats, valid: Mask, rgb: Floats) -> None:
    if depth.shape != valid.shape or rgb.shape != (*depth.shape, 3):
        raise InputError(
            f"depth {depth.shape}, mask {valid.shape} and colours {rgb.shape} must have one size"
        )


# ---------------------------------------------------------------------------------------- picture

BACKGROUND = 24


def orbit(cloud: Cloud, yaw: float, pitch: float) -> Extrinsics:
    """The camera swung around the middle of the cloud, and a little back.

    Degrees: positive yaw takes it to the left, positive pitch up.
    """
    pivot = np.median(cloud.points, axis=0).astype(np.float64)
    a, b = math.radians(yaw), math.radians(pitch)
    turn_yaw = np.array([[math.cos(a), 0, -math.sin(a)], [0, 1, 0], [math.sin(a), 0, math.cos(a)]])
    turn_pitch = np.array(
        [[1, 0, 0], [0, math.cos(b), -math.sin(b)], [0, math.sin(b), math.cos(b)]]
    )
    rotation = turn_pitch @ turn_yaw
    back = np.array([0, 0, 0.25 * pivot[2]])
    return Extrinsics(rotation, pivot - rotation @ pivot + back)


def render(cloud: Cloud, camera: Camera, pose: Extrinsics) -> Bytes:
    """Splats of one to three pixels, nearest on top; (height, width, 3) uint8."""
    points = pose.apply(cloud.points.astype(np.float64))
    front = points[:, 2] > 1e-3
    points, colours = points[front], cloud.colours[front]
    column, row = camera.pixels(points)
    order = np.argsort(-points[:, 2], kind="stable")  # far first: later writes win
    column, row = np.rint(column[order]), np.rint(row[order])
    # Enough pixels per point that a surface of the original density stays closed.
    reach = 1 if len(cloud) < 2 * camera.width * camera.height else 0
    picture = np.full((camera.height, camera.width, 3), BACKGROUND, np.uint8)
    depth = np.full((camera.height, camera.width), np.inf)
    colours, distance = colours[order], points[order, 2]
    for down in range(-reach, reach + 1):
        for across in range(-reach, reach + 1):
            x, y = column + across, row + down
            inside = (x >= 0) & (x < camera.width) & (y >= 0) & (y < camera.height)
            flat = (y[inside] * camera.width + x[inside]).astype(np.int64)
            layer_depth = np.full(depth.size, np.inf)
            layer_depth[flat] = distance[inside]
            layer = picture.reshape(-1, 3).copy()
            layer[flat] = colours[inside]
            # Rims of splats yield to anything about as near, so that centres keep their colour.
            bias = 1.0 if not (down or across) else 1.01
            nearer = layer_depth * bias < depth.ravel()
            picture.reshape(-1, 3)[nearer] = layer[nearer]
            depth.ravel()[nearer] = layer_depth[nearer] * bias
    return picture
