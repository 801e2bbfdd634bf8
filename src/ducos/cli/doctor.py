"""The doctor: look at a pair, or at a recording, before working with it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ducos.cli.options import Json, Overwrite, takes_options
from ducos.cli.progress import waiting
from ducos.errors import InputError
from ducos.upscaling import Options

if TYPE_CHECKING:
    from ducos.doctor import RecordingReport, Report


@takes_options("unit", "scale", "mask", "rgb_intrinsics", "extrinsics")
def doctor(
    options: Options,
    rgb: Annotated[
        Path, typer.Argument(help="Colour image; or a recording as `ducos batch` takes.")
    ],
    depth: Annotated[
        Path | None, typer.Argument(help="Depth map, or points; none for a recording.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write a report as an image; of a recording, its worst frame."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a pair, and what to do; exit code 1 if it cannot be used.

    Of a recording, up to sixteen frames spread over it are looked at.

    Example: ducos doctor rgb.png depth.png --report look.png
    """
    from ducos.captures import find_frames
    from ducos.files import check_replaced, existing_file, inputs_of

    if report:
        from ducos.pictures import check_image_output

        check_image_output(report)
        inputs = [path for path in (rgb, depth) if path]
        check_replaced([report], [*inputs, *options.inputs], overwrite=overwrite)
    reading: dict[str, Any] = {"unit": options.unit, "scale": options.scale}
    found: Report | RecordingReport
    shown: Report | None
    if depth is not None:
        existing_file(rgb)
        existing_file(depth)
        with waiting("looking at the pair", quiet=as_json):
            from ducos.doctor import examine

            found = shown = examine(
                rgb,
                depth,
                mask=options.mask,
                camera=options.rgb_intrinsics,
                pose=options.extrinsics,
                **reading,
            )
    else:
        check_recording(rgb, options.mask)
        pairs = find_frames(rgb)
        if report:
            check_replaced([report], inputs_of(pairs.pairs), overwrite=overwrite)
        from ducos.doctor import examine_recording

        with waiting("looking at frames", quiet=as_json) as progress:
            found = examine_recording(pairs, progress=progress, **reading)
        shown = found.worst_frame
    if report and shown is None:
        print(f"no frame could be read: nothing to show in {report}", file=sys.stderr)
    elif report and shown is not None:
        from ducos.doctor import report_picture
        from ducos.pictures import write_image

        write_image(report, report_picture(shown))
    print(found.to_json() if as_json else "\n".join(found.lines()))
    if found.worst == "error":
        raise typer.Exit(1)


def check_recording(source: Path, mask: Path | None) -> None:
    """Refuse what has no meaning without a depth map."""
    if source.suffix.lower() in (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"):
        raise InputError(
            f"got {source} alone; expected its depth map too, or a recording: a folder, a file or "
            "a CSV file"
        )
    if mask is not None:
        raise InputError("--mask is for one pair; the masks of a recording lie beside its frames")
