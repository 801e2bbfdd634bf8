"""A picture of a training run: losses, held-out error, and the dual variables at work."""

import json
from pathlib import Path

import numpy as np

from ducos.pictures import Curve, Picture, curve_panels

# Panel -> how the names of its numbers in metrics.jsonl begin.
PANELS = {
    "objectives (smoothed)": ("reconstruction", "rms", "hanging"),
    "constraints (smoothed)": ("alignment", "edge"),
    "held-out RMSE / bicubic": ("validation_relative_x", "validation_relative_sensor"),
    "multipliers": ("multiplier_",),
    "slack of the epoch": ("slack_",),
}
SMOOTHED = ("objectives (smoothed)", "constraints (smoothed)")


def training_curves(run: Path) -> Picture | None:
    """Draw metrics.jsonl of a run's folder; None while it has fewer than two points of anything."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    names = sorted({name for row in rows for name in row}, key=lambda name: (len(name), name))
    panels = []
    for title, beginnings in PANELS.items():
        curves = []
        for name in names:
            start = next((b for b in beginnings if name.startswith(b)), None)
            points = [(float(row["step"]), float(row[name])) for row in rows if name in row]
            if start is None or len(points) < 2:
                continue
            label = name.removeprefix(start).strip("_") if start.endswith(("_", "x")) else name
            label = f"×{label}" if start.endswith("x") else label
            curves.append(Curve(label, smooth(points) if title in SMOOTHED else points))
        if curves:
            panels.append((title, curves))
    if not panels:
        return None
    return curve_panels(run.name, panels, "step", log="", marks=False)


def smooth(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Running mean over a tenth of the points: batches of different scales differ a lot."""
    reach = max(1, len(points) // 20)
    values = np.array([y for _, y in points])
    means = [np.mean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]
    return [(x, float(y)) for (x, _), y in zip(points, means, strict=True)]
