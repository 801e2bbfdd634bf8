"""The report of a reproduction as a picture: bars side by side, or curves over the scale."""

from collections.abc import Sequence

from ducos.evaluation.reproduction.report import Line, Report
from ducos.pictures import Bar, Curve, Panel, Picture, bar_panels, curve_panels

KEY = "RMSE, shorter is better. Filled: measured here. Outline: published. "
TICK = "Orange tick: published, trained on NYU v2."


def as_picture(report: Report) -> Picture | None:
    """Bars per dataset and scale, or curves over the scale; None when there are no figures."""
    if not any(line.measured or line.reported for b in report.blocks for line in b.lines):
        return None
    if report.curves:
        return _curves(report)
    panels = []
    for block in report.blocks:
        bars = [
            Bar(
                line.name,
                filled=line.measured.get("rmse"),
                outline=_rmse(line, report.columns, nyu_trained=False),
                tick=_rmse(line, report.columns, nyu_trained=True),
            )
            for line in block.lines
        ]
        panels.append(Panel(block.title.split(",")[0], bars))
    key = KEY + (TICK if any("NYU" in column for column in report.columns) else "")
    return bar_panels(report.title, panels, key)


def _rmse(line: Line, columns: Sequence[str], *, nyu_trained: bool) -> float | None:
    found = [
        line.reported[column].rmse
        for column in columns
        if column in line.reported and ("NYU" in column) == nyu_trained
    ]
    return found[0] if found else None


def _curves(report: Report) -> Picture:
    panels: dict[str, dict[str, Curve]] = {}
    for block in report.blocks:
        for line in block.lines:
            if line.measured and line.scale is not None:
                curves = panels.setdefault(line.dataset, {})
                curve = curves.setdefault(line.name, Curve(line.name, []))
                curve.points.append((line.scale, line.measured["rmse"]))
    shown = [(name, list(curves.values())) for name, curves in panels.items()]
    return curve_panels(report.title, shown, "RMSE against scale, both logarithmic")
