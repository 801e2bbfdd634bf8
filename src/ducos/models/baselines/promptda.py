"""PromptDA (Lin et al., CVPR 2025): Depth Anything v2 prompted with the measured depth map.

The closest neighbour of DuCos: there a foundation model prompts the super-resolution network, here
the measurement prompts the foundation model, inside each fusion step of its depth head. The weights
were trained on phone LiDAR (192×256); their licence is Apache-2.0.

What to know before comparing with it:
- It never leaves the range of the measured map, so one wrong minimum spoils the whole image. Our
  input has its holes filled, so a hole can never be that minimum; in the original a 0 is.
- The network is ours, not the port in `transformers`, for the reason given in
  `prompts/depth_anything_v2.py`; files of both origins load.
"""

from pathlib import Path

from torch import Tensor

from ducos.errors import InputError
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.normalise import range_of
from ducos.prompts import (
    PATCH,
    SHAPES,
    VARIANTS,
    DPTHead,
    State,
    VisionTransformer,
    imagenet,
    is_transformers_layout,
    load_strictly,
    read_weights,
    to_authors_keys,
    to_image_size,
    to_working_size,
)

HUB = {
    "s": "depth-anything/prompt-depth-anything-vits-hf",
    "l": "depth-anything/prompt-depth-anything-vitl-hf",
}


def authors_weights(state: State) -> State:
    """Published weights of either layout under the names of our module.

    The authors' checkpoint puts "pipeline." before each name and stores the ImageNet statistics.
    """
    if is_transformers_layout(state):
        return to_authors_keys(state)
    bare = {key.removeprefix("pipeline."): value for key, value in state.items()}
    return {key: value for key, value in bare.items() if key not in ("_mean", "_std")}


class PromptDA(Model):
    """`state_dict()` has the authors' names (`pretrained.*`, `depth_head.*`).

    Args:
        size: "s", "b" or "l"; there are no published weights for "b".
        weights: "hub" for the published weights, another hub id, a folder, or the authors' file;
            None leaves random weights.
        longest: larger images are shrunk to about this many pixels on the longer side, as the
            authors do; the output has the size of the image in any case.
    """

    def __init__(self, size: str = "s", *, weights: str | Path | None = None, longest: int = 1008):
        super().__init__()
        if size not in VARIANTS:
            raise InputError(f"got size {size!r}, expected one of {', '.join(VARIANTS)}")
        variant, shape = VARIANTS[size], SHAPES[size]
        self.taps = variant.taps
        self.longest = longest
        self.pretrained = VisionTransformer(shape)
        self.depth_head = DPTHead(shape.width, variant.levels, variant.width, measured_depth=True)
        if weights == "hub":
            if size not in HUB:
                raise InputError(f"got size {size!r}, expected one with weights: {', '.join(HUB)}")
            weights = HUB[size]
        if weights is not None:
            load_strictly(self, authors_weights(read_weights(weights)), weights)

    def at_working_size(self, image: Tensor, low: Tensor) -> Tensor:
        """Image (B, 3, 14h, 14w) with ImageNet statistics, low (B, 1, ?, ?) -> (B, 1, 14h, 14w)."""
        maps = [tap.map for tap in self.pretrained(image, self.taps)]
        measured = range_of(low)
        share = self.depth_head(maps, image.shape[-2:], measured.apply(low)).sigmoid()
        return measured.lowest + share * (measured.highest - measured.lowest)

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W) in [0, 1], low (B, 1, h, w) without holes -> depth (B, 1, H, W)."""
        H, W = rgb.shape[-2:]
        side = round(min(H, W) * self.longest / max(H, W)) if max(H, W) > self.longest else None
        image = imagenet(to_working_size(rgb, side, PATCH))
        return Prediction(to_image_size(self.at_working_size(image, low), (H, W)))
