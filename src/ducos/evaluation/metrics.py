"""Errors of one depth map against its ground truth. Averages over images are made by the caller.

Every function takes one image: `prediction` and `target` (H, W) in the unit the result shall have
(centimetres, grey levels), and `valid` (H, W) bool, True where the target may be scored. Arrays and
tensors are taken alike; sums are in double precision. An image without a single pixel to score
gives NaN: unknown, not zero.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ducos.arrays import Mask
from ducos.cameras import EDGE, flying_at_edges

Floats = NDArray[np.float64]

EDGE_RATIO = 1 + EDGE  # neighbours this far apart lie on two surfaces
REACH = 3  # pixels; how far from an edge counts as near it
SHIFT = 1  # pixels by which a predicted edge may lie beside the true one


def rmse(prediction: Any, target: Any, valid: Any = None) -> float:
    """Root of the mean squared error."""
    prediction, target, valid = _planes(prediction, target, valid)
    return _mean((prediction - target)[valid] ** 2) ** 0.5


def mae(prediction: Any, target: Any, valid: Any = None) -> float:
    """Mean absolute error."""
    prediction, target, valid = _planes(prediction, target, valid)
    return _mean(np.abs(prediction - target)[valid])


def delta(prediction: Any, target: Any, valid: Any = None, threshold: float = 1.05) -> float:
    """Percentage of pixels whose ratio to the target, either way up, is below the threshold.

    The field's formula, its epsilon included, but for one thing: there a negative prediction makes
    both ratios negative and so counts as right; here it counts as wrong.
    """
    prediction, target, valid = _planes(prediction, target, valid)
    prediction, target = prediction[valid], target[valid]
    with np.errstate(divide="ignore"):
        ratio = np.maximum(target / (prediction + 1e-8), prediction / (target + 1e-8))
    return 100 * _mean((ratio < threshold) & (prediction >= 0))


def rmse_near_edges(prediction: Any, target: Any, valid: Any = None) -> float:
    """RMSE over the pixels within `REACH` of a depth edge of the target: where methods differ."""
    prediction, target, valid = _planes(prediction, target, valid)
    return rmse(prediction, target, _near(_edges(target, valid), REACH) & valid)


def flying(prediction: Any, target: Any, valid: Any = None) -> float:
    """Percentage of the pixels at depth edges that hang in the air between two surfaces.

    What flies is defined in `ducos.cameras.flying`. Seen as a point cloud, these are the veils
    between objects and background, which an RMSE hardly notices.
    """
    prediction, target, valid = _planes(prediction, target, valid)
    flies, asked = flying_at_edges(prediction, target, valid)
    return 100 * _mean(flies[asked])


def boundary_f1(prediction: Any, target: Any, valid: Any = None) -> float:
    """F1 score, in percent, of the prediction's depth edges against the target's.

    Both are found by the same rule (`EDGE_RATIO` between neighbours); an edge is matched by one of
    the other map within `SHIFT` pixels. Blurred edges are no edges: bicubic scores low.
    """
    prediction, target, valid = _planes(prediction, target, valid)
    found, true = _edges(prediction, valid), _edges(target, valid)
    if not true.any():
        return float("nan")
    recall = _mean(_near(found, SHIFT)[true])
    precision = _mean(_near(true, SHIFT)[found]) if found.any() else 0.0
    return 200 * precision * recall / (precision + recall) if precision + recall else 0.0


METRICS: dict[str, Callable[..., float]] = {
    "rmse": rmse,
    "mae": mae,
    "delta105": delta,
    "delta115": partial(delta, threshold=1.15),
    "delta125": partial(delta, threshold=1.25),
    "rmse_edge": rmse_near_edges,
    "flying": flying,
    "boundary_f1": boundary_f1,
}


def measure(prediction: Any, target: Any, valid: Any = None) -> dict[str, float]:
    """Every metric of `METRICS` for one image."""
    planes = _planes(prediction, target, valid)
    return {name: metric(*planes) for name, metric in METRICS.items()}


def _planes(prediction: Any, target: Any, valid: Any) -> tuple[Floats, Floats, Mask]:
    """The three maps as (H, W) arrays of one shape; no mask means every pixel counts."""
    prediction, target = np.asarray(prediction, np.float64), np.asarray(target, np.float64)
    valid = np.ones(target.shape, np.bool_) if valid is None else np.asarray(valid, np.bool_)
    if prediction.ndim != 2 or not prediction.shape == target.shape == valid.shape:
        raise ValueError(
            f"prediction {prediction.shape}, target {target.shape} and valid {valid.shape} must be"
            " one image (H, W) each; metrics are per image, so loop over a batch"
        )
    return prediction, target, valid


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean(dtype=np.float64)) if values.size else float("nan")


def _apart(a: Floats, b: Floats, ratio: float) -> Mask:
    """True where the larger of two values exceeds the smaller `ratio` times.

    Ratios mean the same for depth and for disparity, its inverse.
    """
    return np.abs(a - b) > (ratio - 1) * np.minimum(a, b).clip(0)


def _edges(depth: Floats, valid: Mask) -> Mask:
    """Pixels (H, W) on either side of a depth edge; a hole has no edge."""
    edges = np.zeros(depth.shape, np.bool_)
    for first, second in (
        (np.s_[:-1, :], np.s_[1:, :]),
        (np.s_[:, :-1], np.s_[:, 1:]),
    ):
        jump = _apart(depth[first], depth[second], EDGE_RATIO) & valid[first] & valid[second]
        edges[first] |= jump
        edges[second] |= jump
    return edges


def _near(mask: Mask, reach: int) -> Mask:
    """Pixels at most `reach` rows and columns away from one of the mask."""
    side = 2 * reach + 1
    return ndimage.maximum_filter(mask, size=side, mode="constant", cval=False)
