"""`tiny`: a compact prompt network of our own that can be trained, and run, on a CPU.

It does what DuCos wants of a foundation model, at about a hundredth of the cost of a ViT: four
feature maps from coarse to fine and a relative depth with sharp edges. It is a small U-Net over
RGB that never computes anything at full resolution: space-to-depth by 4 on the way in, pixel
shuffle by 4 on the way out.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.deferred import kept, local
from ducos.errors import InputError
from ducos.prompts.prompt import Prompt
from ducos.resize import bilinear, from_cells, grown, to_cells

STRIDE = 4


class ConvBlock(nn.Module):
    """Two 3×3 convolutions around a residual.

    Without the normalisation nothing bounds the activations: the loss of relative depth does not
    see their scale, and they grow until the biases drown the image. It is taken per pixel, over the
    channels, so that one image is like a batch and a tile like the whole.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return local(self.changed, x, channels=x.shape[1], reach=2)

    def changed(self, x: Tensor) -> Tensor:
        """x (B, C, H, W) plus what the convolutions make of it."""
        return x + self.conv2(F.relu(self.conv1(normalised(x))))


class TinyPrompt(nn.Module):
    """rgb (B, 3, H, W) -> features at 1/32, 1/16, 1/8, 1/4 and inverse depth (B, 1, H, W)."""

    multiple_of = 32
    inverse = True
    in_strips = True
    licence = "Apache-2.0"

    def __init__(
        self,
        *,
        planes: int = 3,
        widths: tuple[int, int, int, int] = (32, 48, 64, 96),
        blocks: tuple[int, int, int, int] = (1, 1, 2, 1),
    ):
        """planes: of the input, 3 for RGB. widths and blocks run from 1/4 to 1/32 of its size."""
        super().__init__()
        if len(widths) != 4 or len(blocks) != 4:
            raise InputError(f"widths and blocks must be four numbers, got {widths} and {blocks}")
        self.channels = (widths[3], widths[2], widths[1], widths[0])
        self.stem = nn.Conv2d(planes * STRIDE**2, widths[0], 3, padding=1)
        self.down = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths)
        )
        self.encode = nn.ModuleList(
            nn.Sequential(*[ConvBlock(width) for _ in range(count)])
            for width, count in zip(widths, blocks, strict=True)
        )
        self.up = nn.ModuleList(nn.Conv2d(b, a, 1) for a, b in pairwise(widths))
        self.decode = nn.ModuleList(ConvBlock(width) for width in widths[:3])
        self.head = nn.Conv2d(widths[0], STRIDE**2, 3, padding=1)
        with torch.no_grad():  # the pixels of a cell start equal, so the first depth has no grain
            self.head.weight.copy_(self.head.weight[:1].expand_as(self.head.weight))
            self.head.bias = nn.Parameter(torch.zeros(STRIDE**2))

    def forward(self, rgb: Tensor) -> Prompt:
        H, W = rgb.shape[-2:]
        # Other sizes are stretched a little, so that every feature map covers exactly the image.
        n = self.multiple_of
        # Upwards by a division of positive numbers: runtimes round negative ones differently.
        image = bilinear(rgb, ((H + n - 1) // n * n, (W + n - 1) // n * n))
        features, x = self.seen(image)
        depth = from_cells(self.head(x), STRIDE)
        return Prompt(features, bilinear(depth, (H, W)))

    def seen(self, image: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Features of an image whose sides are multiples, and what the head makes depth of."""
        x = self.stem(to_cells(image * 2 - 1, STRIDE))  # (B, w0, H/4, W/4)
        skips = []
        for level, encode in enumerate(self.encode):
            x = kept(encode(x if level == 0 else self.down[level - 1](x)))
            skips.append(x)
        features = [skips.pop()]  # coarse to fine
        for level in (2, 1, 0):
            skip = skips.pop()
            size = (skip.shape[-2], skip.shape[-1])
            x = kept(self.decode[level](skip + grown(self.up[level](x), size)))
            features.append(x)
        normal = (local(normalised, feature, channels=feature.shape[1]) for feature in features)
        return tuple(normal), x


def normalised(x: Tensor) -> Tensor:
    """Zero mean and unit variance over the channels of each pixel, as a ViT's last norm gives."""
    x = x - x.mean(1, keepdim=True)
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-4)
