"""Depth Anything v2 (Yang et al., NeurIPS 2024): the foundation model of the paper's experiments.

The network is written out here rather than taken from `transformers` because that port resizes the
position embedding by another rule than the authors (`vit.py`): on the 98×126 parity vector, whose
weights are seeded noise, its depth differs by 0.31 of a maximum of 2.26, ours by 4e-6. Its files
load all the same: hub ids and folders are those of `transformers`, single files the authors'.
"""

from pathlib import Path
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.prompts.dpt import DPTHead
from ducos.prompts.image import imagenet, to_image_size, to_working_size
from ducos.prompts.prompt import Prompt
from ducos.prompts.transformers_layout import is_transformers_layout, to_authors_keys
from ducos.prompts.vit import PATCH, SHAPES, VisionTransformer
from ducos.prompts.weights import load_strictly, read_weights


class Variant(NamedTuple):
    """What differs between the three sizes: head, taps, terms and place of the weights."""

    levels: tuple[int, int, int, int]
    width: int
    taps: tuple[int, int, int, int]
    licence: str
    hub: str


VARIANTS = {
    "s": Variant(
        (48, 96, 192, 384),
        64,
        (2, 5, 8, 11),
        "Apache-2.0",
        "depth-anything/Depth-Anything-V2-Small-hf",
    ),
    "b": Variant(
        (96, 192, 384, 768),
        128,
        (2, 5, 8, 11),
        "CC-BY-NC-4.0",
        "depth-anything/Depth-Anything-V2-Base-hf",
    ),
    "l": Variant(
        (256, 512, 1024, 1024),
        256,
        (4, 11, 17, 23),
        "CC-BY-NC-4.0",
        "depth-anything/Depth-Anything-V2-Large-hf",
    ),
}


class DepthAnythingV2(nn.Module):
    """Four encoder maps on the H/14 grid and relative inverse depth, from a colour image.

    `state_dict()` has the authors' names (`pretrained.*`, `depth_head.*`).

    Args:
        size: "s", "b" or "l".
        weights: "hub" for the published weights, another hub id, a folder in the layout of
            `transformers`, or the authors' .pth or a .safetensors file; None leaves random weights.
        side: about how many pixels the shorter side has inside; None works at the image's own size
            (the authors of Depth Anything use 518).
        imagenet: subtract the ImageNet mean and divide by its deviation, as in this network's
            training; the released DuCos feeds it plain [0, 1].
    """

    multiple_of = PATCH
    inverse = True

    def __init__(
        self,
        size: str = "s",
        *,
        weights: str | Path | None = None,
        side: int | None = None,
        imagenet: bool = True,
    ):
        super().__init__()
        if size not in VARIANTS:
            raise InputError(f"got size {size!r}, expected one of {', '.join(VARIANTS)}")
        variant, shape = VARIANTS[size], SHAPES[size]
        self.taps = variant.taps
        self.licence = variant.licence
        self.channels = (shape.width,) * 4
        self.side = side
        self.imagenet = imagenet
        self.pretrained = VisionTransformer(shape)
        self.depth_head = DPTHead(shape.width, variant.levels, variant.width)
        if weights is not None:
            source = variant.hub if weights == "hub" else weights
            state = read_weights(source)
            if is_transformers_layout(state):
                state = to_authors_keys(state)
            load_strictly(self, state, source)

    def at_working_size(self, image: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Image (B, 3, 14h, 14w) as it is -> four maps (B, C, h, w) and depth (B, 1, 14h, 14w)."""
        maps = tuple(tap.map for tap in self.pretrained(image, self.taps))
        return maps, F.relu(self.depth_head(maps, image.shape[-2:]))

    def forward(self, rgb: Tensor) -> Prompt:
        """rgb (B, 3, H, W) in [0, 1], any size -> four (B, C, h, w) and depth (B, 1, H, W)."""
        image = to_working_size(rgb, self.side, self.multiple_of)
        features, depth = self.at_working_size(imagenet(image) if self.imagenet else image)
        return Prompt(features, to_image_size(depth, (rgb.shape[-2], rgb.shape[-1])))
