"""No foundation model: what stands in its place in the paper's ablation."""

import torch.nn.functional as F
from torch import Tensor, nn

from ducos.deferred import kept
from ducos.models.blocks import ResidualGroup
from ducos.prompts import Prompt


class ImageBranch(nn.Module):
    """Four residual groups over RGB, the naive model: features only, at 1/stride of the image."""

    inverse = False
    in_strips = True

    def __init__(self, channels: int, stride: int, blocks: int):
        super().__init__()
        self.channels = (channels,) * 4
        self.stride = stride
        self.head = nn.Conv2d(3 * stride**2, channels, 3, padding=1)
        self.groups = nn.ModuleList(ResidualGroup(channels, blocks) for _ in range(4))

    def forward(self, rgb: Tensor) -> Prompt:
        x = kept(self.head(F.pixel_unshuffle(rgb, self.stride)))
        features = []
        for group in self.groups:
            x = kept(group(x))
            features.append(x)
        return Prompt(tuple(features), None)
