"""What every degradation keeps to: types of its arguments, zero in holes, one map per seed.

The form itself is told at the head of the package.
"""

import torch
from torch import Generator, Tensor

from ducos.errors import InputError

Rgb = Tensor | None
Seed = Generator | None
Low = tuple[Tensor, Tensor]


def with_zero_holes(low: Tensor, low_valid: Tensor) -> Low:
    """What is returned for maps (B, 1, h, w): 0 where low_valid is False."""
    return torch.where(low_valid, low, torch.zeros_like(low)), low_valid


def needs_metres(name: str, unit: str) -> None:
    """Refuse 8-bit codes: they are no distances."""
    if unit != "m":
        raise InputError(f"{name} models a metric sensor and needs depth in metres, got {unit!r}")


def standard_normal(like: Tensor, generator: Seed) -> Tensor:
    """Standard normal numbers; drawn on the generator's device, so that a seed means one map."""
    device = like.device if generator is None else generator.device
    return torch.randn(like.shape, generator=generator, device=device).to(like)


def uniform(like: Tensor, shape: tuple[int, ...], generator: Seed) -> Tensor:
    """Uniform numbers in [0, 1)."""
    device = like.device if generator is None else generator.device
    return torch.rand(shape, generator=generator, device=device).to(like)
