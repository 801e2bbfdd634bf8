"""7-Scenes: frame-N.color.*, frame-N.depth.png in millimetres, frame-N.pose.txt.

The dataset's page gives 585 px and the centre (320, 240) for 640×480, and says that the two cameras
were not calibrated against each other. Tools that took over the layout put the camera beside the
frames: camera-intrinsics.txt or camera-intrinsics.color.txt (3×3).
"""

from pathlib import Path

from ducos.cameras import Camera
from ducos.captures.decoding import number_table
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, listed, matrix_file_camera, pose_of
from ducos.files import Failure, Found, picture_size

CAMERAS = ("camera-intrinsics.color.txt", "camera-intrinsics.txt")
KINECT = Camera(640, 480, 585.0, 585.0, 320.0, 240.0)


def recognises(path: Path) -> bool:
    """Whether a folder holds frame-N.color.* and frame-N.depth.*"""
    return path.is_dir() and any(path.glob("frame-*.color.*")) and any(path.glob("frame-*.depth.*"))


class SevenScenes(Capture):
    """One sequence, such as chess/seq-01."""

    def find(self) -> Found:
        colour = {p.name.split(".")[0]: p for p in listed(self.path, "frame-*.color.*", PICTURES)}
        depth = {p.name.split(".")[0]: p for p in listed(self.path, "frame-*.depth.*", (".png",))}
        pairs = [
            FrameRef(
                rgb=colour[name], depth=depth[name], out=name, source=self.path, layout="7scenes"
            )
            for name in sorted(colour.keys() & depth.keys())
        ]
        alone = [
            Failure(name, str(colour.get(name, "")), str(depth.get(name, "")), "it has no partner")
            for name in sorted(colour.keys() ^ depth.keys())
        ]
        return Found(list(pairs), "7scenes", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        low = measured(ref.depth, unit, scale, known=0.001, layout="7scenes", mask=ref.mask)
        pose = self.path / f"{ref.out}.pose.txt"
        return Frame(
            ref.rgb,
            low,
            self.camera(*(picture_size(ref.rgb) or low.depth.shape[::-1])),
            pose=pose_of(number_table(pose, 4)) if pose.is_file() else None,
        )

    def camera(self, width: int, height: int) -> Camera:
        """The one beside the frames, or the dataset's own."""
        for name in CAMERAS:
            stated = matrix_file_camera(self.path / name, width, height)
            if stated is not None:
                return stated
        return KINECT.scaled(width, height)
