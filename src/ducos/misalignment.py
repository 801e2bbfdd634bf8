"""By how many pixels a depth map lies beside its colour image, from edges alone.

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
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import fft, ndimage

from ducos.resize import bicubic, bilinear, fill_holes, nearest

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
AnyArray = NDArray[Any]

LONGEST_SIDE = 640  # pixels at which edges are compared; larger images are shrunk
SEARCH = 0.04  # of the longest side: the largest shift looked for, on either side
BLOCKS = 6  # per axis, for the bootstrap
DRAWS = 200
SMOOTHING = 0.25  # of a depth pixel: no edge of a coarse map is known better than that
EDGE_SHARE = 0.04  # of the pixels: the strongest depth edges are compared
FEWEST_BLOCKS = 4  # with depth edges in them
LARGEST_SPREAD, LARGEST_SPREAD_LOW = 1.0, 0.35  # of the first answer, in colour or depth pixels
LARGEST_REFINED_SPREAD = 1.0, 0.15  # of both together
SURELY = 0.1  # colour pixels: no answer is better than that
CONTRADICTION = 1.5, 0.5  # between the two, in the same pixels
WINDOWS, FEWEST_WINDOWS = 600, 30  # around depth edges
LEAST_JUMP = 0.03  # of the depth, between neighbours: what makes such an edge
COLOUR_NOISE = 1e-4  # variance: fainter colours explain nothing
WEAKEST = 2.5  # strength below which the best shift is no peak
UPRIGHT = "as it is"
SMALLEST_JUMP = 0.02  # of the depth per low-resolution pixel: below it there is no edge


@dataclass
class Misalignment:
    """Where the depth map lies against the colour image, in pixels of the colour image.

    x, y: shift of the depth to the right and down; (0, 0) is aligned.
    spread: bootstrap standard deviation of the shift's length error, in the same pixels.
    certain: whether edges were enough to tell; if not, x and y mean nothing and `reason` says why.
    doubt_of_zero: share of the bootstrap draws that prefer the found shift to no shift.
    gain: score at the best shift over the score at no shift, minus 1.
    strength: best score in standard deviations of the scores of all shifts.
    """

    x: float
    y: float
    spread: float
    certain: bool
    doubt_of_zero: float
    gain: float
    strength: float
    reason: str = ""

    @property
    def length(self) -> float:
        return float(np.hypot(self.x, self.y))


def misalignment(rgb: Floats, depth: Floats, valid: Mask) -> Misalignment:
    """Shift of the depth (h, w), valid where `valid`, against the colour image (H, W, 3)."""
    H, W = rgb.shape[:2]
    size, reach = _working_size(H, W)
    scores = _scores(_colour_edges(rgb, size), _depth_edges(depth, valid, size), reach, BLOCKS)
    ratios = size[0] / depth.shape[0], size[1] / depth.shape[1]
    scores = ndimage.gaussian_filter(scores, (0, SMOOTHING * ratios[0], SMOOTHING * ratios[1]))
    first = _best_shift(scores, (W / size[1], H / size[0]), max(1.0, *ratios))
    return _refined(first, rgb, depth, valid) if first.certain else first


def orientation_strengths(rgb: Floats, depth: Floats, valid: Mask) -> dict[str, float]:
    """How well edges agree, at the best small shift, if the depth was mirrored or turned so.

    A strength is a score in standard deviations of the scores of all shifts. Quarter turns
    are tried only if the depth map stands where the image lies, or the reverse.
    """
    H, W = rgb.shape[:2]
    h, w = depth.shape
    ways: dict[str, Callable[[AnyArray], AnyArray]]
    if (H > W) != (h > w):
        ways = {
            "turned by 90° clockwise": lambda plane: np.rot90(plane, 1),
            "turned by 90° counter-clockwise": lambda plane: np.rot90(plane, -1),
            "transposed": lambda plane: plane.T,
        }
    else:
        ways = {
            UPRIGHT: lambda plane: plane,
            "mirrored left to right": lambda plane: plane[:, ::-1],
            "mirrored top to bottom": lambda plane: plane[::-1],
            "turned by 180°": lambda plane: plane[::-1, ::-1],
        }
    size, reach = _working_size(H, W)
    colour = _colour_edges(rgb, size)
    strengths = {}
    for name, undo in ways.items():
        upright, known = (undo(plane).copy() for plane in (depth, valid))
        surface = _scores(colour, _depth_edges(upright, known, size), reach, blocks=1).sum(0)
        strengths[name] = _strength(surface, reach // 3)
    return strengths


def _working_size(H: int, W: int) -> tuple[tuple[int, int], int]:
    """Size at which edges are compared, and the largest shift in its pixels."""
    shrink = min(1.0, LONGEST_SIDE / max(H, W))
    size = (max(1, round(H * shrink)), max(1, round(W * shrink)))
    return size, max(4, round(SEARCH * max(size)))


def _colour_edges(rgb: Floats, size: tuple[int, int]) -> NDArray[np.complex64]:
    """Doubled-angle edges (H, W): strength relative to that of the surroundings.

    Dividing by the mean strength around makes a faint silhouette in the shade count as much as a
    strong one in the light, and keeps busy texture from drowning both.
    """
    image = torch.tensor(rgb).permute(2, 0, 1)[None]  # a copy: arrays may be read-only
    planes = bilinear(image, size)[0].numpy()
    strongest = np.zeros(size, np.complex64)
    for plane in planes:
        edge = _doubled_angle(plane, 1.0)
        strongest = np.where(np.abs(edge) > np.abs(strongest), edge, strongest)
    strength = np.sqrt(np.abs(strongest))
    around = ndimage.gaussian_filter(strength, max(size) / 40)
    floor = 0.3 * float(strength.mean()) + 1e-3
    direction = strongest / np.maximum(np.abs(strongest), 1e-12)
    return (direction * strength / (around + floor)).astype(np.complex64)


def _depth_edges(depth: Floats, valid: Mask, size: tuple[int, int]) -> NDArray[np.complex64]:
    """Doubled-angle edges (H, W) of the strongest jumps between measured pixels; 0 elsewhere."""
    known = torch.tensor(valid.copy())[None, None]
    filled = fill_holes(torch.tensor(depth.copy())[None, None], known)
    span = max(float(depth[valid].max() - depth[valid].min()), 1e-9)
    # Steps count relative to the distance; relative maps may hold zeros, hence the floor.
    logarithm = torch.log(filled.clamp_min(0) + 0.05 * span)
    h, w = depth.shape
    ratio = max(1.0, size[0] / h, size[1] / w)
    plane = bicubic(logarithm, size)[0, 0].numpy()
    edge = _doubled_angle(plane, max(1.0, 0.4 * ratio))
    measured = nearest(known.float(), size)[0, 0].numpy() > 0.5
    # A jump next to a hole is where filling began, not where a thing ends.
    near_hole = ndimage.binary_dilation(~measured, iterations=round(1.5 * ratio) + 1)
    edge[near_hole] = 0
    strength = np.sqrt(np.abs(edge)) * ratio
    enough = np.quantile(strength, 1 - EDGE_SHARE)
    limit = max(float(enough), SMALLEST_JUMP)
    # All strong jumps count alike: one object close to the camera is not the whole picture.
    kept = np.where(strength > limit, np.minimum(strength / limit, 2.0), 0)
    return (edge / np.maximum(np.abs(edge), 1e-20) * kept).astype(np.complex64)


def _doubled_angle(plane: Floats, sigma: float) -> NDArray[np.complex64]:
    """Squared complex gradient: its angle is twice the edge's, equal for both signs."""
    across = ndimage.gaussian_filter(plane, sigma, order=(0, 1))
    down = ndimage.gaussian_filter(plane, sigma, order=(1, 0))
    gradient = across + 1j * down
    return (gradient * gradient).astype(np.complex64)


