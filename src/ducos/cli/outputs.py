"""What `ducos upscale` writes: checked before the work, written after it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ducos.cameras import check_cloud_output, check_mesh_output
from ducos.errors import InputError
from ducos.files import check_depth_output
from ducos.pictures import check_image_output
from ducos.upscaling import Options

if TYPE_CHECKING:
    from ducos.upscaling import Result

CHECKS = {
    "out": check_depth_output,
    "preview": check_image_output,
    "cloud": check_cloud_output,
    "mesh": check_mesh_output,
    "cloud_preview": check_image_output,
}


@dataclass(frozen=True)
class Outputs:
    """Where each kind of result goes; None: not wanted.

    keep_flying: clouds and meshes also of pixels between two surfaces.
    """

    out: Path
    preview: Path | None = None
    cloud: Path | None = None
    mesh: Path | None = None
    cloud_preview: Path | None = None
    keep_flying: bool = False

    @property
    def files(self) -> dict[str, Path | None]:
        """Name of the kind -> path."""
        return {name: getattr(self, name) for name in CHECKS}

    @property
    def named(self) -> list[Path]:
        """The paths that are to be written."""
        return [path for path in self.files.values() if path]

    @property
    def in_space(self) -> bool:
        """Whether anything needs the colour camera."""
        return any((self.cloud, self.mesh, self.cloud_preview))

    def check(self, options: Options) -> None:
        """Refuse before the work what would fail after it."""
        taken: dict[str, str] = {}
        for name, path in self.files.items():
            if path is None:
                continue
            CHECKS[name](path)
            place = os.path.realpath(path)
            if place in taken:
                raise InputError(f"{taken[place]} and {name} have one name, {path}; give two")
            taken[place] = name
        if not self.in_space:
            return
        if options.unit == "relative":
            raise InputError("a cloud needs metres; got --unit relative: pass another, or --scale")
        if options.rgb_intrinsics is None and options.field_of_view is None:
            raise InputError("a cloud needs --rgb-intrinsics, or --field-of-view DEGREES")

    def write(self, result: "Result[Any]") -> dict[str, Any]:
        """Write all that was asked for; what was written, for programs."""
        written = result.save(self.out)
        if self.preview:
            result.preview(self.preview)
        files = {name: str(path) if path else None for name, path in self.files.items()}
        return {**files, "points": self.write_in_space(result), "written": vars(written)}

    def write_in_space(self, result: "Result[Any]") -> int | None:
        """Cloud, mesh and picture of the cloud; the number of points."""
        if not self.in_space:
            return None
        points = result.cloud(keep_flying=self.keep_flying)
        if self.cloud:
            points.save(self.cloud)
        if self.mesh:
            result.mesh(keep_flying=self.keep_flying).save(self.mesh)
        if self.cloud_preview:
            from ducos.pictures import write_image
            from ducos.upscaling import cloud_picture

            write_image(self.cloud_preview, cloud_picture(points, result.camera()))
        return len(points)
