"""Depth brought into the colour camera: every depth pixel a patch in space, the nearest wins."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.arrays import Floats, Mask, Size
from ducos.cameras.calibration import checked_camera, read_extrinsics
from ducos.cameras.intrinsics import Camera, Doubles, Extrinsics
from ducos.errors import InputError
from ducos.files import DepthMap

LARGEST_BOX = 32  # pixels: larger triangles are drawn one by one
JUMP = 0.05  # of the depth between neighbouring pixels: beyond it two surfaces
OVERLAP = 0.55  # half a pixel and a little: patches of a curved surface leave no cracks


def register(
    depth: Floats,
    valid: Mask,
    depth_camera: Camera,
    rgb_camera: Camera,
    extrinsics: Extrinsics,
    size: Size | None = None,
) -> tuple[Floats, Mask, Mask]:
    """Depth (h, w) in metres as the colour camera would have measured it.

    Every depth pixel is a small flat patch in space, as large as the pixel and slanted like its
    surroundings; the patches are drawn into the colour camera, the nearest wins (z-buffer). On
    planes the result is exact. The grid is the colour camera's field of view at the depth's
    resolution, or `size`.

    Args:
        depth, valid: (h, w) metres and mask. depth_camera: rescaled to (h, w) if it states
            another size. rgb_camera: of the colour image; without distortion, or with.
        size: (height, width) of the result.

    Returns:
        depth (h', w') float32, 0 where nothing was seen; valid (h', w');
        occluded (h', w'): seen by the colour camera, but hidden from the depth camera behind
        something nearer. Other invalid pixels lie outside its view or were holes before.
    """
    h, w = depth.shape
    source = depth_camera.scaled(w, h)
    grid_size = size or registered_size(source, rgb_camera)
    target = rgb_camera.scaled(grid_size[1], grid_size[0])
    known = valid & (depth > 0)
    z = np.where(known, depth, 1.0).astype(np.float64)
    slope_u, slope_v = (_slope(1 / z, known, axis) for axis in (1, 0))
    v, u = np.nonzero(known)
    inverse = 1 / z[v, u]
    corners = []
    for side_v, side_u in ((-OVERLAP, -OVERLAP), (-OVERLAP, OVERLAP), (OVERLAP, OVERLAP),
                           (OVERLAP, -OVERLAP)):  # fmt: skip
        at_corner = inverse + side_u * slope_u[v, u] + side_v * slope_v[v, u]
        corners.append(_seen(source, target, extrinsics, u + side_u, v + side_v, at_corner))
    patches = np.stack(corners, 1)  # (N, 4, 3): column, row, 1/z in the colour camera
    nearest = _draw(patches, grid_size)
    drawn = nearest > 0

    sheets = _torn_quads(z, known)
    if len(sheets):
        sheet_v, sheet_u = sheets // w, sheets % w  # (M, 4)
        seen = _seen(source, target, extrinsics, sheet_u, sheet_v, 1 / z[sheet_v, sheet_u])
        occluded = (_draw(seen, grid_size) > 0) & ~drawn
    else:
        occluded = np.zeros_like(drawn)
    result = np.where(drawn, 1 / np.where(drawn, nearest, 1.0), 0).astype(np.float32)
    return result, drawn, occluded


def registered(
    low: DepthMap,
    image_size: Size,
    depth_intrinsics: str | Path | Camera,
    rgb_intrinsics: str | Path | Camera,
    extrinsics: str | Path | Extrinsics,
) -> tuple[DepthMap, str]:
    """A depth map brought into the colour camera by three JSON files, and a sentence about it.

    Cameras in memory do as well as files.

    Args:
        image_size: (height, width) of the colour image.
    """
    if low.unit == "relative":
        raise InputError(
            "relative depth cannot be registered: it has no metres; pass unit or scale"
        )
    depth_camera = checked_camera(depth_intrinsics, "depth", low.depth.shape)
    rgb_camera = checked_camera(rgb_intrinsics, "colour", image_size)
    pose = read_extrinsics(extrinsics)
    depth, valid, occluded = register(low.depth, low.valid, depth_camera, rgb_camera, pose)
    if not valid.any():
        raise InputError(
            "no depth pixel falls into the colour image: check the extrinsics' direction and unit "
            f"({pose.note})"
        )
    height, width = depth.shape
    sentence = (
        f"registered to {width}×{height}: {100 * valid.mean():.1f} % seen, "
        f"{100 * occluded.mean():.1f} % hidden from the depth camera; {pose.note}"
    )
    confidence = low.confidence
    if confidence is not None:
        confidence = carried(confidence, depth, valid, depth_camera, rgb_camera, pose)
    return replace(low, depth=depth, valid=valid, confidence=confidence), sentence


def carried(
    values: Floats,
    depth: Floats,
    valid: Mask,
    depth_camera: Camera,
    rgb_camera: Camera,
    extrinsics: Extrinsics,
) -> Floats:
    """Values (h, w) of the depth camera's pixels where a registered map (h', w') sees them."""
    (h, w), (height, width) = values.shape, depth.shape
    v, u = np.nonzero(valid)
    points = rgb_camera.scaled(width, height).directions(u, v) * depth[v, u][:, None]
    columns, rows = depth_camera.scaled(w, h).pixels(extrinsics.inverted().apply(points))
    result = np.zeros(depth.shape, np.float32)
    row, column = rows.round().astype(int), columns.round().astype(int)
    result[v, u] = values[row.clip(0, h - 1), column.clip(0, w - 1)]
    return result


