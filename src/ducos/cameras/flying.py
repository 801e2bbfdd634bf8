"""Flying pixels: depths that hang in the air between two surfaces. The one definition.

Two surfaces meet where depth jumps by more than EDGE of the nearer one within RADIUS pixels. A
pixel there flies if it is on neither: farther than CLOSE of its depth from both. The two surfaces
are the extremes of the ground truth around a pixel where there is one (`surfaces`), else
what the pixels on either side of it foretell (`foretold`). Clouds, metrics, the doctor and training
all ask here.
"""

import math

import numpy as np

from ducos.arrays import AnyArray, Floats, Mask
from ducos.cameras.intrinsics import Camera
from ducos.filters import maximum, minimum

EDGE = 0.1  # a jump between two surfaces, of the nearer depth
RADIUS = 2  # pixels within which it happens
CLOSE = 0.02  # to a surface, of the depth
UNSURE = 0.04  # sigma of what could be on either surface, of the depth
STEEPEST = 80.0  # degrees between a surface and the image plane: steeper ones are no surfaces


def surfaces(depth: AnyArray, valid: Mask, radius: int = RADIUS) -> tuple[AnyArray, AnyArray]:
    """Nearest and farthest valid depth (H, W) within radius pixels; inf and -inf without any."""
    window = 2 * radius + 1
    near = minimum(np.where(valid, depth, np.inf), window)
    return near, maximum(np.where(valid, depth, -np.inf), window)


def off_both(depth: AnyArray, near: AnyArray, far: AnyArray) -> Mask:
    """Farther than CLOSE of the depth from the near and from the far surface; all (H, W)."""
    return (np.abs(depth - near) > CLOSE * depth) & (np.abs(depth - far) > CLOSE * depth)


def flying_share(depth: Floats, valid: Mask, truth: Floats, radius: int = RADIUS) -> float:
    """Share of the pixels at depth edges that fly.

    truth: ground truth (H, W), 0 in holes. Edges are where it jumps by a tenth within `radius`
    pixels; its nearest and farthest values there are the two surfaces. Pixels whose ground truth
    lies on neither, such as a slanted surface behind an edge, do not count.
    """
    flying, asked = flying_at_edges(depth, truth, truth > 0, radius)
    asked &= valid
    return float(flying[asked].mean()) if asked.any() else 0.0


def flying_at_edges(
    depth: AnyArray, truth: AnyArray, known: Mask, radius: int = RADIUS
) -> tuple[Mask, Mask]:
    """Pixels (H, W) of `depth` that fly, and those that count: at an edge of the ground truth and
    on one of its two surfaces there. known: where the ground truth may be used."""
    near, far = surfaces(truth, known, radius)
    jumps = np.isfinite(near) & (far > (1 + EDGE) * near)
    asked = known & jumps & ~off_both(truth, near, far)
    return asked & off_both(depth, near, far), asked


def foretold(depth: Floats, valid: Mask) -> tuple[Mask, Mask]:
    """Flying pixels (h, w) of a map without ground truth, and all pixels at its depth edges.

    Along a row or column, two pixels on either side foretell the middle one, exactly on planes of
    inverse depth. At an edge the two foretellings disagree; a flying pixel agrees with neither.
    """
    flying, edges = np.zeros_like(valid), np.zeros_like(valid)
    # In double precision, where the smallest float32 has an inverse.
    inverse = np.where(valid, 1 / np.where(valid, depth, 1.0).astype(np.float64), np.nan)
    for axis in (0, 1):
        if depth.shape[axis] < 5:
            continue
        line = np.moveaxis(inverse, axis, 0)
        before, after = 2 * line[1:-3] - line[:-4], 2 * line[3:-1] - line[4:]
        middle = line[2:-2]
        is_edge = np.abs(after - before) > EDGE * middle
        # Extrapolated surfaces are sharper than real ones, so here "off both" must mean between.
        inside = (middle - before) * (after - middle) > 0
        np.moveaxis(edges, axis, 0)[2:-2] |= is_edge
        np.moveaxis(flying, axis, 0)[2:-2] |= is_edge & inside & off_both(middle, before, after)
    return flying, edges


def jump_tolerance(camera: Camera, steepest: float = STEEPEST) -> float:
    """Change of depth from one pixel to the next that a surface can make, as a share of the depth:
    one tilted by angle a changes by z/f tan a."""
    return math.tan(math.radians(steepest)) / math.sqrt(camera.fx * camera.fy)


def flying_pixels(
    depth: Floats,
    valid: Mask,
    camera: Camera,
    sigma: Floats | None = None,
    measured: Mask | None = None,
    steepest: float = STEEPEST,
) -> Mask:
    """Pixels (H, W) that hang between two surfaces, or alone in the air.

    A step between neighbouring pixels is a jump if a surface that makes it would be steeper than
    `steepest` degrees. A pixel flies if along a row, column or diagonal it is a step in a stair:
    a jump down to it and a jump further down from it; or if it has no neighbour without a jump.
    A sharp edge has one jump and loses nothing. With a model's sigma (H, W) pixels fly, too, that
    it does not know: at a depth edge those between the two surfaces, if not to 2 % of their depth,
    and all, if not to 4 %; and those not to 4 % that were not measured (H, W), but guessed.
    """
    camera = camera.scaled(depth.shape[1], depth.shape[0])
    tolerance = jump_tolerance(camera, steepest)
    padded = np.pad(np.where(valid, depth, np.nan).astype(np.float64), 1, constant_values=np.nan)
    H, W = depth.shape
    flying = np.zeros((H, W), np.bool_)
    lonely = np.ones((H, W), np.bool_)
    middle = padded[1:-1, 1:-1]
    for down, across in ((0, 1), (1, 0), (1, 1), (1, -1)):
        jumps = []
        length = math.hypot(down, across)
        for sign in (-1, 1):
            top, left = 1 + sign * down, 1 + sign * across
            step = sign * (padded[top : top + H, left : left + W] - middle)
            limit = tolerance * length * middle
            jumps.append(np.where(np.abs(step) > limit, np.sign(step), 0))
            lonely &= ~(np.abs(step) <= limit)
        flying |= jumps[0] * jumps[1] > 0
    if sigma is not None:
        near, far = surfaces(depth, valid)
        edge = far > (1 + EDGE) * near
        open_to_doubt = edge if measured is None else edge | ~measured
        flying |= edge & off_both(depth, near, far) & (sigma > CLOSE * depth)
        flying |= open_to_doubt & (sigma > UNSURE * depth)
    return (flying | lonely) & valid
