"""ARKitScenes: lowres_depth/VIDEO_TIME.png in millimetres and confidence/ beside pictures in wide/
(or lowres_wide/), .pincam files with `width height fx fy cx cy`, lowres_wide.traj with the poses.
"""

from pathlib import Path

import numpy as np

from ducos.cameras import Camera
from ducos.captures.decoding import number_table
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, Pose, last_number, listed, nearest, pose_of
from ducos.files import Failure, Found, together

COLOUR = ("wide", "lowres_wide")
LARGEST_DELAY = 0.02  # seconds between picture and depth map; both run at up to 60 Hz
LARGEST_GAP = 0.1  # seconds between a frame and its pose; poses come at 10 Hz


def recognises(path: Path) -> bool:
    """Whether a folder has lowres_depth/ and a folder of pictures."""
    return (path / "lowres_depth").is_dir() and any((path / name).is_dir() for name in COLOUR)


class ARKitScenes(Capture):
    """One video, such as raw/Training/40753679."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.wide = next(name for name in COLOUR if (path / name).is_dir())
        trajectory = path / "lowres_wide.traj"
        rows = number_table(trajectory, 7) if trajectory.is_file() else np.empty((0, 7))
        self.trajectory = rows[rows[:, 0].argsort()]

    def find(self) -> Found:
        colour = [(stamp(p), p) for p in listed(self.path / self.wide, "*", PICTURES)]
        depth = [(stamp(p), p) for p in listed(self.path / "lowres_depth", "*", (".png",))]
        matched = together([t for t, _ in colour], [t for t, _ in depth], LARGEST_DELAY)
        pairs = []
        for i, j in matched:
            (_, rgb), (time, low) = colour[i], depth[j]
            conf = self.path / "confidence" / low.name
            pairs.append(
                FrameRef(
                    rgb=rgb,
                    depth=low,
                    out=rgb.stem,
                    confidence=conf if conf.is_file() else None,
                    source=self.path,
                    layout="arkitscenes",
                    key={"time": time},
                )
            )
        taken = {i for i, _ in matched}
        alone = [
            Failure(path.stem, str(path), "", "no depth map is near in time")
            for i, (_, path) in enumerate(colour)
            if i not in taken
        ]
        return Found(list(pairs), "arkitscenes", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        low = measured(
            ref.depth, unit, scale, known=0.001, layout="arkitscenes", confidence=ref.confidence
        )
        time = float(ref.key["time"])
        return Frame(ref.rgb, low, self.camera(ref.rgb.stem), pose=self.pose(time), time=time)

    def camera(self, stem: str) -> Camera | None:
        """The camera of a picture; its file may be a millisecond off, as the dataset's own are."""
        folder = self.path / f"{self.wide}_intrinsics"
        exact = folder / f"{stem}.pincam"
        if not exact.is_file():
            near = [p for p in folder.glob("*.pincam") if abs(stamp(p) - stamp(Path(stem))) < 0.02]
            if not near:
                return None
            exact = near[0]
        width, height, fx, fy, cx, cy = number_table(exact, 6)[0]
        return Camera(int(width), int(height), fx, fy, cx, cy)

    def pose(self, time: float) -> Pose | None:
        """Camera to world; the file states the way back, as an angle times an axis and metres."""
        from scipy.spatial.transform import Rotation

        row = nearest(self.trajectory[:, 0].tolist(), time, LARGEST_GAP)
        if row is None:
            return None
        back = np.eye(4)
        back[:3, :3] = Rotation.from_rotvec(self.trajectory[row, 1:4]).as_matrix()
        back[:3, 3] = self.trajectory[row, 4:]
        return pose_of(np.linalg.inv(back))


def stamp(path: Path) -> float:
    """Seconds, from VIDEO_SECONDS.png; -1 without. The name's own point is no suffix."""
    name = path.name.removesuffix(path.suffix) if path.suffix.lower() != "" else path.name
    if path.suffix[1:].isdigit():
        name = path.name
    return float(last_number(name.rpartition("_")[2]) or -1)
