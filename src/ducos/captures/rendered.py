"""Sequences rendered by `ducos synth --path`: `<scene>_<view>_rgb.jpg`, `_depth.png`, `.json`.

Depth is planar, 16-bit, in steps of 0.25 mm; the JSON file holds camera and pose.
"""

from pathlib import Path

from ducos.captures.decoding import json_table, read_text
from ducos.captures.frame import FROM_OPENGL, Capture, Frame, FrameRef, measured
from ducos.captures.places import listed, matrix_camera, pose_of
from ducos.errors import InputError
from ducos.files import Found

METRES_PER_STEP = 0.00025


def recognises(path: Path) -> bool:
    """Whether it is a folder with the list of a rendered set and its pictures."""
    return path.is_dir() and (path / "manifest.jsonl").is_file() and any(path.glob("*_rgb.jpg"))


class Rendered(Capture):
    """One set; the views of a scene follow each other."""

    def find(self) -> Found:
        pairs = [
            FrameRef(
                rgb=rgb,
                depth=rgb.with_name(name + "_depth.png"),
                out=name,
                source=self.path,
                layout="rendered",
            )
            for rgb in listed(self.path, "*_rgb.jpg", (".jpg",))
            for name in [rgb.stem.removesuffix("_rgb")]
            if rgb.with_name(name + "_depth.png").is_file()
        ]
        return Found(list(pairs), "rendered", [])

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        low = measured(ref.depth, unit, scale, known=METRES_PER_STEP, layout="rendered")
        about = ref.rgb.with_name(ref.out + ".json")
        if not about.is_file():
            return Frame(ref.rgb, low)
        table = json_table(read_text(about), about)
        try:
            of = table["intrinsics"]
            flat = [of["fx"], 0, of["cx"], 0, of["fy"], of["cy"], 0, 0, 1]
            camera = matrix_camera(flat, int(table["width"]), int(table["height"]), about)
        except (KeyError, ValueError, TypeError, OverflowError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"{about} states no camera; the frame is damaged") from None
        pose = pose_of(table.get("camera_to_world"))
        return Frame(ref.rgb, low, camera, pose=None if pose is None else pose @ FROM_OPENGL)
