"""What this installation holds and whether it works: models, demo, selftest."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ducos.cli.options import Json, takes_options
from ducos.cli.progress import waiting, wide_console
from ducos.upscaling import Options


def list_models(
    prompts: Annotated[bool, typer.Option("--prompts", help="List the prompts instead.")] = False,
    as_json: Json = False,
) -> None:
    """List the models (or prompts) with parameters, licence of the weights, and what they are."""
    from ducos.upscaling import model_rows, prompt_rows

    rows = prompt_rows() if prompts else model_rows()
    if as_json:
        print(json.dumps({"prompts" if prompts else "models": rows}))
        return
    from rich.table import Table

    for row in rows:  # for people, a version belongs to the name
        row["name"] = " ".join(filter(None, (row["name"], row.pop("version", None))))
    table = Table(box=None)
    for title in rows[0]:
        number = title in ("parameters", "gmac")
        table.add_column(title, justify="right" if number else "left", no_wrap=title != "about")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    wide_console().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    return "" if value is None else str(value)


@takes_options("model", "device", "threads")
def demo(
    options: Options,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the results.")] = Path(
        "demo-output"
    ),
) -> None:
    """Super-resolve the bundled example: depth, an overview image, errors in centimetres."""
    from rich.table import Table

    with waiting("super-resolving the example", quiet=False):
        from ducos.example import run_demo

        made = run_demo(out, options)
    table = Table("model", "RMSE cm", "MAE cm", box=None)
    for name, figures in made.items():
        table.add_row(name, f"{figures['rmse_cm']:.2f}", f"{figures['mae_cm']:.2f}")
    wide_console().print(table)
    files = [file for figures in made.values() for file in figures["files"]]
    print("wrote", *files, sep="\n  ")


@takes_options("device", "threads")
def selftest(options: Options, as_json: Json = False) -> None:
    """Run the bundled example and compare with the stored figures: is this installation sound?"""
    from ducos.example import run_selftest

    report = run_selftest(options)
    if as_json:
        print(json.dumps(report))
    else:
        for row in report["rows"]:
            mark = "ok" if row["ok"] else "DIFFERS"
            figures = f"RMSE {row['rmse_cm']:.4f} cm, stored {row['stored_cm']:.4f} cm"
            print(f"{row['model']}: {figures}: {mark}")
    if not report["ok"]:
        raise typer.Exit(1)
