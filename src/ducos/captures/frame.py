"""A frame of a recording: where it lies (FrameRef), and what was read there (Frame)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.cameras import Camera, Extrinsics
from ducos.files import DepthMap, Found, FramePair, read_low

# OpenGL and ARKit look along -z with y up; ours look along z with y down.
FROM_OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])


@dataclass(frozen=True, kw_only=True)
class FrameRef(FramePair):
    """Where a frame lies in a recording; plain values, so that any process can read it.

    source: the recording. layout: its importer's name. key: what the importer needs to find the
    frame; numbers and words only. In a container `rgb` and `depth` are both the container.
    """

    source: Path
    layout: str
    key: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def inside(cls, container: Path, layout: str, out: str, key: dict[str, Any]) -> "FrameRef":
        """A frame of a recording that is one file."""
        return cls(
            rgb=container, depth=container, out=out, source=container, layout=layout, key=key
        )


@dataclass(frozen=True)
class Frame:
    """What a recording holds about one moment.

    image: colour image, or its path, as `super_resolve` takes it. low: metres, holes, confidence.
    camera: of the colour image. depth_camera, extrinsics: only if the depth map is seen from
        another place and must be registered. pose: (4, 4), colour camera (x right, y down,
        z forward) to world. time: seconds.
    """

    image: Any
    low: DepthMap
    camera: Camera | None = None
    depth_camera: Camera | None = None
    extrinsics: Extrinsics | None = None
    pose: NDArray[np.float64] | None = None
    time: float | None = None


class Capture(ABC):
    """A recording of one layout. Each importer is one of these; see `table`."""

    def __init__(self, path: Path):
        self.path = path

    @abstractmethod
    def find(self) -> Found:
        """All frames (its pairs are FrameRefs) in the order of time; decodes nothing."""

    @abstractmethod
    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        """One frame. unit, scale: as a user gave them; auto means what the layout says."""

    def close(self) -> None:
        """Let go of open files."""
        return


def measured(
    depth: Any,
    unit: str,
    scale: float | None,
    *,
    known: float | None = None,
    layout: str = "",
    mask: Any = None,
    confidence: Any = None,
) -> DepthMap:
    """Depth in metres of stored values (h, w) or a file.

    known: metres per stored value by the layout's own rule; the user's word goes before it.
    """
    if unit != "auto" or scale is not None or known is None:
        return read_low(depth, unit, scale, mask, confidence)
    low = read_low(depth, "auto", known, mask, confidence)
    step = f"{1000 * known:g} mm" if known < 1 else f"{known:g} m"
    return replace(low, note=f"unit of the layout {layout}: {step} per stored value")
