"""ScanNet's .sens: one binary file with JPEG or PNG colour, zlib-packed 16-bit depth and poses.

Layout (version 4, little endian): version u32; a name with its length; four 4×4 matrices;
compression of colour and depth; sizes; steps per metre; the number of frames; then the frames.
"""

import struct
from pathlib import Path
from typing import IO, Any

import numpy as np

from ducos.captures.decoding import check_pixels, colour, exactly, inflated
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import matrix_camera, pose_of
from ducos.errors import InputError
from ducos.files import Failure, Found, existing_file, refusing

COLOUR_PACKED = {1: "PNG", 2: "JPEG"}
RAW, ZLIB = 0, 1
HEAD = struct.Struct("<iiIIIIfQ")
FRAME = struct.Struct("<16fQQQQ")


def recognises(path: Path) -> bool:
    """Whether it is a file of this name; its content is looked at when it is opened."""
    return path.suffix.lower() == ".sens"


class Sens(Capture):
    """One scene, such as scene0000_00.sens."""

    def __init__(self, path: Path):
        super().__init__(existing_file(path))
        self.length = self.path.stat().st_size
        with refusing(self.path, "a .sens file"), self.path.open("rb") as stream:
            (version,) = struct.unpack("<I", stream.read(4))
            if version != 4:
                raise InputError(f"{path} has the version {version}; only 4 of .sens is known")
            (letters,) = struct.unpack("<Q", stream.read(8))
            if letters > 10_000:
                raise ValueError(f"a name of {letters} letters")
            stream.seek(letters, 1)
            matrices = np.frombuffer(stream.read(4 * 64), "<f4").reshape(4, 4, 4)
            (
                self.colour_packing,
                self.depth_packing,
                *self.sizes,
                steps,
                self.count,
            ) = HEAD.unpack(stream.read(HEAD.size))
            self.first = stream.tell()
        if self.colour_packing not in COLOUR_PACKED or self.depth_packing not in (RAW, ZLIB):
            raise InputError(
                f"{path} has the packings {self.colour_packing} and {self.depth_packing}; known are"
                " PNG or JPEG colour with raw or zlib depth"
            )
        if not 0 < steps < 1e6:
            raise InputError(f"{path} states {steps:g} steps per metre; the file is damaged")
        self.scale = 1 / float(steps)
        width, height, w, h = self.sizes
        check_pixels(path, width, height)
        check_pixels(path, w, h)
        with refusing(self.path, "a .sens file"):
            self.camera = matrix_camera(matrices[0], width, height, path)

    def find(self) -> Found:
        pairs: list[Any] = []
        alone = []
        digits = max(6, len(str(self.count)))
        with self.path.open("rb") as stream:
            place = self.first
            for number in range(self.count):
                stream.seek(place)
                head = stream.read(FRAME.size)
                *_, of_colour, of_depth = FRAME.unpack(head) if len(head) == FRAME.size else (0, 0)
                end = place + FRAME.size + of_colour + of_depth
                if len(head) < FRAME.size or end > self.length:
                    reason = f"the file ends before frame {number} of {self.count}; it is cut off"
                    alone.append(Failure(f"{number:0{digits}}", str(self.path), "", reason))
                    break
                pairs.append(
                    FrameRef.inside(self.path, "sens", f"{number:0{digits}}", {"place": place})
                )
                place = end
        return Found(pairs, "sens", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        name = f"{self.path} frame {ref.out}"
        with refusing(self.path, "a .sens file"), self.path.open("rb") as stream:
            *pose, time, _, of_colour, of_depth = read_head(stream, ref.key["place"])
            if of_colour + of_depth > self.length:
                raise ValueError("a frame is longer than the file")
            packed_colour, packed_depth = stream.read(of_colour), stream.read(of_depth)
        _, _, w, h = self.sizes
        unpack = inflated if self.depth_packing == ZLIB else exactly
        plane = np.frombuffer(unpack(packed_depth, 2 * w * h, name), "<u2").reshape(h, w)
        low = measured(plane, unit, scale, known=self.scale, layout="sens")
        return Frame(
            colour(packed_colour, name), low, self.camera, pose=pose_of(pose), time=time / 1e6
        )


def read_head(stream: IO[bytes], place: int) -> tuple[Any, ...]:
    """Pose (16), two times, two lengths of the frame that begins here."""
    stream.seek(place)
    return FRAME.unpack(stream.read(FRAME.size))
