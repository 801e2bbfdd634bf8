"""DJF and DJFR: joint filtering by two small encoders and a decoder.

Y. Li, J.-B. Huang, N. Ahuja, M.-H. Yang: "Deep Joint Image Filtering" (ECCV 2016), and the residual
variant "Joint Image Filtering with Deep Convolutional Networks" (TPAMI 2019). The guide and the
upsampled depth are each reduced to one map, the two maps are stacked, and a decoder turns them into
the depth (DJF) or into a correction of the upsampled depth (DJFR).

The authors' programs are MATLAB/MatConvNet. `filter` is their network; `forward` adapts it:
  - input: rgb in [0, 1] in that order; depth in [0, 1], upsampled with `resize.bicubic`. The
    authors sample the low-resolution map (last pixel of each block) and upsample with MATLAB's
    bicubic, so their weights expect a map shifted by half a block: on an antialiased input, as
    every protocol here makes it, they do worse than bicubic;
  - border: the decoder is unpadded and eats 6 px per side, and the encoders' zero padding reaches
    6 px further. `forward` repeats the edge pixel 12 times, so that the output has the full size
    and no pixel of it sees a zero that is not in the image.

Authors' weights: MIT licence, six files (x4, x8, x16 of each); DJFR x16 is wider than the others,
``filters=(128, 64, 128, 64)``. Common PyTorch ports are other networks (three maps per encoder, a
padded decoder).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic

Filters = tuple[int, int, int, int]

MARGIN = 6  # px per side that the unpadded decoder eats: 4 for its 9×9, 2 for its 5×5
PADDING_REACH = 6  # px per side where an encoder's output feels its zero padding


class DJF(Model):
    """The network of both papers.

    Args:
        residual: add the decoder's output to the upsampled depth (DJFR) instead of taking it as
            the depth (DJF).
        filters: widths of the encoders' two hidden layers, then of the decoder's two.
    """

    def __init__(self, *, residual: bool = False, filters: Filters = (96, 48, 64, 32)):
        super().__init__()
        self.residual = residual
        first, second, third, fourth = filters
        self.guide = _encoder(3, first, second)
        self.depth = _encoder(1, first, second)
        self.joint = nn.ModuleList(
            [nn.Conv2d(2, third, 9), nn.Conv2d(third, fourth, 1), nn.Conv2d(fourth, 1, 5)]
        )
        for convolution in self.modules():
            if isinstance(convolution, nn.Conv2d) and convolution.bias is not None:
                is_output = convolution.out_channels == 1
                nn.init.normal_(convolution.weight, std=0.001 if is_output else 0.1)
                nn.init.zeros_(convolution.bias)

    def filter(self, guide: Tensor, up: Tensor) -> Tensor:
        """The authors' function: guide (B, 3, H, W), up (B, 1, H, W) -> (B, 1, H-12, W-12)."""
        maps = torch.cat((_run(self.guide, guide), _run(self.depth, up)), 1)  # (B, 2, H, W)
        output = _run(self.joint, maps)
        if self.residual:
            output = output + up[..., MARGIN:-MARGIN, MARGIN:-MARGIN]
        return output

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W); holes are not known here."""
        up = bicubic(low, (rgb.shape[-2], rgb.shape[-1]))
        border = [MARGIN + PADDING_REACH] * 4
        output = self.filter(
            F.pad(rgb, border, mode="replicate"), F.pad(up, border, mode="replicate")
        )
        inside = slice(PADDING_REACH, -PADDING_REACH)
        return Prediction(output[..., inside, inside])


def _encoder(channels: int, first: int, second: int) -> nn.ModuleList:
    """Image to one map of the same size.

    The padding of 2 belongs to the 9×9, which needs 4, and to the 1×1, which needs none: together
    they keep the size, at the price of a 2-px ring that is made of biases alone.
    """
    return nn.ModuleList(
        [
            nn.Conv2d(channels, first, 9, padding=2),
            nn.Conv2d(first, second, 1, padding=2),
            nn.Conv2d(second, 1, 5, padding=2),
        ]
    )


def _run(convolutions: nn.ModuleList, x: Tensor) -> Tensor:
    """Three convolutions with a ReLU after each but the last."""
    first, second, last = convolutions
    return last(F.relu(second(F.relu(first(x)))))


# Place in the MatConvNet file, layers counted from 0 -> ours. The layers between are ReLUs.
AUTHORS_LAYERS = {
    "layers.0.weights": "guide.0",
    "layers.2.weights": "guide.1",
    "layers.4.weights": "guide.2",
    "layers.0.weights_depth": "depth.0",
    "layers.2.weights_depth": "depth.1",
    "layers.4.weights_depth": "depth.2",
    "layers.5.weights": "joint.0",
    "layers.7.weights": "joint.1",
    "layers.9.weights": "joint.2",
}


def from_authors_keys(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """MatConvNet's ``net.layers`` as our state dict.

    Args:
        weights: exactly the arrays of `AUTHORS_LAYERS`: the filters (h, w, in, out) of a layer end
            in ``.0``, its biases in ``.1``. MATLAB drops trailing axes of length one.
    """
    expected = {f"{layer}.{part}" for layer in AUTHORS_LAYERS for part in (0, 1)}
    missing, unexpected = expected - weights.keys(), weights.keys() - expected
    if missing or unexpected:
        raise InputError(
            f"missing {sorted(missing)[:3]}, unexpected {sorted(unexpected)[:3]}; expected the "
            "layers of a released DJF or DJFR network: check that the file is one"
        )
    state = {}
    for theirs, ours in AUTHORS_LAYERS.items():
        filters, biases = weights[f"{theirs}.0"], weights[f"{theirs}.1"]
        filters = filters.reshape(*filters.shape, *[1] * (4 - filters.dim()))
        # MatConvNet correlates, as torch does: only the order of the axes differs.
        state[f"{ours}.weight"] = filters.permute(3, 2, 0, 1).contiguous()
        state[f"{ours}.bias"] = biases.flatten()
    return state


def filters_of(state: dict[str, Tensor]) -> Filters | None:
    """Widths that a state dict was made with; None if it is not one of this network."""
    names = ("guide.0.bias", "guide.1.bias", "joint.0.bias", "joint.1.bias")
    if not all(name in state for name in names):
        return None
    first, second, third, fourth = (len(state[name]) for name in names)
    return first, second, third, fourth
