"""Weights: train them, or take over the authors'."""

import json
import shlex
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from ducos.cli.options import Overwrite, takes_options
from ducos.errors import InputError
from ducos.files import check_output, check_output_folder, check_replaced, existing_file
from ducos.models import MODELS
from ducos.upscaling import Options


@takes_options("device", "threads", "accept_noncommercial")
def train(
    options: Options,
    config: Annotated[
        Path | None, typer.Argument(help="TOML file; configs/ holds examples.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the run.")] = Path("runs/run"),
    override: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a value of the config: section.key=value, repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    overfit: Annotated[
        bool, typer.Option("--overfit", help="Repeat one batch: can it be learned?")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Show what a config can name, with defaults, and stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: as JSON.")] = False,
) -> None:
    r"""Train with Lagrangian duality. Ctrl-C finishes the step and saves; --resume continues.

    A config names objectives, constraints, augmentations, degradations and a dataset: --list shows
    all of them with their defaults; docs/reference.md holds the same.

    Example: ducos train configs/shapes.toml -o runs/shapes --set data.augmentations.colour=0.5

    A config with \[\[stage]] tables is trained stage by stage, into OUT/1-name, OUT/2-name, ...;
    --set stage.NAME.train.steps=100 changes one of them.

    Several processes: torchrun --nproc-per-node 2 -m ducos train CONFIG.toml
    """
    if listed:
        print_tables(as_json=as_json)
        return
    if as_json:
        raise InputError("--json goes with --list; a run's figures are in its metrics.jsonl")
    if config is None:
        raise InputError("train takes a TOML file, such as configs/shapes.toml, or --list")
    from ducos.training import load_recipe  # pydantic, but not torch

    changes = list(override or [])
    if options.accept_noncommercial:
        changes.append("model.prompt_options.accept_noncommercial=true")
    recipe = load_recipe(config, changes)
    check_output_folder(out)
    from ducos.training import differences, train_recipe
    from ducos.training import train as run

    for difference in differences(recipe.base, out) if resume and not recipe.stages else []:
        print(f"note: the run was begun with {difference}", file=sys.stderr)
    how: dict[str, Any] = {"resume": resume, "overfit": overfit}
    how |= {"device": options.device, "threads": options.threads}
    final = train_recipe(recipe, out, **how) if recipe.stages else run(recipe.base, out, **how)
    if final:
        print(f"done: {final}")
    else:
        words = ["ducos", "train", str(config), "-o", str(out)]
        for change in override or []:
            words += ["--set", change]
        if options.accept_noncommercial:
            words.append("--accept-noncommercial")
        print(f"stopped and saved; continue with: {shlex.join([*words, '--resume'])}")


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


def convert_weights(
    method: Annotated[str, typer.Argument(help="Name from `ducos models`, such as dctnet.")],
    file: Annotated[Path, typer.Argument(help="The authors' checkpoint.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Weight file to write, .safetensors.")],
    overwrite: Overwrite = False,
) -> None:
    """Turn an authors' checkpoint into a weight file of ours; nothing in it is ever executed.

    Example: ducos convert dctnet 8X.pth -o dctnet-x8.safetensors
    """
    check_output(out)
    if out.suffix != ".safetensors":
        raise InputError(f"weights are written as .safetensors, got {out}")
    existing_file(file)
    check_replaced([out], [file], overwrite=overwrite)
    if method not in MODELS:
        raise InputError(f"unknown model {method!r}; choose one of: {', '.join(MODELS)}")
    from ducos.models import ModelSpec, arguments, convert, save_model

    weights = convert(method, file)
    spec = ModelSpec(method, kwargs=arguments(method, weights))
    about = {"licence": MODELS[method].licence, "converted_from": file.name}
    save_model(out, spec, weights, about)
    count = sum(tensor.numel() for tensor in weights.values())
    print(f"wrote {out}: {method}, {len(weights)} tensors, {count} numbers")
    print(f"licence of these weights: {MODELS[method].licence}")
