"""What a result owes to its measurements: where each pixel comes from, and whether it agrees."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.resize import bilinear, nearest


def trace(valid: Tensor, size: tuple[int, int]) -> Tensor:
    """`result.SOURCES` of each output pixel, (H, W) uint8, from the input's mask (1, 1, h, w)."""
    measured = nearest(valid.float(), size)[0, 0] > 0.5
    in_reach = nearest(F.max_pool2d(valid.float(), 5, stride=1, padding=2), size)[0, 0] > 0.5
    inferred = torch.full(size, 3, dtype=torch.uint8)
    source = torch.where(in_reach, torch.full_like(inferred, 2), inferred)
    return torch.where(measured, torch.ones_like(inferred), source)


def make_consistent(depth: Tensor, low: Tensor, valid: Tensor, rounds: int = 24) -> Tensor:
    """Back-projection: stretch the pixels under each measurement until their mean is the measured.

    Smoothly at first, then cell by cell for the small rest, so that hardly any cell border shows.
    Factors keep distances positive; maps that are not, or as good as zero somewhere, get
    differences.
    """
    size = (depth.shape[-2], depth.shape[-1])
    values = torch.cat([depth.flatten(), low[valid]])
    positive = bool(values.min() > 1e-6 * values.max())
    for turn in range(rounds):
        grow = bilinear if turn < rounds // 2 else nearest
        shrunk = shrink(depth, low)
        if positive:
            depth = depth * grow(torch.where(valid, low / shrunk, torch.ones_like(low)), size)
        else:
            depth = depth + grow(torch.where(valid, low - shrunk, torch.zeros_like(low)), size)
    return depth


def shrink(depth: Tensor, low: Tensor) -> Tensor:
    """What an ideal sensor of the input's size would measure: the mean over each pixel's area."""
    return F.adaptive_avg_pool2d(depth, (low.shape[-2], low.shape[-1]))


def disagreement(depth: Tensor, low: Tensor, valid: Tensor) -> float:
    """RMS difference between the result, shrunk to the input's size, and the valid input."""
    return float((shrink(depth, low) - low)[valid].square().mean().sqrt())
