"""Building blocks shared by several networks, smallest first.

Module names are those of the RCAN family's checkpoints, so that published weights fit.
"""

import torch
from torch import Tensor, nn


def conv(inputs: int, outputs: int, kernel: int = 3) -> nn.Conv2d:
    """Convolution that keeps the size."""
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)


class ChannelAttention(nn.Module):
    """Scale each channel by a gate computed from its spatial mean (RCAN)."""

    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        squeezed = max(1, channels // reduction)
        self.conv_du = nn.Sequential(
            conv(channels, squeezed, 1), nn.ReLU(), conv(squeezed, channels, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.conv_du(x.mean((2, 3), keepdim=True))


class ResidualBlock(nn.Module):
    """conv - LeakyReLU - conv - channel attention, plus the input. slope 0 is a plain ReLU."""

    def __init__(self, channels: int, reduction: int = 16, slope: float = 0.2):
        super().__init__()
        self.body = nn.Sequential(
            conv(channels, channels),
            nn.LeakyReLU(slope),
            conv(channels, channels),
            ChannelAttention(channels, reduction),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class ResidualGroup(nn.Module):
    """Residual blocks, a convolution, plus the input: Res-G of the paper's pipeline figure."""

    def __init__(self, channels: int, blocks: int = 2, reduction: int = 16):
        super().__init__()
        self.body = nn.Sequential(
            *[ResidualBlock(channels, reduction) for _ in range(blocks)], conv(channels, channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


def pearson(a: Tensor, b: Tensor, eps: float = 1e-6) -> Tensor:
    """Pearson correlation of each channel over space (Eq. 3).

    A constant channel has no correlation with anything: eps makes it 0 instead of NaN.

    Args:
        a, b: (B, C, H, W).
        eps: added to the product of the two standard deviations.

    Returns:
        (B, C, 1, 1) in [-1, 1].
    """
    a = a - a.mean((2, 3), keepdim=True)
    b = b - b.mean((2, 3), keepdim=True)
    covariance = (a * b).mean((2, 3), keepdim=True)
    # The square root's slope is infinite at zero: keep constant channels' gradient finite too.
    tiny = torch.finfo(a.dtype).tiny
    deviation = (
        (a * a).mean((2, 3), keepdim=True) * (b * b).mean((2, 3), keepdim=True) + tiny
    ).sqrt()
    return covariance / (deviation + eps)
