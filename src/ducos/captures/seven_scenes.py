"""7-Scenes: frame-N.color.*, frame-N.depth.png in millimetres, frame-N.pose.txt.

The dataset's page gives 585 px and the centre (320, 240) for 640×480, and says that the two cameras
were not calibrated against each other.
"""

from pathlib import Path

from ducos.cameras import Camera
from ducos.captures.decoding import number_table
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, listed, pose_of
from ducos.files import Failure, Found

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
            KINECT.scaled(*low.depth.shape[::-1]),
            pose=pose_of(number_table(pose, 4)) if pose.is_file() else None,
        )
