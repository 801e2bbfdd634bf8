"""The picture a person looks at first: colour | input | result, on one depth scale."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ducos import io

Picture = NDArray[np.uint8]
BAR = 22  # height of the caption in pixels


def comparison(
    rgb: NDArray[np.float32],
    low: NDArray[np.float32],
    low_valid: NDArray[np.bool_],
    depth: NDArray[np.float32],
    valid: NDArray[np.bool_],
    truth: NDArray[np.float32] | None = None,
) -> Picture:
    """Colour, input as its pixels are, result, and the truth if known, side by side.

    Args:
        rgb: (H, W, 3) in [0, 1]; low, low_valid: (h, w); depth, valid: (H, W); truth: (H, W).

    Returns:
        (H + caption, 3 or 4 times W, 3) uint8; all depth maps share one colour scale.
    """
    H, W = depth.shape
    lowest, highest = (float(x) for x in np.percentile(low[low_valid], (2, 95)))
    # Ratios are what the eye compares in depth: a far window must not flatten a near table.
    logarithmic = lowest > 0 and highest > 2 * lowest

    def paint(values: NDArray[np.float32], mask: NDArray[np.bool_]) -> Picture:
        if not logarithmic:
            return io.colourise(values, mask, lowest=lowest, highest=highest)
        logs = np.log(np.maximum(values, 1e-3 * lowest))
        return io.colourise(logs, mask, lowest=np.log(lowest), highest=np.log(highest))

    pixels = Image.fromarray(paint(low, low_valid)).resize((W, H), Image.Resampling.NEAREST)
    panels = [
        ("colour", (rgb * 255).round().astype(np.uint8)),
        (f"input {low.shape[1]} x {low.shape[0]}", np.asarray(pixels)),
        (f"result {W} x {H}", paint(depth, valid)),
    ]
    if truth is not None:
        panels.append(("truth", paint(truth, truth > 0)))
    return side_by_side(panels)


def side_by_side(panels: list[tuple[str, Picture]]) -> Picture:
    """Pictures of one size in a row, each under its caption."""
    return np.hstack([captioned(text, picture) for text, picture in panels])


def captioned(text: str, picture: Picture) -> Picture:
    """A picture under a dark bar that names it."""
    bar = Image.new("RGB", (picture.shape[1], BAR), (24, 24, 28))
    font = ImageFont.load_default(size=14)
    ImageDraw.Draw(bar).text((6, 2), text, fill=(235, 235, 235), font=font)
    return np.vstack([np.asarray(bar), picture])
