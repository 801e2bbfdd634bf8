"""The doctor: look at a pair, or at a recording, before working with it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ducos.cli.options import Json
from ducos.cli.progress import waiting
from ducos.errors import InputError

if TYPE_CHECKING:
    from ducos.batch import RecordingReport
    from ducos.doctor import Report


def doctor(
    rgb: Annotated[
        Path, typer.Argument(help="Colour image; or a folder or CSV file as `ducos batch` takes.")
    ],
    depth: Annotated[
        Path | None, typer.Argument(help="Depth map; none for a folder or CSV file.")
    ] = None,
    unit: Annotated[str, typer.Option(help="auto, m, mm, cm, relative.")] = "auto",
    scale: Annotated[float | None, typer.Option(help="Metres per stored value.")] = None,
    mask: Annotated[Path | None, typer.Option(help="Image that is 0 where invalid.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a picture; of a recording, its worst frame.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a pair, and what to do; exit code 1 if it cannot be used.

    Of a recording, up to sixteen frames spread over it are looked at.

    Example: ducos doctor rgb.png depth.png --report look.png
    """
    from ducos.doctor import examine
    from ducos.files import check_output

    if report:
        check_output(report)
    found: Report | RecordingReport
    shown: Report | None
    if depth is not None:
        found = shown = examine(rgb, depth, unit=unit, scale=scale, mask=mask)
    else:
        from ducos.batch import examine_recording
        from ducos.files import find_pairs

        check_recording(rgb, mask)
        with waiting("looking at frames", quiet=as_json) as progress:
            found = examine_recording(find_pairs(rgb), unit=unit, scale=scale, progress=progress)
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
    if source.is_file() and source.suffix.lower() != ".csv":
        raise InputError(
            f"got {source} alone; expected its depth map too, or a folder or CSV file of pairs"
        )
    if mask is not None:
        raise InputError("--mask is for one pair; the masks of a recording lie beside its frames")
