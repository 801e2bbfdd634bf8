"""Where the graphs of a network lie, and whether they belong to its weights."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ducos.errors import InputError

FORMAT = "ducos-pieces-1"
PIECES = ("fit", "start", "body", "propose", "hand_back", "settle")
PRIOR_PIECES = (
    "prior_curve",
    "prior_align",
    "prior_fit",
    "prior_suggest",
    "prior_start",
    "prior_body",
    "prior_propose",
)
"""Further pieces of a network that takes a prior."""


def place(weights: Path, piece: str) -> Path:
    """The graph of a piece of the network with these weights."""
    return weights.with_name(f"{weights.stem}.{piece}.onnx")


def description(weights: Path) -> Path:
    """What the pieces have in common: words, sizes, and which weights they were made for."""
    return weights.with_name(f"{weights.stem}.pieces.json")


def can_run(weights: Path) -> bool:
    """Whether there are graphs for these weights."""
    return description(weights).is_file()


def can_take_prior(weights: Path) -> bool:
    """Whether there are graphs for these weights with a prior."""
    return all(place(weights, piece).is_file() for piece in PRIOR_PIECES)


def described(weights: Path) -> dict[str, Any]:
    """The description of the pieces of these weights; refuses those of other weights."""
    if not description(weights).is_file():
        raise InputError(
            f"{weights.name} has no graphs beside it, which it needs without torch; install "
            "'ducos[torch]', or make them: ducos export --to pieces --model FILE"
        )
    about: dict[str, Any] = json.loads(description(weights).read_text(encoding="utf-8"))
    for name, digest in about["weights"].items():
        file = weights.with_name(name)
        if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise InputError(
                f"the graphs beside {weights.name} were made for another {name}; make them again: "
                "ducos export --to pieces --model FILE"
            )
    return about
