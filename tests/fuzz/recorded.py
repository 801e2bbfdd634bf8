"""Recordings for the fuzzer: whole containers, and texts that stand beside frames in folders."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ducos.captures import find_frames, read_frame
from tests.captures.recordings import RECORDINGS

CONTAINERS = ("sens", "record3d", "mkv", "ros1", "mcap", "realsense")
# Recording -> files of it that are damaged; the others stay whole.
BESIDE = {
    "tum": ("rgb.txt", "groundtruth.txt"),
    "7scenes": ("frame-000000.pose.txt",),
    "scannet": ("intrinsic/intrinsic_color.txt", "pose/0.txt"),
    "redwood": ("camera_primesense.json", "trajectory.log"),
    "3dscanner": ("frame_00000.json",),
    "stray": ("camera_matrix.csv", "odometry.csv", "rgb.mp4"),
    "arkitscenes": ("lowres_wide.traj",),
    "ros2": ("metadata.yaml", "walk.db3"),
}


def read_recording(path: Path) -> Any:
    """Its first two frames."""
    return [read_frame(pair) for pair in find_frames(path).pairs[:2]]


def container(name: str) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        return [RECORDINGS[name][1](fresh(folder / "seed")).read_bytes()]

    return make


def within(name: str, part: str) -> Callable[[Path], list[bytes]]:
    """The recording is written where the damaged file will stand."""

    def make(folder: Path) -> list[bytes]:
        root = RECORDINGS[name][1](fresh(folder / "made"))
        shutil.copytree(root, fresh(folder / "case"), dirs_exist_ok=True)
        return [(root / part).read_bytes()]

    return make


def root_of(part: str) -> Callable[[Path], Any]:
    """Reads the recording that a file of it belongs to."""
    return lambda path: read_recording(path.parents[part.count("/")])


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
