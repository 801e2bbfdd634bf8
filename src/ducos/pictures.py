"""Error maps to look at: RGB | input | prediction | target | error, one line per model.

All depth panels of a sheet share one colour scale, and so do all error panels of a run: black is no
error, warmer is more. The end of the error scale comes from bicubic's errors, not from the models',
so that sheets of different models can be laid side by side.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ducos.io import colourise
from ducos.preview import Picture, captioned, side_by_side

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

PANEL_WIDTH = (240, 640)  # pixels; captions need the first, screens end at five times the second
BAR_HEIGHT = 10
ERROR_PALETTE = "inferno"
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)


def error_limit(errors: Sequence[NDArray[np.floating]]) -> float:
    """End of a common error scale: the 98th percentile of all errors, rounded up."""
    pooled = np.concatenate([np.abs(error).ravel() for error in errors])
    percentile = float(np.percentile(pooled, 98)) if pooled.size else 0.0
    if percentile <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(percentile))
    return next(digit * power for digit in ROUND if digit * power >= percentile)


def error_sheet(
    title: str,
    rgb: Floats,
    low: Floats,
    low_valid: Mask,
    target: Floats,
    valid: Mask,
    predictions: Sequence[tuple[str, Floats]],
    limit: float,
    unit: str,
) -> Picture:
    """One sheet: a line of five panels for each prediction.

    Args:
        title: stands under the panels, such as dataset, image, scale and protocol.
        rgb: (H, W, 3) in [0, 1]; low, low_valid: (h, w); target, valid: (H, W).
        predictions: captions and maps (H, W). All maps are in `unit`.
        limit: error of the warmest colour.
    """
    H, W = target.shape
    known = target[valid] if valid.any() else target
    lowest, highest = (float(x) for x in np.percentile(known, (1, 99)))

    def depth(values: Floats, mask: Mask | None) -> Picture:
        return colourise(values, mask, lowest=lowest, highest=highest)

    pixels = Image.fromarray(depth(low, low_valid)).resize((W, H), Image.Resampling.NEAREST)
    colour = (rgb * 255).round().astype(np.uint8)
    before = [("RGB", colour), (f"input {low.shape[1]} x {low.shape[0]}", np.asarray(pixels))]
    truth = ("target", depth(target, valid))
    lines = []
    for caption, prediction in predictions:
        error = colourise(
            np.abs(prediction - target), valid, lowest=0, highest=limit, palette=ERROR_PALETTE
        )
        panels = [*before, (caption, depth(prediction, None)), truth]
        panels.append((f"error, 0 to {limit:g} {unit}", error))
        lines.append(side_by_side([(text, _fitted(picture)) for text, picture in panels]))
    return np.vstack([*lines, _footer(title, limit, unit, lines[0].shape[1])])


def _fitted(picture: Picture) -> Picture:
    """The picture at a width between the two of PANEL_WIDTH."""
    H, W = picture.shape[:2]
    narrowest, widest = PANEL_WIDTH
    if narrowest <= W <= widest:
        return picture
    # Small maps grow by a whole factor, so that their pixels stay what they are.
    width = W * math.ceil(narrowest / W) if narrowest > W else widest
    how = Image.Resampling.NEAREST if narrowest > W else Image.Resampling.BOX
    return np.asarray(Image.fromarray(picture).resize((width, max(1, round(H * width / W))), how))


def _footer(title: str, limit: float, unit: str, width: int) -> Picture:
    """Title, and the key of the error colours below the error panels."""
    key_width = width // 5
    ramp = np.broadcast_to(np.linspace(0, limit, key_width), (BAR_HEIGHT, key_width))
    key = colourise(ramp, lowest=0, highest=limit, palette=ERROR_PALETTE)
    blank = np.zeros((0, width - key_width, 3), np.uint8)
    text = captioned(title, blank)
    scale = captioned(f"0 … {limit / 2:g} … {limit:g} {unit}: warmer is worse", key)
    text = np.vstack([text, np.full((BAR_HEIGHT, text.shape[1], 3), text[0, 0], np.uint8)])
    return np.hstack([text, scale])
