"""The lines of a table: what was measured here, and what is published about the same."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from ducos.data import Dataset
from ducos.evaluation import published
from ducos.evaluation.cases import scale_name
from ducos.evaluation.protocols import UNITS, Protocol
from ducos.evaluation.reproduction.inputs import Contestant, network_of
from ducos.evaluation.reproduction.recipes import CONSTANT, Part, Recipe
from ducos.evaluation.reproduction.report import METRICS, Block, Line
from ducos.evaluation.results import Row
from ducos.evaluation.scoring import Progress, evaluate
from ducos.models import Prediction
from ducos.upscaling import Options


def measure(
    recipe: Recipe,
    name: str,
    dataset: Dataset,
    protocol: Protocol,
    scale: float | None,
    contestants: Sequence[Contestant],
    out: Path | None,
    pictures: int,
    progress: Progress | None,
    options: Options | None,
) -> list[Line]:
    """Run the contestants on one dataset at one scale."""
    networks = {c.method: network_of(recipe, c) for c in contestants if c.prompt is None}
    files = {c.method: Path(c.source) for c in contestants}
    if recipe.with_constant and protocol.normalisation == "target":
        networks["constant"] = Constant(CONSTANT)

    def rows_of(networks: dict[str, nn.Module], options: Options | None, place: str) -> list[Row]:
        return evaluate(
            networks,
            [dataset],
            protocol,
            () if scale is None else (scale,),
            out=None if out is None else out / place,
            pictures=pictures,
            progress=progress,
            options=options,
        )

    rows = rows_of(networks, options, scale_name(scale))
    for each in contestants:
        if each.prompt is not None:
            asked = Options.of(options, {"prompt": each.prompt})
            place = f"{scale_name(scale)}-{each.method}"
            rows += rows_of({each.method: network_of(recipe, each)}, asked, place)
    lines = []
    for row in rows:
        file = files.get(row.model, Path())
        lines.append(
            Line(
                name,
                protocol.label,
                scale,
                row.unit,
                row.model,
                _display(row.model),
                "measured",
                row.images,
                file.name if file.suffix == ".safetensors" else "",
                {metric: row.figures[metric] for metric in METRICS},
            )
        )
    return lines


class Constant(nn.Module):
    """The same value everywhere, whatever the input: what a method must beat to have seen depth."""

    def __init__(self, value: float):
        super().__init__()
        self.value = value

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        return Prediction(torch.full_like(rgb[:, :1], self.value))


def block_of(
    recipe: Recipe,
    part: Part,
    scale: float | None,
    dataset: Dataset | None,
    label: str,
    lines: list[Line],
) -> Block:
    """Measured lines with their published figures, then methods that are only published."""
    known = published.benchmarks()[part.dataset]
    by_method = {line.method: line for line in lines}
    level = part.dataset in ("middlebury", "lu")
    unit = UNITS[dataset.unit][0] if dataset is not None else ("level" if level else "cm")
    for column, figures in _published(recipe, part, scale):
        line = by_method.get(figures.method)
        if line is None:
            method = published.methods().get(figures.method)
            status = "reported" if method is None else method.status
            line = Line(
                part.dataset, label, scale, unit, figures.method, _display(figures.method), status
            )
            by_method[figures.method] = line
        line.reported[column] = figures
    x = "" if scale is None else f" ×{scale:g}"
    counted = f"{len(dataset)} of {known.images} images" if dataset is not None else "not here"
    title = f"{known.name}{x}, {unit}, {label}, {counted}"
    return Block(title, list(by_method.values()))


def _published(
    recipe: Recipe, part: Part, scale: float | None
) -> list[tuple[str, published.Figures]]:
    """(column, figures) of this dataset and scale, from all tables of the part."""
    found = []
    for name in part.tables:
        table = published.table(name)
        for figures in table.rows:
            at_scale = figures.scale is None or figures.scale == scale
            if figures.dataset == part.dataset and at_scale:
                found.append((table.column, figures))
    if recipe.variants is not None and not part.tables:
        column = published.sources()["ablations"]["column"]
        for row in published.raw("ablations"):
            if row["variant"] in recipe.variants:
                figures = published.Figures(row["variant"], part.dataset, None, float(row["rmse"]))
                found.append((column, figures))
    return found


def _display(method: str) -> str:
    known = published.methods().get(method)
    return known.name if known else method
