"""Low-resolution measurements on the image's grid: where they lie and how far to believe them.

What the classical methods share (`interpolation`, `window_filters`, `opencv_filters`,
`bilateral_solver`, `align`). Nothing in them is learned, so they are the honest floor under every
network. All their lengths are in low-resolution pixels, so that one default serves every ratio;
defaults were chosen on rendered scenes, never on a benchmark. Depth is never rounded to 8 or 16
bits.
"""

import torch
from torch import Tensor

from ducos.resize import Size, nearest

# Weight of a hole's filled value: next to nothing beside a measurement, all there is without one.
FILLED = 1e-4


def image_size(rgb: Tensor) -> Size:
    return rgb.shape[-2], rgb.shape[-1]


def upsampling_ratio(rgb: Tensor, low: Tensor) -> float:
    """Image pixels per low-resolution pixel, the larger of both axes."""
    return max(rgb.shape[-2] / low.shape[-2], rgb.shape[-1] / low.shape[-1])


def low_coordinates(H: int, W: int, low: Tensor) -> tuple[Tensor, Tensor]:
    """Where each row (H,) and column (W,) of the image lies, in pixels of low (B, 1, h, w)."""
    h, w = low.shape[-2:]
    rows = torch.arange(H, dtype=low.dtype, device=low.device)
    columns = torch.arange(W, dtype=low.dtype, device=low.device)
    return (rows + 0.5) * (h / H) - 0.5, (columns + 0.5) * (w / W) - 0.5


def trust(low: Tensor, valid: Tensor | None) -> Tensor:
    """One where measured, next to nothing where filled; (B, 1, h, w)."""
    return torch.ones_like(low) if valid is None else valid.to(low.dtype).clamp_min(FILLED)


def measured_share(low: Tensor, valid: Tensor | None, H: int, W: int, sigma: float) -> Tensor:
    """How far to believe the bicubic map: a bump around each measurement's centre, (B, 1, H, W).

    Between measurements bicubic values are guesses, and across an edge wrong ones.
    """
    row, column = low_coordinates(H, W, low)
    distance = (row - row.round()).square()[:, None] + (column - column.round()).square()
    bump = torch.exp(-distance / (2 * sigma**2))
    return nearest(trust(low, valid), (H, W)) * bump
