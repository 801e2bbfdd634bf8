"""One table or figure of the paper, measured as far as data and weights are here."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ducos.data import open_dataset
from ducos.errors import InputError
from ducos.evaluation import published
from ducos.evaluation.protocols import find
from ducos.evaluation.reproduction import output
from ducos.evaluation.reproduction.ablations import prompt_table, training_commands
from ducos.evaluation.reproduction.inputs import (
    Contestant,
    chosen_parts,
    chosen_scales,
    find_contestants,
    limited,
    locate,
    network_of,
)
from ducos.evaluation.reproduction.measuring import block_of, measure
from ducos.evaluation.reproduction.priors import prior_table, real_pairs, upscalers_of
from ducos.evaluation.reproduction.recipes import RECIPES, WITH_SMALL, Part, Recipe
from ducos.evaluation.reproduction.report import Block, Line, Report
from ducos.evaluation.scoring import Progress
from ducos.upscaling import Options


def reproduce(
    name: str,
    *,
    datasets: Sequence[str] = (),
    data: Path | None = None,
    places: Sequence[str] = (),
    models: Sequence[str] = (),
    weights: Sequence[str] = (),
    prompts: Sequence[str] = (),
    priors: Path | None = None,
    scales: Sequence[float] = (),
    protocol: str | None = None,
    options: Options | None = None,
    out: Path | None = None,
    pictures: int | None = None,
    images: int = 0,
    timed: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Measure one table or figure of the paper as far as data and weights are here.

    Args:
        name: one of `RECIPES`.
        datasets: which of the recipe's datasets; all if empty.
        data: folder that holds datasets, in any of the layouts of published/datasets.toml.
        places: DATASET=SPEC, such as middlebury=bench:DIR; stronger than `data`.
        models: names or weight files to measure at every scale; by default bicubic and the
            embedded model.
        weights: METHOD=FILE, or METHOD=FILE@SCALE for weights of one scale.
        prompts: for `prompts`: NAME or NAME=WEIGHTS, as `Options.prompt`; ducos-small is measured
            with the depth of each as its prior.
        priors: for `prompts`: folder of real images with stored outputs of foundation models.
        scales: instead of the recipe's. protocol: instead of the recipe's.
        options: how the models run, as for `evaluate`.
        out: folder for the report, results of each run and pictures.
        pictures: error-map sheets per dataset and scale, instead of the recipe's number.
        images: measure only so many images of each dataset, evenly spread; 0 for all.
        timed: for `prompts`, also measure seconds of each prompt on one image.
    """
    if name not in RECIPES:
        raise InputError(f"nothing to reproduce as {name!r}; choose one of: {', '.join(RECIPES)}")
    recipe = RECIPES[name]
    if protocol is not None:
        find(protocol)
    parts = chosen_parts(recipe, datasets)
    if (prompts or priors) and name != "prompts":
        raise InputError(f"--prompt and --priors belong to `reproduce prompts`, got {name}")
    contestants = find_contestants(recipe, models, weights, prompts)
    specs = locate({part.dataset for part in parts}, data, places)
    sheets = recipe.pictures if pictures is None else pictures
    if sheets and out is None:
        raise InputError("error maps need a folder to go to; pass out (-o DIR)")

    for contestant in contestants:  # a wrong file is to fail now, not after an hour
        network_of(recipe, contestant)
    real = {} if priors is None else real_pairs(priors)
    upscalers = upscalers_of(contestants, options) if prompts or real else {}

    report = Report(name, f"{recipe.title} ({name})", notes=list(recipe.notes))
    report.curves = recipe.curves
    unused = set(contestants)
    absent: list[Block] = []
    for part in parts:
        chosen = find(protocol or part.protocol)
        present = part.dataset in specs
        dataset = limited(open_dataset(specs[part.dataset]), images) if present else None
        for scale in chosen_scales(part, chosen, scales):
            lines: list[Line] = []
            if dataset is not None:
                entered = [c for c in contestants if c.scale is None or c.scale == scale]
                unused -= set(entered)
                folder = None if out is None else out / "runs" / part.dataset / chosen.name
                lines = measure(
                    recipe,
                    part.dataset,
                    dataset,
                    chosen,
                    scale,
                    entered,
                    folder,
                    sheets,
                    progress,
                    options,
                )
            block = block_of(recipe, part, scale, dataset, chosen.label, lines)
            (report.blocks if present else absent).append(block)
    # Tables of datasets that are not here still show what is published.
    report.blocks += [block for block in absent if block.lines]
    _describe(report, recipe, name, parts, specs, images, set() if real else unused)
    if name == "prompts":
        report.tables.insert(0, prompt_table(timed))
        if prompts:
            report.notes.append(WITH_SMALL)
        if real:
            report.tables.insert(0, prior_table(real, upscalers, progress))
    if out is not None:
        report.pictures = sorted((out / "runs").rglob("pictures/**/*.png"))
        output.write_report(report, out)
    return report


def _describe(
    report: Report,
    recipe: Recipe,
    name: str,
    parts: Sequence[Part],
    specs: Mapping[str, str],
    images: int,
    unused: set[Contestant],
) -> None:
    """Everything a reader must know besides the figures."""
    known = published.benchmarks()
    for dataset in dict.fromkeys(part.dataset for part in parts):
        if dataset not in specs:
            report.skipped.append(
                f"{known[dataset].name} ({dataset}): not found; pass --data ROOT or"
                f" --dataset {dataset}=SPEC. To get it: {known[dataset].get}"
            )
    if images:
        report.notes.append(f"--images {images}: a part of each dataset, not the published figure")
    for table in dict.fromkeys(each for part in parts for each in part.tables):
        about = published.sources()[table]
        report.notes.append(f"{about['column']}: {about['source']}. {about['remarks']}")
    if recipe.variants is not None:
        report.tables.append(training_commands(name))
    rows = [row for row in published.raw("ablations") if row["study"] == name]
    if rows:
        about = published.sources()["ablations"]
        told = "; ".join(f"{row['variant']} {row['rmse']} {row['how']}" for row in rows)
        report.notes.append(f"{about['column']}: {about['source']}. {told}")
    lines = [line for block in report.blocks for line in block.lines]
    shown = {line.method for line in lines}
    measured = {line.method for line in lines if line.measured}
    for method, facts in published.methods().items():
        if method in shown and facts.missing:
            report.notes.append(f"{facts.name}: {facts.missing}")
        if method in measured and facts.remark:
            report.notes.append(f"{facts.name}: {facts.remark}")
    given = [each for each in unused if each.source.endswith(".safetensors")]
    for each in sorted(given, key=lambda c: (c.method, c.scale or 0)):
        at = "" if each.scale is None else f" at ×{each.scale:g}"
        report.notes.append(f"{each.method} ({each.source}) was not used: nothing here{at}")
