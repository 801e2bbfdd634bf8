"""Azure Kinect's and Orbbec's .mkv: tracks COLOR (MJPEG) and DEPTH (16 bits, big endian, mm), and
the camera's calibration as an attached JSON file.

The depth is seen from its own camera, so frames carry both cameras and the way between them.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ducos.cameras import Camera, Extrinsics
from ducos.captures.decoding import exactly, json_table
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.video import Video
from ducos.errors import InputError, needed
from ducos.files import Found, existing_file, refusing, together

# Size of the depth map -> side of the sensor's picture it is cut from, and from where.
DEPTH_CUTS = {
    (640, 576): (1024, 192, 180),
    (320, 288): (512, 96, 90),
    (1024, 1024): (1024, 0, 0),
    (512, 512): (512, 0, 0),
}
LARGEST_DELAY = 0.02  # seconds; 30 Hz, and depth may be delayed by half a frame


def recognises(path: Path) -> bool:
    """Whether it is a file of this name; its content is looked at when it is opened."""
    return path.suffix.lower() == ".mkv"


class Mkv(Capture):
    """One recording of k4arecorder or of Orbbec's tools."""

    def __init__(self, path: Path):
        super().__init__(existing_file(path))
        av = needed("av", "captures")
        titles: dict[str, int] = {}
        attached: dict[str, bytes] = {}
        with refusing(self.path, "a video"), av.open(str(self.path)) as container:
            for number, stream in enumerate(container.streams.video):
                titles.setdefault(str(stream.metadata.get("title", number)).upper(), number)
            for stream in container.streams:
                if stream.type == "attachment":
                    attached[str(stream.name)] = bytes(stream.data or b"")
        if not {"COLOR", "DEPTH"} <= titles.keys():
            raise InputError(
                f"{path} has the tracks {', '.join(sorted(titles)) or 'none'}; expected COLOR and "
                "DEPTH, as Azure Kinect's and Orbbec's recorders write them"
            )
        self.colour = Video(self.path, titles["COLOR"])
        self.depth = Video(self.path, titles["DEPTH"])
        self.size = self.depth.stream.width, self.depth.stream.height
        self.cameras = None
        calibration = next((text for name, text in attached.items() if "calib" in name), None)
        if calibration:
            table = json_table(calibration.rstrip(b"\0"), f"{path}: calibration")
            colour_size = self.colour.stream.width, self.colour.stream.height
            self.cameras = read_calibration(table, colour_size, self.size, str(path))

    def find(self) -> Found:
        matched = together(self.colour.times, self.depth.times, LARGEST_DELAY)
        pairs = [
            FrameRef.inside(self.path, "mkv", f"{number:06}", {"colour": i, "depth": j})
            for number, (i, j) in enumerate(matched)
        ]
        return Found(list(pairs), "mkv")

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        number = int(ref.key["depth"])
        w, h = self.size
        if self.depth.stream.codec_context.name == "rawvideo":
            stored = exactly(self.depth.packet(number), 2 * w * h, f"{self.path} depth {number}")
            plane = np.frombuffer(stored, ">u2").reshape(h, w).astype(np.uint16)
        else:  # packed without loss, as FFV1
            frame = self.depth.frame(number)
            with refusing(self.path, "a video"):
                plane = np.asarray(frame.to_ndarray(format="gray16le"))
        low = measured(plane, unit, scale, known=0.001, layout="mkv")
        image = self.colour.picture(int(ref.key["colour"]))
        time = self.depth.times[number]
        if self.cameras is None:
            return Frame(image, low, time=time)
        colour, depth, pose = self.cameras
        return Frame(image, low, colour, depth_camera=depth, extrinsics=pose, time=time)

    def close(self) -> None:
        self.colour.close()
        self.depth.close()


def read_calibration(
    table: dict[str, Any], colour: tuple[int, int], depth: tuple[int, int], name: str
) -> tuple[Camera, Camera, Extrinsics]:
    """Colour camera, depth camera and depth-to-colour of the device's own calibration.

    Its numbers are shares of the whole sensor: 1024×1024 for depth, 4:3 for colour; a 16:9 picture
    is cut from the middle. colour, depth: (width, height).
    """
    try:
        parts = table["CalibrationInformation"]["Cameras"]
        depth_part = next(part for part in parts if "Depth" in part["Purpose"])
        colour_part = next(part for part in parts if "PhotoVideo" in part["Purpose"])
        side, left, top = DEPTH_CUTS[depth]
        high = round(colour[0] * 3 / 4)
        return (
            lens(colour_part, colour, (colour[0], high), (0, (high - colour[1]) // 2)),
            lens(depth_part, depth, (side, side), (left, top)),
            between(depth_part, colour_part),
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, StopIteration, IndexError) as problem:
        raise InputError(
            f"{name}: its calibration is not one of an Azure Kinect or Femto at {depth[0]}×"
            f"{depth[1]} ({problem!r}); it is damaged, or of another camera"
        ) from None


def lens(
    part: dict[str, Any], size: tuple[int, int], whole: tuple[int, int], cut: tuple[int, int]
) -> Camera:
    """A camera of the calibration for pictures of `size`, cut out of `whole` at `cut`."""
    cx, cy, fx, fy, k1, k2, k3, k4, k5, k6, _, _, p2, p1 = (
        float(value) for value in part["Intrinsics"]["ModelParameters"][:14]
    )
    return Camera(
        *size,
        fx * whole[0],
        fy * whole[1],
        cx * whole[0] - cut[0] - 0.5,
        cy * whole[1] - cut[1] - 0.5,
        (k1, k2, p1, p2, k3, k4, k5, k6),
    )


def between(depth: dict[str, Any], colour: dict[str, Any]) -> Extrinsics:
    """Depth to colour camera, in metres; both stand somewhere in the device."""
    pair = []
    for part in (depth, colour):
        turn = np.array(part["Rt"]["Rotation"], np.float64).reshape(3, 3)
        pair.append(Extrinsics(turn, np.array(part["Rt"]["Translation"], np.float64)))
    back = pair[0].inverted()
    turn = pair[1].rotation @ back.rotation
    shift = pair[1].rotation @ back.translation + pair[1].translation
    return Extrinsics(turn, shift, "extrinsics: of the recording's own calibration")
