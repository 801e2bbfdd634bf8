"""What an evaluation hands out: rows of figures, results.json and results.csv, a table."""

import csv
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ducos import __version__
from ducos.evaluation.protocols import Protocol
from ducos.files import atomic_write


@dataclass
class Row:
    """Figures of one model on one dataset at one scale.

    unit: of the errors. input: what the low-resolution maps were made from, "target" or "sensor".
    figures: means over the images: the metrics, `missing` (percentage of the scored pixels without
        a prediction; each is scored as 0) and `seconds`.
    per_image: the same for each image, with its name.
    """

    model: str
    dataset: str
    protocol: str
    protocol_id: str
    scale: float
    unit: str
    input: str
    images: int
    figures: dict[str, float]
    per_image: list[dict[str, Any]] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """One flat dict without the single images; None where a figure is unknown."""
        facts = {name: value for name, value in vars(self).items() if name not in _NESTED}
        return {**facts, **known(self.figures)}


_NESTED = ("figures", "per_image")


def write_results(
    folder: Path,
    protocol: Protocol,
    models: Mapping[str, Mapping[str, Any]],
    rows: Sequence[Row],
    *,
    complete: bool,
) -> None:
    """results.json: everything, with the protocol; results.csv: one line per image."""
    results = {
        **versions(),
        "complete": complete,
        "protocol": protocol.card(),
        "models": models,
        "rows": [{**row.as_dict(), "per_image": row.per_image} for row in rows],
    }
    write_json(folder / "results.json", results)
    shared = ("model", "dataset", "protocol", "protocol_id", "scale", "unit", "input")
    with (
        atomic_write(folder / "results.csv") as temporary,
        temporary.open("w", newline="") as file,
    ):
        writer = csv.DictWriter(file, [*shared, *rows[0].per_image[0]])
        writer.writeheader()
        for row in rows:
            facts = {name: getattr(row, name) for name in shared}
            writer.writerows({**facts, **image} for image in row.per_image)


def versions() -> dict[str, Any]:
    """What a figure was measured with."""
    return {
        "ducos": __version__,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    }


def write_json(path: Path, results: Mapping[str, Any]) -> None:
    """Write plain values, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(results, indent=1, ensure_ascii=False))


def table(rows: Sequence[Row]) -> Any:
    """The rows as a rich table, under the name and id of their protocol; shares in percent."""
    from rich.table import Table

    columns = {
        "rmse": ("RMSE", 3),
        "mae": ("MAE", 3),
        "delta105": ("δ1.05", 2),
        "rmse_edge": ("edges", 3),
        "flying": ("flying", 2),
        "seconds": ("s", 2),
    }
    if any(row.figures["missing"] > 0 for row in rows):
        columns["missing"] = ("missing", 2)
    labels = dict.fromkeys(f"{row.protocol}@{row.protocol_id}" for row in rows)
    result = Table(box=None, pad_edge=False, title=", ".join(labels), title_justify="left")
    for title in ("model", "dataset"):
        result.add_column(title, overflow="fold")
    for title in ("scale", "n", *(title for title, _ in columns.values())):
        result.add_column(title, justify="right", no_wrap=True)
    result.add_column("unit", no_wrap=True)
    for row in rows:
        figures = [f"{row.figures[name]:.{digits}f}" for name, (_, digits) in columns.items()]
        result.add_row(
            row.model, row.dataset, f"×{row.scale:g}", str(row.images), *figures, row.unit
        )
    return result


def known(figures: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in figures.items()
    }
