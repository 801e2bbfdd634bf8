"""The table of models: name -> how to build it. Adding one is a file and a line here."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from torch import nn

from ducos.errors import InputError, build
from ducos.models.baselines.cunet import CUNet
from ducos.models.baselines.dada import DADA
from ducos.models.baselines.dctnet import DCTNet
from ducos.models.baselines.djf import DJF
from ducos.models.baselines.dkn import DKN
from ducos.models.baselines.dornet import DORNet
from ducos.models.baselines.fdkn import FDKN
from ducos.models.baselines.fdsr import FDSR
from ducos.models.baselines.promptda import PromptDA
from ducos.models.baselines.sgnet import SGNet
from ducos.models.classical.align import Align
from ducos.models.classical.bilateral_solver import FastBilateralSolver
from ducos.models.classical.interpolation import Bicubic, Bilinear, Nearest
from ducos.models.classical.opencv_filters import DomainTransform, FastGlobalSmoother
from ducos.models.classical.prompt_alone import PromptAlone
from ducos.models.classical.window_filters import GuidedFilter, JointBilateral, WeightedMedian
from ducos.models.ducos.paper import DuCos
from ducos.models.ducos.released import DuCosReleased
from ducos.models.prediction import Prediction
from ducos.prompts import create_prompt


class Entry(NamedTuple):
    """How a model is built and what a user should know before choosing it.

    build(**kwargs) -> nn.Module; a model with a default `prompt` takes the prompt object first.
    licence: of the weights that go with it.
    """

    build: Callable[..., nn.Module]
    about: str
    licence: str = "Apache-2.0"
    prompt: str | None = None


COMPACT: dict[str, Any] = {
    "channels": 48,
    "iterations": 2,
    "blocks": 1,
    "recurrence": "reweight",
    "stride": 4,
    "deconvolve": False,
    "stage_residual": True,
    "gather_stages": True,
    "tail": "mixing",
    "guided": True,
}

MODELS: dict[str, Entry] = {
    "bicubic": Entry(Bicubic, "mask-aware bicubic interpolation; needs no weights"),
    "ducos": Entry(DuCos, "the paper's text, at full resolution", prompt="depth-anything-v2-s"),
    "ducos-compact": Entry(
        partial(DuCos, **COMPACT),
        "DuCos at 1/4 resolution with the mixing tail, for CPUs",
        prompt="tiny",
    ),
    "prompt-alone": Entry(
        PromptAlone, "a prompt's depth fitted to the input; for pre-training `tiny`", prompt="tiny"
    ),
    "ducos-released": Entry(
        DuCosReleased, "the authors' released network", "none", prompt="depth-anything-v2-s"
    ),
    "promptda-s": Entry(partial(PromptDA, "s"), "Depth Anything prompted by depth (CVPR 2025)"),
    "promptda-b": Entry(partial(PromptDA, "b"), "PromptDA, base", "none published"),
    "promptda-l": Entry(partial(PromptDA, "l"), "PromptDA, large"),
    "djf": Entry(DJF, "joint filtering by two encoders and a decoder (ECCV 2016)", "MIT"),
    "djfr": Entry(
        partial(DJF, residual=True), "DJF that corrects the bicubic map (TPAMI 2019)", "MIT"
    ),
    "cunet": Entry(CUNet, "common and unique sparse codes (TPAMI 2021)", "none stated"),
    "dkn": Entry(DKN, "learned weights and places to sample per pixel (IJCV 2021)", "GPL-3.0"),
    "fdkn": Entry(FDKN, "DKN at a quarter of the resolution (IJCV 2021)", "GPL-3.0"),
    "fdsr": Entry(FDSR, "high frequencies of the guide, fast (CVPR 2021)", "none published"),
    "dctnet": Entry(DCTNet, "guide edges by a cosine-transform solve (CVPR 2022)", "none stated"),
    "dornet": Entry(DORNet, "learns the degradation by itself (CVPR 2025)"),
    "dornet-t": Entry(partial(DORNet, tiny=True), "DORNet, the small one (CVPR 2025)"),
    "sgnet-x4": Entry(partial(SGNet, scale=4), "gradient and frequency guidance (AAAI 2024)"),
    "sgnet-x8": Entry(partial(SGNet, scale=8), "the same, for ×8"),
    "sgnet-x16": Entry(partial(SGNet, scale=16), "the same, for ×16"),
    "dada": Entry(DADA, "learned diffusion anchored to the input (CVPR 2023)", "MIT"),
    "nearest": Entry(Nearest, "copies the nearest measurement"),
    "bilinear": Entry(Bilinear, "linear interpolation, never overshoots"),
    "joint-bilateral": Entry(JointBilateral, "joint bilateral upsampling (2007)"),
    "weighted-median": Entry(WeightedMedian, "colour-weighted median (2013)"),
    "guided-filter": Entry(GuidedFilter, "guided filter fitted at low resolution (2010, 2015)"),
    "domain-transform": Entry(DomainTransform, "domain transform filter (2011)"),
    "fast-global-smoother": Entry(FastGlobalSmoother, "edge-aware least squares (2014)"),
    "fast-bilateral-solver": Entry(FastBilateralSolver, "bilateral-grid least squares (2016)"),
    "align": Entry(
        Align, "a prompt's depth robustly fitted to the measurements", prompt="depth-anything-v2-s"
    ),
}


def create(
    name: str, *, prompt: str | None = None, prompt_options: dict | None = None, **kwargs: Any
) -> nn.Module:
    """Build a model by name, with random weights.

    Args:
        prompt: name of the prompt for models that take one; "none" builds them without.
        prompt_options: arguments of the prompt, such as tuning="full" or weights=PATH.
        kwargs: arguments of the model itself.
    """
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}; choose one of: {', '.join(MODELS)}")
    entry = MODELS[name]
    chosen = prompt or entry.prompt
    if prompt_options and chosen in (None, "none"):
        raise InputError(f"{name} has no prompt here, got prompt options {prompt_options}")
    if entry.prompt is None and prompt is not None:
        raise InputError(f"{name} takes no prompt, got prompt={prompt!r}; leave it out")
    parts = []
    if chosen is not None:
        none = chosen == "none"
        parts.append(None if none else create_prompt(chosen, **(prompt_options or {})))
    return build(f"model {name}", entry.build, *parts, **kwargs)


__all__ = ["MODELS", "DuCos", "Entry", "Prediction", "create"]
