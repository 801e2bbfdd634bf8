"""The rule of every resampling of the project, written once for arrays and for tensors.

One pixel-centre rule everywhere: pixel i of n covers [i, i+1)/n of the image, its centre is at
(i + 0.5)/n. All resamplings are separable, so each is a matrix per axis: weights (N, n) that make N
pixels of n. The functions here take the index of the N pixels as a column (N, 1) and that of the n
as a row (1, n); they use nothing but arithmetic, so arrays of numpy, tensors of torch and the sizes
of a graph that is being exported all pass. Positions are whole numbers until the last division: no
runtime rounds them differently.
"""

from typing import Any

CUBIC, LINEAR = "bicubic", "bilinear"

# How holes are filled, see `resize.fill_holes`.
LIKE_COLOUR = 0.07  # standard deviation of colours of one surface
UNLIKE_WEIGHT = 0.01  # of a pixel of another colour
FARTHER = 2.0  # exponent of depth in the weights of what fills a hole


def antialiased_weights(kind: str, i: Any, j: Any, n: Any, N: Any, larger: Any) -> Any:
    """(N, n): Pillow's bicubic (a = -0.5) or bilinear; where it shrinks, the kernel is as wide as
    a target pixel. larger: of n and N."""
    offset = (2 * i + 1) * n - (2 * j + 1) * N  # in halves of 1/(n N)
    distance = abs(offset) / (2 * larger)
    weights = cubic(distance) if kind == CUBIC else linear(distance)
    return weights / weights.sum(1)[:, None]


def cubic(distance: Any) -> Any:
    """Keys' kernel with a = -0.5 at distances ≥ 0."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((2.5 - 0.5 * distance) * distance - 4) * distance + 2
    return near * (distance < 1) + far * ((distance >= 1) & (distance < 2))


def linear(distance: Any) -> Any:
    """A triangle at distances ≥ 0."""
    return (1 - distance).clip(0)


def area_weights(i: Any, j: Any, n: Any, N: Any) -> Any:
    """(N, n): the mean of all pixels that a target pixel touches, as torch's adaptive pooling."""
    first, end = (i * n) // N, ((i + 1) * n + N - 1) // N
    return ((j >= first) & (j < end)) * (1.0 / (end - first))


def nearest_index(i: Any, n: Any, N: Any) -> Any:
    """Which of n pixels holds the centre of pixel i of N; on a border, the right one."""
    return ((2 * i + 1) * n) // (2 * N)


def padded_index(i: Any, n: Any, mirrored: Any) -> Any:
    """Which of n pixels stands at i ≥ 0 of a padded axis; mirrored: 1, or 0 to repeat the last."""
    beyond = (i - (n - 1)).clip(0)
    return i - beyond - beyond * mirrored


def after_and_phase(i: Any, n: Any, N: Any) -> tuple[Any, Any]:
    """Of pixel i of N among n: one more than the last pixel whose centre does not lie behind its
    own, and how far behind that one it lies, in halves of 1/N.

    The centre of pixel i lies at ((2i + 1) n - N) / 2N. In whole numbers, so that no runtime rounds
    it to another neighbour; one more, so that none is below 0.
    """
    centre = (2 * i + 1) * n + N
    after = centre // (2 * N)
    return after, centre - after * (2 * N)


def spline(distance: Any) -> tuple[Any, Any]:
    """The cubic B-spline at distances ≥ 0: where they are below 1, and elsewhere."""
    square, left = distance * distance, (2 - distance).clip(0)  # powers differ between libraries
    return 2 / 3 - square + square * distance / 2, left * left * left / 6
