"""FDKN: the fast variant of DKN, at a quarter of the resolution.

B. Kim, J. Ponce, B. Ham: "Deformable Kernel Networks for Joint Image Filtering" (IJCV 2021). Each
4×4 block of pixels becomes sixteen channels of one position; the networks predict the kernels of
the sixteen pixels at once. Weights, offsets and sampling are those of `dkn`.

`filter` is the network of the authors' PyTorch code in its residual form, with their names in the
state dict; sampling follows torch 1.0 (align_corners=True), which the weights were trained with.
`forward` adapts the input: depth in [0, 1] upsampled with `resize.bicubic`; colours in [0, 1],
handed over in the order B, G, R, of which the network takes the grey value; both padded to a
multiple of 4.

Authors' weights: GPL-3.0, one file for x8.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.baselines.dkn import TAPS, apply_kernels
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic, pad_to_multiple

BLOCK = 4  # side of the pixel blocks that become channels

GREY_WEIGHTS_BGR = (0.114, 0.587, 0.299)


def grey_of_bgr(bgr: Tensor) -> Tensor:
    """OpenCV's grey value: (B, 3, H, W) in the order B, G, R -> (B, 1, H, W)."""
    return (bgr * bgr.new_tensor(GREY_WEIGHTS_BGR).view(1, 3, 1, 1)).sum(1, keepdim=True)


class KernelNetwork(nn.Module):
    """Sixteen interleaved pixels to their weights in (0, 1) and offsets."""

    def __init__(self) -> None:
        super().__init__()
        pixels = BLOCK**2
        self.conv1 = nn.Conv2d(pixels, 32, 3, padding=1)
        self.conv1_bn = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(32, 64, 3, padding=1)
        self.conv3_bn = nn.BatchNorm2d(64)
        self.conv4 = nn.Conv2d(64, 64, 3, padding=1)
        self.conv5 = nn.Conv2d(64, 128, 3, padding=1)
        self.conv5_bn = nn.BatchNorm2d(128)
        self.conv6 = nn.Conv2d(128, 128, 3, padding=1)
        self.conv_weight = nn.Conv2d(128, TAPS * pixels, 1)
        self.conv_offset = nn.Conv2d(128, 2 * TAPS * pixels, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 1, H, W) -> weights (B, 144, H/4, W/4) and offsets (B, 288, H/4, W/4)."""
        x = F.pixel_unshuffle(image, BLOCK)
        x = F.relu(self.conv1_bn(self.conv1(x)))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3_bn(self.conv3(x)))
        x = F.relu(self.conv4(x))
        x = F.relu(self.conv5_bn(self.conv5(x)))
        x = F.relu(self.conv6(x))
        return torch.sigmoid(self.conv_weight(x)), self.conv_offset(x)


class FDKN(Model):
    """Fast Deformable Kernel Network; attribute names are the authors'."""

    def __init__(self) -> None:
        super().__init__()
        self.ImageKernel = KernelNetwork()
        self.DepthKernel = KernelNetwork()

    def filter(self, bgr: Tensor, up: Tensor) -> Tensor:
        """The authors' function: bgr (B, 3, H, W), up (B, 1, H, W), sides multiples of 4."""
        guide_weights, guide_offsets = self.ImageKernel(grey_of_bgr(bgr))
        depth_weights, depth_offsets = self.DepthKernel(up)
        weights = F.pixel_shuffle(guide_weights * depth_weights, BLOCK)  # (B, 9, H, W)
        offsets = F.pixel_shuffle(guide_offsets * depth_offsets, BLOCK)  # (B, 18, H, W)
        return apply_kernels(up, weights, offsets)

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W); holes are not known here."""
        H, W = rgb.shape[-2:]
        up = bicubic(low, (H, W))
        output = self.filter(pad_to_multiple(rgb.flip(1), BLOCK), pad_to_multiple(up, BLOCK))
        return Prediction(output[..., :H, :W])
