"""What the numbers mean: is the guessed unit believable, and are the metres a depth camera's?"""

import math
from collections.abc import Iterator

import numpy as np

from ducos.arrays import Floats
from ducos.doctor.findings import Finding
from ducos.files import UNITS, DepthMap

STORED_AS = {  # metres per stored value
    0.001: "millimetres",
    1.0: "metres",
    0.01: "centimetres",
    1 / 5000: "5000 per metre (TUM, ICL-NUIM, NYU exports)",
    1 / 4000: "0.25 mm (RealSense L515, structured light)",
    1 / 10000: "0.1 mm (RealSense D405, TOFDSR exports)",
    1 / 256: "256 per metre (KITTI)",
}
# In metres, indoors and out with a depth camera.
USUAL_MEDIAN = (0.2, 7.0)
USUAL_FARTHEST = 12.0
USUAL_NEAREST = 0.08
TYPICAL_MEDIAN = 2.0
FAR_FOR_NEAREST = 1.6  # indoors something is usually nearer
USUAL_RANGE = (0.1, 20.0)  # of depth cameras, and of what the models were trained on
FIVES = 0.999  # of the values: strays were averaged or edited
OUTSIDE_SHARE = 0.01  # of the valid pixels: fewer are strays


def check_unit(low: DepthMap) -> Iterator[Finding]:
    """unit, unit-unsure, unit-levels, relative: is the guessed unit believable?

    A given or stated one is not questioned here.
    """
    if low.unit == "relative":
        if low.guessed:
            yield Finding(
                "relative",
                "note",
                f"no metres: {low.note}",
                "if these are distances, pass --unit or --scale",
            )
        return
    if not low.guessed:
        return
    stored = low.depth[low.valid] / low.scale
    first, median, last = (float(x) for x in np.percentile(stored, (1, 50, 99)))
    numbers = {"percentile_1": first, "median": median, "percentile_99": last}
    whole = _are_whole(stored)
    if whole and stored.max() <= 255:
        small = _is_believable(0.01 * first, 0.01 * median, 0.01 * last)
        metres = "--unit cm or --scale METRES_PER_VALUE" if small else "--scale METRES_PER_VALUE"
        yield Finding(
            "unit-levels",
            "warning",
            f"whole numbers up to {stored.max():.0f} only: 8-bit levels or disparity rather than "
            f"{STORED_AS[low.scale]}",
            f"pass --unit relative; if they are distances, {metres}",
            numbers,
        )
        return
    if whole and low.scale == UNITS["mm"] and _share_of_fives(stored) > FIVES:
        metres = f"{median / 5000:.2g} m"
        yield Finding(
            "unit",
            "warning",
            "all stored values are multiples of 5, as in files of 5000 per metre that were made of "
            "millimetres (TUM's recordings)",
            f"if so, pass --scale 0.0002 (median {metres}); if not, --unit mm",
            {**numbers, "candidates": [1 / 5000, 0.001]},
        )
        return
    fitting = {
        scale: words
        for scale, words in STORED_AS.items()
        if _is_believable(first * scale, median * scale, last * scale)
        and (whole or scale in UNITS.values())
    }
    others = [scale for scale in fitting if scale < low.scale]
    if low.scale in fitting and not (others and first * low.scale > FAR_FOR_NEAREST):
        return
    ranked = sorted(fitting, key=lambda scale: abs(math.log(median * scale / TYPICAL_MEDIAN)))
    candidates = "; ".join(
        f"{fitting[scale]}: median {median * scale:.2g} m, --scale {scale:g}" for scale in ranked
    )
    reading = f"read as {STORED_AS[low.scale]}"
    guess = f"{reading} the median would be {median * low.scale:.3g} m"
    if low.scale in fitting:
        yield Finding(
            "unit-unsure",
            "note",
            f"{guess} and nothing nearer than {first * low.scale:.2g} m: possible, but so are finer"
            " units",
            f"compare with {candidates}",
            {**numbers, "candidates": ranked},
        )
        return
    if USUAL_MEDIAN[0] <= median * low.scale <= USUAL_MEDIAN[1]:  # the ends are what is odd
        ends = f"{first * low.scale:.3g} to {last * low.scale:.3g} m"
        guess = f"{reading} it would reach from {ends} (98 % of the pixels)"
    yield Finding(
        "unit",
        "warning",
        f"{guess}, unusual for a depth camera",
        f"say what a stored value means; it fits {candidates}"
        if candidates
        else "say what a stored value means with --unit or --scale; no usual scale fits",
        {**numbers, "candidates": ranked},
    )


def _share_of_fives(stored: Floats) -> float:
    """Of the stored values that are multiples of 5; 0 if most are of 10, which other units make."""
    steps = np.rint(stored).astype(np.int64)
    return 0.0 if (steps % 10 == 0).mean() > 0.9 else float((steps % 5 == 0).mean())


def _are_whole(stored: Floats) -> bool:
    """Whether the stored values are integers, up to the rounding of metres in float32."""
    return bool(np.abs(stored - np.rint(stored)).max() <= 1e-6 * np.abs(stored).max() + 1e-4)


def _is_believable(nearest: float, median: float, farthest: float) -> bool:
    return (
        USUAL_MEDIAN[0] <= median <= USUAL_MEDIAN[1]
        and farthest <= USUAL_FARTHEST
        and nearest >= USUAL_NEAREST
    )


def check_range(low: DepthMap) -> Iterator[Finding]:
    """range: metres that no depth camera measures."""
    if low.unit == "relative":
        return
    known = low.depth[low.valid]
    near, far = float((known < USUAL_RANGE[0]).mean()), float((known > USUAL_RANGE[1]).mean())
    if max(near, far) > OUTSIDE_SHARE:
        which = f"{100 * near:.1f} % nearer than {USUAL_RANGE[0]:g} m" if near > far else ""
        which = which or f"{100 * far:.1f} % beyond {USUAL_RANGE[1]:g} m"
        yield Finding(
            "range",
            "warning",
            f"{which}: outside what depth cameras measure and the models were trained on",
            "check the unit, or drop such pixels with a mask",
            {"share_near": near, "share_far": far, "usual_range": list(USUAL_RANGE)},
        )
