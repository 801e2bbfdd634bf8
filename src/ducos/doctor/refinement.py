"""The second answer about a shift: colours averaged over depth pixels explain the depth.

Near the first answer, which comes from edges; `registration` says how the two go together.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray, Floats, Mask
from ducos.doctor.fit import explained_by
from ducos.doctor.shifts import BLOCKS, FEWEST_BLOCKS, Misalignment, drawn_anew, peak, scatter
from ducos.filters import correlate, maximum, minimum

LARGEST_REFINED_SPREAD = 1.0, 0.15  # of both answers together, in colour and depth pixels
SURELY = 0.1  # colour pixels: no answer is better than that
CONTRADICTION = 1.5, 0.5  # between the two answers, in colour and depth pixels
WINDOWS, FEWEST_WINDOWS = 600, 30  # around depth edges
LEAST_JUMP = 0.03  # of the depth, between neighbours: what makes such an edge
COLOUR_NOISE = 1e-4  # variance: fainter colours explain nothing


Harmless = Callable[[Misalignment], bool]  # whether nobody would act on a shift, were it certain


class View(NamedTuple):
    """An image (H, W, 3) and the depth (h, w) of the same moment, valid where `valid` is."""

    rgb: Floats
    depth: Floats
    valid: Mask


class Windows(NamedTuple):
    """Of a view: its depth (h, w), centres (N, 2) of windows around depth edges, and sums of the
    colours from above (3, H + 1, W), of which all means over areas are made."""

    depth: Floats
    centres: NDArray[np.intp]
    summed: NDArray[np.floating]

    def inside(self, margin: int) -> "Windows":
        """Those whose centres are at least `margin` depth pixels from the border."""
        far = (self.centres >= margin) & (self.centres < np.array(self.depth.shape) - margin)
        return self._replace(centres=self.centres[far.all(1)])


def refined(
    first: Misalignment, rivals: NDArray[np.floating], views: Sequence[View], harmless: Harmless
) -> Misalignment:
    """The shift near the first answer at which colours explain the depth of the views best.

    Two square grids of shifts, the second half as wide and half as coarse; the scatter is the
    second one's. The result is the mean of both answers, each weighted by the inverse of its
    squared scatter. Maps without enough windows keep the first answer. If colours explain more at
    one of the rivals (n, 2), other shifts at which edges agree, the doctor cannot tell; nobody asks
    if the shift is harmless.
    """
    (H, W), (h, w) = views[0].rgb.shape[:2], views[0].depth.shape
    ratio = max(1.0, H / h, W / w)
    half = 4 if ratio < 1.5 else 3 if ratio < 3 else 2  # of a window, in depth pixels
    # Windows that reach out of the picture at any shift tried are of no use.
    farthest = max(abs(first.x), abs(first.y)) / ratio + 2 if ratio > 1 else first.length + 5
    margin = half + int(np.ceil(farthest))
    places = [_edge_windows(view.depth, view.valid, half, margin) for view in views]
    centres = np.concatenate(places)
    if len(centres) < FEWEST_WINDOWS:
        return _kept(first, ratio)
    all_windows = [
        Windows(view.depth, part, _running_sum(np.moveaxis(view.rgb, -1, 0), 1))
        for view, part in zip(views, places, strict=True)
    ]
    blocks = (BLOCKS * centres[:, 0] // h) * BLOCKS + BLOCKS * centres[:, 1] // w
    which, members = np.unique(blocks, return_inverse=True)

    def explained(across: NDArray[np.floating], down: NDArray[np.floating]) -> AnyArray:
        """(blocks, len(down), len(across))"""
        shares = [_explained(windows, half, across, down) for windows in all_windows]
        scores = np.zeros((len(which), len(down), len(across)))
        np.add.at(scores, members, np.concatenate(shares))
        return scores

    x, y = first.x, first.y
    step, reach = max(1.0, ratio / 4), 2
    for turn in range(2):
        grid = np.arange(-reach, reach + 1) * step
        scores = explained(x + grid, y + grid)
        across, down = peak(scores.sum(0))
        if turn == 0:
            x, y = x + across * step, y + down * step
            step /= 2
    peaks = np.array([peak(surface) for surface in drawn_anew(scores)])
    spread = scatter((peaks - (across, down)) * step)
    x, y = x + across * step, y + down * step
    trust, first_trust = (max(each, SURELY) ** -2 for each in (spread, first.spread))
    share = trust / (trust + first_trust)
    both = replace(
        first,
        x=first.x + share * (x - first.x),
        y=first.y + share * (y - first.y),
        spread=(trust + first_trust) ** -0.5,
    )
    if harmless(both):
        return both
    reason = ""
    apart = np.hypot(x - first.x, y - first.y)
    if apart > max(_limit(CONTRADICTION, ratio), 2 * np.hypot(spread, first.spread)):
        reason = "depth edges and RGB values suggest different shifts"
    elif _outdone((x, y), rivals, all_windows, half, ratio):
        reason = "another shift fits the RGB values better"
    elif len(which) < FEWEST_BLOCKS:
        reason = "there are too few depth edges"
    elif both.spread > _limit(LARGEST_REFINED_SPREAD, ratio):
        reason = "different parts of the image suggest different shifts"
    return replace(both, certain=not reason, reason=reason)


def _outdone(
    shift: tuple[float, float],
    rivals: NDArray[np.floating],
    all_windows: Sequence[Windows],
    half: int,
    ratio: float,
) -> bool:
    """Whether colours explain more of the depth near a rival (n, 2) than near the shift."""
    near = np.array([-1, 0, 1]) * max(1.0, ratio / 4)
    tried = [shift, *rivals]
    # All are judged by the windows that stay inside the picture at every one of them.
    margin = half + int(np.ceil((np.abs(tried).max() + near[-1]) / ratio))
    inside = [windows.inside(margin) for windows in all_windows]
    heights = [
        sum(_explained(windows, half, x + near, y + near).sum(0) for windows in inside).max()
        for x, y in tried
    ]
    return max(heights[1:], default=0.0) > heights[0]


def _kept(first: Misalignment, ratio: float) -> Misalignment:
    """The first answer alone, which must then be as sure as the second."""
    if first.spread <= _limit(LARGEST_REFINED_SPREAD, ratio):
        return first
    return replace(first, certain=False, reason="there are too few depth edges")


def _limit(pixels: tuple[float, float], ratio: float) -> float:
    """The larger of so many colour pixels and so many depth pixels, in colour pixels."""
    return max(pixels[0], pixels[1] * ratio)


def _edge_windows(depth: Floats, valid: Mask, half: int, margin: int) -> NDArray[np.intp]:
    """(N, 2) centres of windows without holes on the strongest depth edges, spread out."""
    whole = np.zeros_like(valid)
    inside = np.s_[margin:-margin, margin:-margin]
    whole[inside] = minimum(valid, 2 * half + 1)[inside]
    known = depth[valid]
    span = float(np.percentile(known, 99) - np.percentile(known, 1))
    logarithm = np.log(np.maximum(depth, 0) + 0.05 * span + 1e-12)
    # Second differences, because a floor seen from low down has steps but no edge.
    bends = (correlate(logarithm, [1.0, -2.0, 1.0], axis) for axis in (0, 1))
    jump = np.where(whole, np.maximum(*map(np.abs, bends)), 0)
    # One window per patch of its half size, so that a long edge does not outvote all others.
    best = maximum(jump, half) == jump
    rows, columns = np.nonzero(best & (jump > LEAST_JUMP))
    order = np.argsort(-jump[rows, columns], kind="stable")[:WINDOWS]
    return np.stack([rows[order], columns[order]], 1)


def _explained(
    windows: Windows, half: int, across: NDArray[np.floating], down: NDArray[np.floating]
) -> NDArray[np.floating]:
    """(N, len(down), len(across)): share of each window's depth variance that colours explain.

    A least-squares fit of depth by the three colours, averaged over the depth pixels' areas as they
    lie if the depth is moved back by the shift.
    """
    depth, centres, summed_down = windows
    (H, W), (h, w) = (summed_down.shape[1] - 1, summed_down.shape[2]), depth.shape
    offsets = np.arange(-half, half + 1)
    # All pixels of all windows, (n², N): long lines of windows, which is what numpy is fast at.
    inside = (offsets[:, None] * w + offsets).reshape(-1, 1)
    places = inside + (centres[:, 0] * w + centres[:, 1])
    # What a plane explains, in depth and in colour, tells nothing about the place of an edge.
    planes = np.stack(np.broadcast_arrays(1.0, offsets[:, None], offsets), -1).reshape(-1, 3)
    planes, _ = np.linalg.qr(planes)
    target = depth.reshape(-1)[places].astype(np.float64)
    target -= planes @ (planes.T @ target)
    variance = np.maximum((target**2).mean(0), 1e-20)
    planes, target = planes.astype(np.float32), target.astype(np.float32)
    result = np.empty((len(centres), len(down), len(across)))
    for i, y in enumerate(down):
        summed = _running_sum(_means(summed_down, np.arange(h + 1) * H / h - y, 1), 2)
        for j, x in enumerate(across):
            colour = _means(summed, np.arange(w + 1) * W / w - x, 2).astype(np.float32)
            patch = colour.reshape(3, -1).take(places, 1)  # (3, n², N)
            patch -= planes @ (planes.T @ patch)
            result[:, i, j] = explained_by(patch, target, COLOUR_NOISE) / variance
    return result


def _running_sum(values: AnyArray, axis: int) -> NDArray[np.floating]:
    """Sums of all before, one longer than the values along the axis."""
    width = [(1, 0) if each == axis else (0, 0) for each in range(values.ndim)]
    return np.pad(np.cumsum(values, axis, dtype=np.float64), width)


def _means(
    summed: NDArray[np.floating], borders: NDArray[np.floating], axis: int
) -> NDArray[np.floating]:
    """Means between neighbouring borders, fractions of pixels counted; none outside."""
    last = summed.shape[axis] - 1
    borders = borders.clip(0, last)
    before = np.minimum(borders.astype(int), last - 1)
    shape = [-1 if each == axis else 1 for each in range(summed.ndim)]
    part = (borders - before).reshape(shape)
    at_borders = summed.take(before, axis)
    step = summed.take(before + 1, axis)
    step -= at_borders
    step *= part
    at_borders += step
    lengths = np.maximum(np.diff(borders), 1e-6).reshape(shape)
    return np.diff(at_borders, axis=axis) / lengths
