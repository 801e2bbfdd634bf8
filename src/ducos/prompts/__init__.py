"""The table of prompts: name -> how to build it. Adding one is a file and a line here.

Heavy libraries are imported when a prompt is built, not when this module is.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ducos.errors import InputError
from ducos.prompts.prompt import Prompt, PromptModel, set_tuning


class Entry(NamedTuple):
    """build(**options) -> PromptModel; licence of its weights; one sentence for people."""

    build: Callable[..., Any]
    licence: str
    about: str


def _tiny(**options: Any) -> Any:
    from ducos.prompts.tiny import TinyPrompt

    return TinyPrompt(**options)


PROMPTS: dict[str, Entry] = {
    "tiny": Entry(_tiny, "Apache-2.0", "compact U-Net of ours, trainable on a CPU"),
}


def create_prompt(name: str, *, tuning: str = "frozen", **options: Any) -> Any:
    """Build a prompt by name; `tuning` says what of it is trained: frozen, bias or full."""
    if name not in PROMPTS:
        raise InputError(f"unknown prompt {name!r}; choose one of: {', '.join(PROMPTS)}")
    prompt = PROMPTS[name].build(**options)
    set_tuning(prompt, tuning)
    return prompt


__all__ = ["PROMPTS", "Entry", "Prompt", "PromptModel", "create_prompt", "set_tuning"]
