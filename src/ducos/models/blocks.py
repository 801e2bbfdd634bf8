"""Building blocks shared by several networks, smallest first.

Module names are those of the RCAN family's checkpoints, so that published weights fit.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import handle_torch_function

from ducos.deferred import exporting, is_deferred, kept


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
        # In a graph as a pooling: onnxruntime then keeps the layout that its convolutions like.
        mean = F.adaptive_avg_pool2d(x, 1) if exporting() else x.mean((2, 3), keepdim=True)
        return x * self.conv_du(mean)


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
        *convolutions, attention = self.body
        y = x
        for layer in convolutions:
            y = layer(y)
        return kept(x + attention(y), over=y)


class ResidualGroup(nn.Module):
    """Residual blocks, a convolution, plus the input: Res-G of the paper's pipeline figure."""

    def __init__(self, channels: int, blocks: int = 2, reduction: int = 16):
        super().__init__()
        self.body = nn.Sequential(
            *[ResidualBlock(channels, reduction) for _ in range(blocks)], conv(channels, channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Moments(NamedTuple):
    """Variances and covariance of the channels of two maps a and b, each (B, C, 1, 1)."""

    variance_a: Tensor
    variance_b: Tensor
    covariance: Tensor

    def pearson(self, eps: float = 1e-6) -> Tensor:
        """Pearson correlation of a and b (Eq. 3), (B, C, 1, 1) in [-1, 1].

        A constant channel has no correlation with anything: eps, added to the product of the two
        standard deviations, makes it 0 instead of NaN.
        """
        # The square root's slope is infinite at zero: keep constant channels' gradient finite too.
        tiny = torch.finfo(self.covariance.dtype).tiny
        deviation = (self.variance_a * self.variance_b + tiny).sqrt()
        return self.covariance / (deviation + eps)

    def blended(self, alpha: Tensor) -> "Moments":
        """Moments of a and α a + (1 − α) b: no second look at the maps is needed."""
        beta = 1 - alpha
        covariance = alpha * self.variance_a + beta * self.covariance
        variance = alpha * covariance + beta * (alpha * self.covariance + beta * self.variance_b)
        return Moments(self.variance_a, variance.clamp_min(0), covariance)


def moments(a: Tensor, b: Tensor) -> Moments:
    """Moments over space of the channels of a and b, both (B, C, H, W), at least in float32."""
    if is_deferred(a, b):
        return handle_torch_function(moments, (a, b), a, b)
    wide = torch.promote_types(a.dtype, torch.float32)
    if exporting():  # one centred map at a time: runtimes hold every intermediate of a large image
        centred = a - a.mean((2, 3), keepdim=True)
        variance_a = centred.square().mean((2, 3), keepdim=True)
        variance_b = (b - b.mean((2, 3), keepdim=True)).square().mean((2, 3), keepdim=True)
        return Moments(variance_a, variance_b, (centred * b).mean((2, 3), keepdim=True))
    a = a - a.mean((2, 3), keepdim=True)
    b = b - b.mean((2, 3), keepdim=True)
    return Moments(*((x * y).mean((2, 3), True, dtype=wide) for x, y in ((a, a), (b, b), (a, b))))


def pearson(a: Tensor, b: Tensor, eps: float = 1e-6) -> Tensor:
    """Pearson correlation of each channel of a and b (B, C, H, W) over space, (B, C, 1, 1)."""
    return moments(a, b).pearson(eps)


class Gathered:
    """A 1×1 convolution over the concatenation of several maps, summed up as they appear.

    So the maps need not all exist at once.
    """

    def __init__(self, convolution: nn.Conv2d):
        self.convolution = convolution
        self.seen = 0
        self.total: Tensor | None = None

    def add(self, x: Tensor) -> None:
        """The next maps of the concatenation, (B, C, H, W)."""
        weight = self.convolution.weight[:, self.seen : self.seen + x.shape[1]]
        self.seen += x.shape[1]
        if self.total is None:
            self.total = kept(F.conv2d(x, weight, self.convolution.bias))
        else:
            self.total = kept(self.total + F.conv2d(x, weight), over=self.total)

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of what was added."""
        assert self.total is not None
        return self.total.shape[-2], self.total.shape[-1]

    def result(self) -> Tensor:
        """The convolution of everything that was added."""
        assert self.total is not None
        assert self.seen == self.convolution.in_channels
        return self.total