def _scores(
    colour: NDArray[np.complex64], depth: NDArray[np.complex64], reach: int, blocks: int
) -> NDArray[np.floating]:
    """(blocks with edges, 2 reach + 1, 2 reach + 1): agreement of each block's depth edges.

    Index [b, reach + dy, reach + dx] is the score if the depth lay (dx, dy) too far right and down,
    that is, what colour edges there are under the depth edges moved back by (dx, dy).
    """
    H, W = colour.shape
    padded = np.pad(colour, reach)
    rows = np.linspace(0, H, blocks + 1).round().astype(int)
    columns = np.linspace(0, W, blocks + 1).round().astype(int)
    results = []
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            block = depth[top:bottom, left:right]
            if not block.any():
                continue
            around = padded[top : bottom + 2 * reach, left : right + 2 * reach]
            shape = (fft.next_fast_len(around.shape[0]), fft.next_fast_len(around.shape[1]))
            # Parallel edges count fully, edges at 45° half, crossing ones not at all.
            spectrum = fft.fft2(around, shape) * np.conj(fft.fft2(block, shape))
            spectrum += fft.fft2(np.abs(around), shape) * np.conj(fft.fft2(np.abs(block), shape))
            score = 0.5 * fft.ifft2(spectrum).real[: 2 * reach + 1, : 2 * reach + 1]
            results.append(score[::-1, ::-1])
    return np.stack(results) if results else np.zeros((0, 2 * reach + 1, 2 * reach + 1))


