"""Cameras: intrinsics and extrinsics as SDKs write them, and depth brought into the colour camera.

Conventions, the same everywhere in the project (`docs/cameras.md` shows them at work):

- x to the right, y down, z forward, metres; depth is z (planar), not the length of the ray;
- the centre of the top-left pixel is (0, 0), as in OpenCV, RealSense, Azure Kinect and ARKit. With
  it the project's pixel-centre rule turns a resize by s into cx' = (cx + 0.5) s - 0.5;
- extrinsics map points from the depth camera to the colour camera: X_colour = R X_depth + t.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.errors import InputError
from ducos.io import DepthMap

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Size = tuple[int, int]


@dataclass(frozen=True)
class Camera:
    """A pinhole camera with OpenCV's distortion.

    width, height: pixels. fx, fy: focal lengths in pixels. cx, cy: principal point, where (0, 0) is
    the centre of the top-left pixel. distortion: k1 k2 p1 p2 [k3 [k4 k5 k6]], empty for none.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.fx, self.fy, self.cx, self.cy, *self.distortion)
        if min(self.width, self.height) < 1 or not all(map(math.isfinite, numbers)):
            raise InputError(f"these are no intrinsics: {self}")
        if min(self.fx, self.fy) <= 0:
            raise InputError(f"focal lengths are positive pixels, got fx {self.fx}, fy {self.fy}")
        if len(self.distortion) not in (0, 4, 5, 8):
            raise InputError(
                f"distortion has 4, 5 or 8 coefficients (k1 k2 p1 p2 k3 k4 k5 k6), got "
                f"{len(self.distortion)}"
            )

    @staticmethod
    def from_field_of_view(width: int, height: int, degrees: float) -> "Camera":
        """A camera with this horizontal angle of view, looking through the picture's centre."""
        if not 0 < degrees < 180:
            raise InputError(f"the field of view is an angle between 0 and 180°, got {degrees:g}")
        focal = 0.5 * width / math.tan(math.radians(degrees) / 2)
        return Camera(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)

    def scaled(self, width: int, height: int) -> "Camera":
        """The same camera with its picture resized to width × height."""
        across, down = width / self.width, height / self.height
        return replace(
            self,
            width=width,
            height=height,
            fx=self.fx * across,
            fy=self.fy * down,
            cx=(self.cx + 0.5) * across - 0.5,
            cy=(self.cy + 0.5) * down - 0.5,
        )

    @property
    def undistorted(self) -> bool:
        return not any(self.distortion)

    def directions(self, u: ArrayLike, v: ArrayLike) -> Doubles:
        """(..., 3) points at z = 1 seen at pixel coordinates u, v."""
        u, v = np.asarray(u, np.float64), np.asarray(v, np.float64)
        x, y = (u - self.cx) / self.fx, (v - self.cy) / self.fy
        if not self.undistorted:
            seen_x, seen_y = x, y
            for _ in range(40):  # fixed point; the distortion of a depth camera is mild
                bent_x, bent_y = self._bent(x, y)
                x, y = x + seen_x - bent_x, y + seen_y - bent_y
        return np.stack([x, y, np.ones_like(x)], -1)

    def pixels(self, points: Doubles) -> tuple[Doubles, Doubles]:
        """Pixel coordinates u, v (...) of points (..., 3) in front of the camera."""
        x, y = points[..., 0] / points[..., 2], points[..., 1] / points[..., 2]
        if not self.undistorted:
            x, y = self._bent(x, y)
        return self.fx * x + self.cx, self.fy * y + self.cy

    def _bent(self, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
        """Where the lens puts a point that a pinhole would show at x, y (at z = 1)."""
        k1, k2, p1, p2, k3, k4, k5, k6 = (*self.distortion, *(0.0,) * 8)[:8]
        r = x * x + y * y
        radial = (1 + r * (k1 + r * (k2 + r * k3))) / (1 + r * (k4 + r * (k5 + r * k6)))
        return (
            x * radial + 2 * p1 * x * y + p2 * (r + 2 * x * x),
            y * radial + p1 * (r + 2 * y * y) + 2 * p2 * x * y,
        )


@dataclass(frozen=True)
class Extrinsics:
    """X_colour = rotation @ X_depth + translation, in metres. note: how the file was read."""

    rotation: Doubles = field(default_factory=lambda: np.eye(3))
    translation: Doubles = field(default_factory=lambda: np.zeros(3))
    note: str = "the two cameras are one"

    def __post_init__(self) -> None:
        turn, shift = np.asarray(self.rotation, float), np.asarray(self.translation, float)
        if turn.shape != (3, 3) or shift.shape != (3,):
            raise InputError(
                f"extrinsics are a 3×3 rotation and 3 numbers, got {turn.shape} and {shift.shape}"
            )
        if not (np.isfinite(turn).all() and np.isfinite(shift).all()):
            raise InputError("the extrinsics hold NaN or infinity")
        if np.abs(turn @ turn.T - np.eye(3)).max() > 1e-3 or np.linalg.det(turn) < 0:
            raise InputError(
                "the rotation of the extrinsics is no rotation matrix; check its order"
            )
        object.__setattr__(self, "rotation", turn)
        object.__setattr__(self, "translation", shift)

    def inverted(self) -> "Extrinsics":
        return Extrinsics(self.rotation.T, -self.rotation.T @ self.translation, self.note)

    def apply(self, points: Doubles) -> Doubles:
        """Points (..., 3) of the depth camera in the colour camera."""
        return points @ self.rotation.T + self.translation


# ---------------------------------------------------------------------------------- JSON of SDKs

_NAMES = {
    "width": ("width", "w", "image_width"),
    "height": ("height", "h", "image_height"),
    "fx": ("fx", "fl_x"),
    "fy": ("fy", "fl_y"),
    "cx": ("cx", "ppx"),
    "cy": ("cy", "ppy"),
}
_MATRICES = ("K", "k", "intrinsic_matrix", "camera_matrix", "intrinsics", "intrinsic", "matrix")
_COEFFICIENTS = ("distortion", "coeffs", "D", "d", "distortion_coefficients", "disto")
_PARTS = {
    "depth": ("depth", "depth_camera", "depth_intrinsics", "depth_intrinsic"),
    "colour": ("colour", "color", "rgb", "color_camera", "rgb_intrinsics", "color_intrinsics",
               "rgb_intrinsic"),
}  # fmt: skip


def read_camera(path: str | Path, which: str, size: Size | None = None) -> Camera:
    """Intrinsics of a JSON file, see docs/cameras.md.

    Args:
        which: "depth" or "colour": the part to take of a file that holds both.
        size: (height, width) of the picture at hand, for files that do not state one. A stated
            size is kept; `Camera.scaled` brings it to another.
    """
    content = _read_json(path)
    part = next((content[name] for name in _PARTS[which] if _is_table(content.get(name))), content)
    return as_camera(part, size, name=str(path))


def as_camera(content: Mapping[str, Any], size: Size | None = None, name: str = "camera") -> Camera:
    """Camera of a parsed JSON object, as written by RealSense, Orbbec, ROS, Open3D and others."""
    table = dict(content)
    for wrapper in ("intrinsics", "intrinsic", "parameters", "param"):
        if _is_table(table.get(wrapper)):
            table = {**table, **table[wrapper]}
    for wrapper in ("image_size", "resolution"):
        if _is_table(table.get(wrapper)):
            table = {**table, **table[wrapper]}
    model = str(table.get("model", table.get("distortion_model", ""))).lower()
    coefficients = _distortion(table, name)
    if any(coefficients) and any(
        word in model for word in ("inverse", "fisheye", "kannala", "equidistant", "ftheta")
    ):
        raise InputError(
            f"{name} has the distortion model {model!r}; only OpenCV's (Brown-Conrady) is known, so"
            " undistort the picture first and set its coefficients to 0"
        )
    numbers = {key: _first_number(table, names, name) for key, names in _NAMES.items()}
    matrix = next((table[key] for key in _MATRICES if _is_matrix(table.get(key))), None)
    if matrix is not None:
        numbers.update(_of_matrix(matrix, name))
    if size is not None:
        numbers["height"] = numbers["height"] or float(size[0])
        numbers["width"] = numbers["width"] or float(size[1])
    missing = [key for key, value in numbers.items() if value is None]
    if missing:
        raise InputError(
            f"{name} does not state {', '.join(missing)}; intrinsics need width, height, fx, fy, "
            "cx, cy or a 3×3 matrix K"
        )
    values = {key: float(value) for key, value in numbers.items() if value is not None}
    centre = _number(table.get("pixel_centre", 0), "pixel_centre", name)
    if centre not in (0, 0.5):
        raise InputError(f"{name}: pixel_centre is 0 (usual) or 0.5 (COLMAP), got {centre:g}")
    return Camera(
        int(values["width"]), int(values["height"]), values["fx"], values["fy"],
        values["cx"] - centre, values["cy"] - centre, coefficients,
    )  # fmt: skip


def read_extrinsics(path: str | Path) -> Extrinsics:
    """Depth-to-colour transform of a JSON file, see docs/cameras.md."""
    return as_extrinsics(_read_json(path), str(path))


def as_extrinsics(content: Mapping[str, Any], name: str = "extrinsics") -> Extrinsics:
    """Extrinsics of a parsed JSON object.

    A nested 3×3 is read by rows. Nine numbers in a row are by columns if the translation is in
    metres (RealSense) and by rows if in millimetres (Azure Kinect, Orbbec); `order` and `unit` in
    the file decide otherwise. Translations longer than 1 are taken for millimetres.
    """
    table = dict(content)
    for key in ("extrinsics", "extrinsic", "depth_to_color", "depth_to_colour", "depth_to_rgb"):
        if _is_table(table.get(key)):
            table = {**table, **table[key]}
    for key in ("matrix", "transform", "transformation", "extrinsics", "extrinsic", "T",
                "depth_to_color", "depth_to_colour"):  # fmt: skip
        if _count(table.get(key)) in (12, 16):
            square = _four_by_four(table[key], name)
            table = {**table, "rotation": square[:3, :3].tolist(), "translation": square[:3, 3]}
            break
    rotation = next((table[key] for key in ("rotation", "rot", "R") if key in table), None)
    shift = next((table[key] for key in ("translation", "trans", "t") if key in table), None)
    if rotation is None or shift is None:
        raise InputError(f"{name} has no rotation and translation, nor a 4×4 matrix")
    turn, translation = _numbers(rotation, name), _numbers(shift, name).ravel()
    if turn.size != 9 or translation.size != 3:
        raise InputError(f"{name}: a rotation has 9 numbers and a translation 3")

    unit = str(table.get("unit", "mm" if np.linalg.norm(translation) > 1 else "m"))
    if unit not in ("m", "mm"):
        raise InputError(f"{name}: unit is m or mm, got {unit!r}")
    order = str(table.get("order", "column" if turn.ndim == 1 and unit == "m" else "row"))
    if order not in ("row", "column"):
        raise InputError(f"{name}: order is row or column, got {order!r}")
    turn = turn.reshape(3, 3)
    turn = turn.T if order == "column" else turn
    translation = translation / (1000 if unit == "mm" else 1)
    baseline = 1000 * float(np.linalg.norm(translation))
    note = f"extrinsics: rotation by {order}s, translation in {unit}, {baseline:.1f} mm apart"
    read = Extrinsics(turn, translation, note)
    direction = str(table.get("direction", "depth_to_colour")).replace("color", "colour")
    if direction not in ("depth_to_colour", "colour_to_depth"):
        raise InputError(f"{name}: direction is depth_to_colour or colour_to_depth")
    return read if direction == "depth_to_colour" else read.inverted()


def _read_json(path: str | Path) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{path} is no JSON file: {problem}") from None
    if isinstance(content, list):
        content = {"matrix": content}  # a bare matrix
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a JSON object, see docs/cameras.md")
    return content


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_matrix(value: Any) -> bool:
    return _count(value.get("data") if _is_table(value) else value) == 9


def _count(value: Any) -> int:
    """How many numbers a possibly nested list holds; 0 if its lines are unequal."""
    try:
        return int(np.size(value))
    except ValueError:
        return 0


def _numbers(values: Any, name: str) -> Doubles:
    try:
        array = np.asarray(values, np.float64)
    except (ValueError, TypeError):
        raise InputError(f"{name} holds {str(values)[:60]!r} where numbers belong") from None
    return array


def _number(value: Any, key: str, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name}: {key} must be a number, got {str(value)[:40]!r}")
    return float(value)


def _first_number(table: Mapping[str, Any], names: Sequence[str], name: str) -> float | None:
    for key in names:
        if key in table:
            return _number(table[key], key, name)
    return None


def _of_matrix(matrix: Any, name: str) -> dict[str, float | None]:
    """fx, fy, cx, cy of a 3×3 matrix, by rows or columns: 0 0 1 shows which."""
    values = _numbers(matrix["data"] if _is_table(matrix) else matrix, name).reshape(3, 3)
    if not np.allclose(values[2], (0, 0, 1)):
        values = values.T
    if not np.allclose(values[2], (0, 0, 1)):
        raise InputError(f"{name}: the intrinsic matrix must have a row (or column) 0 0 1")
    return {
        "fx": float(values[0, 0]),
        "fy": float(values[1, 1]),
        "cx": float(values[0, 2]),
        "cy": float(values[1, 2]),
    }


def _four_by_four(values: Any, name: str) -> Doubles:
    flat = _numbers(values, name).ravel()
    square = np.vstack([flat[:12].reshape(3, 4), (0, 0, 0, 1)])
    if flat.size == 16:
        square = flat.reshape(4, 4)
        if not np.allclose(square[3], (0, 0, 0, 1)):
            square = square.T  # Open3D and ARKit write columns
    if not np.allclose(square[3], (0, 0, 0, 1)):
        raise InputError(f"{name}: a 4×4 transform has a row (or column) 0 0 0 1")
    return square


def _distortion(table: Mapping[str, Any], name: str) -> tuple[float, ...]:
    for key in _COEFFICIENTS:
        values = table.get(key)
        if isinstance(values, Mapping):
            values = values.get("data")
        if values is not None:
            flat = tuple(float(x) for x in _numbers(values, name).ravel())
            while len(flat) > 8 and flat[-1] == 0:
                flat = flat[:-1]
            return flat if any(flat) else ()
    named = [table.get(key, 0) for key in ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6")]
    flat = tuple(_number(value, "a distortion coefficient", name) for value in named)
    return flat if any(flat) else ()


# ---------------------------------------------------------------------------------- registration

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
    depth_intrinsics: str | Path,
    rgb_intrinsics: str | Path,
    extrinsics: str | Path,
) -> tuple[DepthMap, str]:
    """A depth map brought into the colour camera by three JSON files, and a sentence about it.

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
    return replace(low, depth=depth, valid=valid), sentence


def checked_camera(path: str | Path, which: str, size: tuple[int, ...]) -> Camera:
    """Camera of a file whose picture has this (height, width), up to resizing."""
    height, width = size
    camera = read_camera(path, which, (height, width))
    stretch = (camera.width / camera.height) / (width / height)
    if max(stretch, 1 / stretch) > 1.02:
        raise InputError(
            f"{path} describes a {camera.width}×{camera.height} picture, but {width}×{height} was "
            "given, cropped or turned; give the intrinsics of this picture"
        )
    return camera


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
