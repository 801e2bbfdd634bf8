"""What every model states about itself, so that nobody has to know which one it is.

    model(rgb, low, valid, told) -> Prediction

rgb (B, 3, H, W) in [0, 1]; low (B, 1, h, w) at its true size, normalised; valid (B, 1, h, w) bool
or None; told: what is known about the map beside its values, in words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from ducos.models.prediction import Prediction

Told = Mapping[str, str | Sequence[str] | Tensor]
"""Subject -> word for the whole batch, or one word for each of its maps: {"sensor": "tof"}; or, in
a graph, the place (B,) of each word among those that the network knows."""


class Model(nn.Module):
    """A network or a filter; the defaults are those of one with no demands.

    subjects: what it can be told: subject -> the words it knows, the one for "not known" first.
    multiple: images are padded to multiples of it inside; patches for a stored prompt must be.
    takes_prompt: its `forward` also takes `prompt=`, what its prompt says about exactly this rgb,
        where training has it stored.
    takes_confidence: `valid` may also be weights in [0, 1], how far each measurement is trusted.
    takes_noise: its `forward` also takes `noise=`, (B, 1, 1, 1) or (B, 1, h, w), one standard
        deviation of low.
    takes_shrunk_by: its `forward` also takes `shrunk_by=`, (B, 3): whether low is the mean over
        each area, bicubic's or points; for training, where it is known.
    takes_prior: its `forward` also takes `prior=`, (B, 1, H, W): any relative depth of the image.
    in_strips: its `forward` also takes deferred maps (see `ducos.deferred`).
    bounded: its results are kept near the range of the measurements.
    prompt: its foundation model, or None.
    """

    subjects: Mapping[str, tuple[str, ...]] = {}
    multiple: int = 1
    takes_prompt: bool = False
    takes_confidence: bool = False
    takes_noise: bool = False
    takes_shrunk_by: bool = False
    takes_prior: bool = False
    in_strips: bool = False
    bounded: bool = True
    prompt: Any

    def __init__(self) -> None:
        super().__init__()
        self.prompt = None

    def bytes_per_pixel(self) -> float | None:
        """What the whole pass holds at its worst moment, about, per pixel of the image and without
        the prompt's own needs; None if nobody has counted."""
        return None


class Adapted(Model):
    """A module from elsewhere, called as model(rgb, low, valid)."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module
        self.training = module.training

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        return self.module(rgb, low, valid)


def as_model(module: nn.Module) -> Model:
    """The module itself, or, if it is none of ours, what makes a model of it."""
    return module if isinstance(module, Model) else Adapted(module)
