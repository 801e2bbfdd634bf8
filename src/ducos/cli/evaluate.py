"""Figures: score models on datasets, and compare with the paper's tables."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ducos.cli.options import Json, takes_options
from ducos.cli.progress import counting, wide_console
from ducos.errors import InputError
from ducos.files import check_output_folder
from ducos.upscaling import Options, default_model, find_weights

OF = "Suites"
HOW = ("mode", "noise", "tile", "device", "threads", "accept_noncommercial")


@takes_options(*HOW)
def evaluate(
    options: Options,
    model: Annotated[
        list[str] | None, typer.Option(help="Name or weight file, repeatable.")
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="name:PLACE, such as bench:DIR or nyu:FILE, repeatable."),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="How low-resolution maps are made and scored.")
    ] = "synthetic",
    scale: Annotated[
        list[float] | None, typer.Option(help="Repeatable; default: the protocol's.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.json, results.csv and images.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Score the files of this folder instead of running a model.")
    ] = None,
    save_predictions: Annotated[
        bool, typer.Option("--save-predictions", help="Keep each prediction under --out.")
    ] = False,
    pictures: Annotated[int, typer.Option(help="Error-map images per row.")] = 0,
    suite: Annotated[
        str | None, typer.Option(help="A named list of cases instead: heldout.", rich_help_panel=OF)
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Rendered pairs: a folder of `ducos synth`.", rich_help_panel=OF),
    ] = None,
    captures: Annotated[
        Path | None,
        typer.Option(
            help="Folder of maps that cameras made: */rgb.*, depth.*, meta.json.",
            rich_help_panel=OF,
        ),
    ] = None,
    images: Annotated[
        int,
        typer.Option(help="How many of the rendered, spread evenly; 0: all.", rich_help_panel=OF),
    ] = 12,
    as_json: Json = False,
) -> None:
    """Score models on datasets under a named protocol, or on the cases of a suite.

    Example: ducos eval --model bicubic --dataset bench:middlebury30 --scale 4 --scale 8

    Example: ducos eval --suite heldout --data data/heldout --captures captures
    """
    if suite is not None or data is not None or captures is not None:
        if dataset or predictions or scale:
            raise InputError(
                "a suite brings its own cases; got --dataset, --scale or --predictions beside it:"
                " leave them out, or --suite, --data and --captures"
            )
        evaluate_suite(options, suite or "heldout", model, data, captures, images, out, as_json)
        return
    from ducos.data import check_dataset
    from ducos.evaluation import find

    chosen = find(protocol)
    names = model or ([] if predictions else [default_model()])
    for name in [] if predictions else names:
        find_weights(name)
    for spec in dataset or []:
        check_dataset(spec)
    if out is not None:
        check_output_folder(out)
    if scale and not chosen.scales:
        print(f"note: {protocol} takes the scale from the data, not --scale", file=sys.stderr)
    with counting("evaluating") as progress:
        from ducos.evaluation import evaluate as score
        from ducos.evaluation import table

        rows = score(
            names,
            dataset or [],
            chosen,
            scale or [],
            options=options,
            out=out,
            predictions=predictions,
            save_predictions=save_predictions,
            pictures=pictures,
            progress=progress,
        )
    if as_json:
        print(json.dumps({"rows": [row.as_dict() for row in rows]}))
        return
    console = wide_console()
    console.print(table(rows))
    console.print(chosen.about, highlight=False)
    if out is not None:
        console.print(f"wrote {out}/results.json and results.csv", highlight=False)


def evaluate_suite(
    options: Options,
    name: str,
    model: list[str] | None,
    data: str | None,
    captures: Path | None,
    images: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Score models on the cases of a suite: one row per case, and the named figures."""
    from ducos.evaluation import find_suite

    suite = find_suite(name)
    names = model or [default_model()]
    for each in names:
        find_weights(each)
    if out is not None:
        check_output_folder(out)
    if data is None and captures is None:
        raise InputError("a suite needs data: a rendered set (--data) or captures (--captures)")
    with counting("evaluating") as progress:
        from ducos.evaluation import figures_by_model, known, score_suite, suite_table

        rows = score_suite(
            names,
            suite,
            data=data,
            captures=captures,
            images=images,
            options=options,
            out=out,
            progress=progress,
        )
    figures = figures_by_model(rows)
    if as_json:
        plain = {each: known(named) for each, named in figures.items()}
        print(json.dumps({"figures": plain, "rows": [row.as_dict() for row in rows]}))
        return
    console = wide_console()
    console.print(suite_table(rows))
    console.print(f"{suite.about} RMSE and near: ours / bicubic's.", highlight=False)
    cases = {case.name for case in suite.cases}
    for each, named in figures.items():
        of_all = {n: v for n, v in named.items() if n.removesuffix("_near") not in cases}
        shown = ", ".join(f"{n} {v:.4g}" for n, v in of_all.items())
        console.print(f"{each}: {shown}", highlight=False)
    if out is not None:
        console.print(f"wrote {out}/results.json", highlight=False)


