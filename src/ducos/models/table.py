"""The table of models: name -> how to build it. Adding one is a file and a line here."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ducos.errors import InputError, build
from ducos.lazy import Later
from ducos.prompts import create_prompt

if TYPE_CHECKING:
    from ducos.models.protocol import Model


class Entry(NamedTuple):
    """How a model is built and what a user should know before choosing it.

    build(**kwargs) -> Model; a model with a default `prompt` takes the prompt object first.
    licence: of the weights that go with it.
    """

    build: "Callable[..., Model]"
    about: str
    licence: str = "Apache-2.0"
    prompt: str | None = None


def own(place: str, **given: Any) -> Later:
    """A callable of this room, imported when it is used."""
    return Later(f"ducos.models.{place}", **given)


MODELS: dict[str, Entry] = {
    "bicubic": Entry(
        own("classical.interpolation:Bicubic"), "mask-aware bicubic interpolation; needs no weights"
    ),
    "ducos": Entry(
        own("ducos.paper:DuCos"),
        "the paper's text, at full resolution",
        prompt="depth-anything-v2-s",
    ),
    "ducos-compact": Entry(
        own("ducos.compact:DuCosCompact"),
        "DuCos at 1/4 resolution with the mixing tail, for CPUs",
        prompt="tiny",
    ),
    "prompt-alone": Entry(
        own("classical.prompt_alone:PromptAlone"),
        "a prompt's depth fitted to the input; for pre-training `tiny`",
        prompt="tiny",
    ),
    "ducos-released": Entry(
        own("ducos.released:DuCosReleased"),
        "the authors' released network",
        "none",
        prompt="depth-anything-v2-s",
    ),
    "promptda-s": Entry(
        own("baselines.promptda:PromptDA", size="s"), "Depth Anything prompted by depth (CVPR 2025)"
    ),
    "promptda-b": Entry(
        own("baselines.promptda:PromptDA", size="b"), "PromptDA, base", "none published"
    ),
    "promptda-l": Entry(own("baselines.promptda:PromptDA", size="l"), "PromptDA, large"),
    "djf": Entry(
        own("baselines.djf:DJF"), "joint filtering by two encoders and a decoder (ECCV 2016)", "MIT"
    ),
    "djfr": Entry(
        own("baselines.djf:DJF", residual=True),
        "DJF that corrects the bicubic map (TPAMI 2019)",
        "MIT",
    ),
    "cunet": Entry(
        own("baselines.cunet:CUNet"), "common and unique sparse codes (TPAMI 2021)", "none stated"
    ),
    "dkn": Entry(
        own("baselines.dkn:DKN"),
        "learned weights and places to sample per pixel (IJCV 2021)",
        "GPL-3.0",
    ),
    "fdkn": Entry(
        own("baselines.fdkn:FDKN"), "DKN at a quarter of the resolution (IJCV 2021)", "GPL-3.0"
    ),
    "fdsr": Entry(
        own("baselines.fdsr:FDSR"),
        "high frequencies of the guide, fast (CVPR 2021)",
        "none published",
    ),
    "dctnet": Entry(
        own("baselines.dctnet:DCTNet"),
        "guide edges by a cosine-transform solve (CVPR 2022)",
        "none stated",
    ),
    "dornet": Entry(own("baselines.dornet:DORNet"), "learns the degradation by itself (CVPR 2025)"),
    "dornet-t": Entry(
        own("baselines.dornet:DORNet", tiny=True), "DORNet, the small one (CVPR 2025)"
    ),
    "sgnet-x4": Entry(
        own("baselines.sgnet:SGNet", scale=4), "gradient and frequency guidance (AAAI 2024)"
    ),
    "sgnet-x8": Entry(own("baselines.sgnet:SGNet", scale=8), "the same, for ×8"),
    "sgnet-x16": Entry(own("baselines.sgnet:SGNet", scale=16), "the same, for ×16"),
    "dada": Entry(
        own("baselines.dada:DADA"), "learned diffusion anchored to the input (CVPR 2023)", "MIT"
    ),
    "nearest": Entry(own("classical.interpolation:Nearest"), "copies the nearest measurement"),
    "bilinear": Entry(
        own("classical.interpolation:Bilinear"), "linear interpolation, never overshoots"
    ),
    "joint-bilateral": Entry(
        own("classical.window_filters:JointBilateral"), "joint bilateral upsampling (2007)"
    ),
    "weighted-median": Entry(
        own("classical.window_filters:WeightedMedian"), "colour-weighted median (2013)"
    ),
    "guided-filter": Entry(
        own("classical.window_filters:GuidedFilter"),
        "guided filter fitted at low resolution (2010, 2015)",
    ),
    "domain-transform": Entry(
        own("classical.opencv_filters:DomainTransform"), "domain transform filter (2011)"
    ),
    "fast-global-smoother": Entry(
        own("classical.opencv_filters:FastGlobalSmoother"), "edge-aware least squares (2014)"
    ),
    "fast-bilateral-solver": Entry(
        own("classical.bilateral_solver:FastBilateralSolver"), "bilateral-grid least squares (2016)"
    ),
    "align": Entry(
        own("classical.align:Align"),
        "a prompt's depth robustly fitted to the measurements",
        prompt="depth-anything-v2-s",
    ),
}


def create(
    name: str, *, prompt: str | None = None, prompt_options: dict | None = None, **kwargs: Any
) -> "Model":
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
    from ducos.models.protocol import as_model  # and with it torch, which the table does without

    return as_model(build(f"model {name}", entry.build, *parts, **kwargs))
