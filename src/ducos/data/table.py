"""Datasets by name. Each yields `Pair`s: colour, ground truth, mask, and a real sensor map if any.

`open_dataset("nyu:path/to/nyu_depth_v2_labeled.mat,split=train")` is what configurations and the
command line use: the name, a colon, where the data lie, and the loader's own arguments.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from ducos.data.pair import Dataset
from ducos.errors import InputError
from ducos.lazy import Later


def own(place: str, **given: Any) -> Later:
    """A callable of this room, imported when it is used."""
    return Later(f"ducos.data.{place}", **given)


DATASETS: dict[str, Callable[..., Dataset]] = {
    "bench": own("bench:Bench"),
    "csv": own("folder:Manifest"),
    "folder": own("folder:Folder"),
    "hypersim": own("hypersim:Hypersim"),
    "lu": own("levels:Lu"),
    "middlebury": own("levels:Middlebury"),
    "nyu": own("nyu:Nyu"),
    "rgbdd": own("rgbdd:Rgbdd"),
    "rgbdd-real": own("rgbdd:RgbddReal"),
    "shapes": own("shapes:Shapes"),
    "synth": own("synth:Synth"),
    "tofdsr": own("tofdsr:Tofdsr"),
    "tofdsr-real": own("tofdsr:TofdsrReal"),
}

_OPTION = re.compile(r"(?P<key>[a-z_]+)=(?P<value>[^,]*)")


def open_dataset(spec: str) -> Dataset:
    """Open `name:PLACE` or `name:PLACE,key=value,...`.

    PLACE is a folder or file, for `shapes` the number of scenes. The keys are the arguments of the
    dataset's class, for example `split=train` or `scale=0.001`.
    """
    name, place, options = check_dataset(spec)
    _place, *keys = inspect.signature(DATASETS[name]).parameters
    unknown = options.keys() - keys
    if unknown:
        raise InputError(
            f"{name} has no option {', '.join(sorted(unknown))};"
            f" it has: {', '.join(keys) or 'none'}"
        )
    return DATASETS[name](place, **options)


def check_dataset(spec: str) -> tuple[str, int | str, dict[str, int | float | str]]:
    """Name, place and options of a specification; InputError if it cannot be one.

    Cheap: no dataset is opened, nothing heavy is imported.
    """
    name, colon, rest = spec.partition(":")
    if not colon or not rest:
        raise InputError(f"a dataset is written as name:PLACE, got {spec!r}; names: {_names()}")
    if name not in DATASETS:
        raise InputError(f"unknown dataset {name!r} in {spec!r}; choose one of {_names()}")
    # Options are taken from the right, so that a path may hold commas of its own.
    parts = rest.split(",")
    options: dict[str, int | float | str] = {}
    while len(parts) > 1 and (match := _OPTION.fullmatch(parts[-1])):
        options[match["key"]] = _number_or_text(match["value"])
        parts.pop()
    where = ",".join(parts)
    if name == "shapes":
        count = _number_or_text(where)
        if not isinstance(count, int):
            raise InputError(f"shapes:N takes the number of scenes, got {where!r}")
        return name, count, options
    return name, where, options


def _number_or_text(text: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _names() -> str:
    return ", ".join(DATASETS)
