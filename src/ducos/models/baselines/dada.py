"""DADA (Metzger, Daudt, Schindler, CVPR 2023): diffusion on learned edges, anchored to the input.

A U-Net looks at colour and bicubic depth and says how easily depth may flow between neighbouring
pixels. The bicubic depth then diffuses for thousands of steps; after each step every low-resolution
cell is multiplied so that its mean is the measured value again. Parameter names are those of the
authors' checkpoints, so released weights load strictly.

Multiplying needs depth well above zero: the authors divide metric depth by a constant and never
subtract. Our contract hands over [0, 1] per image, so `forward` adds an offset before and takes
it away after. And the adjustment takes each measurement as the mean of its cell, which the bicubic
maps of the field's benchmarks are only roughly: DADA pays for the difference at edges.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic, pad_to_multiple

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_DEVIATION = (0.229, 0.224, 0.225)


class Bottleneck(nn.Module):
    """ResNet's 1×1 - 3×3 - 1×1 block; the 3×3 carries the stride."""

    EXPANSION = 4

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        outputs = self.EXPANSION * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        if stride != 1 or inputs != outputs:
            self.downsample: nn.Module = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )
        else:
            self.downsample = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        deep = F.relu(self.bn1(self.conv1(x)))
        deep = F.relu(self.bn2(self.conv2(deep)))
        return F.relu(self.bn3(self.conv3(deep)) + self.downsample(x))


