"""What a result owes to its measurements: where each pixel comes from, and whether it agrees."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.resize import nearest


def trace(valid: Tensor, size: tuple[int, int]) -> Tensor:
    """`result.SOURCES` of each output pixel, (H, W) uint8, from the input's mask (1, 1, h, w)."""
    measured = nearest(valid.float(), size)[0, 0] > 0.5
    in_reach = nearest(F.max_pool2d(valid.float(), 5, stride=1, padding=2), size)[0, 0] > 0.5
    inferred = torch.full(size, 3, dtype=torch.uint8)
    source = torch.where(in_reach, torch.full_like(inferred, 2), inferred)
    return torch.where(measured, torch.ones_like(inferred), source)


def shrink(depth: Tensor, low: Tensor) -> Tensor:
    """What an ideal sensor of the input's size would measure: the mean over each pixel's area."""
    return F.adaptive_avg_pool2d(depth, (low.shape[-2], low.shape[-1]))


def disagreement(depth: Tensor, low: Tensor, valid: Tensor) -> float:
    """RMS difference between the result, shrunk to the input's size, and the valid input."""
    return float((shrink(depth, low) - low)[valid].square().mean().sqrt())
