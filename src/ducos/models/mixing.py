"""The mixing tail: the output is a weighted mean of nearby *measured* low-resolution pixels.

Instead of a depth value, the network predicts for each output pixel how to weigh the 4×4 low-resolution
pixels around it. The result serves every ratio with the same code, stays within the local measured range but
for a bounded residual, keeps edges sharp, gives an invalid neighbour no weight, and yields an
uncertainty: the weighted spread of the neighbours.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.prediction import Prediction
from ducos.resize import bicubic

TAPS = 4
HOLE_LOGIT = -20.0  # against a measured neighbour an invalid one weighs 2e-9


class Window(NamedTuple):
    """Where the 4×4 neighbours of each output pixel lie in the low-resolution map.

    rows (H, 4), columns (W, 4): indices, clamped to the map.
    prior (1, 16, H, W): log of a cubic B-spline at each neighbour's distance. The spline is zero
        where the window ends, so nothing jumps when the window moves on by a pixel.
    phase (1, 2, H, W): fractional position between low-resolution pixel centres, in [0, 1).
    """

    rows: Tensor
    columns: Tensor
    prior: Tensor
    phase: Tensor


def window_of(low_size: tuple[int, int], size: tuple[int, int], like: Tensor) -> Window:
    """The window for a low-resolution map of `low_size` under an image of `size`."""

    def axis(n: int, N: int) -> tuple[Tensor, Tensor, Tensor]:
        centre = (torch.arange(N, device=like.device, dtype=like.dtype) + 0.5) * (n / N) - 0.5
        first = centre.floor()
        offsets = torch.arange(TAPS, device=like.device) - 1
        index = first[:, None] + offsets  # (N, 4)
        distance = (index - centre[:, None]).abs()
        near = 2 / 3 - distance**2 + distance**3 / 2
        far = (2 - distance).clamp_min(0) ** 3 / 6
        weight = torch.where(distance < 1, near, far)
        return index.long().clamp(0, n - 1), weight.clamp_min(1e-6).log(), centre - first

    rows, log_y, phase_y = axis(low_size[0], size[0])
    columns, log_x, phase_x = axis(low_size[1], size[1])
    H, W = size
    # (4, 1, H, 1) + (1, 4, 1, W) -> (16, H, W), neighbours in row-major order
    prior = log_y.T[:, None, :, None] + log_x.T[None, :, None, :]
    phase = torch.stack([phase_y[:, None].expand(H, W), phase_x[None, :].expand(H, W)])
    return Window(rows, columns, prior.reshape(1, TAPS**2, H, W), phase[None])


def gather(low: Tensor, window: Window) -> Tensor:
    """The neighbours of each output pixel: low (B, 1, h, w) -> (B, 16, H, W)."""
    taps = []
    for a in range(TAPS):
        row = low.index_select(2, window.rows[:, a])  # (B, 1, H, w)
        taps += [row.index_select(3, window.columns[:, b]) for b in range(TAPS)]
    return torch.cat(taps, 1)


class MixingTail(nn.Module):
    """Body features at 1/stride -> depth at full size, from the measured values around each pixel.

    The body predicts per output pixel
      logits (16)  a preference for each neighbour,
      level (1)    where between the lowest and the highest neighbour the surface lies, and
      focus (1)    how strictly neighbours away from that level are refused,
      detail (1)   a residual bounded by half the local contrast,
      trust (1)    how far the result is pulled to agree with the measurements when shrunk again.
    """

    def __init__(self, channels: int, *, stride: int = 4, corrections: int = 2):
        super().__init__()
        self.stride = stride
        self.corrections = corrections
        self.predict = nn.Conv2d(channels, (TAPS**2 + 4) * stride**2, 3, padding=1)
        nn.init.zeros_(self.predict.bias)
        with torch.no_grad():
            self.predict.weight.mul_(0.1)  # start near the plain spline mean

    def forward(
        self,
        features: Tensor,
        low: Tensor,
        valid: Tensor | None,
        size: tuple[int, int],
        window: Window,
        neighbours: Tensor,
    ) -> Prediction:
        """features (B, C, ≥H/stride, ≥W/stride); low (B, 1, h, w); valid (B, 1, h, w) bool or None;
        neighbours (B, 16, H, W) = gather(low, window)."""
        H, W = size
        maps = F.pixel_shuffle(self.predict(features), self.stride)[..., :H, :W]
        logits, level, focus, detail, trust = maps.split([TAPS**2, 1, 1, 1, 1], 1)

        lowest = neighbours.amin(1, keepdim=True)
        contrast = neighbours.amax(1, keepdim=True) - lowest
        surface = lowest + torch.sigmoid(level) * contrast
        away = (neighbours - surface).abs() / (contrast + 1e-4)
        logits = logits + window.prior - 8 * F.softplus(focus) * away
        if valid is not None:
            logits = logits + HOLE_LOGIT * gather((~valid).to(low.dtype), window)
        weights = logits.softmax(1)  # (B, 16, H, W)

        depth = (weights * neighbours).sum(1, keepdim=True)
        spread = (weights * (neighbours - depth) ** 2).sum(1, keepdim=True)
        depth = depth + 0.5 * torch.tanh(detail) * contrast
        # Back-projection along the same weights: what the shrunk result misses of the measurement
        # is handed back to the pixels that the measurement was mixed into.
        trust = torch.sigmoid(trust)
        for _ in range(self.corrections):
            missing = low - bicubic(depth, (low.shape[-2], low.shape[-1]))
            if valid is not None:
                missing = missing * valid
            depth = depth + trust * (weights * gather(missing, window)).sum(1, keepdim=True)
        return Prediction(depth, {"sigma": (spread + 1e-12).sqrt()})
