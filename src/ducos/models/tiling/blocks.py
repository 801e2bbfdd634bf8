"""`models.blocks` over rows: the parts that need a statistic of the whole image."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ducos.models.blocks import ChannelAttention, ResidualBlock, ResidualGroup
from ducos.models.tiling.rows import Rows, Stored, Workspace, local


def residual_block(work: Workspace, block: ResidualBlock, x: Rows) -> Stored:
    """ResidualBlock: the gate of its channel attention needs the mean of the whole map."""
    convolutions, attention = block.body[:3], block.body[3]
    assert isinstance(attention, ChannelAttention)
    y, mean = work.store_with_mean(local(convolutions, [x], x.channels, reach=2))
    gate = attention.conv_du(mean)
    work.overwrite(y, local(lambda x, y: torch.addcmul(x, y, gate), [x, y], x.channels))
    return y


def residual_group(work: Workspace, group: ResidualGroup, x: Rows) -> Rows:
    """ResidualGroup, all but its last convolution computed."""
    y = x
    for block in list(group.body)[:-1]:
        assert isinstance(block, ResidualBlock)
        y = residual_block(work, block, y)
    last = group.body[-1]
    return local(lambda x, y: x + last(y), [x, y], x.channels, reach=1)


class Moments(NamedTuple):
    """Variances and covariance of the channels of two maps a and b, each (1, C, 1, 1) float64."""

    variance_a: Tensor
    variance_b: Tensor
    covariance: Tensor

    def pearson(self, eps: float) -> Tensor:
        """`models.blocks.pearson` of a and b."""
        deviation = (self.variance_a * self.variance_b).sqrt()
        return self.covariance / (deviation + eps)

    def blended(self, alpha: Tensor) -> "Moments":
        """Moments of a and α a + (1 − α) b: no second look at the maps is needed."""
        beta = 1 - alpha
        covariance = alpha * self.variance_a + beta * self.covariance
        variance = alpha * covariance + beta * (alpha * self.covariance + beta * self.variance_b)
        return Moments(self.variance_a, variance.clamp_min(0), covariance)


def moments(work: Workspace, a: Rows, b: Rows) -> Moments:
    """Moments over the whole image, summed in float64."""
    count = a.height * a.width
    sums = torch.zeros(5, 1, a.channels, 1, 1, dtype=torch.float64, device=work.device)
    for first, last in work.strips(a, b):
        x, y = a.read(first, last).double(), b.read(first, last).double()
        products = (x, y, x * x, y * y, x * y)
        sums += torch.stack([product.sum((2, 3), keepdim=True) for product in products])
    mean_a, mean_b, square_a, square_b, product = sums / count
    return Moments(
        (square_a - mean_a**2).clamp_min(0),
        (square_b - mean_b**2).clamp_min(0),
        product - mean_a * mean_b,
    )


class Gathered:
    """A 1×1 convolution over the concatenation of several maps, summed up as they appear.

    So the maps need not all exist at once.
    """

    def __init__(self, work: Workspace, convolution: nn.Conv2d):
        self.work = work
        self.convolution = convolution
        self.seen = 0
        self.total: Stored | None = None

    def add(self, x: Rows) -> None:
        """The next maps of the concatenation."""
        weight = self.convolution.weight[:, self.seen : self.seen + x.channels]
        channels = self.convolution.out_channels
        self.seen += x.channels
        if self.total is None:
            bias = self.convolution.bias
            first = local(lambda x: nn.functional.conv2d(x, weight, bias), [x], channels)
            self.total = self.work.store(first)
        else:
            more = local(
                lambda total, x: total + nn.functional.conv2d(x, weight), [self.total, x], channels
            )
            self.work.overwrite(self.total, more)

    def result(self) -> Stored:
        """The convolution of everything that was added."""
        assert self.total is not None
        assert self.seen == self.convolution.in_channels
        return self.total
