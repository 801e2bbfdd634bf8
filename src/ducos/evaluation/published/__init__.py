"""Published figures as data: what papers and READMEs print, with where each number stands.

Nothing here was measured by this package. `tables.toml` says what each CSV file holds and what its
source is, `methods.toml` who is in them, `datasets.toml` which test sets they were measured on.
"""

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ducos.errors import InputError

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Figures:
    """One published row. Errors in cm, for Middlebury and Lu in grey levels; None: not printed.

    scale: None where the sensor decides it. delta105: percentage of pixels within a ratio of 1.05.
    """

    method: str
    dataset: str
    scale: float | None
    rmse: float
    mae: float | None = None
    delta105: float | None = None


@dataclass(frozen=True)
class Table:
    """Rows of one source. column: the heading they stand under beside measured figures."""

    title: str
    source: str
    column: str
    remarks: str
    rows: tuple[Figures, ...]


@dataclass(frozen=True)
class Method:
    """One method of the tables.

    models: the networks of this package that are it. remark: what to know of figures measured
        with its released weights. missing: why nothing of it can be measured
        here; empty when it can. never: nor by anybody.
    """

    name: str
    models: tuple[str, ...]
    remark: str = ""
    missing: str = ""
    never: bool = False

    @property
    def status(self) -> str:
        """What stands beside figures that were not measured here."""
        return "reported, not reproduced" if self.never else "reported"


@dataclass(frozen=True)
class Benchmark:
    """images: how many the published rows average over. places, get: see datasets.toml."""

    name: str
    images: int
    places: tuple[str, ...]
    get: str


@cache
def table(name: str) -> Table:
    """The published table of this name, one of those with figures per dataset."""
    about = sources()
    if name not in about:
        raise InputError(f"unknown published table {name!r}; choose one of: {', '.join(about)}")
    rows = tuple(
        Figures(
            row["method"],
            row["dataset"],
            _number(row["scale"]),
            float(row["rmse"]),
            _number(row["mae"]),
            _number(row["delta105"]),
        )
        for row in raw(name)
    )
    return Table(**about[name], rows=rows)


@cache
def sources() -> dict[str, dict[str, str]]:
    """Title, source, column and remarks of every table."""
    return _toml("tables")


@cache
def methods() -> dict[str, Method]:
    return {
        key: Method(**{**facts, "models": tuple(facts.get("models", [key]))})
        for key, facts in _toml("methods").items()
    }


def method_of(model: str) -> str:
    """The method this network is in the tables; networks that are in none are their own."""
    return next((key for key, method in methods().items() if model in method.models), model)


@cache
def benchmarks() -> dict[str, Benchmark]:
    return {
        key: Benchmark(**{**facts, "places": tuple(facts["places"])})
        for key, facts in _toml("datasets").items()
    }


def raw(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file as they are stored."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _toml(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _number(text: str) -> float | None:
    return float(text) if text else None
