"""How a map was made smaller than its scene: read off its own edges.

A result should give the map back when it is shrunk again, so one has to know how sensors and
programs shrink. Three ways cover most: the mean over each pixel's area, Pillow's bicubic, and
taking single points. Each leaves a trace in how a depth step is spread over neighbouring pixels:
points leave a step in one piece, means split it in two, and bicubic adds a dip before it and a
bump behind it. Where the edges do not tell, the mean over the area is assumed.
"""

import torch
from torch import Tensor

from ducos.deferred import at_once, whole
from ducos.resize import Size, all_of, area, bicubic, nearest

REACH = 2  # differences to either side of a step that are looked at
STEP = (0.02, 0.04)  # of the map's range: smaller differences are no steps
CLEAR = 0.3  # of the map's range: smaller steps count less, since grain hides what they tell
LARGEST = (-0.02, 0.02)  # by how much of itself a step is larger than the differences beside it
PLAIN = (0.12, 0.08)  # of a step: differences beside it that count as none
DIP, DEEPEST = (0.004, 0.008), (0.14, 0.1)  # of a step: differences two pixels off are bicubic's
FEW = 8.0  # steps that are not enough to tell


def shares(low: Tensor, valid: Tensor | None, ratio: Tensor) -> Tensor:
    """How much low (B, 1, h, w), normalised to [0, 1], looks like the mean over an area, like
    bicubic and like points, (B, 3), adding up to 1.

    valid (B, 1, h, w): steps beside holes do not count. ratio (2,): image pixels per pixel of low;
    the larger it is, the rarer does an edge lie on the border of two pixels.
    """
    with torch.no_grad():
        known = torch.ones_like(low, dtype=torch.bool) if valid is None else valid > 0.5
        down = traces(low.transpose(2, 3), known.transpose(2, 3))
        count, whole_steps, clear, dipped = (down + traces(low, known)).unbind(1)
        enough = (count / FEW - 1).clamp(0, 1)
        whole_steps, clear = whole_steps / count.clamp_min(1), clear.clamp_min(1)
        rarely = 0.4 + 0.5 / ratio.amax().clamp_min(1)
        points = enough * ((whole_steps - rarely) / 0.1 + 0.5).clamp(0, 1)
        by_chance = 1 / clear.sqrt()
        dips = enough * ((dipped / clear - 0.5 * whole_steps - by_chance) / 0.1).clamp(0, 1)
        dips = dips * (1 - points)
        return torch.stack([1 - dips - points, dips, points], 1)


def traces(low: Tensor, known: Tensor) -> Tensor:
    """Of each map (B, 1, h, w), along its rows, (B, 4): how many steps it has; how many of them are
    in one piece; how many it has if small ones count less; the surplus of dips over slopes beside
    those, in steps."""
    n = low.shape[3]
    index = torch.arange(n, device=low.device)
    inside = (index >= REACH) & (index < n - 1 - REACH)

    def shifted(x: Tensor, by: int) -> Tensor:
        return x.index_select(3, (index + by).clamp(0, n - 1))

    valid = known.to(low.dtype)
    difference, both = shifted(low, 1) - low, shifted(valid, 1) * valid
    size = difference.abs().clamp_min(1e-6)
    step = inside * both * ramp(size, STEP)
    beside = {by: shifted(difference, by) / size for by in (-2, -1, 1, 2)}
    for by, other in beside.items():
        step = step * shifted(both, by) * ramp(1 - other.abs(), LARGEST)
    sign = difference.sign()
    piece = ramp(beside[-1].abs(), PLAIN) * ramp(beside[1].abs(), PLAIN)
    surplus = torch.zeros_like(low)
    for by in (-2, 2):
        for way in (-1, 1):  # a slope that goes on, a dip
            amount = -way * sign * beside[by]
            surplus = surplus + way * ramp(amount, DIP) * ramp(amount, DEEPEST)
    clear = step * (size / CLEAR).clamp(max=1) ** 2
    return torch.cat([step, step * piece, clear, clear * surplus / 2], 1).sum((2, 3))


def ramp(x: Tensor, ends: tuple[float, float]) -> Tensor:
    """From 0 at the first end to 1 at the second: no runtime's rounding can turn it over."""
    return ((x - ends[0]) / (ends[1] - ends[0])).clamp(0, 1)


def shrunk_as(depth: Tensor, size: Size, by: Tensor) -> Tensor:
    """depth (B, 1, H, W), shrunk to a map of `size` in the ways whose shares `by` (B, 3) has."""

    def points(depth: Tensor, size: Size) -> Tensor:
        return at_once(lambda x: (nearest(x, size),), depth)[0]

    total = torch.zeros(by.shape[0], 1, *size, dtype=by.dtype, device=by.device)
    for share, way in zip(by.unbind(1), (area, bicubic, points), strict=True):
        if not all_of(share <= 0):
            total = total + share[:, None, None, None] * whole(way(depth, size))
    return total
