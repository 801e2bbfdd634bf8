"""Points in space as a colour camera would have measured them: a depth map that is mostly empty."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import Size
from ducos.cameras.calibration import checked_camera, read_extrinsics
from ducos.cameras.intrinsics import Camera, Extrinsics
from ducos.errors import InputError
from ducos.files import DepthMap, Points, given_meaning, read_points, read_text

NEAREST = 1e-3  # metres in front of the camera
LONGEST_LIST = 500_000_000  # bytes of COLMAP's images.txt


@dataclass(frozen=True)
class Pose:
    """World to camera. seen: ids of COLMAP's points that the image shows, or None: not known."""

    extrinsics: Extrinsics
    seen: NDArray[np.int64] | None = None


def points_as_map(
    source: str | Path,
    size: Size,
    camera: Any = None,
    pose: Any = None,
    *,
    unit: str = "auto",
    scale: float | None = None,
    image: object = None,
) -> tuple[DepthMap, str]:
    """The map (H, W) of a file of points in the colour image, and a sentence about it.

    Args:
        size: (height, width) of the colour image. camera: its intrinsics, a file or a Camera.
        pose: of the points' frame in the colour camera, X_camera = R X + t: a file, Extrinsics, or
            COLMAP's images.txt; None: the points are in the camera's own frame.
        unit, scale: of the coordinates; auto takes them for metres.
        image: its name, to find it in COLMAP's images.txt.

    Where several points fall into a pixel the nearest counts.
    """
    points = read_points(source)
    meaning = given_meaning("m" if unit == "auto" and scale is None else unit, scale)
    assert meaning is not None  # since auto was replaced
    if points.pixels:
        columns, rows, depth = points.places.T
        stands = None
    elif camera is None:
        raise InputError(
            f"{source} holds points in space; to see where they lie in the image, give "
            "--rgb-intrinsics, and --pose if they are not in the camera's own frame"
        )
    else:
        seen_by = checked_camera(camera, "colour", size).scaled(size[1], size[0])
        stands = read_pose(pose, image)
        points = only_seen(points, stands)
        columns, rows, depth = seen(points, seen_by, stands.extrinsics)
    plane, kept = drawn(columns, rows, depth * meaning.scale, size)
    if not kept:
        hint = "check unit, size and columns"
        if stands is not None:
            there = drawn(*seen(points, seen_by, stands.extrinsics.inverted()), size)[1]
            hint = "check the pose and the unit" + (
                f'; with the pose inverted {there} do: add "direction": "colour_to_depth" to it, '
                "or give its inverse" if there else ""
            )  # fmt: skip
        raise InputError(
            f"none of the {len(points)} points of {source} falls into the {size[1]}×{size[0]} "
            f"image: {hint}"
        )
    words = (
        meaning.words if unit != "auto" or scale is not None else "metres, as nothing else was said"
    )
    note = f"unit of the points: {words}"
    low = DepthMap(plane, plane > 0, meaning.unit, meaning.scale, note)
    share = 100 * float(low.valid.mean())
    return low, (
        f"{kept} of {len(points)} points fall into the image, on {share:.2g} % of its pixels"
    )


def seen(points: Points, camera: Camera, pose: Extrinsics) -> tuple[Any, Any, Any]:
    """Columns, rows and depths of the points in front of the camera, in the points' unit."""
    places = pose.apply(points.places)
    places = places[places[:, 2] > NEAREST]
    # A lens's polynomial folds far outside the picture: what is not near it is not asked.
    wide = np.abs(places[:, :2] / places[:, 2:]).max(1, initial=0) < 1e3
    wide &= np.hypot(*(places[:, :2] / places[:, 2:]).T) < 1.5 * widest(camera)
    places = places[wide]
    return (*camera.pixels(places), places[:, 2])


def widest(camera: Camera) -> float:
    """Of the image's corners: how far from the axis they look, at z = 1."""
    corners = camera.directions([0, 0, camera.width, camera.width],
                                [0, camera.height, 0, camera.height])  # fmt: skip
    return float(np.hypot(corners[:, 0], corners[:, 1]).max())


def drawn(columns: Any, rows: Any, depth: Any, size: Size) -> tuple[NDArray[np.float32], int]:
    """The map (H, W) of points at pixel coordinates, the nearest of a pixel; and how many fell."""
    H, W = size
    column, row = np.rint(columns), np.rint(rows)
    inside = (column >= 0) & (column < W) & (row >= 0) & (row < H) & (depth > 0)
    plane = np.full(H * W, np.inf)
    place = row[inside].astype(np.int64) * W + column[inside].astype(np.int64)
    np.minimum.at(plane, place, depth[inside])
    filled = np.where(np.isfinite(plane) & (plane < 6e4), plane, 0).astype(np.float32)
    return filled.reshape(size), int(inside.sum()) if filled.any() else 0


def only_seen(points: Points, pose: Pose) -> Points:
    """Of COLMAP's points those that the image shows; others may be hidden behind walls."""
    if pose.seen is None or points.ids is None:
        return points
    shown = np.isin(points.ids, pose.seen)
    return Points(points.places[shown], ids=points.ids[shown]) if shown.any() else points


def read_pose(pose: Any, image: object = None) -> Pose:
    """World to camera, of a file as `read_extrinsics` takes, or of COLMAP's images.txt."""
    if pose is None:
        return Pose(Extrinsics())
    if isinstance(pose, str | Path) and Path(pose).name.lower() == "images.txt":
        return colmap_pose(Path(pose), image)
    return Pose(read_extrinsics(pose))


def colmap_pose(source: Path, image: object) -> Pose:
    """Pose of the image of this name: IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME, and a line of
    X Y POINT3D_ID below it."""
    from scipy.spatial.transform import Rotation

    text = read_text(source, LONGEST_LIST)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    name = Path(str(image)).name
    named = re.compile(r"^\d+(\s+\S+){7}\s+\d+\s+(.*/)?" + re.escape(name) + r"\s*$")
    number = next((n for n, line in enumerate(lines) if named.match(line)), None)
    if number is None:
        raise InputError(f"{source} has no line for {name}; is it the image's name there?")
    try:
        numbers = np.array(lines[number].split()[1:8], np.float64)
        turn = Rotation.from_quat(numbers[[1, 2, 3, 0]]).as_matrix()
        below = lines[number + 1].split() if number + 1 < len(lines) else []
        numbered = np.array(below[2::3], np.float64)
        if not (np.abs(numbered) < 2**62).all():
            raise ValueError("a POINT3D_ID is no whole number")
        ids = numbered.astype(np.int64)
    except ValueError as problem:
        raise InputError(f"{source}: the lines of {name} are damaged: {problem}") from None
    if not (
        np.isfinite(numbers).all() and math.isclose(np.linalg.norm(numbers[:4]), 1, rel_tol=0.01)
    ):
        raise InputError(f"{source}: the pose of {name} is none; expected QW QX QY QZ TX TY TZ")
    return Pose(
        Extrinsics(turn, numbers[4:], "pose of COLMAP"), ids[ids >= 0] if len(ids) else None
    )
