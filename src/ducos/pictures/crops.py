"""Where to look: the parts of a depth map that show most, and the line across its clearest edge.

Everything is decided by the *input* alone, so that pictures of different methods show the same
places.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import Floats, Mask, Size
from ducos.filters import box_mean

RANGE = (2, 95)  # percentiles of the input between which pictures have colours
LEAST = 0.08  # of the largest jump: less is a slope or noise
SHARE = 1 / 6  # side of a window, of the shorter image side
FEWEST = 8  # input pixels across a window, if the map has as many
STEP = 3  # input pixels averaged on each side of an edge
REACH = 9  # input pixels that a profile shows on each side of its edge


@dataclass
class Window:
    """A square of the output: its top-left pixel and side."""

    top: int
    left: int
    side: int

    def cut(self, picture: NDArray) -> NDArray:
        """The part of a map or picture (H, W, ...) inside."""
        return picture[self.top : self.top + self.side, self.left : self.left + self.side]


@dataclass
class Line:
    """A stretch of one row or column of the output, across an edge.

    across: True for a row. at: which one; start, stop: its first pixel and the one after the last.
    places, samples: where along it, in output pixels, the input has a measurement, and its depth.
    """

    across: bool
    at: int
    start: int
    stop: int
    places: NDArray[np.float64]
    samples: Floats

    def cut(self, values: NDArray) -> NDArray:
        """The values of a map (H, W) along the line."""
        along = slice(self.start, self.stop)
        return values[self.at, along] if self.across else values[along, self.at]


def windows(low: Floats, valid: Mask, size: Size, count: int = 3) -> list[Window]:
    """The squares with the most depth edge in them, best first, none overlapping another.

    Args:
        low, valid: (h, w) input and its mask; size: (H, W) of the output.

    Returns:
        At most `count`; none on a map without edges.
    """
    H, W = size
    h, w = low.shape
    fewest = FEWEST * max(H / h, W / w)
    side = max(1, min(H, W, round(max(SHARE * min(H, W), fewest))))
    rows, columns = max(1, round(side * h / H)), max(1, round(side * w / W))
    jump = jumps(low, valid)
    positive = jump[jump > 0]
    if not positive.size:
        return []
    # A slanted plane, with a small jump at every pixel, must not outshine edges.
    edges = positive[positive > LEAST * positive.max()]
    jump = np.where(jump > LEAST * positive.max(), jump, 0)
    # Nor one far window all the furniture.
    jump = np.minimum(jump, np.percentile(edges, 50))
    richness = box_mean(jump, (rows, columns))
    measured = box_mean(valid, (rows, columns))
    richness[measured < 0.5] = 0
    best = float(richness.max())
    found: list[Window] = []
    while len(found) < count and richness.max() > max(0.1 * best, 1e-9):
        row, column = divmod(int(richness.argmax()), w)
        top = round((row + 0.5) * H / h - side / 2)
        left = round((column + 0.5) * W / w - side / 2)
        window = Window(min(max(top, 0), H - side), min(max(left, 0), W - side), side)
        if not any(_overlap(window, other) for other in found):
            found.append(window)
        above, before = max(0, row - rows // 2), max(0, column - columns // 2)
        richness[above : row + rows // 2 + 1, before : column + columns // 2 + 1] = 0
    return found


def clearest_edge(low: Floats, valid: Mask, size: Size) -> Line | None:
    """The row or column of the output across the cleanest step of the input; None without one.

    A clean step is a large difference between the means of three measured pixels on either side,
    compared with how much those three differ among themselves.
    """
    values = _levels(low, valid)
    best: tuple[float, bool, int, int] | None = None
    for across in (True, False):
        plane, known = (values, valid) if across else (values.T, valid.T)
        if plane.shape[1] < 2 * STEP:
            continue
        stretches = np.lib.stride_tricks.sliding_window_view(plane, 2 * STEP, axis=1)
        complete = np.lib.stride_tricks.sliding_window_view(known, 2 * STEP, axis=1).all(-1)
        near, far = stretches[..., :STEP], stretches[..., STEP:]
        score = np.abs(near.mean(-1) - far.mean(-1)) - 2 * (np.ptp(near, -1) + np.ptp(far, -1))
        score = np.where(complete, score, -np.inf)
        place = int(score.argmax())
        if score.flat[place] > 0 and (best is None or score.flat[place] > best[0]):
            row, first = divmod(place, score.shape[1])
            best = float(score.flat[place]), across, row, first + STEP
    if best is None:
        return None
    _, across, row, edge = best
    return _line(low, valid, size, across, row, edge)


def _line(low: Floats, valid: Mask, size: Size, across: bool, row: int, edge: int) -> Line:
    """The line through an edge before pixel `edge` of a row (or column) of the input."""
    plane, known = (low, valid) if across else (low.T, valid.T)
    height, width = size if across else size[::-1]
    h, w = plane.shape
    first, last = max(0, edge - REACH), min(w, edge + REACH)
    picked = np.flatnonzero(known[row, first:last]) + first
    return Line(
        across,
        at=min(height - 1, int((row + 0.5) * height / h)),
        start=int(first * width / w),
        stop=max(int(first * width / w) + 1, int(last * width / w)),
        places=(picked + 0.5) * width / w - 0.5,
        samples=plane[row, picked],
    )


def jumps(low: Floats, valid: Mask) -> Floats:
    """Largest step (h, w) from each measured pixel to a measured neighbour.

    In ratios if distances are positive (0.7 is a doubling), else in shares of the range.
    """
    values = _levels(low, valid)
    out = np.zeros(low.shape, np.float32)
    for one, other in (
        ((slice(1, None), slice(None)), (slice(None, -1), slice(None))),
        ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
    ):
        step = np.where(valid[one] & valid[other], np.abs(values[one] - values[other]), 0)
        out[one] = np.maximum(out[one], step)
        out[other] = np.maximum(out[other], step)
    return out


def _levels(low: Floats, valid: Mask) -> Floats:
    """Values whose differences can be compared, near and far; 0 in holes.

    Clipped to the range that pictures show, so that nobody is sent to an edge without colours.
    """
    known = low[valid]
    if not known.size:
        return np.zeros_like(low)
    lowest, highest = np.percentile(known, RANGE)
    shown = low.clip(lowest, highest)
    if lowest > 0:
        return np.where(valid, np.log(np.where(valid, shown, 1)), 0).astype(np.float32)
    span = float(highest - lowest) or 1.0
    return np.where(valid, shown / span, 0).astype(np.float32)


def _overlap(one: Window, other: Window) -> bool:
    return (
        abs(one.top - other.top) < max(one.side, other.side)
        and abs(one.left - other.left) < max(one.side, other.side)
    )  # fmt: skip
