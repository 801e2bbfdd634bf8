"""`ducos upscale`: one pair, a sharp depth map, and pictures and clouds of it if asked for."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ducos.cli.options import (
    AcceptNoncommercial,
    AnyAspect,
    Consistent,
    Json,
    KeepHoles,
    Model,
    Scale,
    Sensor,
    Shift,
    Tile,
    Unit,
)
from ducos.cli.progress import waiting
from ducos.errors import InputError

SPACE: Any = {"rich_help_panel": "Cameras, clouds and meshes"}

if TYPE_CHECKING:
    from ducos.doctor import Correction
    from ducos.files import DepthMap, Written
    from ducos.upscaling import Result


def upscale(
    rgb: Annotated[Path, typer.Argument(help="Colour image.")],
    depth: Annotated[Path, typer.Argument(help="Depth map of the same field of view, any size.")],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="Where to write: .png (16 bit), .exr, .npy, .npz, .tiff, .pfm, .h5"
        ),
    ],
    model: Model = None,
    unit: Unit = "auto",
    scale: Scale = None,
    sensor: Sensor = "unknown",
    mask: Annotated[
        Path | None, typer.Option(help="Image that is 0 where depth is invalid.")
    ] = None,
    preview: Annotated[
        Path | None, typer.Option(help="Also write a picture: maps, zoomed crops, an edge profile.")
    ] = None,
    keep_holes: KeepHoles = False,
    consistent: Consistent = False,
    any_aspect: AnyAspect = False,
    shift: Shift = "check",
    tile: Tile = "auto",
    accept_noncommercial: AcceptNoncommercial = False,
    as_json: Json = False,
    depth_intrinsics: Annotated[
        Path | None, typer.Option(help="JSON of the depth camera, see docs/cameras.md.", **SPACE)
    ] = None,
    rgb_intrinsics: Annotated[
        Path | None, typer.Option(help="JSON of the colour camera.", **SPACE)
    ] = None,
    extrinsics: Annotated[
        Path | None, typer.Option(help="JSON, depth to colour camera.", **SPACE)
    ] = None,
    field_of_view: Annotated[
        float | None,
        typer.Option(help="Horizontal degrees, for a cloud without intrinsics.", **SPACE),
    ] = None,
    cloud: Annotated[
        Path | None, typer.Option(help="Also write a point cloud, .ply", **SPACE)
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="Also write a mesh, .glb", **SPACE)] = None,
    cloud_preview: Annotated[
        Path | None, typer.Option(help="Picture of the cloud.", **SPACE)
    ] = None,
    keep_flying: Annotated[
        bool,
        typer.Option(
            "--keep-flying",
            help="Cloud and mesh of every pixel, also between two surfaces.",
            **SPACE,
        ),
    ] = False,
) -> None:
    """Super-resolve one depth map to the size of its colour image.

    Example: ducos upscale rgb.png depth.png -o sharp.exr --preview look.png
    """
    from ducos.batch import write_preview, write_result
    from ducos.doctor import parse_shift, shift_to_undo
    from ducos.files import check_output, read_colour, read_low
    from ducos.hints import check_sensor
    from ducos.upscaling import super_resolve

    views = Views(cloud, mesh, cloud_preview, rgb_intrinsics, field_of_view, keep_flying)
    for path in (out, preview, cloud, mesh, cloud_preview):
        if path:
            check_output(path)
    parse_shift(shift)  # or complain
    check_sensor(sensor)
    image = read_colour(rgb)
    low = read_low(depth, unit, scale, mask)
    if depth_intrinsics or extrinsics:
        size = (image.shape[0], image.shape[1])
        low, sentence = registered_low(low, size, depth_intrinsics, rgb_intrinsics, extrinsics)
        if not as_json:
            print(sentence)
    views.check(low)
    with waiting("super-resolving", quiet=as_json) as progress:
        correction = shift_to_undo(shift, image, low)
        result = super_resolve(
            image,
            low,
            model=model,
            keep_holes=keep_holes,
            consistent=consistent,
            any_aspect=any_aspect,
            sensor=sensor,
            shift=(correction.x, correction.y),
            tile=tile,
            progress=progress,
            accept_noncommercial=accept_noncommercial,
        )
    written = write_result(out, result, low)
    if preview:
        write_preview(preview, image, low, result)
    points = views.write(result, image)
    files = {"out": out, "preview": preview, **views.files}
    if as_json:
        print(json.dumps(facts(files, points, low, result, sensor, written, correction)))
        return
    for line in sentences(low, result):
        print(line)
    if correction.warns:
        print(f"warning: {correction.note}", file=sys.stderr)
    elif correction.note:
        print(correction.note)
    if result.model == "bicubic" and model is None:
        print("no trained weights are installed: this is mask-aware bicubic interpolation")
    if points is not None:
        flying = 100 * (1 - points / int(result.valid.sum()))
        print(f"{points} points in space, {flying:.1f} % of the pixels left out as flying")
    *others, last = (str(path) for path in files.values() if path)
    print("wrote " + (f"{', '.join(others)} and {last}" if others else last))


def registered_low(
    low: "DepthMap",
    size: tuple[int, int],
    depth_intrinsics: Path | None,
    rgb_intrinsics: Path | None,
    extrinsics: Path | None,
) -> tuple["DepthMap", str]:
    """The map as the colour camera sees it, and a sentence on what was done."""
    if not (depth_intrinsics and rgb_intrinsics and extrinsics):
        raise InputError("registration needs --depth-intrinsics, --rgb-intrinsics and --extrinsics")
    from ducos.cameras import registered

    return registered(low, size, depth_intrinsics, rgb_intrinsics, extrinsics)


@dataclass(frozen=True)
class Views:
    """The optional files that show the result in space, and the camera they need."""

    cloud: Path | None
    mesh: Path | None
    picture: Path | None
    rgb_intrinsics: Path | None
    field_of_view: float | None
    keep_flying: bool

    @property
    def files(self) -> dict[str, Path | None]:
        return {"cloud": self.cloud, "mesh": self.mesh, "cloud_preview": self.picture}

    @property
    def wanted(self) -> bool:
        return any(self.files.values())

    def check(self, low: "DepthMap") -> None:
        """Complain before the work about what would be missing after it."""
        if self.wanted and low.unit == "relative":
            raise InputError("a cloud needs metres: pass --unit or --scale")
        if self.wanted and not (self.rgb_intrinsics or self.field_of_view):
            raise InputError("a cloud needs --rgb-intrinsics, or --field-of-view DEGREES")

    def write(self, result: "Result", image: Any) -> int | None:
        """Write those that were asked for, image: (H, W, 3) in [0, 1]; the number of points."""
        if not self.wanted:
            return None
        from ducos.cameras import (
            Camera,
            checked_camera,
            point_cloud,
            write_glb,
            write_ply,
        )
        from ducos.pictures import write_image
        from ducos.upscaling import cloud_picture

        H, W = result.depth.shape
        if self.rgb_intrinsics:
            camera = checked_camera(self.rgb_intrinsics, "colour", (H, W)).scaled(W, H)
        else:
            camera = Camera.from_field_of_view(W, H, float(self.field_of_view or 0))
        planes = (result.depth, result.valid, image)
        options = {**result.doubts, "drop_flying": not self.keep_flying}
        points = point_cloud(*planes, camera, **options)
        if self.cloud:
            write_ply(self.cloud, points)
        if self.mesh:
            write_glb(self.mesh, *planes, camera, **options)
        if self.picture:
            write_image(self.picture, cloud_picture(points, camera))
        return len(points)


def facts(
    files: dict[str, Path | None],
    points: int | None,
    low: "DepthMap",
    result: "Result",
    sensor: str,
    written: "Written",
    correction: "Correction",
) -> dict[str, Any]:
    """The summary for programs."""
    from ducos.upscaling import SOURCES

    shown = result.depth[result.valid]
    return {
        **{name: str(path) if path else None for name, path in files.items()},
        "points": points,
        "model": result.model,
        "sensor": sensor,
        "size": list(result.depth.shape),
        "input_size": list(low.depth.shape),
        "unit_decision": result.note,
        "holes_in_input": share_of_holes(low),
        "source": {name: float((result.source == code).mean()) for code, name in SOURCES.items()},
        "min": float(shown.min()),
        "max": float(shown.max()),
        "residual": result.residual,
        "shift": vars(correction),
        "written": vars(written),
    }


def sentences(low: "DepthMap", result: "Result") -> list[str]:
    """The summary for people."""
    (h, w), (H, W) = low.depth.shape, result.depth.shape
    metres = "" if low.unit == "relative" else " m"
    holes = 100 * share_of_holes(low)
    shown = result.depth[result.valid]
    return [
        result.note,
        f"{w}×{h} → {W}×{H} with {result.model}; {holes:.1f} % holes in the input",
        f"depth {float(shown.min()):.3f} to {float(shown.max()):.3f}{metres}",
        f"shrunk again it differs from the input by {result.residual:.4f}{metres} RMS",
    ]


def share_of_holes(low: "DepthMap") -> float:
    return float(1 - low.valid.mean())
