"""FDSR: high frequencies of the guide sharpen the depth, at a quarter of the resolution.

L. He et al.: "Towards Fast and Accurate Real-World Depth Super-Resolution: Benchmark Dataset and
Baseline" (CVPR 2021). Octave convolutions split the guide's features into fine and coarse ones;
only the fine ones are handed to the depth branch, which is a chain of blocks with two dilations.

`filter` is the network of the authors' PyTorch code, with their names in the state dict and without
the batch normalisation that their code holds but switches off. The coarse output of the last octave
convolution is discarded there and not computed here: `rgb_cbl4.conv.conv_h2l` and `conv_l2l` exist
in the checkpoint, reach no output and get no gradient.
`forward` adapts the input: depth in [0, 1] upsampled with `resize.bicubic`; colours in [0, 1],
handed over in the order B, G, R (the authors' test script reads them so), of which the network
takes the grey value; both padded to a multiple of 8. The output is not rounded to 16-bit integers.

Authors' weights: none are published. Their code states no licence; their RGB-D-D data are
non-commercial, by agreement.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.baselines.fdkn import BLOCK, grey_of_bgr
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic, nearest, pad_to_multiple

FINE = 24  # guide channels at 1/4 of the resolution
COARSE = 8  # guide channels at 1/8
SLOPE = 0.2
MULTIPLE = 2 * BLOCK


def _leaky(x: Tensor) -> Tensor:
    return F.leaky_relu(x, SLOPE)


class OctaveConvolution(nn.Module):
    """Convolution between features of two resolutions, without biases.

    Names are the authors': h is the fine, l the coarse side.
    """

    def __init__(self, fine_inputs: int, coarse_inputs: int):
        super().__init__()
        self.conv_h2h = nn.Conv2d(fine_inputs, FINE, 3, padding=1, bias=False)
        self.conv_h2l = nn.Conv2d(fine_inputs, COARSE, 3, padding=1, bias=False)
        if coarse_inputs:
            self.conv_l2h = nn.Conv2d(coarse_inputs, FINE, 3, padding=1, bias=False)
            self.conv_l2l = nn.Conv2d(coarse_inputs, COARSE, 3, padding=1, bias=False)

    def fine(self, fine: Tensor, coarse: Tensor | None) -> Tensor:
        """(B, ?, h, w) and (B, 8, h/2, w/2) -> (B, 24, h, w)."""
        output = self.conv_h2h(fine)
        if coarse is not None:
            output = output + nearest(self.conv_l2h(coarse), (fine.shape[-2], fine.shape[-1]))
        return output

    def coarse(self, fine: Tensor, coarse: Tensor | None) -> Tensor:
        """(B, ?, h, w) and (B, 8, h/2, w/2) -> (B, 8, h/2, w/2)."""
        output = self.conv_h2l(F.avg_pool2d(fine, 2))
        if coarse is not None:
            output = output + self.conv_l2l(coarse)
        return output


class OctaveBlock(nn.Module):
    """Octave convolution and LeakyReLU."""

    def __init__(self, fine_inputs: int, coarse_inputs: int):
        super().__init__()
        self.conv = OctaveConvolution(fine_inputs, coarse_inputs)

    def fine(self, fine: Tensor, coarse: Tensor | None) -> Tensor:
        return _leaky(self.conv.fine(fine, coarse))

    def coarse(self, fine: Tensor, coarse: Tensor | None) -> Tensor:
        return _leaky(self.conv.coarse(fine, coarse))


class MultiScaleBlock(nn.Module):
    """Two dilations side by side, summed, mixed by a 1×1, plus the input."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=2, dilation=2)
        self.conv4 = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv4(_leaky(self.conv1(x)) + _leaky(self.conv2(x))) + x


class FDSR(Model):
    """Fast depth super-resolution; attribute names are the authors'."""

    def __init__(self) -> None:
        super().__init__()
        pixels, width = BLOCK**2, 32
        self.conv_rgb1 = nn.Conv2d(pixels, width, 3, padding=1)
        self.rgb_cbl2 = OctaveBlock(width, 0)
        self.rgb_cbl3 = OctaveBlock(FINE, COARSE)
        self.rgb_cbl4 = OctaveBlock(FINE, COARSE)

        self.conv_dp1 = nn.Conv2d(pixels, width, 3, padding=1)
        self.MSB1 = MultiScaleBlock(width)
        self.MSB2 = MultiScaleBlock(width + FINE)
        self.MSB3 = MultiScaleBlock(width + 2 * FINE)
        self.MSB4 = MultiScaleBlock(width + 3 * FINE)

        self.conv_recon1 = nn.Conv2d(width + 3 * FINE, 4 * width, 3, padding=1)
        self.conv_recon2 = nn.Conv2d(width, 4 * width, 3, padding=1)
        self.restore = nn.Conv2d(width, 1, 3, padding=1)

    def filter(self, bgr: Tensor, up: Tensor) -> Tensor:
        """The authors' function: bgr (B, 3, H, W), up (B, 1, H, W), sides multiples of 8."""
        guide = _leaky(self.conv_rgb1(F.pixel_unshuffle(grey_of_bgr(bgr), BLOCK)))
        fine1, coarse1 = self.rgb_cbl2.fine(guide, None), self.rgb_cbl2.coarse(guide, None)
        fine2, coarse2 = self.rgb_cbl3.fine(fine1, coarse1), self.rgb_cbl3.coarse(fine1, coarse1)
        fine3 = self.rgb_cbl4.fine(fine2, coarse2)

        depth = _leaky(self.conv_dp1(F.pixel_unshuffle(up, BLOCK)))
        depth = self.MSB1(depth)  # (B, 32, H/4, W/4)
        depth = self.MSB2(torch.cat((depth, fine1), 1))
        depth = self.MSB3(torch.cat((depth, fine2), 1))
        depth = self.MSB4(torch.cat((depth, fine3), 1))  # (B, 104, H/4, W/4)

        depth = F.pixel_shuffle(self.conv_recon1(_leaky(depth)), 2)
        depth = F.pixel_shuffle(self.conv_recon2(depth), 2)
        return self.restore(depth) + up

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W); holes are not known here."""
        H, W = rgb.shape[-2:]
        up = bicubic(low, (H, W))
        output = self.filter(pad_to_multiple(rgb.flip(1), MULTIPLE), pad_to_multiple(up, MULTIPLE))
        return Prediction(output[..., :H, :W])
