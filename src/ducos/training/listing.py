"""Every table as plain rows: what `ducos train --list` prints and the reference page is made of."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isinf
from typing import Any

from ducos.data import DATASETS
from ducos.degrade import DEGRADATIONS
from ducos.evaluation import PROTOCOLS, SUITES
from ducos.lazy import options_of
from ducos.models import MODELS
from ducos.prompts import PROMPTS
from ducos.training.augmentations import AUGMENTATIONS, MAPS, AugmentationEntry
from ducos.training.config import SENSOR
from ducos.training.table import CONSTRAINTS, OBJECTIVES, PRESETS, ConstraintEntry


@dataclass(frozen=True)
class Row:
    """An entry for people: its name, its defaults, its sentence."""

    name: str
    defaults: dict[str, Any]
    about: str


@dataclass(frozen=True)
class Listing:
    """A table: how a user names its entries, and how its rows are made."""

    use: str
    rows: Callable[[], list[Row]]


def _objectives() -> list[Row]:
    return [Row(n, {"weight": e.weight}, e.about) for n, e in OBJECTIVES.items()]


def _constraints() -> list[Row]:
    return [Row(name, _constraint(entry), entry.about) for name, entry in CONSTRAINTS.items()]


def _constraint(entry: ConstraintEntry) -> dict[str, Any]:
    """Its options, and the numbers of each preset that are not 0."""
    numbers = {p: {k: v for k, v in vars(c).items() if v} for p, c in entry.presets.items()}
    return {**entry.options, **numbers}


def _presets() -> list[Row]:
    return [Row(n, {"decay": e.decay}, e.about) for n, e in PRESETS.items()]


def _augmentations() -> list[Row]:
    return [Row(n, _augmentation(entry), entry.about) for n, entry in AUGMENTATIONS.items()]


def _augmentation(entry: AugmentationEntry) -> dict[str, Any]:
    """Its strength with the limits, and the low-resolution maps it is limited to."""
    facts: dict[str, Any] = {"strength": entry.default}
    if entry.range:
        limits = dict(zip(("least", "most"), entry.range, strict=True))
        facts |= {name: limit for name, limit in limits.items() if not isinf(limit)}
    if entry.needs:
        facts["needs"] = entry.needs
    if set(entry.maps) != set(MAPS):
        facts["maps"] = list(entry.maps)
    return facts


def _degradations() -> list[Row]:
    own = Row(SENSOR, {"kind": "real"}, "The low-resolution maps that the dataset comes with.")
    rows = [Row(n, {"kind": e.kind, **e.defaults}, e.about) for n, e in DEGRADATIONS.items()]
    return [own, *rows]


def _datasets() -> list[Row]:
    return [Row(n, {"place": e.place, **e.defaults}, e.about) for n, e in DATASETS.items()]


def _models() -> list[Row]:
    rows = []
    for name, entry in MODELS.items():
        facts = {"licence": entry.licence, "prompt": entry.prompt}
        stated = {key: value for key, value in facts.items() if value}
        rows.append(Row(name, {**stated, **_known(entry.build)}, entry.about))
    return rows


def _prompts() -> list[Row]:
    return [Row(n, {"licence": e.licence, **_known(e.build)}, e.about) for n, e in PROMPTS.items()]


def _known(function: Callable[..., Any]) -> dict[str, Any]:
    """Options that have a value by default."""
    return {name: value for name, value in options_of(function).items() if value is not None}


def _protocols() -> list[Row]:
    rows = []
    for name, protocol in PROTOCOLS.items():
        card = protocol.card()
        names = ("id", "low", "source", "scales", "modcrop", "border", "normalisation")
        rows.append(Row(name, {fact: card[fact] for fact in names}, protocol.about))
    return rows


def _suites() -> list[Row]:
    return [Row(n, {"cases": [case.name for case in e.cases]}, e.about) for n, e in SUITES.items()]


TRAINING: dict[str, Listing] = {
    "objectives": Listing("[train.objectives] name = weight", _objectives),
    "constraints": Listing(
        '[dual] constraints = ["name"]; [dual.name] epsilon = 0.01 and its own options',
        _constraints,
    ),
    "presets": Listing('[dual] preset = "name"', _presets),
    "augmentations": Listing("[data.augmentations] name = strength", _augmentations),
    "degradations": Listing("[data.degradations] name = share", _degradations),
    "datasets": Listing('[data] train = "name:PLACE,option=value"', _datasets),
}
"""What a training configuration can name."""

EVERYTHING: dict[str, Listing] = {
    **TRAINING,
    "models": Listing('[model] name = "name", kwargs = {option = value}', _models),
    "prompts": Listing('[model] prompt = "name", prompt_options = {option = value}', _prompts),
    "protocols": Listing("ducos eval --protocol name", _protocols),
    "suites": Listing("ducos eval --suite name --data DIR --captures DIR", _suites),
}


def as_data(listings: dict[str, Listing]) -> dict[str, Any]:
    """The tables for machines: name of the table -> its rows."""
    return {name: [asdict(row) for row in listing.rows()] for name, listing in listings.items()}


def shown(defaults: dict[str, Any]) -> str:
    """Defaults as one line: `epsilon 0.02, rate 0.1`."""
    return ", ".join(f"{name} {_value(value)}" for name, value in defaults.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return f"({shown(value) or 'nothing'})"
    if isinstance(value, list | tuple):
        return "/".join(_value(part) for part in value) or "none"
    return "unset" if value is None else str(value)
