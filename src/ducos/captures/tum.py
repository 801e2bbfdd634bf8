"""TUM RGB-D: rgb.txt and depth.txt (nearest time stamps), or associations.txt; groundtruth.txt.

TUM's own recordings store 5000 steps per metre and say where they come from in the first lines of
their lists (`# file: 'rgbd_dataset_freiburg1_xyz.bag'`). Others use the layout with other units: of
these the unit is guessed, as of any file.
"""

import re
from dataclasses import replace
from pathlib import Path

from ducos.cameras import Camera
from ducos.captures.decoding import number_table, read_text
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import Pose, last_number, nearest, pose_of_quaternion
from ducos.files import Found, find_pairs

# Of the dataset's page, with pictures as they are.
KINECTS = {
    "1": (517.3, 516.5, 318.6, 255.3, (0.2624, -0.9531, -0.0054, 0.0026, 1.1633)),
    "2": (520.9, 521.0, 325.1, 249.7, (0.2312, -0.7849, -0.0033, -0.0001, 0.9172)),
    "3": (535.4, 539.2, 320.1, 247.6, ()),
}
LARGEST_GAP = 0.05  # seconds between a frame and its pose


def recognises(path: Path) -> bool:
    """Whether a folder has TUM's lists."""
    both = (path / "rgb.txt").is_file() and (path / "depth.txt").is_file()
    return both or (path / "associations.txt").is_file()


class Tum(Capture):
    """One sequence."""

    def __init__(self, path: Path):
        super().__init__(path)
        lists = (path / name for name in ("rgb.txt", "depth.txt", "groundtruth.txt"))
        head = " ".join(
            line
            for each in lists
            if each.is_file()
            for line in read_text(each)[:2000].splitlines()
            if line.startswith("#")
        )
        origin = re.search(r"rgbd_dataset_freiburg(\d)", head)
        self.kinect = origin[1] if origin else None
        truth = path / "groundtruth.txt"
        self.poses = number_table(truth, 8) if truth.is_file() else None

    def find(self) -> Found:
        found = find_pairs(self.path)
        pairs = [
            FrameRef(rgb=pair.rgb, depth=pair.depth, out=pair.out, source=self.path, layout="tum")
            for pair in found.pairs
        ]
        return replace(found, pairs=list(pairs))

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        known = 1 / 5000 if self.kinect else None
        low = measured(ref.depth, unit, scale, known=known, layout="tum")
        camera = None
        if self.kinect in KINECTS:
            fx, fy, cx, cy, bent = KINECTS[self.kinect]
            camera = Camera(640, 480, fx, fy, cx, cy, bent)
        stamp = last_number(ref.rgb.name.removesuffix(ref.rgb.suffix))
        time = float(stamp) if stamp and "." in stamp else None
        return Frame(ref.rgb, low, camera, pose=self.pose(time), time=time)

    def pose(self, time: float | None) -> Pose | None:
        """Camera to world at this time, if the ground truth has one near."""
        if self.poses is None or time is None:
            return None
        row = nearest(self.poses[:, 0].tolist(), time, LARGEST_GAP)
        if row is None:
            return None
        return pose_of_quaternion(self.poses[row, 4:], self.poses[row, 1:4])