def _best_shift(
    scores: NDArray[np.floating], to_colour: tuple[float, float], ratio: float
) -> Misalignment:
    """Peak of the summed scores with its bootstrap scatter, in pixels of the colour image."""
    if len(scores) < FEWEST_BLOCKS:
        few = "there are too few depth edges"
        return Misalignment(0.0, 0.0, float("inf"), False, 0.0, 0.0, 0.0, few)
    total = scores.sum(0)
    reach = len(total) // 2
    x, y = _peak(total)
    drawn = _drawn_anew(scores)
    peaks = np.array([_peak(surface) for surface in drawn])
    spread = _scatter((peaks - (x, y)) * to_colour)
    row, column = np.unravel_index(int(total.argmax()), total.shape)
    reason = ""
    if _strength(total) <= WEAKEST:
        reason = "depth and colour edges agree nowhere clearly"
    elif max(abs(row - reach), abs(column - reach)) == reach:
        reason = "they agree best at the largest shift looked for"
    elif spread > max(to_colour) * max(LARGEST_SPREAD, LARGEST_SPREAD_LOW * ratio):
        reason = "different parts of the picture ask for different shifts"
    return Misalignment(
        x=x * to_colour[0],
        y=y * to_colour[1],
        spread=spread,
        certain=not reason,
        doubt_of_zero=float(np.mean(drawn[:, row, column] > drawn[:, reach, reach])),
        gain=float(total.max() / max(float(total[reach, reach]), 1e-12) - 1),
        strength=_strength(total),
        reason=reason,
    )


