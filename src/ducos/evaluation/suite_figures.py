"""What one answer to a case of a suite is worth, beside that of bicubic.

Rendered pairs have ground truth. Of a capture the camera's own map is the target. At ratio 1 the
map was given whole: a result may not move what was measured, nor hang between surfaces where the
map did not. At larger ratios errors count where no hole is near; `near` is the distance to the
nearest value that the map has close by, so that an edge moved by less than half a low-resolution
pixel costs nothing, and a value between two surfaces does.
"""

from typing import Any

import numpy as np
from scipy import ndimage

from ducos.arrays import Floats, Mask
from ducos.cameras import surfaces
from ducos.evaluation.metrics import flying, rmse
from ducos.evaluation.suite_inputs import SuiteInput
from ducos.evaluation.suites import SuiteCase
from ducos.upscaling import Result

HARM = 1.02  # times bicubic's error
MORE_BETWEEN = 0.01  # share of pixels between surfaces that a result may have beyond its input
MOVED = 0.02  # of the depth
JUMP, OFF = 0.05, 0.02  # of the depth: two surfaces within 5×5 pixels, and to lie on neither
REACH = 0.25  # truth farther outside the measured range than this share of it cannot be known


def image_figures(
    case: SuiteCase, given: SuiteInput, ours: Result[Any], base: Result[Any]
) -> dict[str, Any]:
    """The figures of one image. harmed: it would have been better to interpolate."""
    if case.data == "rendered":
        return rendered_figures(given, ours, base)
    if case.ratio == 1:
        return same_size_figures(given, ours)
    return capture_figures(given, case.ratio, ours, base)


def rendered_figures(given: SuiteInput, ours: Result[Any], base: Result[Any]) -> dict[str, Any]:
    """RMSE where the ground truth can be known; flying pixels; how often sigma covers the error."""
    scored = given.valid & knowable(given)
    figures = compared("rmse", *(rmse(x.depth, given.truth, scored) for x in (ours, base)))
    for name, result in (("flying", ours), ("flying_base", base)):
        figures[name] = flying(result.depth, given.truth, given.valid)
    figures |= {f"within_{k}": np.nan for k in (1, 2)}
    measured = scored & (ours.source == 1)
    if ours.sigma is not None and measured.any():
        error = np.abs(ours.depth - given.truth)[measured]
        for k in (1, 2):
            figures[f"within_{k}"] = float((error <= k * ours.sigma[measured]).mean())
    return {**figures, "harmed": figures["rmse"] > HARM}


def capture_figures(
    given: SuiteInput, ratio: int, ours: Result[Any], base: Result[Any]
) -> dict[str, Any]:
    """RMSE and near where no hole is within `ratio` pixels."""
    window = 2 * ratio + 1
    away = ndimage.minimum_filter(given.valid, window, mode="constant", cval=True)
    figures = compared("rmse", *(rmse(x.depth, given.truth, away) for x in (ours, base)))
    distances = [
        nearest_distance(x.depth, given.truth, given.valid, max(1, ratio // 2))
        for x in (ours, base)
    ]
    figures |= compared("near", *(rmse(x, np.zeros_like(x), away) for x in distances))
    return {**figures, "harmed": figures["rmse"] > HARM}


def same_size_figures(given: SuiteInput, ours: Result[Any]) -> dict[str, Any]:
    """Share of edge pixels between two surfaces in map and result; share of pixels moved."""
    before, after = (between(x, given.valid) for x in (given.truth, ours.depth))
    change = np.abs(ours.depth - given.truth) > MOVED * given.truth
    return {
        "between_input": before,
        "between": after,
        "moved": float(change[given.valid].mean()) if given.valid.any() else 0.0,
        "harmed": after > before + MORE_BETWEEN,
    }


def compared(name: str, ours: float, base: float) -> dict[str, float]:
    """Both errors and their ratio; two results without any error are equally good."""
    least = 1e-9
    ratio = (ours + least) / (base + least)
    return {name: ratio, f"{name}_ours": ours, f"{name}_base": base}


def knowable(given: SuiteInput) -> Mask:
    """Truth (H, W) within the measured range, or not far outside of it."""
    if not given.low_valid.any():
        return np.zeros_like(given.valid)
    near, far = (float(f(given.low[given.low_valid])) for f in (np.min, np.max))
    reach = REACH * (far - near)
    return (given.truth >= near - reach) & (given.truth <= far + reach)


def between(depth: Floats, valid: Mask) -> float:
    """Share of the pixels at depth edges (all 25 around valid) that lie on neither surface."""
    inside = ndimage.minimum_filter(valid, 5, mode="constant", cval=True)
    near, far = surfaces(depth, np.ones_like(valid))
    edge = inside & (far - near > JUMP * near)
    off = np.minimum(depth - near, far - depth) > OFF * depth
    return float((edge & off).sum() / max(1, edge.sum()))


def nearest_distance(result: Floats, truth: Floats, valid: Mask, radius: int) -> Floats:
    """Distance (H, W) from each result to the nearest valid truth within radius rows or columns."""
    H, W = truth.shape
    padded = np.pad(np.where(valid, truth, np.float32(np.inf)), radius, constant_values=np.inf)
    best = np.full((H, W), np.inf, np.float32)
    for down in range(2 * radius + 1):
        for right in range(2 * radius + 1):
            beside = np.abs(result - padded[down : down + H, right : right + W])
            np.minimum(best, beside, out=best)
    return best
