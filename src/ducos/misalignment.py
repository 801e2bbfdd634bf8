"""By how many pixels a depth map lies beside its colour image, from edges alone.

Depth jumps where one thing ends before another, and so, mostly, does colour, along the same line.
For every shift of the depth map the score is the mean colour-edge strength found under the depth
edges, counting only edges of the same direction (doubled angles, so that dark-to-bright equals
bright-to-dark); Fourier transforms give all shifts at once. The best shift is the answer.

How far to trust it is measured, not assumed: the picture is cut into blocks, the score is a sum
over blocks, and drawing the blocks anew with replacement (bootstrap) shows how much the best shift
depends on which edges happened to be in view. Where it scatters, the answer is "cannot tell".
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import fft, ndimage

from ducos.resize import bicubic, bilinear, fill_holes, nearest

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

SM = 0.25
LONGEST_SIDE = 640  # pixels at which edges are compared; larger images are shrunk
SEARCH = 0.04  # of the longest side: the largest shift looked for, on either side
BLOCKS = 6  # per axis, for the bootstrap
DRAWS = 200
EDGE_SHARE = 0.04  # of the pixels: the strongest depth edges are compared
SMALLEST_JUMP = 0.02  # of the depth per low-resolution pixel: below it there is no edge


@dataclass
class Misalignment:
    """Where the depth map lies against the colour image, in pixels of the colour image.

    x, y: shift of the depth to the right and down; (0, 0) is aligned.
    spread: bootstrap standard deviation of the shift's length error, in the same pixels.
    certain: whether edges were enough to tell; if not, x and y mean nothing.
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

    @property
    def length(self) -> float:
        return float(np.hypot(self.x, self.y))


def misalignment(rgb: Floats, depth: Floats, valid: Mask) -> Misalignment:
    """Shift of the depth (h, w), valid where `valid`, against the colour image (H, W, 3)."""
    H, W = rgb.shape[:2]
    size, reach = _working_size(H, W)
    scores = _scores(_colour_edges(rgb, size), _depth_edges(depth, valid, size), reach)
    to_colour = (W / size[1], H / size[0])
    scores = ndimage.gaussian_filter(scores, (0, SM*size[0]/depth.shape[0], SM*size[1]/depth.shape[1]))
    return _best_shift(scores, reach, to_colour)


def orientation_scores(rgb: Floats, depth: Floats, valid: Mask) -> dict[str, float]:
    """Best score, over all shifts, of the depth as it is, mirrored and turned.

    Quarter turns are tried only if the depth map stands where the image lies, or the reverse.
    """
    H, W = rgb.shape[:2]
    h, w = depth.shape
    ways = {
        "as it is": lambda x: x,
        "mirrored left to right": lambda x: x[:, ::-1],
        "upside down (mirrored)": lambda x: x[::-1],
        "turned by 180°": lambda x: x[::-1, ::-1],
    }
    if (H > W) != (h > w):
        ways = {
            "turned by 90° clockwise": lambda x: np.rot90(x, 1),
            "turned by 90° counter-clockwise": lambda x: np.rot90(x, -1),
            "transposed": lambda x: x.T,
        }
    size, reach = _working_size(H, W)
    colour = _colour_edges(rgb, size)
    results = {}
    for name, undo in ways.items():
        edges = _depth_edges(
            np.ascontiguousarray(undo(depth)), np.ascontiguousarray(undo(valid)), size
        )
        results[name] = _best_shift(_scores(colour, edges, reach), reach, (1, 1)).strength
    return results


def _working_size(H: int, W: int) -> tuple[tuple[int, int], int]:
    """Size at which edges are compared, and the largest shift in its pixels."""
    shrink = min(1.0, LONGEST_SIDE / max(H, W))
    size = (max(1, round(H * shrink)), max(1, round(W * shrink)))
    return size, max(4, round(SEARCH * max(size)))


def _colour_edges(rgb: Floats, size: tuple[int, int]) -> NDArray[np.complex64]:
    """Doubled-angle edges (H, W): strength in [0, 1] relative to the surroundings.

    Dividing by the mean strength around makes a faint silhouette in the shade count as much as a
    strong one in the light, and keeps busy texture from drowning both.
    """
    image = torch.from_numpy(rgb).permute(2, 0, 1)[None]
    planes = bilinear(image, size)[0].numpy()
    strongest = np.zeros(size, np.complex64)
    for plane in planes:
        edge = _doubled_angle(plane, 1.0)
        strongest = np.where(np.abs(edge) > np.abs(strongest), edge, strongest)
    strength = np.sqrt(np.abs(strongest))
    around = ndimage.gaussian_filter(strength, max(size) / 40)
    floor = 0.3 * float(strength.mean()) + 1e-3
    return (strongest / np.maximum(np.abs(strongest), 1e-12) * strength / (around + floor)).astype(
        np.complex64
    )


