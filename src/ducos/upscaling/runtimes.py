"""What computes: torch, which runs every model, or onnxruntime, which runs those of the package.

Both take a question, one pair whose units, holes and place are settled, and give the answer in the
unit of the measurements.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ducos.arrays import Floats
from ducos.errors import InputError
from ducos.files import DepthMap
from ducos.runtime import PLAIN, can_run, described
from ducos.upscaling.options import Options, is_name
from ducos.upscaling.weights import find_weights

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Question:
    """image (3, H, W) in [0, 1], where the measurements see it; low: the measurements. prior (H, W)
    or None. noise: one standard deviation of the measurements."""

    image: Floats
    low: DepthMap
    prior: Floats | None
    noise: float
    options: Options


class Answer(NamedTuple):
    """(H, W) each: depth and sigma in the unit of the measurements; leaned in [0, 1]; None of
    models that have none."""

    depth: Floats
    sigma: Floats | None = None
    leaned: Floats | None = None


class Runtime(Protocol):
    """network: what computes. bounded: results stay near the range of the measurements."""

    network: Any
    bounded: bool
    takes_prior: bool

    def answer(self, question: Question, progress: Progress | None) -> Answer: ...


def runtime_of(options: Options) -> Runtime:
    """The runtime for these options: the one asked for, or the one that starts faster."""
    if chosen_runtime(options) == "onnx":
        from ducos.upscaling.on_onnx import OnnxRuntime

        return OnnxRuntime(options)
    from ducos.upscaling.on_torch import TorchRuntime

    return TorchRuntime(options)


def chosen_runtime(options: Options) -> str:
    """ "onnx" or "torch"; refuses what cannot be."""
    obstacle = why_not_onnx(options)
    has_torch = find_spec("torch") is not None
    if options.runtime == "onnx" and obstacle:
        raise InputError(f"{obstacle}; choose --runtime torch or auto")
    if options.runtime == "onnx" or (options.runtime == "auto" and not obstacle):
        # Whoever chose the network that takes a prior will have one, sooner or later.
        wide = options.runtime == "auto" and has_torch and may_take_prior(options)
        return "torch" if wide else "onnx"
    if not has_torch:
        because = f"{obstacle}, and " if obstacle else ""
        raise InputError(f"{because}torch is not installed: pip install 'ducos[torch]'")
    return "torch"


def why_not_onnx(options: Options) -> str:
    """What keeps onnxruntime from doing this; "" if nothing does."""
    model = options.chosen_model
    if not is_name(model):
        return "a module runs on torch"
    kind = options.device.partition(":")[0]
    if kind in ("cuda", "mps") or (kind == "auto" and may_have_gpu()):
        return "a graphics card is used by torch"
    name, weights = os.fspath(model), find_weights(model)
    if weights is None:
        return "" if name in PLAIN else f"{name} runs on torch"
    if not can_run(weights):
        return f"{name} has no graphs beside its weights"
    if options.prior is not None:
        return "a prior needs torch"
    if options.prompt is not None:
        return "a prompt needs torch"
    return ""


def may_take_prior(options: Options) -> bool:
    """Whether the network could be given one on torch."""
    weights = find_weights(options.chosen_model)
    return weights is not None and bool(described(weights).get("takes_prior"))


def may_have_gpu() -> bool:
    """Whether torch is worth asking for a graphics card; to ask it takes a second."""
    if find_spec("torch") is None:
        return False
    return sys.platform == "darwin" or Path("/dev/nvidiactl").exists() or os.name == "nt"