def _drawn_anew(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """(DRAWS, y, x): sums over as many blocks as there are, drawn with replacement."""
    chances = np.full(len(scores), 1 / len(scores))
    counts = np.random.default_rng(0).multinomial(len(scores), chances, DRAWS)
    return np.tensordot(counts.astype(scores.dtype), scores, 1)


def _scatter(errors: NDArray[np.floating]) -> float:
    """Of peaks (n, 2): a few draws without the decisive edges may go anywhere, so no maximum."""
    return float(np.quantile(np.hypot(*errors.T), 0.75))


def _strength(surface: NDArray[np.floating], within: int | None = None) -> float:
    """Highest score, of shifts up to `within` if given, in standard deviations of all scores."""
    reach = len(surface) // 2
    middle = slice(None) if within is None else slice(reach - within, reach + within + 1)
    rise = surface[middle, middle].max() - surface.mean()
    return float(rise / max(float(surface.std()), 1e-12))


def _peak(surface: NDArray[np.floating]) -> tuple[float, float]:
    """(x, y) of the maximum against the centre, to a fraction of a pixel by a parabola."""
    row, column = np.unravel_index(int(surface.argmax()), surface.shape)
    reach = surface.shape[0] // 2

    def refined(line: NDArray[np.floating], at: int) -> float:
        if not 0 < at < len(line) - 1:
            return float(at)
        before, here, after = (float(value) for value in line[at - 1 : at + 2])
        bend = before - 2 * here + after
        return at + (0.5 * (before - after) / bend if bend < 0 else 0.0)

    return refined(surface[row], int(column)) - reach, refined(surface[:, column], int(row)) - reach


# ----------------------------------------------------- the second answer: colours explain depth


def _refined(first: Misalignment, rgb: Floats, depth: Floats, valid: Mask) -> Misalignment:
    """The shift near the first answer at which colours explain the depth best.

    Two square grids of shifts, the second half as wide and half as coarse; the scatter is the
    second one's. The result is the mean of both answers, each weighted by the inverse of its
    squared scatter. Maps without enough windows keep the first answer.
    """
    h, w = depth.shape
    ratio = max(1.0, rgb.shape[0] / h, rgb.shape[1] / w)
    half = 4 if ratio < 1.5 else 3 if ratio < 3 else 2  # of a window, in depth pixels
    # Windows that reach out of the picture at any shift tried are of no use.
    farthest = max(abs(first.x), abs(first.y)) / ratio + 2 if ratio > 1 else first.length + 5
    centres = _edge_windows(depth, valid, half, half + int(np.ceil(farthest)))
    if len(centres) < FEWEST_WINDOWS:
        return _kept(first, ratio)
    x, y = first.x, first.y
    blocks = (BLOCKS * centres[:, 0] // h) * BLOCKS + BLOCKS * centres[:, 1] // w
    which, members = np.unique(blocks, return_inverse=True)
    step, reach = max(1.0, ratio / 4), 2
    for turn in range(2):
        grid = np.arange(-reach, reach + 1) * step
        explained = _explained(rgb, depth, centres, half, x + grid, y + grid)
        scores = np.zeros((len(which), *explained.shape[1:]))
        np.add.at(scores, members, explained)
        total = scores.sum(0)
        across, down = _peak(total)
        if turn == 0:
            x, y = x + across * step, y + down * step
            step /= 2
    peaks = np.array([_peak(surface) for surface in _drawn_anew(scores)])
    spread = _scatter((peaks - (across, down)) * step)
    x, y = x + across * step, y + down * step
    reason = ""
    apart = np.hypot(x - first.x, y - first.y)
    if apart > max(_limit(CONTRADICTION, ratio), 2 * np.hypot(spread, first.spread)):
        reason = "edges and colours ask for different shifts"
    elif len(which) < FEWEST_BLOCKS:
        reason = "there are too few depth edges"
    trust, first_trust = (max(each, SURELY) ** -2 for each in (spread, first.spread))
    share = trust / (trust + first_trust)
    x, y = first.x + share * (x - first.x), first.y + share * (y - first.y)
    spread = (trust + first_trust) ** -0.5
    if not reason and spread > _limit(LARGEST_REFINED_SPREAD, ratio):
        reason = "different parts of the picture ask for different shifts"
    return replace(first, x=x, y=y, spread=spread, certain=not reason, reason=reason)


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
    whole[inside] = ndimage.minimum_filter(valid, 2 * half + 1)[inside]
    known = depth[valid]
    span = float(np.percentile(known, 99) - np.percentile(known, 1))
    logarithm = np.log(np.maximum(depth, 0) + 0.05 * span + 1e-12)
    # Second differences, because a floor seen from low down has steps but no edge.
    bends = (ndimage.correlate1d(logarithm, [1.0, -2.0, 1.0], axis) for axis in (0, 1))
    jump = np.where(whole, np.maximum(*map(np.abs, bends)), 0)
    # One window per patch of its half size, so that a long edge does not outvote all others.
    best = ndimage.maximum_filter(jump, half) == jump
    rows, columns = np.nonzero(best & (jump > LEAST_JUMP))
    order = np.argsort(-jump[rows, columns], kind="stable")[:WINDOWS]
    return np.stack([rows[order], columns[order]], 1)


def _explained(
    rgb: Floats,
    depth: Floats,
    centres: NDArray[np.intp],
    half: int,
    across: NDArray[np.floating],
    down: NDArray[np.floating],
) -> NDArray[np.floating]:
    """(N, len(down), len(across)): share of each window's depth variance that colours explain.

    A least-squares fit of depth by the three colours, averaged over the depth pixels' areas as they
    lie if the depth is moved back by the shift.
    """
    (H, W), (h, w) = rgb.shape[:2], depth.shape
    offsets = np.arange(-half, half + 1)
    rows = centres[:, 0, None, None] + offsets[:, None]
    columns = centres[:, 1, None, None] + offsets
    target = depth[rows, columns].reshape(len(centres), -1).astype(np.float64)
    # What a plane explains, in depth and in colour, tells nothing about the place of an edge.
    planes = np.stack(np.broadcast_arrays(1.0, offsets[:, None], offsets), -1).reshape(-1, 3)
    planes, _ = np.linalg.qr(planes)
    apart = np.eye(len(planes)) - planes @ planes.T
    target = target @ apart
    variance = np.maximum((target**2).mean(1), 1e-20)
    noise = COLOUR_NOISE * np.eye(3)
    result = np.empty((len(centres), len(down), len(across)))
    summed_down = _running_sum(rgb, 0)
    for i, y in enumerate(down):
        summed = _running_sum(_means(summed_down, np.arange(h + 1) * H / h - y, 0), 1)
        for j, x in enumerate(across):
            colour = _means(summed, np.arange(w + 1) * W / w - x, 1)
            patch = colour[rows, columns].reshape(len(centres), -1, 3)
            patch = apart @ patch
            turned = patch.transpose(0, 2, 1) / patch.shape[1]
            shared = turned @ target[..., None]  # (N, 3, 1)
            weights = np.linalg.solve(turned @ patch + noise, shared)
            result[:, i, j] = (shared * weights).sum((1, 2)) / variance
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
    at_borders = summed.take(before, axis) * (1 - part) + summed.take(before + 1, axis) * part
    lengths = np.maximum(np.diff(borders), 1e-6).reshape(shape)
    return np.diff(at_borders, axis=axis) / lengths
