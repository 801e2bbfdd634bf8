"""ScanNet as its exporter writes it: color/N.jpg, depth/N.png in millimetres, pose/N.txt,
intrinsic/intrinsic_color.txt (4×4)."""

from pathlib import Path

from ducos.captures.decoding import number_table
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, listed, matrix_file_camera, pose_of
from ducos.errors import InputError
from ducos.files import Failure, Found, picture_size


def recognises(path: Path) -> bool:
    """Whether a folder has color/, depth/ and intrinsic/."""
    return all((path / name).is_dir() for name in ("color", "depth", "intrinsic"))


class ScanNet(Capture):
    """One scene, such as scene0000_00."""

    def find(self) -> Found:
        colour = {path.stem: path for path in listed(self.path / "color", "*", PICTURES)}
        depth = {path.stem: path for path in listed(self.path / "depth", "*", (".png",))}
        both = sorted(colour.keys() & depth.keys(), key=lambda name: (len(name), name))
        pairs = [
            FrameRef(
                rgb=colour[name], depth=depth[name], out=name, source=self.path, layout="scannet"
            )
            for name in both
        ]
        alone = [
            Failure(name, str(colour.get(name, "")), str(depth.get(name, "")), "it has no partner")
            for name in sorted(colour.keys() ^ depth.keys())
        ]
        return Found(list(pairs), "scannet", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        low = measured(ref.depth, unit, scale, known=0.001, layout="scannet")
        size = picture_size(ref.rgb)
        if size is None:
            raise InputError(f"{ref.rgb} is no image; expected the colour image of {ref.depth}")
        intrinsic = self.path / "intrinsic" / "intrinsic_color.txt"
        pose = self.path / "pose" / f"{ref.out}.txt"
        return Frame(
            ref.rgb,
            low,
            matrix_file_camera(intrinsic, *size),
            pose=pose_of(number_table(pose, 4)) if pose.is_file() else None,
        )
