"""Intrinsics and extrinsics from the tables of camera files; see docs/cameras.md."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import Size
from ducos.cameras.camera_files import read_table
from ducos.cameras.intrinsics import Camera, Doubles, Extrinsics
from ducos.errors import InputError

_NAMES = {
    "width": ("width", "w", "image_width", "img_width"),
    "height": ("height", "h", "image_height", "img_height"),
    "fx": ("fx", "fl_x"),
    "fy": ("fy", "fl_y"),
    "cx": ("cx", "ppx", "x_offset"),
    "cy": ("cy", "ppy", "y_offset"),
}
_MATRICES = ("K", "k", "intrinsic_matrix", "camera_matrix", "intrinsics", "intrinsic", "matrix",
             "cameraMatrix", "Camera_Matrix", "mtx", "KK")  # fmt: skip
_COEFFICIENTS = ("distortion", "coeffs", "D", "d", "distortion_coefficients", "disto",
                 "distCoeffs", "Distortion_Coefficients", "dist")  # fmt: skip
_PARTS = {
    "depth": ("depth", "depth_camera", "depth_intrinsics", "depth_intrinsic"),
    "colour": ("colour", "color", "rgb", "color_camera", "rgb_intrinsics", "color_intrinsics",
               "rgb_intrinsic"),
}  # fmt: skip


def read_camera(path: str | Path, which: str, size: Size | None = None) -> Camera:
    """Intrinsics of a camera file, see docs/cameras.md.

    Args:
        which: "depth" or "colour": the part to take of a file that holds both.
        size: (height, width) of the image at hand, for files that do not state one. A stated
            size is kept; `Camera.scaled` brings it to another.
    """
    content = read_table(path)
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
            " undistort the image first and set its coefficients to 0"
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
        values["cx"] - centre, values["cy"] - centre, coefficients, str(table.get("note", "")),
    )  # fmt: skip


def checked_camera(path: str | Path | Camera, which: str, size: tuple[int, ...]) -> Camera:
    """Camera, of a file or as it is, whose image has this (height, width), up to resizing."""
    height, width = size
    camera = path if isinstance(path, Camera) else read_camera(path, which, (height, width))
    stretch = (camera.width / camera.height) / (width / height)
    if max(stretch, 1 / stretch) > 1.02:
        raise InputError(
            f"{'the camera' if path is camera else path} describes a {camera.width}×"
            f"{camera.height} image, but {width}×{height} was given, cropped or turned; "
            "give the intrinsics of this image"
        )
    return camera


def read_extrinsics(path: str | Path | Extrinsics) -> Extrinsics:
    """Depth-to-colour transform of a file, see docs/cameras.md; or as it is."""
    if isinstance(path, Extrinsics):
        return path
    return as_extrinsics(read_table(path), str(path))


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
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{name} holds {_shown(values)!r} where numbers belong") from None
    return array


def _shown(values: Any) -> str:
    """The beginning of a value; Python refuses to print integers of thousands of digits."""
    try:
        return str(values)[:60]
    except ValueError:
        return "an endless number"


def _number(value: Any, key: str, name: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):  # an integer of hundreds of digits
            if math.isfinite(float(value)):
                return float(value)
        value = f"{value:.40}" if isinstance(value, float) else "a number beyond all cameras"
    raise InputError(f"{name}: {key} must be a number, got {str(value)[:40]!r}")


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
