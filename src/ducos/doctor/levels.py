"""Which values a map takes: all the same, few and far apart, or piled up at one end."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ducos.arrays import Floats, Mask
from ducos.doctor.findings import Finding
from ducos.files import DepthMap
from ducos.filters import areas, dilated

COARSE_STEP = 0.005  # of the median depth
FEWEST_LEVELS = 64  # of a relative map
PILE_SHARE = 0.01  # of the valid pixels
PILE_HEIGHT = 12.0  # times what the neighbouring levels hold
SMOOTH, CONTINUING = 0.03, 0.25  # step at the rim of a pile, and share of the rim with such steps
SECOND_PART = 0.1  # of a pile: its second largest connected area


def check_flat(low: DepthMap) -> list[Finding]:
    """constant, flat: without edges there is nothing to sharpen, nor for other checks to go by."""
    known = low.depth[low.valid]
    first, middle, last = (float(x) for x in np.percentile(known, (1, 50, 99)))
    variation = (last - first) / max(abs(middle), 1e-9)
    numbers = {"percentile_1": first, "percentile_99": last, "variation": variation}
    if known.max() == known.min():
        return [
            Finding(
                "constant",
                "error",
                f"the depth map is constant, {middle:g} everywhere: nothing was measured",
                "check the cable, the exposure and the export",
                numbers,
            )
        ]
    if variation < 0.01:
        return [
            Finding(
                "flat",
                "warning",
                f"the depth map is flat: 98 % of it within {100 * variation:.2g} % of its median",
                "there are no depth edges to sharpen; check that the right map was exported",
                numbers,
            )
        ]
    return []


def check_step(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
    """coarse-steps; sets the fact `quantisation_step`, in metres or in units of a relative map."""
    step = quantisation_step(low.depth[low.valid] / low.scale) * low.scale
    facts["quantisation_step"] = step
    levels = (facts["percentile_99"] - facts["percentile_1"]) / step if step else math.inf
    numbers = {"step": step, "levels": levels}
    if low.unit == "relative":
        if levels < FEWEST_LEVELS:
            yield Finding(
                "coarse-steps",
                "warning",
                f"the map has {levels:.0f} levels only: surfaces become terraces",
                "export with 16 bits or as floating point",
                numbers,
            )
    elif step > COARSE_STEP * facts["median"]:
        yield Finding(
            "coarse-steps",
            "warning",
            f"depth comes in steps of {1000 * step:.3g} mm, {100 * step / facts['median']:.1f} % of"
            " the median: surfaces become terraces",
            "export with 16 bits in millimetres or finer, without compression",
            numbers,
        )


def quantisation_step(values: Floats) -> float:
    """Distance of neighbouring levels, or 0 if the values are not quantised.

    The levels of a quantised map are whole multiples of one step apart. The step is the commonest
    gap between distinct values, or a whole part of it; a few stray values do not matter.
    """
    levels, counts = np.unique(values.astype(np.float64), return_counts=True)
    if len(levels) < 3 or len(levels) > 0.9 * counts.sum():
        return 0.0
    tolerance = 4e-7 * max(abs(levels[0]), abs(levels[-1]))  # of float32
    gaps = np.diff(levels)
    gaps = gaps[gaps > tolerance]
    if not len(gaps):
        return 0.0
    commonest = float(np.quantile(gaps, 0.1))
    for parts in (1, 2, 3, 4, 5):
        step = commonest / parts
        misfit = np.abs(gaps / step - np.rint(gaps / step)) * step
        if step > 10 * tolerance and np.mean(misfit <= 2 * tolerance + 1e-3 * step) > 0.95:
            whole = np.rint(gaps / step)
            return float(np.median(gaps[whole > 0] / whole[whole > 0]))
    return 0.0


def check_saturation(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
    """saturated-far, saturated-near: exactly the largest or smallest value, and often.

    A pile counts if nothing of that density lies beside it. Needs the fact `quantisation_step`.
    """
    known = low.depth[low.valid]
    width = 0.02 * (facts["percentile_99"] - facts["percentile_1"])
    step = max(facts["quantisation_step"], 1e-6 * abs(facts["farthest"]))
    nearby = max(width, 4 * step)
    for code, end, words in (
        ("saturated-far", float(known.max()), "largest"),
        ("saturated-near", float(known.min()), "smallest"),
    ):
        distance = np.abs(known - end)
        at_end = float((distance < 0.5 * step).mean())
        beside = float(((distance >= 0.5 * step) & (distance < nearby)).mean())
        if at_end <= max(PILE_SHARE, PILE_HEIGHT * beside * step / nearby, 0.5 * beside):
            continue
        pile = low.valid & (np.abs(low.depth - end) < 0.5 * step)
        if code == "saturated-near" and not (_continues(low, pile) or _in_parts(pile)):
            continue  # the front of a box that happens to face the camera
        yield Finding(
            code,
            "warning",
            f"{100 * at_end:.1f} % of the pixels have exactly the {words} value, {end:.6g}: the"
            " sensor's limit or a clipped export",
            "mark these pixels invalid: with a mask, or min_depth / max_depth in Python",
            {"value": end, "share": at_end, "share_beside": beside},
        )


def _continues(low: DepthMap, pile: Mask) -> bool:
    """Whether surfaces run on smoothly beyond the rim of this area, as clipped ones do."""
    rim = dilated(pile) & ~pile & low.valid
    end = float(low.depth[pile].mean())
    steps = np.abs(low.depth[rim] - end)
    return bool(steps.size) and float((steps < SMOOTH * abs(end)).mean()) > CONTINUING


def _in_parts(pile: Mask) -> bool:
    """Whether this area is several: two things hardly face the camera at exactly one distance."""
    sizes = np.sort(areas(pile))
    return len(sizes) > 1 and float(sizes[-2]) > SECOND_PART * pile.sum()
