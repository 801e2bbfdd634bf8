"""Building blocks shared by several networks, smallest first."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ChannelAttention(nn.Module):
    """Scale each channel by a gate computed from its spatial mean (RCAN)."""

    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        squeezed = max(1, channels // reduction)
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.excite = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean((2, 3), keepdim=True)  # (B, C, 1, 1)
        return x * torch.sigmoid(self.excite(F.relu(self.squeeze(mean))))


class ResidualBlock(nn.Module):
    """conv - LeakyReLU - conv - channel attention, plus the input (RCAN's RCAB)."""

    def __init__(self, channels: int, reduction: int = 16, slope: float = 0.2, dilation: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.attention = ChannelAttention(channels, reduction)
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attention(self.conv2(F.leaky_relu(self.conv1(x), self.slope)))


class ResidualGroup(nn.Module):
    """Residual blocks, a convolution, plus the input: Res-G of the paper's pipeline figure."""

    def __init__(self, channels: int, blocks: int = 2, reduction: int = 16):
        super().__init__()
        self.blocks = nn.Sequential(*[ResidualBlock(channels, reduction) for _ in range(blocks)])
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(self.blocks(x))


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
