"""Resamplings: a smaller map of the same depth, nothing else.

`bicubic` is the field's synthetic protocol; most of the noise protocols and sensor models begin or
end with a step of this file.
"""

import torch
from torch import Tensor

from ducos import resize
from ducos.arrays import Size
from ducos.degrade.contract import Low, Rgb, Seed, with_zero_holes


def bicubic(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """Pillow's bicubic: the field's synthetic protocol."""
    return with_zero_holes(*resize.masked_bicubic(target, valid, size))


def nearest(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """The value at each low-resolution pixel's centre: no mixing of surfaces, but aliased."""
    low_valid = resize.nearest(valid.to(target.dtype), size) > 0.5
    return with_zero_holes(resize.nearest(target, size), low_valid)


def last_pixel(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """The pixel at the far corner of each low-resolution pixel: off by almost half a block.

    What DJF and DJFR were published with, and what their released weights expect.
    """
    rows, columns = (
        (torch.arange(1, few + 1, device=target.device) * many + few - 1) // few - 1
        for many, few in zip(target.shape[-2:], size, strict=True)
    )
    picked = (..., rows[:, None], columns)
    return with_zero_holes(target[picked], valid[picked])


def area(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """Mean of the valid part of each low-resolution pixel's area, border pixels by their share."""
    weight = valid.to(target.dtype)
    covered = area_mean(weight, size)
    total = area_mean(torch.where(valid, target, 0), size)
    return with_zero_holes(total / covered, covered > 0.5)


def area_mean(x: Tensor, size: Size) -> Tensor:
    """Exact mean over each target pixel's area, (B, 1, H, W) -> (B, 1, h, w), for any ratio."""
    vertical = _overlap(x.shape[-2], size[0], x)
    horizontal = _overlap(x.shape[-1], size[1], x)
    return vertical @ x @ horizontal.T


def _overlap(source: int, target: int, like: Tensor) -> Tensor:
    """Share (target, source) that each source pixel has in each target pixel; rows sum to 1."""
    edges = torch.arange(target + 1, device=like.device, dtype=torch.float64) * source / target
    start, stop = edges[:-1, None], edges[1:, None]
    pixel = torch.arange(source, device=like.device, dtype=torch.float64)
    shared = (torch.minimum(stop, pixel + 1) - torch.maximum(start, pixel)).clamp_min(0)
    return (shared * target / source).to(like.dtype)
