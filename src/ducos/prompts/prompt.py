"""What every prompt returns, and what it declares about itself."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from ducos.deferred import at_once, is_deferred
from ducos.errors import InputError


class Prompt(NamedTuple):
    """What a foundation model says about a colour image.

    features: four maps F_1..F_4, each (B, channels[i], ?, ?) at the network's own resolution,
        covering exactly the image (so that resizing to H×W aligns them).
    depth: (B, 1, H, W) relative depth Y′, or None for prompts without a depth head.
    """

    features: tuple[Tensor, ...]
    depth: Tensor | None


@runtime_checkable
class PromptModel(Protocol):
    """A prompt is an ``nn.Module`` with these attributes; ``prompt(rgb) -> Prompt``.

    channels: channel count of each of the four feature maps.
    multiple_of: side multiple of the network's own working size (14 for ViT/14, 4 for `tiny`).
    inverse: True when `depth` grows towards the camera (disparity-like).
    licence: licence of the weights, as shown to the user.
    """

    channels: tuple[int, int, int, int]
    multiple_of: int
    inverse: bool
    licence: str

    def __call__(self, rgb: Tensor) -> Prompt:
        """rgb (B, 3, H, W) in [0, 1] of any size; resizing happens inside."""
        ...


TUNING = ("frozen", "bias", "full")


def set_tuning(module: torch.nn.Module, tuning: str) -> None:
    """Choose what of a prompt is trained: nothing, every bias (the authors' choice), or all."""
    if tuning not in TUNING:
        raise InputError(f"tuning must be one of {', '.join(TUNING)}, got {tuning!r}")
    for name, parameter in module.named_parameters():
        is_bias = name.rsplit(".", 1)[-1] == "bias"
        parameter.requires_grad_(tuning == "full" or (tuning == "bias" and is_bias))


def is_frozen(prompt: torch.nn.Module) -> bool:
    """Nothing in it is trained."""
    return not any(parameter.requires_grad for parameter in prompt.parameters())


def run_prompt(prompt: Any, rgb: Tensor) -> Prompt:
    """Ask a prompt about rgb (B, 3, H, W); a frozen one runs without autograd.

    Nothing is then kept for a backward pass, whatever the image or the mode of the model around it,
    and no gradient reaches the image through a frozen prompt.

    Of a deferred image only the features are had; a prompt that does not say `in_strips` runs at a
    working size of its own, on the whole image.
    """
    if is_deferred(rgb):
        if getattr(prompt, "in_strips", False):
            return Prompt(prompt(rgb).features, None)
        return Prompt(at_once(lambda image: prompt(image).features, rgb), None)
    with torch.set_grad_enabled(torch.is_grad_enabled() and not is_frozen(prompt)):
        return prompt(rgb)