def registered_size(depth_camera: Camera, rgb_camera: Camera) -> Size:
    """(height, width) of the colour camera's field of view at the depth camera's resolution."""
    shrink = min(1.0, math.sqrt(
        depth_camera.fx * depth_camera.fy / (rgb_camera.fx * rgb_camera.fy)
    ))  # fmt: skip
    return max(1, round(rgb_camera.height * shrink)), max(1, round(rgb_camera.width * shrink))


def _slope(inverse: Doubles, known: Mask, axis: int) -> Doubles:
    """Change of the inverse depth per pixel: the smaller of both sides, 0 if they disagree.

    On a plane both are equal. A side across a jump or a hole has no say.
    """
    line, mask = np.moveaxis(inverse, axis, 0), np.moveaxis(known, axis, 0)
    step = np.diff(line, axis=0)
    one_surface = mask[1:] & mask[:-1] & (np.abs(step) < JUMP * np.minimum(line[1:], line[:-1]))
    step = np.where(one_surface, step, np.nan)
    rim = np.full((1, *line.shape[1:]), np.nan)
    before, after = np.concatenate([rim, step]), np.concatenate([step, rim])
    before, after = (
        np.where(np.isnan(before), after, before),
        np.where(np.isnan(after), before, after),
    )
    smaller = np.where(np.abs(before) < np.abs(after), before, after)
    return np.moveaxis(np.where(before * after > 0, smaller, 0.0), 0, axis)


def _torn_quads(z: Doubles, known: Mask) -> NDArray[np.int64]:
    """Squares of four neighbouring valid pixels across a jump: (M, 4) flat indices, in a ring.

    Stretched between the surfaces they cover, seen from another place, what the nearer one hid.
    """
    index = np.arange(z.size).reshape(z.shape)
    ring = np.stack([index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]], -1)
    ring = ring.reshape(-1, 4)
    ring = ring[known.ravel()[ring].all(1)]
    around = z.ravel()[ring]
    return ring[around.max(1) > (1 + JUMP) * around.min(1)]


def _seen(
    source: Camera,
    target: Camera,
    extrinsics: Extrinsics,
    u: ArrayLike,
    v: ArrayLike,
    inverse: Doubles,
) -> Doubles:
    """(..., 3): column, row and inverse depth in the target camera; NaN behind it."""
    points = extrinsics.apply(source.directions(u, v) / inverse[..., None])
    in_front = points[..., 2] > 1e-6
    points = np.where(in_front[..., None], points, 1.0)
    column, row = target.pixels(points)
    return np.where(in_front[..., None], np.stack([column, row, 1 / points[..., 2]], -1), np.nan)


def _draw(quads: Doubles, size: Size) -> Doubles:
    """Largest inverse depth (height, width) of quads (N, 4, 3) at the pixel centres; 0 for none.

    Each is two triangles. Inverse depth is linear over a triangle's picture, so interpolating it
    is exact. Triangles of similar extent are drawn together, one pixel of their boxes at a time.
    """
    height, width = size
    surface = np.zeros(height * width)
    triangles = np.concatenate([quads[:, (0, 1, 2)], quads[:, (0, 2, 3)]])
    triangles = triangles[np.isfinite(triangles).all((1, 2))]
    low = np.ceil(triangles[..., :2].min(1)).clip(0)
    high = np.floor(triangles[..., :2].max(1))
    high = np.minimum(high, (width - 1, height - 1))
    extent = (high - low).max(1) + 1
    inside = (high >= low).all(1)
    triangles, low, high, extent = (x[inside] for x in (triangles, low, high, extent))
    side = 1
    while len(triangles) and side <= LARGEST_BOX:
        chosen = extent <= side
        boxes = triangles[chosen], low[chosen].astype(np.int64)
        for down in range(side):
            for across in range(side):
                _draw_pixels(surface, boxes[0], boxes[1] + (across, down), size)
        triangles, low, high, extent = (x[~chosen] for x in (triangles, low, high, extent))
        side *= 2
    for corners, first, last in zip(triangles, low.astype(np.int64), high.astype(np.int64)):
        columns, rows = np.meshgrid(*(np.arange(i, j + 1) for i, j in zip(first, last)))
        pixels = np.stack([columns.ravel(), rows.ravel()], 1)
        _draw_pixels(surface, np.broadcast_to(corners, (len(pixels), 3, 3)), pixels, size)
    return surface.reshape(size)


def _draw_pixels(
    surface: Doubles, triangles: Doubles, pixels: NDArray[np.int64], size: Size
) -> None:
    """Draw one pixel (N, 2: column, row) of each triangle (N, 3, 3), where it lies inside."""
    height, width = size
    (ax, ay, a), (bx, by, b), (cx, cy, c) = (triangles[:, i].T for i in range(3))
    column, row = pixels.T
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    flat = np.abs(area) < 1e-12
    area = np.where(flat, 1.0, area)
    of_b = ((column - ax) * (cy - ay) - (row - ay) * (cx - ax)) / area
    of_c = ((bx - ax) * (row - ay) - (by - ay) * (column - ax)) / area
    hit = (of_b >= -1e-9) & (of_c >= -1e-9) & (of_b + of_c <= 1 + 1e-9) & ~flat
    hit &= (column < width) & (row < height)
    value = a + of_b * (b - a) + of_c * (c - a)
    np.maximum.at(surface, row[hit] * width + column[hit], value[hit])
