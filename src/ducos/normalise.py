"""Metres <-> network range, from the low-resolution input alone.

The field's loaders often normalise with the ground truth's minimum and maximum. A user has no
ground truth, so nothing here ever sees one: training, evaluation and inference share this file.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Range:
    """Affine map of metres [lowest, highest] to [0, 1]; one pair per image, each (B, 1, 1, 1)."""

    lowest: Tensor
    highest: Tensor

    @property
    def span(self) -> Tensor:
        """Highest minus lowest; one where the map is constant, so that nothing divides by zero."""
        span = self.highest - self.lowest
        return torch.where(span > 0, span, torch.ones_like(span))

    def apply(self, depth: Tensor) -> Tensor:
        return (depth - self.lowest) / self.span

    def undo(self, normalised: Tensor) -> Tensor:
        return normalised * self.span + self.lowest


def range_of(low: Tensor, valid: Tensor | None = None) -> Range:
    """Range of the valid pixels of low (B, 1, h, w); an image without any gets [0, 0]."""
    if valid is None:
        return Range(low.amin((1, 2, 3), keepdim=True), low.amax((1, 2, 3), keepdim=True))
    infinity = torch.full_like(low, torch.inf)
    lowest = torch.where(valid, low, infinity).amin((1, 2, 3), keepdim=True)
    highest = torch.where(valid, low, -infinity).amax((1, 2, 3), keepdim=True)
    zero = torch.zeros_like(lowest)
    return Range(
        torch.where(lowest.isfinite(), lowest, zero), torch.where(highest.isfinite(), highest, zero)
    )