def _depth_edges(depth: Floats, valid: Mask, size: tuple[int, int]) -> NDArray[np.complex64]:
    """Doubled-angle edges (H, W) of the strongest jumps between measured pixels; 0 elsewhere."""
    known = torch.from_numpy(valid)[None, None]
    filled = fill_holes(torch.from_numpy(depth)[None, None], known)
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
    colour: NDArray[np.complex64], depth: NDArray[np.complex64], reach: int
) -> NDArray[np.float64]:
    """(blocks, 2 reach + 1, 2 reach + 1): correlation of each block's depth edges, by shift.

    Index [b, reach + dy, reach + dx] holds the score if the depth lay (dx, dy) too far right and
    down, that is, the colour edges found at the depth edges moved by (-dx, -dy).
    """
    H, W = colour.shape
    shape = (fft.next_fast_len(H + reach), fft.next_fast_len(W + reach))
    # The mean edge in reach is taken off, so that a depth edge on a blank wall counts against.
    aligned = np.abs(colour)
    weights = np.abs(depth)
    spectrum = fft.fft2(colour, shape)
    strength_spectrum = fft.fft2(aligned, shape)
    rows = np.linspace(0, H, BLOCKS + 1).round().astype(int)
    columns = np.linspace(0, W, BLOCKS + 1).round().astype(int)
    shifts = -np.arange(-reach, reach + 1)
    result = []
    for top, bottom in zip(rows[:-1], rows[1:], strict=True):
        for left, right in zip(columns[:-1], columns[1:], strict=True):
            if not weights[top:bottom, left:right].any():
                continue
            block = np.zeros_like(depth)
            block[top:bottom, left:right] = depth[top:bottom, left:right]
            parallel = fft.ifft2(spectrum * np.conj(fft.fft2(block, shape))).real
            anything = fft.ifft2(strength_spectrum * np.conj(fft.fft2(np.abs(block), shape))).real
            both = 0.5 * (parallel + anything)
            result.append(both[np.ix_(shifts, shifts)])
    if not result:
        return np.zeros((0, 2 * reach + 1, 2 * reach + 1))
    return np.stack(result)


def _best_shift(
    scores: NDArray[np.float64], reach: int, to_colour: tuple[float, float]
) -> Misalignment:
    """Peak of the summed scores with its bootstrap scatter, in pixels of the colour image."""
    if len(scores) < 3:
        return Misalignment(0.0, 0.0, float("inf"), False, 0.0, 0.0, 0.0)
    total = scores.sum(0)
    x, y = _peak(total)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(len(scores), np.full(len(scores), 1 / len(scores)), DRAWS)
    drawn = np.einsum("db,byx->dyx", counts, scores)
    peaks = np.array([_peak(surface) for surface in drawn])
    # The middle half tells the scatter: a few draws without the decisive edges may go anywhere.
    errors = np.hypot(*((peaks - (x, y)) * to_colour).T)
    spread = float(np.quantile(errors, 0.75))
    row, column = np.unravel_index(int(total.argmax()), total.shape)
    doubt = float(np.mean(drawn[:, row, column] > drawn[:, reach, reach]))
    strength = float((total.max() - total.mean()) / max(float(total.std()), 1e-12))
    gain = float(total.max() / max(float(total[reach, reach]), 1e-12) - 1)
    at_rim = max(abs(row - reach), abs(column - reach)) == reach
    certain = not at_rim and spread < 1.5 * max(to_colour) and strength > 3
    return Misalignment(
        x * to_colour[0], y * to_colour[1], spread, certain, doubt, gain, strength
    )


def _peak(surface: NDArray[np.float64]) -> tuple[float, float]:
    """(x, y) of the maximum against the centre, to a fraction of a pixel by a parabola."""
    row, column = np.unravel_index(int(surface.argmax()), surface.shape)
    reach = surface.shape[0] // 2

    def refined(line: NDArray[np.float64], at: int) -> float:
        if not 0 < at < len(line) - 1:
            return float(at)
        before, here, after = line[at - 1 : at + 2]
        bend = before - 2 * here + after
        return at + (0.5 * (before - after) / bend if bend < 0 else 0.0)

    return refined(surface[row], int(column)) - reach, refined(surface[:, column], int(row)) - reach
