"""DORNet and DORNet-T (Wang, Yan et al., CVPR 2025): degradation-oriented fusion.

An encoder describes how the depth map was degraded, as a feature map and one vector. Five fusion
modules then warp the colour features by a deformable convolution whose offsets come from that map
and whose kernel is scaled by that vector. Parameter names are those of the authors' checkpoints, so
released weights load strictly.

Two facts about the released training, read in its code: the branch `Dab` re-degrades the result
through a convolution that runs without gradient, and the contrastive loss detaches the restored
depth. So neither ever trained the restorer or the encoder: L1 alone did, and L1 is enough here.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.blocks import ResidualBlock, ResidualGroup, conv
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.normalise import range_of
from ducos.resize import bicubic


class NormalisedBlock(nn.Module):
    """Two convolutions with batch normalisation beside a 1×1 shortcut, then LeakyReLU 0.1."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(0.1),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(self.backbone(x) + self.shortcut(x), 0.1)


class DegradationEncoder(nn.Module):
    """Bicubic depth (B, 1, H, W) -> feature map (B, C, H, W) and vector (B, 4C, 1, 1)."""

    def __init__(self, channels: int):
        super().__init__()
        self.E_pre = nn.Sequential(
            NormalisedBlock(1, channels // 2),
            NormalisedBlock(channels // 2, channels),
            NormalisedBlock(channels, channels),
        )
        self.E = nn.Sequential(
            nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * channels),
            nn.LeakyReLU(0.1),
            nn.Conv2d(2 * channels, 4 * channels, 3, stride=2, padding=1),
            nn.BatchNorm2d(4 * channels),
            nn.AdaptiveAvgPool2d(1),
        )

    def forward(self, depth: Tensor) -> tuple[Tensor, Tensor]:
        features = self.E_pre(depth)
        return features, self.E(features)


def deformable_convolution(x: Tensor, offsets: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """3×3 convolution whose taps are moved and weighted per pixel; outside the image is zero.

    One tap at a time: nine samplings of C channels instead of one sampling of 9C, so the memory
    stays that of a few feature maps.

    Args:
        x: (B, C, H, W).
        offsets: (B, 18, H, W), pixels; channels 2k and 2k + 1 move tap k down and right. Taps are
            numbered row by row.
        mask: (B, 9, H, W), multiplies each tap.
        weight: (outputs, C, 3, 3).
    """
    H, W = x.shape[-2:]
    rows = torch.arange(H, dtype=x.dtype, device=x.device).view(1, H, 1)
    columns = torch.arange(W, dtype=x.dtype, device=x.device).view(1, 1, W)
    total = x.new_zeros(())
    for tap in range(9):
        row = rows + (tap // 3 - 1) + offsets[:, 2 * tap]  # (B, H, W)
        column = columns + (tap % 3 - 1) + offsets[:, 2 * tap + 1]
        # grid_sample counts from -1 to 1 between the image's outer edges
        grid = torch.stack([(2 * column + 1) / W - 1, (2 * row + 1) / H - 1], -1)
        sampled = F.grid_sample(x, grid, align_corners=False) * mask[:, tap : tap + 1]
        total = total + F.conv2d(sampled, weight[:, :, tap // 3, tap % 3, None, None])
    return total


class DegradationConvolution(nn.Module):
    """Deformable convolution: the degradation map moves its taps, the vector scales its kernel."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, channels, 3, 3))
        self.conv_offset_mask = conv(channels, 27)
        self.c1 = nn.Conv2d(4 * channels, channels, 1, bias=False)
        self.c2 = nn.Conv2d(channels, channels, 1, bias=False)
        bound = (9 * channels) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        # starts as a plain convolution: no offsets, every tap at sigmoid(0)
        nn.init.zeros_(self.conv_offset_mask.weight)
        nn.init.zeros_(self.conv_offset_mask.bias)  # type: ignore[arg-type]  # it has one

    def forward(self, x: Tensor, features: Tensor, vector: Tensor) -> Tensor:
        steering = self.conv_offset_mask(features)  # (B, 27, H, W)
        offsets, mask = steering[:, :18], torch.sigmoid(steering[:, 18:])
        # scaling the kernel per input channel is scaling the input: one kernel serves the batch
        return self.c2(deformable_convolution(x * self.c1(vector), offsets, mask, self.weight))


class ColourAlignment(nn.Module):
    """Attends to the colour features, then adds their degradation-steered warp."""

    def __init__(self, channels: int, reduction: int):
        super().__init__()
        self.dcnrgb = DegradationConvolution(channels)
        self.rcab1 = ResidualBlock(channels, reduction, slope=0)
        self.conv = conv(channels, channels)

    def forward(self, colour: Tensor, features: Tensor, vector: Tensor) -> Tensor:
        colour = self.rcab1(colour)
        return self.conv(colour + self.dcnrgb(colour, features, vector))


class ColourGate(nn.Module):
    """Adds to the colour what the degradation lets through, then joins it with the depth."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = conv(channels, channels // 4, 1)
        self.conv2 = conv(channels, channels // 4, 1)
        self.conv3 = conv(channels // 4, channels, 1)
        self.conv = conv(2 * channels, channels)

    def forward(self, colour: Tensor, depth: Tensor, features: Tensor) -> Tensor:
        passed = self.conv2(colour) * torch.sigmoid(self.conv1(features))
        return self.conv(torch.cat([colour + self.conv3(passed), depth], 1))


class Fusion(nn.Module):
    """depth + gate(align(colour)): one of the five fusion modules."""

    def __init__(self, channels: int, reduction: int):
        super().__init__()
        self.DA_rgb = ColourAlignment(channels, reduction)
        self.fb = ColourGate(channels)

    def forward(self, depth: Tensor, colour: Tensor, features: Tensor, vector: Tensor) -> Tensor:
        return depth + self.fb(self.DA_rgb(colour, features, vector), depth, features)


class Restorer(nn.Module):
    """Five fusions in series, a group after each of the first four; the tail sees all five."""

    def __init__(self, channels: int, reduction: int):
        super().__init__()
        self.head = nn.Sequential(conv(1, channels))
        self.head_rgb = nn.Sequential(conv(3, channels))
        self.dgm1 = Fusion(channels, reduction)
        self.dgm2 = Fusion(channels, reduction)
        self.dgm3 = Fusion(channels, reduction)
        self.dgm4 = Fusion(channels, reduction)
        self.dgm5 = Fusion(channels, reduction)
        self.c_d1 = ResidualGroup(channels, 2, reduction)
        self.c_d2 = ResidualGroup(channels, 2, reduction)
        self.c_d3 = ResidualGroup(channels, 2, reduction)
        self.c_d4 = ResidualGroup(channels, 2, reduction)
        self.c_d5 = nn.Sequential(
            conv(5 * channels, channels, 1), ResidualGroup(channels, 2, reduction)
        )
        self.c_r1 = conv(channels, channels)
        self.c_r2 = conv(channels, channels)
        self.c_r3 = conv(channels, channels)
        self.c_r4 = conv(channels, channels)
        self.tail = nn.Sequential(conv(channels, 1))

    def forward(self, depth: Tensor, rgb: Tensor, features: Tensor, vector: Tensor) -> Tensor:
        # The original activates in place: modules 2 to 4 see activated colour, 1 and 5 raw colour.
        colour1 = self.head_rgb(rgb)
        colour2 = F.leaky_relu(self.c_r1(colour1), 0.1)
        colour3 = F.leaky_relu(self.c_r2(colour2), 0.1)
        colour4 = F.leaky_relu(self.c_r3(colour3), 0.1)
        colour5 = self.c_r4(colour4)

        stem = self.head(depth)
        depth1 = self.c_d1(self.dgm1(stem, colour1, features, vector))
        depth2 = self.c_d2(F.leaky_relu(self.dgm2(depth1, colour2, features, vector), 0.1))
        depth3 = self.c_d3(F.leaky_relu(self.dgm3(depth2, colour3, features, vector), 0.1))
        depth4 = self.c_d4(F.leaky_relu(self.dgm4(depth3, colour4, features, vector), 0.1))
        depth5 = self.dgm5(depth4, colour5, features, vector)
        merged = self.c_d5(torch.cat([depth1, depth2, depth3, depth4, depth5], 1))
        return self.tail(merged + stem)


class KernelExpert(nn.Module):
    """Weights of one degradation kernel generator; used in their training only."""

    def __init__(self, channels: int, size: int):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(4 * channels, channels), nn.LeakyReLU(0.1), nn.Linear(channels, size * size)
        )


class KernelExperts(nn.Module):
    """Weights of the generators of all sizes; used in their training only."""

    def __init__(self, channels: int):
        super().__init__()
        self.w_gate = nn.Parameter(torch.zeros(4 * channels, 4))
        self.w_noise = nn.Parameter(torch.zeros(4 * channels, 4))
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("std", torch.ones(1))
        self.experts = nn.ModuleList([KernelExpert(channels, size) for size in (3, 5, 7, 9)])


class KernelMix(nn.Module):
    """Weights of the mixture of generators; used in their training only."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = conv(1, 1, 1)


class DegradationBranch(nn.Module):
    """Weights of the training-only branch: held so that checkpoints load strictly, never run.

    It guesses blur kernels (3, 5, 7, 9 wide) from the encoder's vector and blurs the result with
    three of them, to be compared with the input. No gradient leaves it (see the top of this file).
    """

    def __init__(self, channels: int):
        super().__init__()
        self.c1 = NormalisedBlock(1, channels)
        self.fc1 = nn.Linear(channels, 4 * channels)
        self.dab_list = nn.ModuleList([KernelMix() for _ in range(3)])
        self.DecoderMoE = KernelExperts(channels)
        self.conv = conv(1, 1, 1)
        self.requires_grad_(False)


class DORNet(Model):
    """Degradation-oriented and regularised network; any size, any ratio.

    Args:
        tiny: DORNet-T, width 24 instead of 64 and attention reduction 4 instead of 16.
        training_branch: False for the released TOFDSR checkpoints, which lack the branch.
    """

    def __init__(self, *, tiny: bool = False, training_branch: bool = True):
        super().__init__()
        channels, reduction = (24, 4) if tiny else (64, 16)
        self.R = Restorer(channels, reduction)
        self.Enc = DegradationEncoder(channels)
        if training_branch:
            self.Dab = DegradationBranch(channels)

    def restore(self, rgb: Tensor, upsampled: Tensor) -> Tensor:
        """The authors' function; the result is the depth itself, not a residual.

        Args:
            rgb: (B, 3, H, W), stretched to [0, 1] per image.
            upsampled: (B, 1, H, W) bicubic-upsampled depth, in [0, 1] (or metres / 5 for the
                weights trained on RGB-D-D and TOFDSR sensors).
        """
        features, vector = self.Enc(upsampled)
        return self.R(upsampled, rgb, features, vector)

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W). Knows no holes."""
        upsampled = bicubic(low, (rgb.shape[-2], rgb.shape[-1]))
        return Prediction(self.restore(range_of(rgb).apply(rgb), upsampled))
