"""Patches of pairs that come with a real sensor's map: image and map are cut along the same lines.

A line between two pixels of the map is one of the image, too, only every so often: at 512×384 over
192×144 after every third. Patches begin and end there, so nothing is resampled.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ducos.data import Pair
from ducos.errors import InputError
from ducos.training.samples import Patch


def common_ratio(pairs: Sequence[Pair]) -> Fraction:
    """Image pixels per pixel of the sensor's map, the same for all pairs and both axes."""
    ratios = set()
    for pair in pairs:
        if pair.low is None:
            raise InputError(
                f"{pair.name} has no low-resolution map of a sensor, which the degradation "
                "`sensor` takes; leave it out of [data.degradations], or add the maps"
            )
        (H, W), (h, w) = pair.target.shape, pair.low.shape
        ratios |= {Fraction(H, h), Fraction(W, w)}
    if len(ratios) > 1:
        shown = ", ".join(f"{float(ratio):.3f}" for ratio in sorted(ratios))
        raise InputError(
            f"pairs of one batch must have one ratio of image to sensor map in both axes, got "
            f"{shown}; crop the images, or train with batch_size 1"
        )
    return ratios.pop()


def patch_sides(pairs: Sequence[Pair], ratio: Fraction, crop: int) -> tuple[int, int]:
    """Side of the patches in pixels of the image, about `crop`, and of the map."""
    step = ratio.denominator  # pixels of the map after which both grids meet
    smallest = min(min(pair.low.shape) for pair in pairs if pair.low is not None)
    most = smallest // step
    if most == 0:
        raise InputError(
            f"a sensor map of {smallest} pixels at a ratio of {ratio} meets its image's grid only "
            f"every {step} pixels; crop the images to a simpler ratio"
        )
    low = step * min(most, max(1, round(crop / ratio / step)))
    return int(low * ratio), low


def cut_measured(
    pair: Pair, ratio: Fraction, sides: tuple[int, int], rng: np.random.Generator
) -> Patch:
    """A random patch of a pair with its sensor's map."""
    low: Any = pair.low
    low_valid: Any = np.ones(low.shape, bool) if pair.low_valid is None else pair.low_valid
    side, low_side = sides
    step = ratio.denominator
    low_top, low_left = (
        step * int(rng.integers((length - low_side) // step + 1)) for length in low.shape
    )
    top, left = int(low_top * ratio), int(low_left * ratio)
    square = np.s_[top : top + side, left : left + side]
    low_square = np.s_[low_top : low_top + low_side, low_left : low_left + low_side]
    return Patch(
        rgb=pair.rgb[square],
        target=pair.target[square],
        valid=pair.valid[square],
        kind="real",
        scale=float(ratio),
        image=pair.rgb,
        low=low[low_square],
        low_valid=low_valid[low_square],
        top=top,
        left=left,
    )
