"""The researcher's commands: train, score, compare with the paper, take over weights."""

import json
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from ducos.cli.options import AcceptNoncommercial, Json
from ducos.errors import InputError


def train(
    config: Annotated[Path | None, typer.Argument(help="TOML file, see configs/.")] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the run.")] = Path("runs/run"),
    override: Annotated[
        list[str] | None, typer.Option("--set", help="section.key=value, repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    accept_noncommercial: AcceptNoncommercial = False,
    overfit: Annotated[
        bool, typer.Option("--overfit", help="Repeat one batch: can it be learned?")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Show what a config can name, with defaults, and stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: as JSON.")] = False,
) -> None:
    """Train with Lagrangian duality. Ctrl-C finishes the step and saves; --resume goes on exactly.

    A config names objectives, constraints, augmentations, degradations and a dataset: --list shows
    all of them with their defaults; docs/reference.md is the same as a page.

    Example: ducos train configs/shapes.toml -o runs/shapes --set data.augmentations.colour=0.5

    Several processes: torchrun --nproc-per-node 2 -m ducos train CONFIG.toml
    """
    if listed:
        print_tables(as_json=as_json)
        return
    if as_json:
        raise InputError("--json goes with --list; a run's figures are in its metrics.jsonl")
    if config is None:
        raise InputError("train takes a TOML file, such as configs/shapes.toml, or --list")
    from ducos.training import load_config
    from ducos.training import train as run

    changes = list(override or [])
    if accept_noncommercial:
        changes.append("model.prompt_options.accept_noncommercial=true")
    final = run(load_config(config, changes), out, resume=resume, overfit=overfit)
    if final:
        print(f"done: {final}")
    else:
        print(f"stopped and saved; continue with: ducos train {config} -o {out} --resume")


def print_tables(*, as_json: bool) -> None:
    """What a training config can name, for people or for machines."""
    from ducos.training import TRAINING, as_data, shown

    if as_json:
        print(json.dumps(as_data(TRAINING)))
        return
    for title, listing in TRAINING.items():
        print(f"{title}: {listing.use}")
        for row in listing.rows():
            print(f"  {row.name}: {shown(row.defaults)}")
            print(textwrap.fill(row.about, 96, initial_indent=" " * 6, subsequent_indent=" " * 6))
        print()


def evaluate(
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
        Path | None, typer.Option(help="Folder for results.json, results.csv, pictures.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Score the files of this folder instead of running a model.")
    ] = None,
    save_predictions: Annotated[
        bool, typer.Option("--save-predictions", help="Keep each prediction under --out.")
    ] = False,
    pictures: Annotated[int, typer.Option(help="How many error-map pictures per row.")] = 0,
    accept_noncommercial: AcceptNoncommercial = False,
    as_json: Json = False,
) -> None:
    """Score models on datasets under a named protocol.

    Example: ducos eval --model bicubic --dataset bench:middlebury30 --scale 4 --scale 8
    """
    from ducos.evaluation import run_evaluation
    from ducos.upscaling import load

    models: Any = model or []
    if accept_noncommercial and not predictions:
        models = {name: load(name, accept_noncommercial=True) for name in models}
    run_evaluation(
        models=models,
        datasets=dataset or [],
        protocol=protocol,
        scales=scale or [],
        out=out,
        predictions=predictions,
        save_predictions=save_predictions,
        pictures=pictures,
        as_json=as_json,
    )


def reproduce_table(
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
    scale: Annotated[list[float] | None, typer.Option(help="Instead of the table's.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Instead of the table's.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder; default: reproduce/NAME.")
    ] = None,
    pictures: Annotated[
        int | None, typer.Option(help="Error-map pictures per dataset and scale.")
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
    from ducos.evaluation import run_reproduction

    run_reproduction(
        name,
        datasets=datasets,
        data=data,
        places=dataset or [],
        models=model or [],
        weights=weights or [],
        scales=scale or [],
        protocol=protocol,
        out=out,
        pictures=pictures,
        images=images,
        timed=timed,
        as_json=as_json,
    )


def convert_weights(
    method: Annotated[str, typer.Argument(help="Name from `ducos models`, such as dctnet.")],
    file: Annotated[Path, typer.Argument(help="The authors' checkpoint.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Weight file to write, .safetensors.")],
) -> None:
    """Turn an authors' checkpoint into a weight file of ours; nothing in it is ever executed.

    Example: ducos convert dctnet 8X.pth -o dctnet-x8.safetensors
    """
    from ducos.files import check_output
    from ducos.models import MODELS, ModelSpec, arguments, convert, save_model

    check_output(out)
    if out.suffix != ".safetensors":
        raise InputError(f"weights are written as .safetensors, got {out}")
    weights = convert(method, file)
    spec = ModelSpec(method, kwargs=arguments(method, weights))
    about = {"licence": MODELS[method].licence, "converted_from": file.name}
    save_model(out, spec, weights, about)
    count = sum(tensor.numel() for tensor in weights.values())
    print(f"wrote {out}: {method}, {len(weights)} tensors, {count} numbers")
    print(f"licence of these weights: {MODELS[method].licence}")
