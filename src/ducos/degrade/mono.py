"""What a monocular foundation model would say about a scene: its relative depth, with its faults.

Made of the rendered truth, one fault after the other, in the order in which such a model has them:
objects at wrong depths, edges that are lost, displaced, soft or of mere texture, and a curve that
nobody knows. `docs/prior.md` compares its statistics with real outputs of Depth Anything.
"""

from typing import Any

import numpy as np

from ducos.arrays import Floats, Mask
from ducos.errors import needed

cv2 = needed("cv2", "train")

Rng = np.random.Generator
WRONG = 0.06  # share of priors that have nothing to do with the image
NOISE = 0.03  # share of priors that are mere noise


def monocular(depth: Floats, valid: Mask, rgb: Floats, rng: Rng) -> Floats:
    """Relative depth (n, n) in [0, 1], inverse or not; depth (n, n), RGB (n, n, 3) of the scene.

    What is not valid counts as far away.
    """
    draw = rng.random()
    if draw < NOISE or not valid.any():
        return stretched(smooth(depth.shape, float(rng.uniform(1, 20)), rng))
    inverse = inverse_of(depth, valid)
    if draw < NOISE + WRONG:  # of another image: as real, and nothing is where it was
        inverse = np.ascontiguousarray(np.roll(inverse[::-1], depth.shape[1] // 3, 1))
    return with_faults(inverse, rgb, rng)


def with_faults(inverse: Floats, rgb: Floats, rng: Rng) -> Floats:
    """`monocular` of the image itself: its inverse depth (n, n) with all faults."""
    inverse = misjudge_objects(inverse, rng)
    inverse = drift(inverse, rng)
    inverse = lose_thin(inverse, rng)
    inverse = lose_weak(inverse, rng)
    inverse = displace(inverse, rng)
    inverse = blurred(inverse, soft_by(rng))
    inverse = imagine(inverse, rgb, rng)
    curved = stretched(inverse) ** float(np.exp(rng.normal(0, 0.35)))
    if rng.random() < 0.25:  # a model of depth, not of its inverse
        curved = 1 / (curved + float(rng.uniform(0.1, 0.6)))
    return stretched(curved)


def inverse_of(depth: Floats, valid: Mask) -> Floats:
    """Inverse depth (n, n) in [0, 1]."""
    metres = np.where(valid & (depth > 0), depth, np.inf)
    return stretched((1 / metres).astype(np.float32))


def stretched(x: Any) -> Floats:
    """(n, n) in [0, 1]; 0 if it is flat."""
    lowest, highest = float(x.min()), float(x.max())
    return ((x - lowest) / max(highest - lowest, 1e-6)).astype(np.float32)


def smooth(shape: tuple[int, ...], sigma: float, rng: Rng) -> Floats:
    """A random field (n, n) that changes over `sigma` pixels, of standard deviation 1."""
    step = max(1, int(sigma / 3))
    coarse = tuple(-(-n // step) + 8 for n in shape)
    field: Any = cv2.GaussianBlur(rng.normal(size=coarse).astype(np.float32), (0, 0), sigma / step)
    field = cv2.resize(field, None, fx=step, fy=step)[: shape[0], : shape[1]]
    return (field / max(float(field.std()), 1e-6)).astype(np.float32)


def blurred(x: Floats, sigma: float) -> Floats:
    """x (n, n), blurred by a Gaussian."""
    return np.asarray(cv2.GaussianBlur(x, (0, 0), sigma), np.float32)


def misjudge_objects(inverse: Floats, rng: Rng) -> Floats:
    """Some connected regions of like depth are moved, or tilted, as a whole."""
    result = inverse.copy()
    for _ in range(int(rng.integers(0, 7))):
        low = rng.random()
        inside = (inverse >= low) & (inverse < low + rng.uniform(0.03, 0.25))
        count, label = cv2.connectedComponents(inside.astype(np.uint8))
        if count < 2:
            continue
        chosen = label == int(rng.integers(1, count))
        down, across = (np.linspace(-1, 1, n, dtype=np.float32) for n in inverse.shape)
        slope = rng.normal(0, 0.04) * down[:, None] + rng.normal(0, 0.04) * across
        result = np.where(chosen, result + np.float32(rng.normal(0, 0.12)) + slope, result)
    return np.asarray(result, np.float32)


def drift(inverse: Floats, rng: Rng) -> Floats:
    """Scale and shift change slowly over the image."""
    side = inverse.shape[0]
    scale = 1 + rng.exponential(0.06) * smooth(
        inverse.shape, float(side * rng.uniform(0.15, 0.5)), rng
    )
    shift = rng.exponential(0.03) * smooth(inverse.shape, float(side * rng.uniform(0.15, 0.5)), rng)
    return (inverse * scale + shift).astype(np.float32)


def lose_thin(inverse: Floats, rng: Rng) -> Floats:
    """Thin things in front, or thin gaps, are not seen."""
    if rng.random() < 0.4:
        side = int(rng.integers(2, 7))
        kernel: Any = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
        way = cv2.MORPH_OPEN if rng.random() < 0.7 else cv2.MORPH_CLOSE
        return np.asarray(cv2.morphologyEx(inverse, way, kernel), np.float32)
    return inverse


def lose_weak(inverse: Floats, rng: Rng) -> Floats:
    """Where depth changes little for the image, its edges are lost, here and there."""
    sigma = float(rng.uniform(4, 14))
    smeared = blurred(inverse, sigma)
    jump = np.sqrt(np.maximum(blurred(inverse**2, sigma) - smeared**2, 0))
    weak = jump < rng.exponential(0.12)
    where = smooth(inverse.shape, float(rng.uniform(10, 40)), rng) > rng.uniform(-1.0, 1.2)
    lost = blurred((weak & where).astype(np.float32), sigma / 2)
    return (inverse + lost * (smeared - inverse)).astype(np.float32)


def displace(inverse: Floats, rng: Rng) -> Floats:
    """Edges lie up to half a pixel off, a few of them far more."""
    off = 0.3 * float(np.exp(rng.normal(0, 0.5)))
    moves = [off * smooth(inverse.shape, float(rng.uniform(3, 15)), rng) for _ in range(2)]
    moves = [move * (1 + 0.5 * np.abs(move / off) ** 2) / 1.5 for move in moves]
    rows, columns = np.mgrid[: inverse.shape[0], : inverse.shape[1]].astype(np.float32)
    places: Any = (columns + moves[0]).astype(np.float32), (rows + moves[1]).astype(np.float32)
    source: Any = inverse
    moved = cv2.remap(source, *places, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(moved, np.float32)


def soft_by(rng: Rng) -> float:
    """Sigma of the edges, in pixels: 10 to 90 % of a step take about 2.6 of it, mostly 2 to 3."""
    return float(np.clip(0.45 * np.exp(abs(rng.normal(0, 0.8))), 0.45, 3.0))


def imagine(inverse: Floats, rgb: Floats, rng: Rng) -> Floats:
    """Texture, prints and screens leave a trace."""
    if rng.random() > 0.35:
        return inverse
    grey: Any = np.ascontiguousarray(rgb.mean(2), np.float32)
    detail = blurred(grey, 1.5) - blurred(grey, float(rng.uniform(6, 20)))
    strength = rng.normal(0, 0.05) / max(float(detail.std()), 0.02) * 0.5
    return (inverse + strength * detail).astype(np.float32)
