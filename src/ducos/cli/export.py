"""`ducos export`: a network as a file for other runtimes, measured against torch at once."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ducos.cli.options import Json, takes_options
from ducos.cli.progress import waiting, wide_console
from ducos.errors import InputError
from ducos.files import check_output
from ducos.upscaling import Options, find_weights


@takes_options("model", "accept_noncommercial")
def export(
    options: Options,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write: .onnx, .xml or .pt2.")
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            help="Format: onnx, openvino, torch-export, or pieces: graphs beside the weight file,"
            " with which this program runs it without torch."
        ),
    ] = "onnx",
    half: Annotated[
        bool, typer.Option("--half", help="Store weights as 16-bit floats: half the size.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a network for another runtime: the whole prediction, for any size.

    The file is run on six pairs and compared with torch. If it differs by more than 1e-4 of the
    range, nothing is written.

    Example: ducos export --to onnx -o ducos-tiny.onnx
    """
    if to == "pieces":
        _beside(options, out, half, as_json)
        return
    if out is None:
        raise InputError("say where to write: -o FILE.onnx")
    check_output(out)
    with waiting("exporting", quiet=as_json):
        from ducos.export import export as write
        from ducos.export import format_of
        from ducos.models import read_about
        from ducos.upscaling import default_model, load

        format_of(to, out)
        path = find_weights(options.model)
        stated = {} if path is None else read_about(path)
        about = {"model": str(options.model or default_model())}
        about |= {key: stated[key] for key in ("version", "licence") if key in stated}
        network = load(options.model, accept_noncommercial=options.accept_noncommercial)
        rows = write(network, to, out, about=about, half=half)
    if as_json:
        print(json.dumps({"out": str(out), "parity": [_plain(row) for row in rows]}))
        return
    _show(rows)
    print(f"wrote {out}, {out.stat().st_size / 1e6:.1f} MB")


def _beside(options: Options, out: Path | None, half: bool, as_json: bool) -> None:
    """The graphs that belong to a weight file."""
    path = find_weights(options.chosen_model)
    if out is not None or half or path is None:
        raise InputError("pieces lie beside a weight file and share it: give --model FILE only")
    with waiting("exporting", quiet=as_json):
        from ducos.export import export_pieces

        rows = export_pieces(path)
    if as_json:
        print(json.dumps({"out": str(path), "parity": [_plain(row) for row in rows]}))
        return
    _show(rows)
    print(f"wrote the graphs beside {path}")


def _show(rows: list[Any]) -> None:
    from rich.table import Table

    table = Table("pair", "image", "map", "depth", "sigma", "source", box=None)
    for row in map(_plain, rows):
        table.add_row(*(f"{x:.1e}" if isinstance(x, float) else str(x) for x in row.values()))
    wide_console().print(table)
    print("differences from torch: depth and sigma as shares of the range, source in pixels")


def _plain(row: Any) -> dict[str, Any]:
    (H, W), (h, w) = row.pair.image, row.pair.low
    sizes = {"image": f"{W}x{H}", "map": f"{w}x{h}"}
    found = {"depth": row.depth, "sigma": row.sigma, "source": row.source}
    return {"pair": row.pair.name, **sizes, **found}
