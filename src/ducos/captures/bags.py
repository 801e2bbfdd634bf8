"""ROS 1 and ROS 2 bags, mcap files and RealSense's .bag, through `rosbags`; no ROS is needed.

Which topics are colour and depth follows from their types, encodings and names; depth that is
already aligned to colour goes before depth that is not. Calibration comes from camera_info, units
of RealSense from its own topic, and the way between the cameras from tf_static or RealSense's
extrinsics; a bag without them is taken for aligned.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ducos.cameras import Camera, Extrinsics, as_camera
from ducos.captures.bag_images import DEPTH_ENCODINGS, is_depth, message_colour, message_depth
from ducos.captures.bag_poses import camera_transform, realsense_transform
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.errors import InputError, needed
from ducos.files import Found, existing_file, refusing, together

IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
INFO = "sensor_msgs/msg/CameraInfo"
LARGEST_DELAY = 0.034  # seconds: a frame of a 30 Hz camera


def recognises(path: Path) -> bool:
    """Whether it is a bag by its name, or a folder with metadata.yaml of rosbag2."""
    if path.is_dir():
        stored = any(path.glob("*.db3")) or any(path.glob("*.mcap"))
        return (path / "metadata.yaml").is_file() and stored
    return path.suffix.lower() in (".bag", ".db3", ".mcap")


class Bag(Capture):
    """One bag; opened when it is first asked."""

    def __init__(self, path: Path):
        super().__init__(path)
        needed("rosbags", "captures")
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if not file.is_dir():
                existing_file(file)  # rosbags would wait at a pipe without end
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore

        with refusing(path, "a bag"):
            store = get_typestore(Stores.ROS2_HUMBLE)
            self.reader = AnyReader([path], default_typestore=store)
            self.reader.open()
            self.images = {
                c.topic: c for c in self.reader.connections if c.msgtype in IMAGES and c.msgcount
            }
        self.colour, self.depth = self.topics()
        self.camera = self.info(self.colour)
        self.depth_camera, self.extrinsics = self.way()
        self.scale = self.depth_unit()

    def topics(self) -> tuple[str, str]:
        """Topics of colour and depth; the first message of each decides what it is."""
        kinds: dict[bool, list[str]] = {True: [], False: []}
        for topic, connection in self.images.items():
            first = self.first(connection)
            if first is not None and not is_infrared(topic):
                kinds[is_depth(first, topic)].append(topic)
        if not kinds[True] or not kinds[False]:
            seen = ", ".join(sorted(self.images)) or "none"
            raise InputError(
                f"{self.path} has the image topics {seen}; expected one of colour and one of depth "
                f"({', '.join(DEPTH_ENCODINGS)})"
            )
        depth = min(kinds[True], key=lambda t: ("aligned" not in t, "compressed" in t.lower(), t))
        words = ("color", "rgb", "left", "image")
        colour = min(
            kinds[False],
            key=lambda t: (next((n for n, w in enumerate(words) if w in t), 9), "raw" not in t, t),
        )
        return colour, depth

    def first(self, connection: Any) -> Any:
        """The first message of a topic, or None."""
        with refusing(self.path, "a bag"):
            for _, _, raw in self.reader.messages([connection]):
                return self.reader.deserialize(raw, connection.msgtype)
        return None

    def find(self) -> Found:
        stamps: dict[str, list[tuple[float, int]]] = {self.colour: [], self.depth: []}
        wanted = [self.images[self.colour], self.images[self.depth]]
        with refusing(self.path, "a bag"):
            for connection, logged, raw in self.reader.messages(wanted):
                message: Any = self.reader.deserialize(raw, connection.msgtype)
                stamp = message.header.stamp
                time = stamp.sec + stamp.nanosec * 1e-9 or logged * 1e-9
                stamps[connection.topic].append((time, logged))
        colour, depth = stamps[self.colour], stamps[self.depth]
        matched = together([t for t, _ in colour], [t for t, _ in depth], LARGEST_DELAY)
        pairs = [
            FrameRef.inside(
                self.path,
                "bag",
                f"{number:06}",
                {"colour": colour[i][1], "depth": depth[j][1], "time": depth[j][0]},
            )
            for number, (i, j) in enumerate(matched)
        ]
        return Found(list(pairs), "bag")

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        plane = message_depth(self.message(self.depth, ref.key["depth"]), self.path)
        known = 1.0 if plane.dtype.kind == "f" else self.scale
        low = measured(plane, unit, scale, known=known, layout="bag")
        image = message_colour(self.message(self.colour, ref.key["colour"]), self.path)
        return Frame(
            image,
            low,
            self.camera,
            self.depth_camera if self.extrinsics else None,
            self.extrinsics,
            time=float(ref.key["time"]),
        )

    def message(self, topic: str, logged: int) -> Any:
        """The message of a topic that was logged at this moment."""
        connection = self.images[topic]
        with refusing(self.path, "a bag"):
            found = self.reader.messages([connection], start=logged, stop=logged + 1)
            for _, _, raw in found:
                return self.reader.deserialize(raw, connection.msgtype)
        raise InputError(f"{self.path} has no message of {topic} at {logged} ns; it was changed")

    # What the bag says about its cameras

    def info(self, topic: str) -> Camera | None:
        """Camera of the camera_info that belongs to a topic of images."""
        message = self.info_message(topic)
        if message is None:
            return None
        K, D = (getattr(message, x, getattr(message, x.lower(), None)) for x in "KD")
        if K is None or not np.any(K):
            return None  # an uncalibrated camera
        table = {
            "width": int(message.width),
            "height": int(message.height),
            "K": [float(x) for x in K],
            "D": [float(x) for x in (() if D is None else D)],
            "distortion_model": str(message.distortion_model),
        }
        return as_camera(table, name=f"{self.path}: camera_info of {topic}")

    def info_message(self, topic: str) -> Any:
        """The first camera_info of the same camera: of the topic's own namespace."""
        parts = topic.strip("/").split("/")
        for length in range(len(parts) - 1, 0, -1):
            start = "/" + "/".join(parts[:length]) + "/"
            near = [
                c
                for c in self.reader.connections
                if c.msgtype == INFO and c.topic.startswith(start) and c.msgcount
            ]
            if near:
                return self.first(min(near, key=lambda c: len(c.topic)))
        return None

    def way(self) -> tuple[Camera | None, Extrinsics | None]:
        """Depth camera and depth-to-colour; nothing if aligned already or if the bag is silent."""
        if "aligned" in self.depth or "registered" in self.depth or self.camera is None:
            return None, None
        camera = self.info(self.depth)
        if camera is None:
            return None, None
        found = realsense_transform(self.reader, self.depth, self.colour, self.path)
        if found is None:
            frames = []
            for topic in (self.depth, self.colour):
                message = self.info_message(topic)
                frames.append(message.header.frame_id.lstrip("/") if message else "")
            if frames[0] == frames[1]:
                return None, None
            found = camera_transform(self.reader, frames[0], frames[1], self.path)
        return (camera, found) if found is not None else (None, None)

    def depth_unit(self) -> float:
        """Metres per step of 16-bit depth: RealSense says it; of others it is a millimetre."""
        for connection in self.reader.connections:
            if "Depth_Units" in connection.topic and connection.topic.endswith("value"):
                message = self.first(connection)
                value = float(getattr(message, "data", 0.0) or 0.0)
                if 1e-6 < value < 1:
                    return round(value, 9)
        return 0.001

    def close(self) -> None:
        self.reader.close()


def is_infrared(topic: str) -> bool:
    """Infrared pictures are grey like some colour cameras', but see from elsewhere."""
    low = topic.lower()
    return "infra" in low or "/ir/" in low or low.endswith("/ir")
