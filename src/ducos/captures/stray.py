"""Stray Scanner: rgb.mp4, depth/N.png in millimetres (older: .npy), confidence/N.png (0 to 2),
camera_matrix.csv (3×3), odometry.csv (timestamp, frame, x y z, qx qy qz qw).

The app turns ARKit's poses before it writes them: x right, y down, z forward, as ours are. Newer
versions add the camera of each frame (fx fy cx cy), and columns that are empty in most rows.
"""

from pathlib import Path

from ducos.cameras import Camera
from ducos.captures.decoding import read_text
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import listed, matrix_file_camera, pose_of_quaternion
from ducos.captures.video import Video
from ducos.errors import InputError
from ducos.files import Failure, Found

OF_TURN = ("qx", "qy", "qz", "qw")
OF_CAMERA = ("fx", "fy", "cx", "cy")


def recognises(path: Path) -> bool:
    """Whether a folder has rgb.mp4 and depth/."""
    return (path / "rgb.mp4").is_file() and (path / "depth").is_dir()


class Stray(Capture):
    """One recording."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.video = Video(path / "rgb.mp4")
        odometry = path / "odometry.csv"
        self.odometry = read_odometry(odometry) if odometry.is_file() else {}

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
        H, W = image.shape[:2]
        row = self.odometry.get(number)
        if row is None:
            camera = matrix_file_camera(self.path / "camera_matrix.csv", W, H)
            return Frame(image, low, camera, time=self.video.times[number])
        if all(name in row for name in OF_CAMERA):
            fx, fy, cx, cy = (row[name] for name in OF_CAMERA)
            camera = Camera(W, H, fx, fy, cx, cy)
        else:
            camera = matrix_file_camera(self.path / "camera_matrix.csv", W, H)
        pose = pose_of_quaternion([row[name] for name in OF_TURN], [row[name] for name in "xyz"])
        return Frame(image, low, camera, pose=pose, time=row["timestamp"])

    def close(self) -> None:
        self.video.close()


def read_odometry(path: Path) -> dict[int, dict[str, float]]:
    """By frame: the columns that hold numbers, by their names."""
    names, *lines = [
        [word.strip() for word in line.split(",")]
        for line in read_text(path).splitlines()
        if line.strip()
    ] or [[]]
    missing = [name for name in ("timestamp", "frame", *"xyz", *OF_TURN) if name not in names]
    if missing:
        raise InputError(f"{path} has no columns {', '.join(missing)}; is it Stray Scanner's?")
    rows = {}
    for number, words in enumerate(lines, start=2):
        try:
            row = {name: float(word) for name, word in zip(names, words) if word}
            rows[int(row["frame"])] = row
            complete = all(name in row for name in ("timestamp", *"xyz", *OF_TURN))
        except (ValueError, OverflowError, KeyError):
            complete = False
        if not complete:
            raise InputError(f"{path} line {number} holds {','.join(words)[:40]!r}, not a pose")
    return rows
