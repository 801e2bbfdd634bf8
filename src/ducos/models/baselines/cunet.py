"""CUNet: what depth and guide have in common, and what each has alone.

X. Deng, P. L. Dragotti: "Deep Convolutional Neural Network for Multi-modal Image Restoration and
Fusion" (TPAMI 2021). Three unrolled convolutional sparse coders find the unique features of the
depth, the unique features of the guide, and the features common to both; the depth is rebuilt from
its unique and the common ones.

`filter` is the network of the authors' PyTorch code (9×9 kernels; the paper says 8×8), with their
names in the state dict; `forward` adapts it:
  - input: depth in [0, 1], upsampled with `resize.bicubic` (the authors use MATLAB's, which is the
    same kernel); of the guide only the luma, in MATLAB's studio range [16, 235]/255;
  - the authors' script works on 8-bit depth; nothing is quantised here;
  - border: convolutions are zero-padded, as in the original.

Authors' weights: one file for x4 depth; their repository states no licence, so they may not be
redistributed.
"""

import torch
from torch import Tensor, nn

from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic

CODE_CHANNELS = 64
KERNEL = 9
STEPS = 4

# ITU-R BT.601 as MATLAB's rgb2ycbcr has it: [0, 1] colours to luma in [16, 235]/255.
LUMA_WEIGHTS = (65.481 / 255, 128.553 / 255, 24.966 / 255)
LUMA_OFFSET = 16 / 255


def _convolution(inputs: int, outputs: int) -> nn.Conv2d:
    convolution = nn.Conv2d(inputs, outputs, KERNEL, padding=KERNEL // 2, bias=False)
    nn.init.xavier_uniform_(convolution.weight)
    return convolution


def soft_threshold(x: Tensor, threshold: Tensor) -> Tensor:
    """Shrink towards zero by the threshold: the proximal step of an L1 penalty."""
    return x.sign() * (x.abs() - threshold).relu()


class SparseCoder(nn.Module):
    """Convolutional sparse code of an image by unrolled iterative shrinkage.

    Each step decodes the current code, and corrects it by what the decoded image lacks:
    z ← soft(z + encode(image) - encode_i(decode_i(z))). Names are the authors': `lam` are the
    thresholds, `down` decodes and `up` encodes.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.lam_in = nn.Parameter(torch.tensor([0.01]))
        self.layer_in = _convolution(channels, CODE_CHANNELS)
        for step in range(STEPS):
            self.register_parameter(f"lam_{step}", nn.Parameter(torch.tensor([0.01])))
            self.add_module(f"down_conv_{step}", _convolution(CODE_CHANNELS, channels))
            self.add_module(f"up_conv_{step}", _convolution(channels, CODE_CHANNELS))

    def forward(self, image: Tensor) -> Tensor:
        """(B, channels, H, W) -> (B, 64, H, W)."""
        encoded = self.layer_in(image)
        code = soft_threshold(encoded, self.lam_in)
        for step in range(STEPS):
            decode = self.get_submodule(f"down_conv_{step}")
            encode = self.get_submodule(f"up_conv_{step}")
            threshold = self.get_parameter(f"lam_{step}")
            code = soft_threshold(encoded + code - encode(decode(code)), threshold)
        return code


class Decoder(nn.Module):
    """Depth from its unique code and the common one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_1 = _convolution(CODE_CHANNELS, 1)
        self.conv_2 = _convolution(CODE_CHANNELS, 1)

    def forward(self, unique: Tensor, common: Tensor) -> Tensor:
        return self.conv_1(unique) + self.conv_2(common)


class CUNet(Model):
    """Common and Unique network; u, v and z are the paper's letters for the three codes."""

    def __init__(self) -> None:
        super().__init__()
        self.net_u = SparseCoder(1)
        self.conv_u = _convolution(CODE_CHANNELS, 1)
        self.net_v = SparseCoder(1)
        self.conv_v = _convolution(CODE_CHANNELS, 1)
        self.net_z = SparseCoder(2)
        self.decoder = Decoder()

    def filter(self, luma: Tensor, up: Tensor) -> Tensor:
        """The authors' function: luma and up, both (B, 1, H, W) -> (B, 1, H, W)."""
        depth_unique = self.net_u(up)
        guide_unique = self.net_v(luma)
        remainders = (up - self.conv_u(depth_unique), luma - self.conv_v(guide_unique))
        common = self.net_z(torch.cat(remainders, 1))
        return self.decoder(depth_unique, common)

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W); holes are not known here."""
        weights = rgb.new_tensor(LUMA_WEIGHTS).view(1, 3, 1, 1)
        luma = (rgb * weights).sum(1, keepdim=True) + LUMA_OFFSET
        up = bicubic(low, (rgb.shape[-2], rgb.shape[-1]))
        return Prediction(self.filter(luma, up))
