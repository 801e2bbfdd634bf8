"""What a table is measured on and with: datasets found in folders, networks found by name or file.

Users name both; a wrong name is refused here, before anything is measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from torch import nn

from ducos.data import Dataset, Subset
from ducos.errors import InputError
from ducos.evaluation import published
from ducos.evaluation.protocols import Protocol
from ducos.evaluation.reproduction.recipes import Part, Recipe
from ducos.models import MODELS, load_model
from ducos.upscaling import default_model, load


def chosen_parts(recipe: Recipe, datasets: Sequence[str]) -> list[Part]:
    """Those of the recipe about these datasets; all if none is named."""
    names = list(dict.fromkeys(part.dataset for part in recipe.parts))
    for name in datasets:
        if name not in names:
            raise InputError(f"{recipe.title} has no dataset {name!r}; it has: {', '.join(names)}")
    return [part for part in recipe.parts if not datasets or part.dataset in datasets]


def chosen_scales(
    part: Part, protocol: Protocol, asked: Sequence[float]
) -> tuple[float | None, ...]:
    """What was asked for, else the recipe's; None where the protocol leaves it to the data."""
    return protocol.checked_scales(tuple(asked or part.scales))


def locate(
    wanted: set[str], data: Path | None, places: Sequence[str]
) -> dict[str, str]:  # dataset -> specification for open_dataset
    """Where each dataset lies; those that are nowhere are left out."""
    known = published.benchmarks()
    found: dict[str, str] = {}
    if data is not None:
        if not data.is_dir():
            raise InputError(f"{data} is not a folder; --data takes the one that holds datasets")
        for name in known:
            for place in known[name].places:
                loader, _, below = place.partition(":")
                if (data / below).exists():
                    found.setdefault(name, f"{loader}:{data / below}")
    for place in places:
        name, equals, spec = place.partition("=")
        if not equals or not spec or name not in known:
            raise InputError(
                f"--dataset takes NAME=SPEC, such as middlebury=bench:DIR; got {place!r};"
                f" names: {', '.join(known)}"
            )
        found[name] = spec
    return {name: spec for name, spec in found.items() if name in wanted}


def limited(dataset: Dataset, images: int) -> Dataset:
    """So many of its images, evenly spread; the dataset itself for 0."""
    if not 0 < images < len(dataset):
        return dataset
    spread = np.linspace(0, len(dataset) - 1, images).round().astype(int).tolist()
    return Subset(dataset, spread, dataset.name)


@dataclass(frozen=True)
class Contestant:
    """Something to measure. source: model name or weight file; scale: None for every scale;
    prompt: of the foundation model that makes its prior, as `--prompt` takes it."""

    method: str
    source: str
    scale: float | None = None
    prompt: str | None = None


def find_contestants(
    recipe: Recipe, models: Sequence[str], weights: Sequence[str], prompts: Sequence[str] = ()
) -> list[Contestant]:
    """Models for every scale, by default bicubic and ours; then weights, METHOD=FILE[@SCALE], and
    ducos-small with the depth of each of the prompts, NAME or NAME=WEIGHTS."""
    entered = [
        Contestant(published.method_of(Path(model).stem), model)
        for model in models or dict.fromkeys(("bicubic", default_model()))
    ]
    names = [*MODELS] if recipe.variants is None else [*recipe.variants]
    for text in weights:
        method, equals, rest = text.partition("=")
        if not equals or not rest or method not in names:
            raise InputError(
                f"--weights takes METHOD=FILE or METHOD=FILE@SCALE, got {text!r};"
                f" methods: {', '.join(names)}"
            )
        method = published.method_of(method)
        file, at, scale = rest.rpartition("@")
        try:
            entered.append(
                Contestant(method, file, float(scale)) if at else Contestant(method, rest)
            )
        except ValueError:
            raise InputError(f"the scale after @ is a number such as 8, got {text!r}") from None
    small = default_model(prior=True)
    entered += [Contestant(text.partition("=")[0], small, prompt=text) for text in prompts]
    for one, other in combinations(entered, 2):
        if one.method == other.method and (
            one.scale == other.scale or None in (one.scale, other.scale)
        ):
            raise InputError(f"{one.method} has two weight files for one scale; give one")
    return entered


def network_of(recipe: Recipe, contestant: Contestant) -> nn.Module:
    """Its network, loaded; a file that holds another method's weights is refused."""
    source = Path(contestant.source)
    if source.suffix != ".safetensors":
        return load(contestant.source)
    model, spec, _ = load_model(source)
    is_variant = recipe.variants is not None and contestant.method in recipe.variants
    known = contestant.method in MODELS or contestant.method in published.methods()
    if known and not is_variant and published.method_of(spec.name) != contestant.method:
        raise InputError(
            f"{source} holds weights of {spec.name}, not of {contestant.method}; name it so"
        )
    return model
