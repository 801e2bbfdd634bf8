"""DINOv2 (Oquab et al., TMLR 2024): features without depth; Depth Anything starts from them."""

from pathlib import Path

from torch import Tensor, nn

from ducos.errors import InputError
from ducos.prompts.image import imagenet, to_working_size
from ducos.prompts.prompt import Prompt
from ducos.prompts.transformers_layout import is_transformers_layout, to_authors_keys
from ducos.prompts.vit import PATCH, SHAPES, VisionTransformer
from ducos.prompts.weights import load_strictly, read_weights

HUB = {"s": "facebook/dinov2-small", "b": "facebook/dinov2-base", "l": "facebook/dinov2-large"}
TAPS = {"s": (2, 5, 8, 11), "b": (2, 5, 8, 11), "l": (4, 11, 17, 23)}


class Dinov2(nn.Module):
    """Four encoder maps on the H/14 grid from a colour image; no depth.

    Args:
        size: "s", "b" or "l".
        weights: "hub" for the published weights, another hub id, a folder in the layout of
            `transformers`, or the authors' .pth or a .safetensors file; None leaves random weights.
        side: about how many pixels the shorter side has inside; None works at the image's own size.
    """

    multiple_of = PATCH
    inverse = False
    licence = "Apache-2.0"

    def __init__(
        self, size: str = "s", *, weights: str | Path | None = None, side: int | None = None
    ):
        super().__init__()
        if size not in TAPS:
            raise InputError(f"got size {size!r}, expected one of {', '.join(TAPS)}")
        self.taps = TAPS[size]
        self.channels = (SHAPES[size].width,) * 4
        self.side = side
        self.encoder = VisionTransformer(SHAPES[size])
        if weights is not None:
            source = HUB[size] if weights == "hub" else weights
            state = read_weights(source)
            if is_transformers_layout(state):
                state = to_authors_keys(state)
            load_strictly(self.encoder, state, source)

    def forward(self, rgb: Tensor) -> Prompt:
        """rgb (B, 3, H, W) in [0, 1], any size -> four (B, C, h, w) and no depth."""
        image = imagenet(to_working_size(rgb, self.side, self.multiple_of))
        return Prompt(tuple(tap.map for tap in self.encoder(image, self.taps)), None)
