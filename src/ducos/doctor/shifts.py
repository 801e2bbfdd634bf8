"""What scores over all shifts say: where their peak is, how clear, how much by chance.

A surface is an array (y, x) of scores with no shift in its middle.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ducos.filters import maximum

BLOCKS, DRAWS = 6, 200  # blocks per axis and draws of the bootstrap
FEWEST_BLOCKS = 4  # with depth edges in them
RIVALS = 4  # other peaks that the second answer looks at


@dataclass
class Misalignment:
    """Where the depth map lies against the colour image, in pixels of the colour image.

    x, y: shift of the depth to the right and down; (0, 0) is aligned.
    spread: how far the shift scatters in the bootstrap, in the same pixels; see `scatter`.
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


def peak(surface: NDArray[np.floating]) -> tuple[float, float]:
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


def other_peaks(surface: NDArray[np.floating], apart: float) -> NDArray[np.floating]:
    """(n, 2), (x, y) against the centre: the highest local maxima beside the best, and the centre.

    Each is the highest within `apart` of itself, and none is nearer than that to the best.
    """
    reach = surface.shape[0] // 2
    highest = maximum(surface, 2 * round(apart) + 1) == surface
    highest[reach, reach] = True
    rows, columns = np.nonzero(highest)
    order = np.argsort(-surface[rows, columns], kind="stable")
    best = order[0]
    away = np.hypot(rows - rows[best], columns - columns[best]) > apart
    kept = [n for n in order if away[n]][:RIVALS]
    middle = np.flatnonzero((rows == reach) & (columns == reach) & away)
    kept = list(dict.fromkeys([*kept, *middle]))
    return np.stack([columns[kept], rows[kept]], 1).astype(float).reshape(-1, 2) - reach


def strength(surface: NDArray[np.floating], within: int | None = None) -> float:
    """Highest score, of shifts up to `within` if given, in standard deviations of all scores."""
    reach = len(surface) // 2
    middle = slice(None) if within is None else slice(reach - within, reach + within + 1)
    rise = surface[middle, middle].max() - surface.mean()
    return float(rise / max(float(surface.std()), 1e-12))


def drawn_anew(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """(DRAWS, y, x): sums over as many blocks as there are, drawn with replacement."""
    chances = np.full(len(scores), 1 / len(scores))
    counts = np.random.default_rng(0).multinomial(len(scores), chances, DRAWS)
    return np.tensordot(counts.astype(scores.dtype), scores, 1)


def scatter(errors: NDArray[np.floating]) -> float:
    """Length that three quarters of the errors (n, 2) stay below.

    A few draws without the decisive edges may go anywhere, hence neither maximum nor deviation.
    """
    return float(np.quantile(np.hypot(*errors.T), 0.75))
