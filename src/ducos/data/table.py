"""Datasets by name. Each yields `Pair`s: colour, ground truth, mask, and a real sensor map if any.

`open_dataset("nyu:path/to/nyu_depth_v2_labeled.mat,split=train")` is what configurations and the
command line use: the name, a colon, where the data lie, and the loader's own arguments.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ducos.data.pair import Dataset
from ducos.errors import InputError
from ducos.lazy import Later, options_of


def own(place: str, **given: Any) -> Later:
    """A callable of this room, imported when it is used."""
    return Later(f"ducos.data.{place}", **given)


@dataclass(frozen=True)
class DatasetEntry:
    """How a dataset is opened.

    function(PLACE, **options) -> Dataset. about: a sentence for people.
    place: what PLACE stands for in `name:PLACE`. counted: PLACE is a number, not a path.
    """

    function: Callable[..., Dataset]
    about: str
    place: str = "folder"
    counted: bool = False

    def __call__(self, place: str | int, **options: Any) -> Dataset:
        return self.function(place, **options)

    @property
    def defaults(self) -> dict[str, Any]:
        """The options and their defaults."""
        return options_of(self.function)


DATASETS: dict[str, DatasetEntry] = {
    "bench": DatasetEntry(
        own("bench:Bench"), "Scenes as sub-folders with rgb.png, depth.png and meta.json."
    ),
    "captures": DatasetEntry(
        own("captures:Captures"),
        "Maps of real cameras: sub-folders with rgb.*, depth.*, meta.json; the map is asked back.",
    ),
    "csv": DatasetEntry(
        own("folder:Manifest"),
        "Your own pairs, listed in a CSV file with columns rgb, depth, and maybe low and scale.",
        place="CSV file",
    ),
    "folder": DatasetEntry(
        own("folder:Folder"),
        "Your own pairs in a folder: rgb/, depth/, maybe low/, or names that end in _rgb, _depth.",
    ),
    "hypersim": DatasetEntry(
        own("hypersim:Hypersim"), "Hypersim (ICCV 2021): rendered rooms in the official layout."
    ),
    "lu": DatasetEntry(own("levels:Lu"), "Lu: 6 pairs in 8-bit levels."),
    "middlebury": DatasetEntry(
        own("levels:Middlebury"), "Middlebury: 30 pairs in 8-bit disparity levels."
    ),
    "nyu": DatasetEntry(
        own("nyu:Nyu"),
        "NYU Depth v2: 1449 labelled pairs; the field trains on 1000 and tests on 449.",
        place="nyu_depth_v2_labeled.mat",
    ),
    "rgbdd": DatasetEntry(
        own("rgbdd:Rgbdd"), "RGB-D-D (CVPR 2021): image and ground truth, without the phone's map."
    ),
    "rgbdd-real": DatasetEntry(
        own("rgbdd:RgbddReal"), "RGB-D-D with the phone's own 192×144 depth map as input."
    ),
    "shapes": DatasetEntry(
        own("shapes:Shapes"),
        "Generated planes, discs and boxes, for tests and a first training run.",
        place="number of scenes",
        counted=True,
    ),
    "synth": DatasetEntry(own("synth:Synth"), "Rooms rendered by `ducos synth`."),
    "tofdsr": DatasetEntry(
        own("tofdsr:Tofdsr"), "TOFDSR: image and ground truth, without the phone's map."
    ),
    "tofdsr-real": DatasetEntry(
        own("tofdsr:TofdsrReal"), "TOFDSR with the phone's own 192×144 ToF map as input."
    ),
}

_OPTION = re.compile(r"(?P<key>[a-z_]+)=(?P<value>[^,]*)")


def open_dataset(spec: str) -> Dataset:
    """Open `name:PLACE` or `name:PLACE,key=value,...`.

    PLACE is a folder, a file or a number, as the dataset's entry says. The keys are the arguments
    of the dataset's class, for example `split=train` or `scale=0.001`.
    """
    name, place, options = check_dataset(spec)
    _place, *keys = inspect.signature(DATASETS[name].function).parameters
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
    entry = DATASETS[name]
    if entry.counted:
        count = _number_or_text(where)
        if not isinstance(count, int):
            raise InputError(f"{name}:N takes the {entry.place}, got {where!r}")
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
