"""A training sample on its way: one patch as arrays, the patches of a batch, the finished batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ducos.arrays import Floats, Mask, Size
from ducos.hints import mode_of
from ducos.normalise import Range
from ducos.prompts import Prompt
from ducos.training.prompt_cache import patch_place


@dataclass
class Patch:
    """One image, then a square of it, in the dataset's unit; augmentations change it in place.

    rgb (n, n, 3), target and valid (n, n); low and low_valid (m, m) where a sensor measured them.
    kind: of its low-resolution map, see `augmentations.MAPS`. scale: image pixels per map pixel.
    image (H, W, 3): the whole (zoomed) one. top, left: of the square in it; fractions where the
    colours were shifted. mirror, upside_down, transpose: how it was turned, in this order.
    inverse: the target is inverse depth. prior (n, n): relative depth of what the image shows, as a
    monocular model would give it.
    """

    rgb: Floats
    target: Floats
    valid: Mask
    kind: str
    scale: float
    image: Floats
    low: Floats | None = None
    low_valid: Mask | None = None
    zoom: float = 1.0
    top: float = 0.0
    left: float = 0.0
    mirror: bool = False
    upside_down: bool = False
    transpose: bool = False
    inverse: bool = False
    prior: Floats | None = None

    def turn(self, change: Callable[[Any], Any]) -> None:
        """Change every map, (n, n) or (n, n, C), in the same way."""
        self.rgb, self.target, self.valid = map(change, (self.rgb, self.target, self.valid))
        if self.low is not None:
            self.low, self.low_valid = change(self.low), change(self.low_valid)
        if self.prior is not None:
            self.prior = change(self.prior)

    def place(self) -> Tensor:
        """Where the colours lie in their image, (2, 3), for the cut of stored features."""
        size: Size = (self.image.shape[0], self.image.shape[1])
        turned = {
            "mirror": self.mirror,
            "upside_down": self.upside_down,
            "transpose": self.transpose,
        }
        return patch_place(size, self.top, self.left, self.rgb.shape[0], **turned)


@dataclass
class Patches:
    """Those of one batch, in the dataset's unit: rgb (B,3,n,n), target and valid (B,1,n,n), low and
    low_valid (B,1,m,m), empty until they are made; inverse (B,); places (B,2,3) of the colours in
    their images; kind and scale as of `Patch`; makers: the sensor of each map; told: what the
    network is told about each, subject -> words; noise (B,): standard deviation of what noise was
    added to `low`, in its unit; prior (B,1,n,n): of images that have one, else flat;
    shrunk_by (B,3): whether `low` is the mean over each area, bicubic's or points; zeros: not to
    be told."""

    rgb: Tensor
    target: Tensor
    valid: Tensor
    inverse: Tensor
    places: Tensor
    kind: str
    scale: float
    makers: Sequence[str]
    told: dict[str, tuple[str, ...]]
    low: Tensor = field(default_factory=lambda: torch.empty(0))
    low_valid: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))
    noise: Tensor = field(default_factory=lambda: torch.empty(0))
    prior: Tensor | None = None
    shrunk_by: Tensor | None = None

    @classmethod
    def of(cls, patches: Sequence[Patch], makers: Sequence[str]) -> "Patches":
        """Stack patches of one kind and size."""

        def stacked(name: str) -> Tensor:
            return torch.stack([as_planes(getattr(patch, name)) for patch in patches])

        measured: dict[str, Any] = {}
        if patches[0].low is not None:
            measured = {"low": stacked("low"), "low_valid": stacked("low_valid")}
        if any(patch.prior is not None for patch in patches):
            flat = np.zeros_like(patches[0].target)
            priors = [flat if patch.prior is None else patch.prior for patch in patches]
            measured["prior"] = torch.stack([as_planes(prior) for prior in priors])
        return cls(
            rgb=stacked("rgb"),
            target=stacked("target"),
            valid=stacked("valid"),
            inverse=torch.tensor([patch.inverse for patch in patches]),
            places=torch.stack([patch.place() for patch in patches]),
            kind=patches[0].kind,
            scale=patches[0].scale,
            makers=makers,
            told={
                "mode": tuple(mode_of("auto", maker) for maker in makers),
                "sensor": ("unknown",) * len(patches),
            },
            noise=torch.zeros(len(patches)),
            **measured,
        )


def as_planes(m: NDArray[Any]) -> Tensor:
    """(n, n, C) or (n, n) -> (C, n, n), C = 1 for the latter."""
    planes = m[None] if m.ndim == 2 else m.transpose(2, 0, 1)
    return torch.from_numpy(np.ascontiguousarray(planes))


@dataclass
class Batch:
    """rgb (B,3,H,W) in [0,1]; low (B,1,h,w) and target (B,1,H,W) normalised by `range`, which comes
    from `low` alone; low_valid, valid: their masks, `valid` without what no one could tell from
    this `low` (the room beyond a sensor's reach); inverse (B,): target is inverse depth; prompt:
    stored features of these patches, where a cache was given; told: what the network is told about
    each patch, subject -> words; noise (B,): standard deviation of the noise that `low` has and
    `target` has not, in their normalised unit; 0 where none was added; prior (B,1,H,W) and
    shrunk_by (B,3): see `Patches`."""

    rgb: Tensor
    low: Tensor
    low_valid: Tensor
    target: Tensor
    valid: Tensor
    range: Range
    inverse: Tensor
    prompt: Prompt | None = None
    told: dict[str, tuple[str, ...]] = field(default_factory=dict)
    noise: Tensor = field(default_factory=lambda: torch.empty(0))
    prior: Tensor | None = None
    shrunk_by: Tensor | None = None

    def __post_init__(self) -> None:
        if not len(self.noise):
            self.noise = self.rgb.new_zeros(len(self.rgb))

    def part(self, start: int, stop: int) -> "Batch":
        """The samples start..stop, for one process of several."""
        return self._each(lambda tensor: tensor[start:stop])

    def to(self, device: torch.device) -> "Batch":
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        def apply(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, Prompt):
                depth = None if value.depth is None else change(value.depth)
                return Prompt(tuple(change(map) for map in value.features), depth)
            if isinstance(value, Range):
                return Range(change(value.lowest), change(value.highest))
            if isinstance(value, dict):
                return {subject: apply(words) for subject, words in value.items()}
            if isinstance(value, tuple):
                return tuple(value[i] for i in change(torch.arange(len(value))).tolist())
            return change(value)

        return Batch(*(apply(getattr(self, f.name)) for f in fields(self)))
