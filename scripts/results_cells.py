"""Stored runs, published figures and weight headers, and how a cell of a table shows them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import ducos.evaluation.published as published
from ducos.models import read_about
from ducos.upscaling import find_weights, version_of

REPOSITORY = Path(__file__).parent.parent
STORED = REPOSITORY / "docs" / "results"
OURS = "ducos-tiny"
SETS = {"middlebury30": "middlebury", "lu6": "lu", "nyu57": "nyu"}
NAMES = {
    "bicubic": "bicubic",
    OURS: "**ducos-tiny**",
    "fdkn": "FDKN, released weights",
    "dornet-t": "DORNet-T, released weights",
    "fdsr": "FDSR",
}
PAPERS = {
    "ducos": ("*DuCos, the paper's table*", "synthetic"),
    "fdsr": ("*FDSR, the paper's table*", "synthetic"),
    "fdkn": ("*FDKN, the paper's table*", "synthetic"),
    "wave": ("*WAVE, its table*", "synthetic_wave"),
}
NEVER_BROKEN = "\u00a0/\u00a0"  # a cell of three numbers stays on one line
Rows = list[dict[str, Any]]


# -------------------------------------------------------------------------------- what is stored


@cache
def reports() -> tuple[dict[str, Any], ...]:
    """Every stored run, by name."""
    return tuple(json.loads(p.read_text(encoding="utf-8")) for p in sorted(STORED.glob("*.json")))


def report(name: str) -> dict[str, Any]:
    """One run; empty if it has not been made."""
    return next((each for each in reports() if each["run"] == name), {})


def rmse(model: str, dataset: str, scale: int) -> float | None:
    """Of any run that measured it; published figures are none of these."""
    for each in reports():
        for row in each.get("rows", []):
            if (row["model"], row.get("dataset"), row.get("scale")) == (model, dataset, scale):
                return float(row["rmse"])
    return None


def printed(method: str, table: str, dataset: str, scale: int) -> float | None:
    """What a paper prints."""
    rows = published.table(table).rows
    found = [r.rmse for r in rows if (r.method, r.dataset, r.scale) == (method, dataset, scale)]
    return found[0] if found else None


def capture_rows(model: str) -> Rows:
    """The cases of cameras' maps that were measured for a model."""
    return [
        row
        for each in reports()
        for row in each.get("rows", [])
        if row["model"] == model and str(row.get("case", "")).startswith("captures")
    ]


# -------------------------------------------------------------------------------- cells


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def levels(values: list[float | None]) -> str:
    """Errors at rising scales; a dash for all if none is known."""
    return NEVER_BROKEN.join(map(number, values)) if any(values) else "–"


def shares(values: list[float | None], bases: list[float | None]) -> str:
    """Errors as shares of bicubic's."""
    return levels([v / b if v and b else None for v, b in zip(values, bases)])


def harmed(model: str) -> str:
    """`0 of 28`, and at which ratio if not at all of them."""
    rows = capture_rows(model)
    if not rows:
        return "–"
    cases = sum(row["images"] for row in rows)
    ratios = sorted(int(row["case"].rpartition("_x")[2]) for row in rows)
    where = "" if len(ratios) == 4 else " at " + " ".join(f"×{each}" for each in ratios)
    return f"{sum(row['harmed'] for row in rows):.0f} of {cases}{where}"


def seconds(model: str) -> str:
    rows = [row for row in report("cost").get("rows", []) if row["model"] == model]
    return number(rows[0]["seconds"]) if rows else "–"


def label(model: str) -> str:
    """A model with the version that was measured."""
    if model != OURS:
        return NAMES[model]
    return f"**{measured_version()}**"


def measured_version() -> str:
    versions = {r["weights"] for r in reports() if r["weights"].startswith(OURS)}
    return ", ".join(sorted(versions)) or OURS


def caution() -> str:
    """A sentence if figures are not of the weights that the package holds; else nothing."""
    embedded = f"{OURS} {version_of(OURS)}"
    if measured_version() == embedded:
        return ""
    return (
        f"\nThe embedded weights are `{embedded}`; figures of other versions are named with"
        " theirs and have not been measured again yet.\n"
    )


def photographs(model: str, scales: tuple[int, ...]) -> list[str]:
    """Middlebury and Lu in levels, NYU as a share of bicubic's error, of a measured model."""
    every = {place: [rmse(model, place, s) for s in scales] for place in SETS}
    bases = [rmse("bicubic", "nyu57", s) for s in scales]
    nyu = levels([1.0 for _ in scales]) if model == "bicubic" else shares(every["nyu57"], bases)
    return [levels(every["middlebury30"]), levels(every["lu6"]), nyu]


def papers(method: str, table: str, scales: tuple[int, ...]) -> list[str]:
    """The same of a published row."""
    every = {name: [printed(method, table, name, s) for s in scales] for name in SETS.values()}
    bases = [rmse("bicubic", "nyu449", s) for s in scales]
    return [levels(every["middlebury"]), levels(every["lu"]), shares(every["nyu"], bases)]


def lines(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    out = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*out, *("| " + " | ".join(row) + " |" for row in rows)])


def header_of(model: str) -> dict[str, Any]:
    """What a weight file of the package states about itself."""
    path = find_weights(model)
    return read_about(path) if path else {}
