"""The depth head of Depth Anything v2 and PromptDA: four token maps to one depth map (DPT).

Attribute names are those of the published weight files.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from ducos.resize import Size


def enlarge(x: Tensor, size: Size) -> Tensor:
    """Bilinear with corners on corners, the head's own rule: the weights were trained with it."""
    return F.interpolate(x, size=size, mode="bilinear", align_corners=True)


class ResidualUnit(nn.Module):
    """ReLU - conv - ReLU - conv, plus the input."""

    def __init__(self, width: int):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(F.relu(self.conv1(F.relu(x))))


class Fusion(nn.Module):
    """Add the next finer map, refine, enlarge to the size of the map after it.

    Args:
        measured_depth: PromptDA's branch, which adds features of a measured depth map after the
            refinement.
    """

    def __init__(self, width: int, *, measured_depth: bool = False):
        super().__init__()
        self.out_conv = nn.Conv2d(width, width, 1)
        # In the coarsest step nothing is added, so its first unit stays unused, as published.
        self.resConfUnit1 = ResidualUnit(width)
        self.resConfUnit2 = ResidualUnit(width)
        if measured_depth:
            self.resConfUnit_depth = nn.Sequential(
                nn.Conv2d(1, width, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1),
            )

    def forward(
        self, x: Tensor, finer: Tensor | None, size: Size, measured: Tensor | None = None
    ) -> Tensor:
        """x, finer (B, C, ?, ?) of equal size -> (B, C, *size); measured (B, 1, h, w) in [0, 1]."""
        if finer is not None:
            x = x + self.resConfUnit1(finer)
        x = self.resConfUnit2(x)
        if measured is not None:
            resized = F.interpolate(measured, x.shape[-2:], mode="bilinear", align_corners=False)
            x = x + self.resConfUnit_depth(resized)
        return self.out_conv(enlarge(x, size))


class Scratch(nn.Module):
    """Everything behind the projections; a level of its own only because the files name it so."""

    def __init__(self, levels: Sequence[int], width: int, *, measured_depth: bool):
        super().__init__()
        self.layer1_rn = nn.Conv2d(levels[0], width, 3, padding=1, bias=False)
        self.layer2_rn = nn.Conv2d(levels[1], width, 3, padding=1, bias=False)
        self.layer3_rn = nn.Conv2d(levels[2], width, 3, padding=1, bias=False)
        self.layer4_rn = nn.Conv2d(levels[3], width, 3, padding=1, bias=False)
        self.refinenet1 = Fusion(width, measured_depth=measured_depth)
        self.refinenet2 = Fusion(width, measured_depth=measured_depth)
        self.refinenet3 = Fusion(width, measured_depth=measured_depth)
        self.refinenet4 = Fusion(width, measured_depth=measured_depth)
        self.output_conv1 = nn.Conv2d(width, width // 2, 3, padding=1)
        self.output_conv2 = nn.Sequential(
            nn.Conv2d(width // 2, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 1)
        )


class DPTHead(nn.Module):
    """Bring the four maps to 4, 2, 1 and 1/2 times the token grid, then fuse from coarse to fine.

    Args:
        tokens: channels of the token maps.
        levels: channels of the four maps after projection.
        width: channels during fusion.
        measured_depth: with PromptDA's branches.
    """

    def __init__(
        self, tokens: int, levels: Sequence[int], width: int, *, measured_depth: bool = False
    ):
        super().__init__()
        self.projects = nn.ModuleList(nn.Conv2d(tokens, level, 1) for level in levels)
        self.resize_layers = nn.ModuleList(
            [
                nn.ConvTranspose2d(levels[0], levels[0], 4, stride=4),
                nn.ConvTranspose2d(levels[1], levels[1], 2, stride=2),
                nn.Identity(),
                nn.Conv2d(levels[3], levels[3], 3, stride=2, padding=1),
            ]
        )
        self.scratch = Scratch(levels, width, measured_depth=measured_depth)

    def forward(self, maps: Sequence[Tensor], size: Size, measured: Tensor | None = None) -> Tensor:
        """Four (B, C, h, w) -> (B, 1, *size) before any final activation."""
        stages = zip(maps, self.projects, self.resize_layers)
        levels = [resize(project(tokens)) for tokens, project, resize in stages]
        parts = self.scratch
        level1 = parts.layer1_rn(levels[0])
        level2 = parts.layer2_rn(levels[1])
        level3 = parts.layer3_rn(levels[2])
        level4 = parts.layer4_rn(levels[3])
        path = parts.refinenet4(level4, None, level3.shape[-2:], measured)
        path = parts.refinenet3(path, level3, level2.shape[-2:], measured)
        path = parts.refinenet2(path, level2, level1.shape[-2:], measured)
        h, w = level1.shape[-2:]
        path = parts.refinenet1(path, level1, (2 * h, 2 * w), measured)
        return parts.output_conv2(enlarge(parts.output_conv1(path), size))