class ResNet50(nn.Module):
    """ResNet-50 without its classifier; returns the map of every resolution, finest first."""

    def __init__(self, inputs: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = self.stage(64, 64, blocks=3, stride=1)
        self.layer2 = self.stage(256, 128, blocks=4, stride=2)
        self.layer3 = self.stage(512, 256, blocks=6, stride=2)
        self.layer4 = self.stage(1024, 512, blocks=3, stride=2)

    @staticmethod
    def stage(inputs: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        outputs = Bottleneck.EXPANSION * width
        rest = [Bottleneck(outputs, width, 1) for _ in range(blocks - 1)]
        return nn.Sequential(Bottleneck(inputs, width, stride), *rest)

    def forward(self, x: Tensor) -> list[Tensor]:
        half = F.relu(self.bn1(self.conv1(x)))  # (B, 64, H/2, W/2)
        quarter = self.layer1(F.max_pool2d(half, 3, stride=2, padding=1))  # 256 channels
        eighth = self.layer2(quarter)  # 512
        sixteenth = self.layer3(eighth)  # 1024
        return [half, quarter, eighth, sixteenth, self.layer4(sixteenth)]  # 2048 at 1/32


class UpBlock(nn.Module):
    """Double the size, join the encoder's map of that size, two normalised convolutions."""

    def __init__(self, inputs: int, skipped: int, outputs: int):
        super().__init__()
        self.conv1 = self.layer(inputs + skipped, outputs)
        self.conv2 = self.layer(outputs, outputs)

    @staticmethod
    def layer(inputs: int, outputs: int) -> nn.Sequential:
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x: Tensor, skip: Tensor | None) -> Tensor:
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        if skip is not None:
            x = torch.cat([x, skip], 1)
        return self.conv2(self.conv1(x))


class UNetDecoder(nn.Module):
    """From the coarsest map back to the input's size."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [
                UpBlock(2048, 1024, 256),
                UpBlock(256, 512, 128),
                UpBlock(128, 256, 64),
                UpBlock(64, 64, 32),
                UpBlock(32, 0, 16),
            ]
        )

    def forward(self, maps: list[Tensor]) -> Tensor:
        *finer, x = maps
        for block in self.blocks:
            x = block(x, finer.pop() if finer else None)
        return x


class UNet(nn.Module):
    """U-Net with a ResNet-50 encoder; sides must be multiples of 32."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.encoder = ResNet50(inputs)
        self.decoder = UNetDecoder()
        self.segmentation_head = nn.Sequential(nn.Conv2d(16, outputs, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return self.segmentation_head(self.decoder(self.encoder(x)))


def conductance(difference: Tensor, knee: Tensor) -> Tensor:
    """Perona and Malik's 1 / (1 + (g/K)²); g is the mean of |difference| over channels."""
    return 1 / (1 + (difference.abs().mean(1, keepdim=True) / knee) ** 2)


def diffuse(depth: Tensor, vertical: Tensor, horizontal: Tensor, rate: float = 0.24) -> Tensor:
    """One explicit step: neighbours exchange rate · conductance · difference.

    Both differences are taken before either exchange. A rate below 1/4 keeps the step stable.

    Args:
        depth: (B, 1, H, W); vertical: (B, 1, H-1, W); horizontal: (B, 1, H, W-1).
    """
    down = rate * vertical * (depth[:, :, 1:] - depth[:, :, :-1])
    right = rate * horizontal * (depth[..., 1:] - depth[..., :-1])
    depth = depth.clone()
    depth[:, :, 1:] -= down
    depth[:, :, :-1] += down
    depth[..., 1:] -= right
    depth[..., :-1] += right
    return depth


def adjust(depth: Tensor, low: Tensor, known: Tensor) -> Tensor:
    """Scale each cell of depth (B, 1, H, W) to the mean low (B, 1, h, w) where it is known."""
    h, w = low.shape[-2:]
    ratio = low / (F.adaptive_avg_pool2d(depth, (h, w)) + 1e-8)
    ratio = torch.where(known, ratio, torch.ones_like(ratio))
    return depth * F.interpolate(ratio, depth.shape[-2:], mode="nearest")


class DADA(Model):
    """Deep anisotropic diffusion-adjustment network; any size, any ratio.

    Args:
        free_steps: steps run without gradient; in training a random number below it.
        trained_steps: steps through which gradients flow, after the free ones.
        offset: added to the [0, 1] depth of our contract, so that ratios are taken far from zero:
            at 1 the nearest point counts as half as far as the farthest.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, *, free_steps: int = 8000, trained_steps: int = 1024, offset: float = 1.0):
        super().__init__()
        self.free_steps = free_steps
        self.trained_steps = trained_steps
        self.offset = offset
        self.feature_extractor = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bicubic"), UNet(4, 64), nn.AvgPool2d(2)
        )
        self.logk = nn.Parameter(torch.tensor(0.03).log())
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer(
            "deviation", torch.tensor(IMAGENET_DEVIATION).view(3, 1, 1), persistent=False
        )

    def conductances(self, rgb: Tensor, upsampled: Tensor) -> tuple[Tensor, Tensor]:
        """Vertical (B, 1, H-1, W) and horizontal (B, 1, H, W-1) edge weights in (0, 1].

        Args:
            rgb: (B, 3, H, W) with ImageNet's mean and deviation removed.
            upsampled: (B, 1, H, W) positive depth.
        """
        H, W = rgb.shape[-2:]
        centred = upsampled - upsampled.mean((1, 2, 3), keepdim=True)
        # the U-Net sees twice the size and halves it five times
        padded = pad_to_multiple(torch.cat([rgb, centred], 1), 16)
        features = self.feature_extractor(padded)[..., :H, :W]  # (B, 64, H, W)
        knee = self.logk.exp()
        return (
            conductance(features[:, :, 1:] - features[:, :, :-1], knee),
            conductance(features[..., 1:] - features[..., :-1], knee),
        )

    def restore(self, rgb: Tensor, low: Tensor, upsampled: Tensor, known: Tensor) -> Tensor:
        """The authors' function.

        Args:
            rgb: (B, 3, H, W) with ImageNet's mean and deviation removed.
            low: (B, 1, h, w) cell means, positive.
            upsampled: (B, 1, H, W) low, smoothly upsampled.
            known: (B, 1, h, w) bool, False where low is a hole.
        """
        vertical, horizontal = self.conductances(rgb, upsampled)
        depth = upsampled
        free_steps = self.free_steps
        if self.training and free_steps > 0:
            free_steps = int(torch.randint(free_steps, ()))
        with torch.no_grad():
            for _ in range(free_steps):
                depth = adjust(diffuse(depth, vertical, horizontal), low, known)
        for _ in range(self.trained_steps):
            depth = adjust(diffuse(depth, vertical, horizontal), low, known)
        return depth

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W). Holes diffuse freely."""
        known = torch.ones_like(low, dtype=torch.bool) if valid is None else valid
        positive = low + self.offset
        upsampled = bicubic(positive, (rgb.shape[-2], rgb.shape[-1]))
        depth = self.restore((rgb - self.mean) / self.deviation, positive, upsampled, known)
        return Prediction(depth - self.offset)
