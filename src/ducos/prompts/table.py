"""The table of prompts: name -> how to build it. Adding one is a file and a line here."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ducos.errors import InputError, build
from ducos.lazy import Later
from ducos.prompts.licence import NONCOMMERCIAL, UNSTATED, check_licence, show_licence

DEPTH_ANYTHING = 518  # the size of its training images, which its authors' script uses, too


class Entry(NamedTuple):
    """build(**options) -> PromptModel; licence of its published weights; a sentence for people;
    side: pixels of the shorter side at which its relative depth is taken as a prior, None: never.
    """

    build: Callable[..., Any]
    licence: str
    about: str
    side: int | None = None


def own(place: str, **given: Any) -> Later:
    """A callable of this room, imported when it is used."""
    return Later(f"ducos.prompts.{place}", **given)


PROMPTS: dict[str, Entry] = {
    "tiny": Entry(
        own("tiny:TinyPrompt"), "Apache-2.0", "compact U-Net of ours, trainable on a CPU"
    ),
    "depth-anything-v2-s": Entry(
        own("depth_anything_v2:DepthAnythingV2", size="s"),
        "Apache-2.0",
        "the paper's default; inverse depth",
        DEPTH_ANYTHING,
    ),
    "depth-anything-v2-b": Entry(
        own("depth_anything_v2:DepthAnythingV2", size="b"),
        NONCOMMERCIAL,
        "inverse depth",
        DEPTH_ANYTHING,
    ),
    "depth-anything-v2-l": Entry(
        own("depth_anything_v2:DepthAnythingV2", size="l"),
        NONCOMMERCIAL,
        "inverse depth",
        DEPTH_ANYTHING,
    ),
    "dinov2-s": Entry(own("dinov2:Dinov2", size="s"), "Apache-2.0", "features only"),
    "dinov2-b": Entry(own("dinov2:Dinov2", size="b"), "Apache-2.0", "features only"),
    "dinov2-l": Entry(own("dinov2:Dinov2", size="l"), "Apache-2.0", "features only"),
    "unidepth-v2-s": Entry(own("unidepth_v2:UniDepthV2", size="s"), NONCOMMERCIAL, "metric depth"),
    "unidepth-v2-b": Entry(own("unidepth_v2:UniDepthV2", size="b"), NONCOMMERCIAL, "metric depth"),
    "unidepth-v2-l": Entry(own("unidepth_v2:UniDepthV2", size="l"), NONCOMMERCIAL, "metric depth"),
    "unidepth-v2old-s": Entry(
        own("unidepth_v2old:UniDepthV2Old", size="s"), NONCOMMERCIAL, "metric; the paper's Table 4"
    ),
    "unidepth-v2old-l": Entry(
        own("unidepth_v2old:UniDepthV2Old", size="l"), NONCOMMERCIAL, "metric; the paper's Table 4"
    ),
    "depthformer-swint": Entry(
        own("depthformer:DepthFormer", size="swint"), UNSTATED, "metric depth"
    ),
    "depthformer-swinl": Entry(
        own("depthformer:DepthFormer", size="swinl"), UNSTATED, "metric; the paper's Table 4"
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
    from ducos.prompts.prompt import set_tuning

    set_tuning(prompt, tuning or ("frozen" if weights else "full"))
    return prompt
