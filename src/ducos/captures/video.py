"""Frames of a video by their number, through `av`: from the last key frame on, never all of it."""

from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import Bytes
from ducos.captures.decoding import check_pixels
from ducos.errors import InputError, needed
from ducos.files import existing_file, refusing

FEW_AHEAD = 60  # frames: nearer ones are decoded on the way, farther ones by a jump


class Video:
    """One track of a video file. times: seconds of its frames, in the order shown."""

    def __init__(self, path: Path, track: int = 0):
        self.path, self.track = existing_file(path), track
        av = needed("av", "captures")
        with refusing(self.path, "a video"):
            self.container = av.open(str(self.path))
            if track >= len(self.container.streams.video):
                raise ValueError("it has no frames")
            self.stream = self.container.streams.video[track]
            self.stream.codec_context.thread_count = 1  # of a batch's worker, which has one
            self.base = float(self.stream.time_base)
            self.stamps = sorted(
                packet.pts
                for packet in self.container.demux(self.stream)
                if packet.pts is not None and packet.size
            )
            if not self.stamps:
                raise ValueError("it has no frame")
        check_pixels(self.path, self.stream.width, self.stream.height)
        self.frames: Any = None
        self.next = 0

    @property
    def times(self) -> list[float]:
        return [stamp * self.base for stamp in self.stamps]

    def frame(self, number: int) -> Any:
        """The n-th frame as the library's own object."""
        if not 0 <= number < len(self.stamps):
            raise InputError(f"{self.path} has {len(self.stamps)} frames; there is no {number}")
        with refusing(self.path, "a video"):
            if self.frames is None or not self.next <= number < self.next + FEW_AHEAD:
                self.container.seek(self.stamps[number], stream=self.stream)
                self.frames = self.container.decode(self.stream)
            for frame in self.frames:
                if frame.pts is not None and frame.pts >= self.stamps[number]:
                    self.next = number + 1
                    check_pixels(self.path, frame.width, frame.height)
                    return frame
        self.frames = None
        raise InputError(f"{self.path} ends before frame {number}; it is cut off")

    def picture(self, number: int) -> Bytes:
        """(H, W, 3) uint8."""
        frame = self.frame(number)
        with refusing(self.path, "a video"):
            return np.asarray(frame.to_ndarray(format="rgb24"))

    def packet(self, number: int) -> bytes:
        """What is stored of the n-th frame, not decoded: of tracks that are not packed."""
        with refusing(self.path, "a video"):
            self.container.seek(self.stamps[number], stream=self.stream)
            self.frames = None
            for packet in self.container.demux(self.stream):
                if packet.pts is not None and packet.pts >= self.stamps[number]:
                    return bytes(packet)
        raise InputError(f"{self.path} ends before frame {number}; it is cut off")

    def close(self) -> None:
        self.container.close()
