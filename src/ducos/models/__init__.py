"""The table of models: name -> how to build it. Adding one is a file and a line here."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from ducos.errors import InputError
from ducos.models.bicubic import Bicubic
from ducos.models.ducos import DuCos
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


COMPACT = {
    "channels": 48,
    "iterations": 2,
    "blocks": 1,
    "recurrence": "reweight",
    "stride": 4,
    "deconvolve": False,
    "stage_residual": True,
    "gather_stages": True,
    "tail": "mixing",
}


def _compact(prompt: Any, **kwargs: Any) -> DuCos:
    return DuCos(prompt, **{**COMPACT, **kwargs})


MODELS: dict[str, Entry] = {
    "bicubic": Entry(Bicubic, "mask-aware bicubic interpolation; needs no weights"),
    "ducos": Entry(DuCos, "the paper's text, at full resolution", prompt="depth-anything-v2-s"),
    "ducos-compact": Entry(
        _compact, "DuCos at 1/4 resolution with the mixing tail, for CPUs", prompt="tiny"
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
    if entry.prompt is None:
        if prompt is not None:
            raise InputError(f"{name} takes no prompt, got prompt={prompt!r}; leave it out")
        return entry.build(**kwargs)
    chosen = prompt or entry.prompt
    built = None if chosen == "none" else create_prompt(chosen, **(prompt_options or {}))
    return entry.build(built, **kwargs)


__all__ = ["MODELS", "DuCos", "Entry", "Prediction", "create"]
