"""A picture of a training run: losses, held-out error, and the dual variables at work."""

import json
from pathlib import Path

import numpy as np

from ducos.pictures import Curve, Picture, curve_panels, write_image
from ducos.training.table import CONSTRAINTS, OBJECTIVES

# Panel -> how the names of its numbers in metrics.jsonl begin, beside those of the tables.
DUAL_PANELS = {
    "held-out RMSE / bicubic": ("validation_relative_x", "validation_relative_sensor"),
    "multipliers": ("multiplier_",),
    "slack of the epoch": ("slack_",),
}


def loss_panels() -> dict[str, list[str]]:
    """Panel -> the objectives and constraints that it shows, as their entries say."""
    panels: dict[str, list[str]] = {}
    for table in (OBJECTIVES, CONSTRAINTS):
        for name, entry in table.items():
            if entry.panel:
                panels.setdefault(entry.panel, []).append(name)
    return panels


def draw_curves(out: Path) -> None:
    """curves.png beside metrics.jsonl: the run so far, for people."""
    picture = training_curves(out)
    if picture is not None:
        write_image(out / "curves.png", picture)


def training_curves(run: Path) -> Picture | None:
    """Draw metrics.jsonl of a run's folder; None while it has fewer than two points of anything."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        for name, value in row.items():
            points.setdefault(name, []).append((float(row["step"]), float(value)))
    drawn = {name: points[name] for name in sorted(points, key=by_length) if len(points[name]) > 1}
    panels: list[tuple[str, list[Curve]]] = []
    for title, names in loss_panels().items():
        panels.append((title, [Curve(n, smooth(p)) for n, p in drawn.items() if n in names]))
    for title, starts in DUAL_PANELS.items():
        panels.append(
            (title, [Curve(label(n), p) for n, p in drawn.items() if n.startswith(starts)])
        )
    panels = [(title, curves) for title, curves in panels if curves]
    return curve_panels(run.name, panels, "step", log="", marks=False) if panels else None


def by_length(name: str) -> tuple[int, str]:
    """×4 before ×16."""
    return len(name), name


def label(name: str) -> str:
    """What is left of a name beside its panel's title: ×4, edge."""
    for start in ("multiplier_", "slack_", "validation_relative_"):
        name = name.removeprefix(start)
    return f"×{name[1:]}" if name.startswith("x") and name[1:2].isdigit() else name


def smooth(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Running mean over a tenth of the points: batches of different scales differ a lot."""
    reach = max(1, len(points) // 20)
    values = np.array([y for _, y in points])
    means = [np.mean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]
    return [(x, float(y)) for (x, _), y in zip(points, means, strict=True)]
