"""The doctor: look at a pair before working with it."""

from pathlib import Path
from typing import Annotated

import typer

from ducos.cli.options import Json


def doctor(
    rgb: Annotated[Path, typer.Argument(help="Colour image.")],
    depth: Annotated[Path, typer.Argument(help="Depth map.")],
    unit: Annotated[str, typer.Option(help="auto, m, mm, cm, relative.")] = "auto",
    scale: Annotated[float | None, typer.Option(help="Metres per stored value.")] = None,
    mask: Annotated[Path | None, typer.Option(help="Image that is 0 where invalid.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a picture.")] = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a pair, and what to do; exit code 1 if it cannot be used."""
    from ducos.doctor import examine
    from ducos.files import check_output

    if report:
        check_output(report)
    found = examine(rgb, depth, unit=unit, scale=scale, mask=mask)
    if report:
        from ducos.colour import write_image
        from ducos.doctor.picture import report_picture

        write_image(report, report_picture(found))
    print(found.to_json() if as_json else "\n".join(found.lines()))
    if found.worst == "error":
        raise typer.Exit(1)
