"""Cameras, poses and times of recordings, out of the few forms in which they are stored."""

import re
from bisect import bisect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.cameras import Camera, as_camera
from ducos.captures.decoding import number_table
from ducos.errors import InputError

Pose = NDArray[np.float64]
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm")


def matrix_camera(values: Any, width: int, height: int, name: object) -> Camera:
    """Camera of nine numbers (rows or columns), or of the upper left of a 4×4 matrix."""
    flat = np.asarray(values, np.float64).ravel()
    if flat.size == 16:
        flat = flat.reshape(4, 4)[:3, :3].ravel()
    return as_camera({"K": flat.tolist()}, (height, width), name=str(name))


def matrix_file_camera(path: Path, width: int, height: int) -> Camera | None:
    """Camera of a text file of 3×3 or 4×4 numbers, if it is there."""
    return matrix_camera(number_table(path), width, height, path) if path.is_file() else None


def pose_of(values: Any) -> Pose | None:
    """(4, 4) of 16 numbers by rows; None if they are no pose (lost tracking is -inf or 0)."""
    try:
        square = np.asarray(values, np.float64).reshape(4, 4)
    except (ValueError, TypeError):
        return None
    turn = square[:3, :3]
    sound = np.isfinite(square).all() and np.abs(turn @ turn.T - np.eye(3)).max() < 1e-2
    return square if sound and np.abs(square[3] - (0, 0, 0, 1)).max() < 1e-6 else None


def pose_of_quaternion(quaternion: Any, translation: Any) -> Pose | None:
    """(4, 4) of x, y, z, w and three metres."""
    from scipy.spatial.transform import Rotation

    try:
        numbers = np.asarray(quaternion, np.float64)
        square = np.eye(4)
        square[:3, :3] = Rotation.from_quat(numbers).as_matrix()
        square[:3, 3] = np.asarray(translation, np.float64)
    except (ValueError, TypeError):
        return None
    return pose_of(square)


def nearest(times: Sequence[float], time: float, within: float) -> int | None:
    """Which of the sorted times is nearest, if it is near enough."""
    after = bisect(times, time)
    close = [n for n in (after - 1, after) if 0 <= n < len(times)]
    best = min(close, key=lambda n: abs(times[n] - time), default=None)
    return best if best is not None and abs(times[best] - time) <= within else None


def inside(folder: Path, name: str) -> Path:
    """A file that a recording names, which must lie below its folder."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise InputError(f"{folder} names the file {name[:80]!r}; expected one below the folder")
    return folder / path


def last_number(stem: str) -> str | None:
    """The last run of digits (and one point, as in a time stamp) of a name."""
    found = re.findall(r"\d+(?:\.\d+)?", stem)
    return found[-1] if found else None


def listed(folder: Path, pattern: str, endings: tuple[str, ...]) -> list[Path]:
    """Sorted files of a folder that match, hidden ones left out."""
    return sorted(
        path
        for path in folder.glob(pattern)
        if path.suffix.lower() in endings and not path.name.startswith(".") and path.is_file()
    )
