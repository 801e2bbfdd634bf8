"""Stray Scanner: rgb.mp4, depth/N.png in millimetres (older: .npy), confidence/N.png (0 to 2),
camera_matrix.csv (3×3), odometry.csv (time, frame, x y z, qx qy qz qw)."""

from pathlib import Path

import numpy as np

from ducos.captures.decoding import number_table
from ducos.captures.frame import FROM_OPENGL, Capture, Frame, FrameRef, measured
from ducos.captures.places import listed, matrix_file_camera, pose_of_quaternion
from ducos.captures.video import Video
from ducos.files import Failure, Found


def recognises(path: Path) -> bool:
    """Whether a folder has rgb.mp4 and depth/."""
    return (path / "rgb.mp4").is_file() and (path / "depth").is_dir()


class Stray(Capture):
    """One recording."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.video = Video(path / "rgb.mp4")
        odometry = path / "odometry.csv"
        rows = number_table(odometry) if odometry.is_file() else np.empty((0, 9))
        self.odometry = {int(row[1]): row for row in rows if len(row) >= 9}

    def find(self) -> Found:
        pairs, alone = [], []
        frames = len(self.video.stamps)
        for depth in listed(self.path / "depth", "*", (".png", ".npy")):
            name = depth.stem
            if not name.isdigit() or int(name) >= frames:
                reason = f"the video has {frames} frames and none of this number"
                alone.append(Failure(name, "", str(depth), reason))
                continue
            conf = self.path / "confidence" / f"{name}.png"
            pairs.append(
                FrameRef(
                    rgb=self.path / "rgb.mp4",
                    depth=depth,
                    out=name,
                    confidence=conf if conf.is_file() else None,
                    source=self.path,
                    layout="stray",
                    key={"number": int(name)},
                )
            )
        return Found(list(pairs), "stray", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        number = ref.key["number"]
        low = measured(
            ref.depth, unit, scale, known=0.001, layout="stray", confidence=ref.confidence
        )
        image = self.video.picture(number)
        camera = matrix_file_camera(self.path / "camera_matrix.csv", *image.shape[1::-1])
        row = self.odometry.get(number)
        pose = None if row is None else pose_of_quaternion(row[5:9], row[2:5])
        return Frame(
            image,
            low,
            camera,
            pose=None if pose is None else pose @ FROM_OPENGL,
            time=self.video.times[number] if row is None else float(row[0]),
        )

    def close(self) -> None:
        self.video.close()
