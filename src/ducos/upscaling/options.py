"""Options: everything that a user can say about one super-resolution, each with its sentence.

The library, the command line, batches and their workers all take these. A new option is one field
here; what a command shows for it and how a worker hears of it follow from the field. Checking
needs no arithmetic, so a mistake is refused before torch is imported.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ducos.doctor import parse_shift
from ducos.errors import InputError
from ducos.files import existing_file, given_meaning, is_points
from ducos.hints import MODES, SENSORS, check_sensor, mode_of
from ducos.upscaling.foundation import Foundation, foundation_of
from ducos.upscaling.weights import default_model, find_weights

MEMORY: dict[str, int | None] = {"auto": 10**9, "off": None}
FILES = ("mask", "confidence", "prior", "depth_intrinsics", "rgb_intrinsics", "extrinsics")
RUNTIMES = ("auto", "onnx", "torch")
DEVICES = ("auto", "cpu", "cuda", "mps")
REGISTRATION = (
    "registration needs all of --depth-intrinsics, --rgb-intrinsics and --extrinsics "
    "(depth_intrinsics, rgb_intrinsics, extrinsics); only a file of points needs no "
    "--depth-intrinsics"
)
IN_SPACE = "Cameras, clouds and meshes"
COMPUTING = "Computing"


def option(default: Any, about: str, typed: Any, panel: str | None = None) -> Any:
    """A field. typed: what the command line reads for it. panel: its heading in the help."""
    return field(default=default, metadata={"help": about, "typed": typed, "panel": panel})


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to super-resolve. `ducos upscale --help` shows the same sentences."""

    model: Any = option(
        None,
        "Name from `ducos models`, or a weight file (in Python also a module)."
        " Default: the embedded network.",
        str | None,
    )
    unit: str = option("auto", "Unit of the stored depth: auto, m, mm, cm or relative.", str)
    scale: float | None = option(None, "Metres per stored value, instead of a unit.", float | None)
    mask: Any = option(None, "Image that is 0 where depth is invalid.", Path | None)
    confidence: Any = option(
        None,
        "Image that says how far each measurement is trusted: 0 to 255, floats 0 to 1, or ARKit's"
        " 0, 1, 2. Where it is 0, depth is invalid.",
        Path | None,
    )
    prior: Any = option(
        None,
        "Relative depth of the colour image from any monocular model (Depth Anything, Depth Pro,"
        " MoGe ...): an image, .npy or .exr of any size, inverse or not. For ducos-small, which"
        " is then the default.",
        Path | None,
    )
    prompt: str | None = option(
        None,
        "Foundation model whose depth of the colour image becomes the prior: depth-anything-v2-s,"
        " -b or -l, which see the shorter side at 518 pixels. Weights come from the hub; or"
        " NAME=PLACE: the authors' file, a folder, another id of the hub.",
        str | None,
    )
    mode: str = option(
        "auto",
        "How far the measurements are trusted: "
        + "; ".join(f"{name} ({about})" for name, about in MODES.items())
        + "; auto repairs maps of --sensor tof and is faithful to all others.",
        str,
    )
    noise: float | None = option(
        None,
        "Noise of the measurements, one standard deviation in metres: a faithful result stays"
        " within two of them. Default: estimated from the map.",
        float | None,
    )
    sensor: str = option(
        "unknown",
        "Kind of camera that made the depth map, if known: "
        + ", ".join(f"{name} ({cameras})" for name, cameras in list(SENSORS.items())[1:])
        + ".",
        str,
    )
    keep_holes: bool = option(False, "Leave holes invalid instead of filling them.", bool)
    any_aspect: bool = option(
        False, "Accept a map whose aspect ratio differs from the image's.", bool
    )
    shift: str | tuple[float, float] = option(
        "check",
        "Misalignment of the depth map: image pixels too far right and down, such as 12,-3. check"
        " measures it as `ducos doctor` does and warns, auto also corrects it if it is sure, off"
        " does not measure it.",
        str,
    )
    depth_intrinsics: Any = option(
        None,
        "Intrinsics of the depth camera, a file; for registration, see docs/cameras.md.",
        Path | None,
        IN_SPACE,
    )
    rgb_intrinsics: Any = option(
        None,
        "Intrinsics of the colour camera, a file: JSON, YAML, text or .npy.",
        Path | None,
        IN_SPACE,
    )
    extrinsics: Any = option(
        None,
        "Pose from the depth camera to the colour camera, a file; for points, from their frame to"
        " the camera, also COLMAP's images.txt.",
        Path | None,
        IN_SPACE,
    )
    field_of_view: float | None = option(
        None,
        "Horizontal field of view in degrees, for a cloud without intrinsics.",
        float | None,
        IN_SPACE,
    )
    tile: str = option(
        "auto",
        "Memory for strips of a large image: auto (1 GB), off, or such as 400MB. The result is"
        " the same.",
        str,
        COMPUTING,
    )
    runtime: str = option(
        "auto",
        "What runs the network: torch (every model), onnx (the models of this package, without"
        " torch), or auto, which takes onnx where it can: it starts faster. Results agree to 1e-4"
        " of the range.",
        str,
        COMPUTING,
    )
    device: str = option("auto", "auto, cpu, cuda or mps; auto takes a GPU.", str, COMPUTING)
    threads: int | None = option(None, "CPU threads. Default: one per core.", int | None, COMPUTING)
    accept_noncommercial: bool = option(
        False, "Use a prompt whose weights forbid commercial use.", bool, COMPUTING
    )

    def __post_init__(self) -> None:
        given_meaning(self.unit, self.scale)
        check_sensor(self.sensor)
        mode_of(self.mode, self.sensor)
        if self.noise is not None and not 0 <= self.noise < float("inf"):
            raise InputError(f"noise is a standard deviation, 0 or more, got {self.noise:g}")
        parse_shift(self.shift)
        memory_limit(self.tile)
        check_device(self.device)
        if self.runtime not in RUNTIMES:
            raise InputError(f"runtime must be one of {', '.join(RUNTIMES)}, got {self.runtime!r}")
        if self.field_of_view is not None and not 0.01 <= self.field_of_view <= 179.9:
            raise InputError(f"field of view is 0.01 to 179.9 degrees, got {self.field_of_view:g}")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"threads must be 1 or more, got {self.threads}")
        if is_name(self.model) or self.model is None:
            find_weights(self.chosen_model)
        for name in FILES:
            if is_name(getattr(self, name)):
                existing_file(getattr(self, name))
        if self.prior is not None and self.prompt is not None:
            raise InputError("got a prior and a prompt, which makes one; give one of them")
        self.foundation  # noqa: B018, refuses what is none
        if self.extrinsics is not None or self.depth_intrinsics is not None:
            needs = (self.rgb_intrinsics, self.extrinsics)
            if None in needs:
                raise InputError(REGISTRATION)

    def check_depth(self, depth: Any) -> None:
        """Refuse what these options do not suffice for, once it is known what the depth is."""
        if self.extrinsics is not None and self.depth_intrinsics is None and not is_points(depth):
            raise InputError(REGISTRATION)

    @property
    def chosen_model(self) -> Any:
        """The model that runs: the one asked for, or the default for what is given."""
        has_prior = self.prior is not None or self.prompt is not None
        return default_model(prior=has_prior) if self.model is None else self.model

    @property
    def names_network(self) -> bool:
        """Whether a certain network is wanted, or one that takes a prior."""
        return any(each is not None for each in (self.model, self.prior, self.prompt))

    @property
    def foundation(self) -> Foundation | None:
        """The foundation model that makes the prior."""
        if self.prompt is None:
            return None
        return foundation_of(self.prompt, accept_noncommercial=self.accept_noncommercial)

    @property
    def inputs(self) -> list[Path]:
        """Files that these options name: masks, cameras, weights."""
        named = [getattr(self, name) for name in FILES]
        weights = find_weights(self.model) if is_name(self.model) else None
        prompt = self.foundation.file if self.foundation else None
        return [Path(value) for value in (*named, weights, prompt) if is_name(value)]

    @property
    def registers(self) -> bool:
        """Whether the depth map is to be brought into the colour camera first."""
        return self.depth_intrinsics is not None

    @classmethod
    def of(cls, options: "Options | None", changes: Mapping[str, Any]) -> "Options":
        """Given options, or the defaults, with some of them changed."""
        unknown = sorted(changes.keys() - {each.name for each in fields(cls)})
        if unknown:
            names = ", ".join(each.name for each in fields(cls))
            raise InputError(f"unknown option {unknown[0]!r}; choose from: {names}")
        return replace(options, **changes) if options is not None else cls(**changes)

    def plain(self) -> dict[str, Any]:
        """Values for JSON; a model, mask or camera in memory has no such value."""
        values = {}
        for each in fields(self):
            value = getattr(self, each.name)
            value = os.fspath(value) if isinstance(value, os.PathLike) else value
            if not isinstance(value, str | int | float | bool | tuple | None):
                raise InputError(f"{each.name} must be a name or a file here, got {type(value)}")
            values[each.name] = list(value) if isinstance(value, tuple) else value
        return values


OPTIONS: dict[str, Field[Any]] = {each.name: each for each in fields(Options)}
"""Name -> field, with its help in `metadata`."""


def is_name(value: Any) -> bool:
    """Whether it names something, rather than being it."""
    return isinstance(value, str | os.PathLike)


def memory_limit(tile: str) -> int | None:
    """Bytes that the pass through a network may take; None for no limit."""
    if tile in MEMORY:
        return MEMORY[tile]
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(MB|GB)", tile.strip(), re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise InputError(f"tile is auto, off or a size such as 400MB or 2GB, got {tile!r}")
    return int(float(match[1]) * {"MB": 10**6, "GB": 10**9}[match[2].upper()])


def check_device(device: str) -> None:
    """Refuse what no computer has; whether this one has it, torch will say."""
    kind, _, number = str(device).partition(":")
    if kind not in DEVICES or (number and not (kind == "cuda" and number.isdigit())):
        raise InputError(f"unknown device {device!r}; choose one of: {', '.join(DEVICES)}, cuda:1")
