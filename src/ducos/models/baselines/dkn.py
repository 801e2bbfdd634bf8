"""DKN: each pixel is a weighted sum of samples at learned places around it.

B. Kim, J. Ponce, B. Ham: "Deformable Kernel Networks for Joint Image Filtering" (IJCV 2021). Two
networks look at the guide and at the upsampled depth; the products of their outputs are, for each
pixel, nine weights and nine offsets. The weighted sum of the nine samples corrects the depth.
`fdkn` is the fast variant; both share `sample_taps` and `apply_kernels` of this file.

`filter` is the network of the authors' PyTorch code in its residual form, with their names in the
state dict. What differs from their script:
  - one pass instead of sixteen. Their networks halve the resolution twice and are run on sixteen
    shifted copies whose outputs are interleaved. Here the two strides are replaced by dilation of
    everything after them, which evaluates the same function at each pixel at once, for any image
    size. In training, batch normalisation therefore sees all positions together instead of one
    sixteenth at a time;
  - samples are read from the image instead of from a stack of 15×15 windows (`sample_taps`);
  - sampling follows torch 1.0 (align_corners=True), which the weights were trained with; current
    torch would silently run their script otherwise.
`forward` adapts the input: depth in [0, 1] upsampled with `resize.bicubic`; colours in [0, 1] in
the order B, G, R, as their inference script reads them.

Authors' weights: GPL-3.0.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic

TAPS = 9  # a 3×3 kernel
WINDOW = 15  # side of the neighbourhood that the samples may come from
FIELD_BEFORE, FIELD_AFTER = 25, 24  # px that a pixel sees on each side; the paper counts 51


class KernelNetwork(nn.Module):
    """Image to nine weights in (0, 1) and nine offsets for each pixel.

    The two convolutions of kernel 2 have stride 2 in the original: the dilations of the others
    stand for it.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 7)
        self.conv1_bn = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 32, 2)
        self.conv3 = nn.Conv2d(32, 64, 5, dilation=2)
        self.conv3_bn = nn.BatchNorm2d(64)
        self.conv4 = nn.Conv2d(64, 64, 2, dilation=2)
        self.conv5 = nn.Conv2d(64, 128, 5, dilation=4)
        self.conv5_bn = nn.BatchNorm2d(128)
        self.conv6 = nn.Conv2d(128, 128, 3, dilation=4)
        self.conv7 = nn.Conv2d(128, 128, 3, dilation=4)
        self.conv_weight = nn.Conv2d(128, TAPS, 1)
        self.conv_offset = nn.Conv2d(128, 2 * TAPS, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """(B, channels, H, W) -> weights (B, 9, H, W) and offsets (B, 18, H, W)."""
        x = F.pad(image, (FIELD_BEFORE, FIELD_AFTER, FIELD_BEFORE, FIELD_AFTER))
        x = F.relu(self.conv1_bn(self.conv1(x)))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3_bn(self.conv3(x)))
        x = F.relu(self.conv4(x))
        x = F.relu(self.conv5_bn(self.conv5(x)))
        x = F.relu(self.conv6(x))
        x = F.relu(self.conv7(x))
        return torch.sigmoid(self.conv_weight(x)), self.conv_offset(x)


def sample_taps(up: Tensor, offsets: Tensor) -> Tensor:
    """Bilinear samples of the depth at nine displaced places around each pixel.

    In the original each pixel has its own zero-padded 15×15 window with the pixel at index 7, and a
    sample is taken at index 14/15 · (7 + k + offset), k = 0, 1, 2: the nominal 3×3 grid is neither
    centred on the pixel nor of unit spacing. Tap 3a + b is displaced by k = a along the columns and
    by k = b along the rows (transposed), and its offsets are channels 2(3a + b) and one further, in
    that order.

    Outside its window a sample fades to zero within one pixel. Sampling the whole image at the
    place clamped to the window, times that fade, is the same number without 225 copies of the
    image.

    Args:
        up: (B, 1, H, W).
        offsets: (B, 18, H, W), in pixels.

    Returns:
        (B, 9, H, W).
    """
    B, _, H, W = up.shape
    centre = WINDOW // 2
    tap = torch.arange(TAPS, device=up.device)
    nominal = torch.stack((tap // 3, tap % 3), -1).view(1, TAPS, 2, 1, 1) + centre
    index = (nominal + offsets.view(B, TAPS, 2, H, W)) * ((WINDOW - 1) / WINDOW)

    fade = torch.minimum(index + 1, WINDOW - index).clamp(0, 1).prod(2)  # (B, 9, H, W)
    displacement = index.clamp(0, WINDOW - 1) - centre
    columns = torch.arange(W, device=up.device) + displacement[:, :, 0]
    rows = torch.arange(H, device=up.device)[:, None] + displacement[:, :, 1]

    # grid_sample wants places in [-1, 1]. One pixel of zeros around the image keeps a one-pixel
    # image from dividing by zero, and changes nothing: outside is zero anyway.
    bordered = F.pad(up, (1, 1, 1, 1))
    places = torch.stack(((columns + 1) * 2 / (W + 1) - 1, (rows + 1) * 2 / (H + 1) - 1), -1)
    samples = F.grid_sample(
        bordered, places.view(B, TAPS * H, W, 2), mode="bilinear", align_corners=True
    )
    return samples.view(B, TAPS, H, W) * fade


def apply_kernels(up: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
    """Correct the depth by each pixel's kernel; its weights are shifted to sum to zero.

    up (B, 1, H, W), weights (B, 9, H, W), offsets (B, 18, H, W) -> (B, 1, H, W).
    """
    weights = weights - weights.mean(1, keepdim=True)
    return up + (weights * sample_taps(up, offsets)).sum(1, keepdim=True)


class DKN(Model):
    """Deformable Kernel Network; attribute names are the authors'."""

    def __init__(self) -> None:
        super().__init__()
        self.ImageKernel = KernelNetwork(3)
        self.DepthKernel = KernelNetwork(1)

    def filter(self, bgr: Tensor, up: Tensor) -> Tensor:
        """The authors' function: bgr (B, 3, H, W), up (B, 1, H, W) -> (B, 1, H, W)."""
        guide_weights, guide_offsets = self.ImageKernel(bgr)
        depth_weights, depth_offsets = self.DepthKernel(up)
        return apply_kernels(up, guide_weights * depth_weights, guide_offsets * depth_offsets)

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W); holes are not known here."""
        up = bicubic(low, (rgb.shape[-2], rgb.shape[-1]))
        return Prediction(self.filter(rgb.flip(1), up))
