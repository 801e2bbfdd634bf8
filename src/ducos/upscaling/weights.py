"""Which models can run here and now: embedded weight files, files of the user, plain filters."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from ducos.errors import InputError
from ducos.models import MODELS, read_about

WEIGHTS = Path(__file__).parents[1] / "weights"
FACTS = WEIGHTS / "facts.json"


@cache
def facts() -> dict[str, dict[str, Any]]:
    """Parameters and cost of every model by name: counted once and stored (scripts/facts.py)."""
    stored: dict[str, dict[str, Any]] = json.loads(FACTS.read_text())
    return stored


def default_model(prior: bool = False) -> str:
    """The embedded trained model, the one that takes a prior if there is one, or bicubic."""
    wanted = ("ducos-small", "ducos-tiny") if prior else ("ducos-tiny",)
    return next((name for name in wanted if embedded(name)), "bicubic")


def embedded(name: str) -> Path | None:
    """The weight file of this package with that name."""
    path = WEIGHTS / f"{name}.safetensors"
    return path if path.is_file() else None


def find_weights(model: str | os.PathLike[str] | None) -> Path | None:
    """The weight file behind a name or path; None for models that need none."""
    name = default_model() if model is None else os.fspath(model)
    try:
        path = embedded(name) or Path(name)
        if path.is_file():
            return path
    except OSError:  # such as a name that is too long
        path = Path("unknown")
    if path.exists():
        raise InputError(f"{name} is a folder or device; give a .safetensors file or a model")
    if name in MODELS:
        if needs_weights(name):
            raise InputError(
                f"{name} has no weights in this package; {how_to_get(name)}, then give the "
                ".safetensors file as the model"
            )
        return None
    if path.suffix:
        raise InputError(f"no such weight file: {name[:200]}")
    raise InputError(
        f"unknown model {name[:100]!r}; give a .safetensors file or one of: {', '.join(MODELS)}"
    )


def version_of(model: str | os.PathLike[str] | None) -> str | None:
    """The version that a model's weight file states; None if it has none."""
    path = find_weights(model)
    return None if path is None else read_about(path).get("version")


def needs_weights(name: str) -> bool:
    """Whether an entry of MODELS is a network; one from outside the package may be a filter."""
    if MODELS[name].prompt is not None:
        return True
    return name in facts() and facts()[name]["parameters"] > 0


def how_to_get(name: str) -> str:
    """What to do for weights of a model that ships without."""
    entry = MODELS[name]
    if entry.prompt is not None or entry.licence == "none published":
        return "train it (`ducos train`)"
    return f"train it (`ducos train`) or convert the authors' (`ducos convert {name} FILE`)"
