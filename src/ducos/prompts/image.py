"""How a colour image is brought to the size and range a foundation model works with."""

import math

import torch.nn.functional as F
from torch import Tensor

from ducos.resize import Size, bicubic

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def imagenet(rgb: Tensor) -> Tensor:
    """Colours in [0, 1] to the statistics ImageNet networks are trained with, (B, 3, H, W)."""
    mean = rgb.new_tensor(MEAN).view(1, 3, 1, 1)
    deviation = rgb.new_tensor(DEVIATION).view(1, 3, 1, 1)
    return (rgb - mean) / deviation


def covering_size(size: Size, multiple: int) -> Size:
    """Smallest multiples that cover the image at its aspect ratio, as in the authors' DuCos.

    Both sides grow by the factor that the needier one needs to reach its next multiple; then each
    is rounded up: 64×96 becomes 70×112 for multiples of 14, 70×98 stays.
    """
    needed = [math.ceil(side / multiple) * multiple for side in size]
    factor = max(needed[0] / size[0], needed[1] / size[1])
    # Whole pixels first: a rounding error just above a multiple must not cost another one.
    grown = (int(size[0] * factor), int(size[1] * factor))
    return math.ceil(grown[0] / multiple) * multiple, math.ceil(grown[1] / multiple) * multiple


def size_near(size: Size, side: int, multiple: int) -> Size:
    """Multiples nearest to the image scaled so that its shorter side has `side` pixels."""
    factor = side / min(size)
    return (
        max(multiple, round(size[0] * factor / multiple) * multiple),
        max(multiple, round(size[1] * factor / multiple) * multiple),
    )


def to_working_size(rgb: Tensor, side: int | None, multiple: int) -> Tensor:
    """Resize (B, 3, H, W) to the size a network works at.

    Args:
        side: None for `covering_size`, the working size of the authors' DuCos, resized by their
            sharper bicubic (it grows by a few pixels, so nothing aliases); a number for about that
            many pixels on the shorter side, antialiased: cost falls with its square.
    """
    size = (rgb.shape[-2], rgb.shape[-1])
    if side is not None:
        return bicubic(rgb, size_near(size, side, multiple))
    working = covering_size(size, multiple)
    if working == size:
        return rgb
    return F.interpolate(rgb, size=working, mode="bicubic", align_corners=False)


def to_image_size(depth: Tensor, size: Size) -> Tensor:
    """Bilinear (B, 1, ?, ?) to the image's own H×W; never leaves the range of its input."""
    if tuple(depth.shape[-2:]) == tuple(size):
        return depth
    return F.interpolate(depth, size=size, mode="bilinear", align_corners=False)
