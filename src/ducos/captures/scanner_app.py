"""3D Scanner App, "all data": frame_N.jpg, depth_N.png in millimetres, conf_N.png, frame_N.json.

Depth is stored more often than pictures; depth maps without one are passed over silently.
"""

from pathlib import Path

from ducos.captures.decoding import json_table, read_text
from ducos.captures.frame import FROM_OPENGL, Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, listed, matrix_camera, pose_of
from ducos.errors import InputError
from ducos.files import Failure, Found, picture_size


def recognises(path: Path) -> bool:
    """Whether a folder holds frame_N.* and depth_N.png"""
    return path.is_dir() and any(path.glob("frame_*.jpg")) and any(path.glob("depth_*.png"))


class ScannerApp(Capture):
    """One scan."""

    def find(self) -> Found:
        pairs, alone = [], []
        for rgb in listed(self.path, "frame_*", PICTURES):
            name = rgb.stem.removeprefix("frame_")
            depth, conf = (self.path / f"{kind}_{name}.png" for kind in ("depth", "conf"))
            if not depth.is_file():
                alone.append(Failure(name, str(rgb), "", "it has no depth file"))
                continue
            pairs.append(
                FrameRef(
                    rgb=rgb,
                    depth=depth,
                    out=name,
                    confidence=conf if conf.is_file() else None,
                    source=self.path,
                    layout="3dscanner",
                )
            )
        return Found(list(pairs), "3dscanner", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        low = measured(
            ref.depth, unit, scale, known=0.001, layout="3dscanner", confidence=ref.confidence
        )
        about, size = ref.rgb.with_suffix(".json"), picture_size(ref.rgb)
        if not about.is_file() or size is None:
            return Frame(ref.rgb, low)
        table = json_table(read_text(about), about)
        pose = pose_of(table.get("cameraPoseARFrame"))
        time = table.get("time")
        try:
            camera = matrix_camera(table["intrinsics"], *size, about)
        except (KeyError, ValueError, TypeError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"{about} has no nine `intrinsics`; the frame is damaged") from None
        return Frame(
            ref.rgb,
            low,
            camera,
            pose=None if pose is None else pose @ FROM_OPENGL,
            time=float(time) if isinstance(time, int | float) else None,
        )
