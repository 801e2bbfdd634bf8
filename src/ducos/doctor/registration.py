"""By how many pixels a depth map lies beside its colour image, from the two alone.

Depth jumps where one thing ends before another, and so, mostly, does colour, along the same line.
For every shift of the depth map the score is the mean colour-edge strength found under the depth
edges, counting only edges of the same direction (doubled angles, so that dark-to-bright equals
bright-to-dark); Fourier transforms give all shifts at once. The best shift is a first answer, good
to a fraction of a depth pixel.

The second answer asks more: around depth edges, is the depth a linear function of the colours
averaged over the same areas? A depth pixel that lies half on either surface then fits only colours
mixed in the same proportion, which tells fractions of a depth pixel, where edges of a coarse map
are blurred. The shift that explains most of the depth's variance wins.

How far to trust it is measured, not assumed: the picture is cut into blocks, the scores are sums
over blocks, and drawing the blocks anew with replacement (bootstrap) shows how much the best shift
depends on which edges happened to be in view. Where it scatters, or where the two answers
contradict each other, the doctor is told "cannot tell" and why.

Two cameras on one rig lie beside each other in every frame alike, so the views of a recording are
added up block by block. Blocks, not frames, are drawn anew: many frames of a camera that stands
still are not many witnesses.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import Floats, Mask
from ducos.doctor.colour import is_misaligned
from ducos.doctor.edges import agreement, colour_edges, depth_edges, working_size
from ducos.doctor.refinement import Harmless, View, refined
from ducos.doctor.shifts import (
    BLOCKS,
    FEWEST_BLOCKS,
    Misalignment,
    drawn_anew,
    other_peaks,
    peak,
    scatter,
    strength,
)
from ducos.filters import gaussian, turned
from ducos.sampling import bilinear

SMOOTHING = 0.25  # of a depth pixel: no edge of a coarse map is known better than that
LARGEST_SPREAD, LARGEST_SPREAD_LOW = 1.0, 0.35  # of the first answer, in colour or depth pixels
WEAKEST = 2.5  # strength below which the best shift is no peak
MOST_ACROSS = 8  # pixels of the picture per depth pixel: as fine as the finest step tried
MOST_PIXELS = 5_000_000  # of a picture


def misalignment(rgb: Floats, depth: Floats, valid: Mask) -> Misalignment:
    """Shift of the depth (h, w), valid where `valid`, against the colour image (H, W, 3)."""
    return common_misalignment([View(rgb, depth, valid)])


def common_misalignment(views: Sequence[View], *, in_haste: bool = False) -> Misalignment:
    """The one shift of all views, which have the same sizes.

    in_haste: not better known than is needed to say, by `is_misaligned`, that all is well.
    """
    (H, W), (h, w) = views[0].rgb.shape[:2], views[0].depth.shape
    views = [_eased(view) for view in views]
    down, across = H / views[0].rgb.shape[0], W / views[0].rgb.shape[1]

    def in_full(found: Misalignment) -> Misalignment:
        spread = max(down, across) * found.spread
        return replace(found, x=across * found.x, y=down * found.y, spread=spread)

    def harmless(found: Misalignment) -> bool:
        return in_haste and not is_misaligned(in_full(found), max(H / h, W / w))

    return in_full(_measured(views, harmless))


def _eased(view: View) -> View:
    """With a picture no finer than it helps, so that the largest take no more time or memory."""
    (H, W), (h, w) = view.rgb.shape[:2], view.depth.shape
    fit = min(1.0, (MOST_PIXELS / (H * W)) ** 0.5)
    size = (round(min(fit * H, MOST_ACROSS * h)), round(min(fit * W, MOST_ACROSS * w)))
    if size == (H, W):
        return view
    small = bilinear(turned(view.rgb), (max(1, size[0]), max(1, size[1])))
    return view._replace(rgb=np.ascontiguousarray(np.moveaxis(small, 0, -1)))


def _measured(views: Sequence[View], harmless: Harmless) -> Misalignment:
    """The shift in pixels of the pictures as they are."""
    (H, W), (h, w) = views[0].rgb.shape[:2], views[0].depth.shape
    size, reach = working_size(H, W)
    ratios = size[0] / h, size[1] / w
    scores = np.zeros((BLOCKS**2, 2 * reach + 1, 2 * reach + 1))
    for view in views:
        edges = depth_edges(view.depth, view.valid, size)
        scores += agreement(colour_edges(view.rgb, size), edges, reach, BLOCKS)
    scores = scores[scores.any((1, 2))]
    scores = gaussian(scores, (0, SMOOTHING * ratios[0], SMOOTHING * ratios[1]))
    to_colour = (W / size[1], H / size[0])
    first = _best_shift(scores, to_colour, max(1.0, *ratios))
    # The second answer moves it, but does not change how much it is doubted.
    anywhere = replace(first, x=float("inf"))
    if not first.certain or harmless(anywhere):
        return first
    rivals = other_peaks(scores.sum(0), max(2, *ratios)) * to_colour
    return refined(first, rivals, views, harmless)


def _best_shift(
    scores: NDArray[np.floating], to_colour: tuple[float, float], ratio: float
) -> Misalignment:
    """Peak of the summed scores with its bootstrap scatter, in pixels of the colour image."""
    if len(scores) < FEWEST_BLOCKS:
        few = "there are too few depth edges"
        return Misalignment(0.0, 0.0, float("inf"), False, 0.0, 0.0, 0.0, few)
    total = scores.sum(0)
    reach = len(total) // 2
    x, y = peak(total)
    drawn = drawn_anew(scores)
    peaks = np.array([peak(surface) for surface in drawn])
    spread = scatter((peaks - (x, y)) * to_colour)
    row, column = np.unravel_index(int(total.argmax()), total.shape)
    reason = ""
    if strength(total) <= WEAKEST:
        reason = "depth and colour edges agree nowhere clearly"
    elif max(abs(row - reach), abs(column - reach)) == reach:
        reason = "they agree best at the largest shift looked for"
    elif spread > max(to_colour) * max(LARGEST_SPREAD, LARGEST_SPREAD_LOW * ratio):
        reason = "different parts of the image suggest different shifts"
    return Misalignment(
        x=x * to_colour[0],
        y=y * to_colour[1],
        spread=spread,
        certain=not reason,
        doubt_of_zero=float(np.mean(drawn[:, row, column] > drawn[:, reach, reach])),
        gain=float(total.max() / max(float(total[reach, reach]), 1e-12) - 1),
        strength=strength(total),
        reason=reason,
    )
