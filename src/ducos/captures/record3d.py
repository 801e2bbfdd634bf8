"""Record3D's .r3d: a zip of rgbd/N.jpg, rgbd/N.depth (LZFSE, float32 metres), rgbd/N.conf (LZFSE,
0 to 2) and `metadata` (JSON: K by columns, sizes w h dw dh, poses, time stamps).

Members are read into memory one at a time, with a bound; nothing is unpacked to a disk, so links
and `..` in the archive lead nowhere.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ducos.cameras import Camera
from ducos.captures.decoding import MOST_TEXT, check_pixels, colour, json_table, lzfse
from ducos.captures.frame import FROM_OPENGL, Capture, Frame, FrameRef, measured
from ducos.captures.places import matrix_camera, pose_of_quaternion
from ducos.errors import InputError
from ducos.files import Failure, Found, existing_file, refusing

LARGEST_MEMBER = 256 << 20  # bytes; a 48-megapixel JPEG has a tenth


def recognises(path: Path) -> bool:
    """Whether it is a file of this name; its content is looked at when it is opened."""
    return path.suffix.lower() == ".r3d"


class Record3D(Capture):
    """One recording."""

    def __init__(self, path: Path):
        super().__init__(existing_file(path))
        with refusing(self.path, "a .r3d file"):
            self.archive = zipfile.ZipFile(self.path)
        self.about = json_table(self.member("metadata", MOST_TEXT), f"{path}: metadata")
        sizes = [self.about.get(key) for key in ("w", "h")]
        if not all(isinstance(value, int) and 0 < value < 100_000 for value in sizes):
            raise InputError(f"{path}: its metadata state the image's size as {sizes}")
        self.width, self.height = (int(value) for value in sizes if value is not None)
        # Recordings of the first versions say nothing of the depth's size: then it is the LiDAR's.
        depth_sizes = [self.about.get(key, value) for key, value in (("dw", 192), ("dh", 256))]
        if not all(isinstance(value, int) for value in depth_sizes):
            raise InputError(f"{path}: its metadata state the depth's size as {depth_sizes}")
        self.w, self.h = depth_sizes
        check_pixels(path, self.w, self.h)

    def find(self) -> Found:
        names = set(self.archive.namelist())
        numbers = [
            name[5:-4]
            for name in names
            if name.startswith("rgbd/") and name.endswith(".jpg") and name[5:-4].isdigit()
        ]
        pairs: list[Any] = []
        alone = []
        for number in sorted(numbers, key=int):
            out = f"{int(number):06}"
            if f"rgbd/{number}.depth" not in names:
                alone.append(Failure(out, str(self.path), "", "it has no depth"))
                continue
            key = {"number": number, "confidence": f"rgbd/{number}.conf" in names}
            pairs.append(FrameRef.inside(self.path, "record3d", out, key))
        return Found(pairs, "record3d", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        number = ref.key["number"]
        name = f"{self.path}: rgbd/{number}"
        packed = self.member(f"rgbd/{number}.depth", LARGEST_MEMBER)
        flat = np.frombuffer(lzfse(packed, 4 * self.w * self.h, f"{name}.depth"), "<f4")
        confidence = None
        if ref.key["confidence"]:
            packed = self.member(f"rgbd/{number}.conf", LARGEST_MEMBER)
            levels = np.frombuffer(lzfse(packed, self.w * self.h, f"{name}.conf"), np.uint8)
            confidence = levels.reshape(self.h, self.w)
        low = measured(
            flat.reshape(self.h, self.w),
            unit,
            scale,
            known=1.0,
            layout="record3d",
            confidence=confidence,
        )
        image = colour(self.member(f"rgbd/{number}.jpg", LARGEST_MEMBER), f"{name}.jpg")
        times = self.about.get("frameTimestamps")
        n = int(number)
        time = times[n] if isinstance(times, list) and n < len(times) else None
        return Frame(
            image,
            low,
            self.camera(n),
            pose=self.pose(n),
            time=float(time) if isinstance(time, int | float) else None,
        )

    def member(self, name: str, most: int) -> bytes:
        """A member of the archive, if it is there and no longer than `most`."""
        with refusing(self.path, "a .r3d file"), self.archive.open(name) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise InputError(f"{self.path}: {name} unpacks to more than {most >> 20} MB; damaged")
        return content

    def camera(self, number: int) -> Camera | None:
        """Of this frame, if the recording has one for each; focus moves it."""
        each = self.about.get("perFrameIntrinsicCoeffs")
        try:
            if isinstance(each, list) and number < len(each):
                fx, fy, cx, cy = (float(value) for value in each[number][:4])
                return Camera(self.width, self.height, fx, fy, cx, cy)
            K = self.about.get("K")
            return matrix_camera(K, self.width, self.height, self.path) if K else None
        except (ValueError, TypeError, KeyError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"{self.path}: its metadata hold no intrinsics; damaged") from None

    def pose(self, number: int) -> Any:
        """Camera to world; stored as x y z w of a turn, then metres, y up."""
        poses = self.about.get("poses")
        if not isinstance(poses, list) or number >= len(poses):
            return None
        values = poses[number]
        if not isinstance(values, list) or len(values) != 7:
            return None
        pose = pose_of_quaternion(values[:4], values[4:])
        return None if pose is None else pose @ FROM_OPENGL

    def close(self) -> None:
        self.archive.close()
