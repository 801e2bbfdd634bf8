"""Videos of depth: one to compute with (16 bit, lossless) and one to look at (fixed colours)."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ducos.errors import needed
from ducos.pictures import colourise

MOST = 65535  # millimetres that 16 bits hold


class Video:
    """A file being written; frames of another size than the first are left out."""

    def __init__(self, path: Path, codec: str, form: str, size: tuple[int, int], fps: float):
        av = self.av = needed("av", "captures")
        self.container = av.open(str(path), "w")
        self.stream = self.container.add_stream(codec, rate=Fraction(fps).limit_denominator(1001))
        self.stream.height, self.stream.width = size
        self.stream.pix_fmt = form
        self.size = size

    def put(self, pixels: Any, form: str) -> None:
        """One more frame."""
        if pixels.shape[:2] == self.size:
            frame = self.av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format=form)
            self.container.mux(self.stream.encode(frame))

    def close(self) -> None:
        self.container.mux(self.stream.encode())
        self.container.close()


class DepthVideo(Video):
    """Millimetres as 16-bit grey, FFV1; 0 is a hole."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float):
        super().__init__(path, "ffv1", "gray16le", size, fps)

    def add(self, result: Any) -> None:
        millimetres = np.clip(np.rint(1000 * result.depth), 0, MOST).astype(np.uint16)
        self.put(np.where(result.valid, millimetres, 0).astype(np.uint16), "gray16le")


class PreviewVideo(Video):
    """Image and depth side by side; the colours' range is the first frame's, for all."""

    def __init__(self, path: Path, result: Any, fps: float):
        self.range = [float(x) for x in np.percentile(result.depth[result.valid], (1, 99))]
        H, W = result.depth.shape
        # Most players want even sides.
        super().__init__(path, "libx264", "yuv420p", (H - H % 2, 2 * W), fps)

    def add(self, result: Any) -> None:
        shown = colourise(result.depth, result.valid, lowest=self.range[0], highest=self.range[1])
        both = np.hstack([np.rint(255 * result.image).astype(np.uint8), shown])
        self.put(both[: self.size[0]], "rgb24")
