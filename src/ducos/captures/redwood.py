"""Redwood's scans and what Open3D's recorder writes: color/ or image/ or rgb/, depth/, a camera as
JSON (intrinsic.json, camera_intrinsic.json, ...), perhaps trajectory.log. Depth in millimetres.

The two folders name their frames differently at times; then the n-th belong together, as Open3D's
own tools have it, if there are as many of both.
"""

from pathlib import Path

import numpy as np

from ducos.cameras import Camera, read_camera
from ducos.captures.decoding import read_text
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, Pose, listed, pose_of
from ducos.errors import InputError
from ducos.files import Failure, Found, picture_size

COLOUR = ("color", "image", "rgb")
CAMERAS = ("intrinsic.json", "camera_intrinsic.json", "camera_primesense.json", "intrinsics.json")


def recognises(path: Path) -> bool:
    """Whether a folder has depth/, a folder of colour, and a camera or a trajectory."""
    if not (path / "depth").is_dir() or not any((path / name).is_dir() for name in COLOUR):
        return False
    return camera_file(path) is not None or (path / "trajectory.log").is_file()


def camera_file(folder: Path) -> Path | None:
    """The camera's file, by the names that are usual, or the only JSON that holds a matrix."""
    usual = (folder / name for name in CAMERAS)
    others = [path for path in listed(folder, "*.json", (".json",)) if holds_matrix(path)]
    return next((path for path in usual if path.is_file()), others[0] if len(others) == 1 else None)


def holds_matrix(path: Path) -> bool:
    """Whether Open3D's name of a camera matrix stands in the first bytes of a file."""
    with path.open("rb") as stream:
        return b'"intrinsic_matrix"' in stream.read(2000)


class Redwood(Capture):
    """One scan."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.poses = read_trajectory(path / "trajectory.log")

    def find(self) -> Found:
        folder = next(self.path / name for name in COLOUR if (self.path / name).is_dir())
        colour, depth = listed(folder, "*", PICTURES), listed(self.path / "depth", "*", (".png",))
        by_stem = {path.stem: path for path in depth}
        if len(colour) == len(depth) and not all(path.stem in by_stem for path in colour):
            both, alone = list(zip(colour, depth)), []
        else:
            both = [(path, by_stem[path.stem]) for path in colour if path.stem in by_stem]
            names = {path.stem for path in colour} ^ set(by_stem)
            alone = [Failure(name, "", "", "it has no partner") for name in sorted(names)]
        pairs = [
            FrameRef(
                rgb=rgb,
                depth=low,
                out=rgb.stem,
                source=self.path,
                layout="redwood",
                key={"number": number},
            )
            for number, (rgb, low) in enumerate(both)
        ]
        return Found(list(pairs), "redwood", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        low = measured(ref.depth, unit, scale, known=0.001, layout="redwood")
        return Frame(ref.rgb, low, self.camera(ref.rgb), pose=self.poses.get(ref.key["number"]))

    def camera(self, rgb: Path) -> Camera | None:
        """The colour camera; the file speaks of pictures of this one's size if of none."""
        source, size = camera_file(self.path), picture_size(rgb)
        if size is None:
            raise InputError(f"{rgb} is no image; the recording is damaged")
        return None if source is None else read_camera(source, "colour", (size[1], size[0]))


def read_trajectory(path: Path) -> dict[int, Pose]:
    """Frame -> camera to world, of Redwood's log: a line of numbers, then four rows, again and
    again."""
    if not path.is_file():
        return {}
    lines = [line.split() for line in read_text(path).splitlines() if line.strip()]
    poses = {}
    for first in range(0, len(lines) - 4, 5):
        try:
            number = int(lines[first][0])
            pose = pose_of(np.array(lines[first + 1 : first + 5], np.float64))
        except (ValueError, IndexError):
            raise InputError(f"{path} is no trajectory: see its line {first + 1}") from None
        if pose is not None:
            poses[number] = pose
    return poses