@takes_options("tile", "device", "threads", "accept_noncommercial")
def reproduce_table(
    options: Options,
    name: Annotated[
        str,
        typer.Argument(
            help="synthetic, arbitrary, real, noisy, compressed, components, fusion, prompts or"
            " errors."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(envvar="DUCOS_DATA", help="Folder of datasets; see docs/reproduce.md."),
    ] = None,
    datasets: Annotated[
        str, typer.Option(help="Which of the table's datasets, such as middlebury,lu.")
    ] = "",
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SPEC, such as middlebury=bench:DIR, repeatable."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Name or weight file for every scale. Default: bicubic and ours."),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(help="METHOD=FILE or METHOD=FILE@SCALE, such as dctnet=x8.safetensors@8."),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="For prompts: also measure ducos-small with this model's depth, NAME or"
            " NAME=WEIGHTS as in `ducos upscale`, repeatable."
        ),
    ] = None,
    priors: Annotated[
        Path | None,
        typer.Option(
            help="For prompts: folder of real images with stored outputs, NAME/rgb.png, depth.png,"
            " mono.png, meta.json; see docs/reproduce.md."
        ),
    ] = None,
    scale: Annotated[list[float] | None, typer.Option(help="Instead of the table's.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Instead of the table's.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder; default: reproduce/NAME.")
    ] = None,
    pictures: Annotated[
        int | None, typer.Option(help="Error-map images per dataset and scale.")
    ] = None,
    images: Annotated[int, typer.Option(help="Only so many images per dataset; 0: all.")] = 0,
    timed: Annotated[
        bool, typer.Option("--time", help="For prompts: also measure their seconds.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce a table or figure of the paper: our figures beside the published ones.

    Example: ducos reproduce synthetic --data DATA --datasets middlebury,lu
    """
    from ducos.evaluation import RECIPES

    if name not in RECIPES:
        raise InputError(f"nothing to reproduce as {name!r}; choose one of: {', '.join(RECIPES)}")
    for each in model or []:
        find_weights(each)
    folder = out or Path("reproduce") / name
    check_output_folder(folder)
    with counting("reproducing") as progress:
        from ducos.evaluation import report_as_json, report_as_text, reproduce

        report = reproduce(
            name,
            datasets=[each.strip() for each in datasets.split(",") if each.strip()],
            data=data,
            places=dataset or [],
            models=model or [],
            weights=weights or [],
            prompts=prompt or [],
            priors=priors,
            scales=scale or [],
            protocol=protocol,
            options=options,
            out=folder,
            pictures=pictures,
            images=images,
            timed=timed,
            progress=progress,
        )
    if as_json:
        print(report_as_json(report))
        return
    print(report_as_text(report))
    plot = " and plot.png" if (folder / "plot.png").is_file() else ""
    print(f"wrote table.txt, .csv, .tex, .json{plot} into {folder}")
    if report.pictures:
        print(f"{len(report.pictures)} error-map sheets, first {report.pictures[0]}")
