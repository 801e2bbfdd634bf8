"""The table of prompts: name -> how to build it. Adding one is a file and a line here."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ducos.errors import InputError, build
from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from ducos.prompts.depthformer import DepthFormer
from ducos.prompts.dinov2 import Dinov2
from ducos.prompts.licence import NONCOMMERCIAL, UNSTATED, check_licence, show_licence
from ducos.prompts.prompt import Prompt, PromptModel, run_prompt, set_tuning
from ducos.prompts.tiny import TinyPrompt
from ducos.prompts.unidepth_v2 import UniDepthV2
from ducos.prompts.unidepth_v2old import UniDepthV2Old


class Entry(NamedTuple):
    """build(**options) -> PromptModel; licence of its published weights; a sentence for people."""

    build: Callable[..., Any]
    licence: str
    about: str


PROMPTS: dict[str, Entry] = {
    "tiny": Entry(TinyPrompt, "Apache-2.0", "compact U-Net of ours, trainable on a CPU"),
    "depth-anything-v2-s": Entry(
        partial(DepthAnythingV2, "s"), "Apache-2.0", "the paper's default; inverse depth"
    ),
    "depth-anything-v2-b": Entry(partial(DepthAnythingV2, "b"), NONCOMMERCIAL, "inverse depth"),
    "depth-anything-v2-l": Entry(partial(DepthAnythingV2, "l"), NONCOMMERCIAL, "inverse depth"),
    "dinov2-s": Entry(partial(Dinov2, "s"), "Apache-2.0", "features only"),
    "dinov2-b": Entry(partial(Dinov2, "b"), "Apache-2.0", "features only"),
    "dinov2-l": Entry(partial(Dinov2, "l"), "Apache-2.0", "features only"),
    "unidepth-v2-s": Entry(partial(UniDepthV2, "s"), NONCOMMERCIAL, "metric depth"),
    "unidepth-v2-b": Entry(partial(UniDepthV2, "b"), NONCOMMERCIAL, "metric depth"),
    "unidepth-v2-l": Entry(partial(UniDepthV2, "l"), NONCOMMERCIAL, "metric depth"),
    "unidepth-v2old-s": Entry(
        partial(UniDepthV2Old, "s"), NONCOMMERCIAL, "metric; the paper's Table 4"
    ),
    "unidepth-v2old-l": Entry(
        partial(UniDepthV2Old, "l"), NONCOMMERCIAL, "metric; the paper's Table 4"
    ),
    "depthformer-swint": Entry(partial(DepthFormer, "swint"), UNSTATED, "metric depth"),
    "depthformer-swinl": Entry(
        partial(DepthFormer, "swinl"), UNSTATED, "metric; the paper's Table 4"
    ),
}


def create_prompt(
    name: str, *, tuning: str | None = None, accept_noncommercial: bool = False, **options: Any
) -> Any:
    """Build a prompt by name.

    Args:
        tuning: what of it is trained: "frozen", "bias" or "full"; by default frozen if it has
            published weights and full if it starts from random ones.
        accept_noncommercial: the weights may be loaded although their licence forbids commercial
            use; without it they are refused.
        options: arguments of the prompt itself, such as weights=PATH.
    """
    if name not in PROMPTS:
        raise InputError(f"unknown prompt {name!r}; choose one of: {', '.join(PROMPTS)}")
    entry = PROMPTS[name]
    weights = options.get("weights")
    if weights:
        check_licence(name, entry.licence, accepted=accept_noncommercial)
    prompt = build(f"prompt {name}", entry.build, **options)
    if weights:
        show_licence(name, entry.licence, str(weights))
        # A checkpoint then leaves the frozen parts out: they come back from here.
        prompt.source = str(weights)
    set_tuning(prompt, tuning or ("frozen" if weights else "full"))
    return prompt


__all__ = ["PROMPTS", "Entry", "Prompt", "PromptModel", "create_prompt", "run_prompt", "set_tuning"]
