"""The colour image: is there anything to guide by, and does the depth map lie on it?

Sizes tell turned and cropped pairs, edges tell mirrored and shifted ones.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from ducos.arrays import Floats
from ducos.doctor.findings import Finding
from ducos.doctor.orientation import UPRIGHT, orientation_shares
from ducos.doctor.shifts import Misalignment
from ducos.files import LARGEST_ASPECT_MISMATCH, DepthMap

LARGEST_USEFUL_RATIO = 20.0  # of colour to depth size
SMALL_ASPECT_MISMATCH = 1.03  # up to here, sizes were rounded
# Of the shares of the depth that the colours explain, see benchmarks/doctor_orientation.py: of one
# pair the lead must be SURE_LEAD; of frames that agree, LEAD.
LEAD, SURE_LEAD, LEAST_SHARE = 0.06, 0.12, 0.42
DROWNED = 0.1  # noise as a share of the depth: the edges found are the noise's
ALIGNED, ALIGNED_LOW = 1.5, 0.3  # pixels of colour image and depth map: no shift to speak of
SURE = 0.95  # share of bootstrap draws
FEWEST_FRAMES = 3  # that must agree about a mirrored recording


def check_colour(image: Floats) -> Iterator[Finding]:
    """colour-blank, colour-dark: an image without edges guides nothing."""
    lowest, highest = (float(x) for x in np.percentile(image, (1, 99)))
    if highest - lowest < 0.02:
        yield Finding(
            "colour-blank",
            "warning",
            f"the colour image is blank (98 % of it between {lowest:.2f} and {highest:.2f}): edges "
            "come from the depth map alone",
            "give the image that belongs to this depth map",
            {"percentile_1": lowest, "percentile_99": highest},
        )
    elif highest < 0.12:
        yield Finding(
            "colour-dark",
            "warning",
            f"the colour image is very dark (99 % below {highest:.2f} of white): few edges to "
            "guide by",
            "expose longer, or brighten it before",
            {"percentile_99": highest},
        )


def check_sizes(image: Floats, low: DepthMap) -> Iterator[Finding]:
    """turned, aspect, finer-than-colour, ratio: can both show the same field of view?"""
    (H, W), (h, w) = image.shape[:2], low.depth.shape
    ratios = (H / h, W / w)
    mismatch = max(ratios[0] / ratios[1], ratios[1] / ratios[0])
    numbers = {"ratio_down": ratios[0], "ratio_across": ratios[1], "mismatch": mismatch}
    sizes = f"image {W}×{H}, depth map {w}×{h}"
    if (H > W and h < w) or (H < W and h > w):
        yield Finding(
            "turned",
            "error",
            f"one of the two is turned by 90°: {sizes}",
            "turn the depth map as the image is (phones store the sensor's orientation)",
            numbers,
        )
    elif mismatch > LARGEST_ASPECT_MISMATCH:
        yield Finding(
            "aspect",
            "error",
            f"the aspect ratios differ by {mismatch:.2f}×: {sizes}; they cannot show the same field"
            " of view",
            "crop both to the same field of view, or register the depth (--depth-intrinsics)",
            numbers,
        )
    elif mismatch > SMALL_ASPECT_MISMATCH:
        yield Finding(
            "aspect",
            "warning",
            f"the ratio is {ratios[1]:.3g} across and {ratios[0]:.3g} down: {sizes}",
            "make sure that both show the same field of view; if not, crop",
            numbers,
        )
    if min(ratios) < 1:
        yield Finding(
            "finer-than-colour",
            "warning",
            f"the depth map is finer than the colour image: {sizes}",
            "give the full-size colour image",
            numbers,
        )
    elif max(ratios) > LARGEST_USEFUL_RATIO:
        yield Finding(
            "ratio",
            "warning",
            f"the ratio is ×{max(ratios):.3g}: {sizes}; beyond ×{LARGEST_USEFUL_RATIO:g} edges are "
            "guesses",
            "shrink the colour image, or expect a smooth result",
            numbers,
        )


def check_orientation(
    image: Floats, low: DepthMap, facts: dict[str, Any], *, in_haste: bool = False
) -> Iterator[Finding]:
    """mirrored, perhaps-mirrored; turned-how where one of the two stands and the other does not.

    Needs the fact `noise`; sets the fact `orientation`, in haste only if there is a finding.
    """
    if facts["noise"] > DROWNED:
        return
    least = LEAST_SHARE if in_haste else 0.0
    shares = orientation_shares(image, low.depth, low.valid, least)
    if not shares:
        return
    facts["orientation"] = shares
    best = max(shares, key=lambda way: shares[way])
    if UPRIGHT not in shares:
        if shares[best] > LEAST_SHARE:
            yield Finding("turned-how", "note", f"it fits the image if {best}", "", shares)
        return
    lead = shares[best] - shares[UPRIGHT]
    if lead > LEAD and shares[best] > LEAST_SHARE:
        yield mirrored(best, shares, sure=lead > SURE_LEAD)


def mirrored(way: str, shares: dict[str, float], *, sure: bool) -> Finding:
    """The finding; one pair can rarely prove it, so it says how sure it is."""
    if sure:
        return Finding(
            "mirrored",
            "error",
            f"the depth map seems {way}: only so do its edges match the image",
            "turn or mirror one of the two",
            dict(shares),
        )
    return Finding(
        "perhaps-mirrored",
        "note",
        f"if the depth map were {way}, its edges would fit the colour image a little better; one "
        "pair cannot tell",
        "look at --report, or examine the whole recording",
        dict(shares),
    )


def common_orientation(all_shares: list[dict[str, float]]) -> Finding | None:
    """mirrored, of frames that agree: one way beats upright on average and in most of them."""
    judged = [each for each in all_shares if UPRIGHT in each]
    if len(judged) < FEWEST_FRAMES:
        return None
    mean = {way: float(np.mean([each[way] for each in judged])) for way in judged[0]}
    best = max(mean, key=lambda way: mean[way])
    wins = np.mean([max(each, key=lambda way: each[way]) == best for each in judged])
    if best == UPRIGHT or wins < 2 / 3:
        return None
    if mean[best] - mean[UPRIGHT] <= LEAD or mean[best] <= LEAST_SHARE:
        return None
    return mirrored(best, mean, sure=True)


def is_misaligned(shift: Misalignment, ratio: float) -> bool:
    """Whether a shift is certain and large enough to act on; ratio: of colour to depth size."""
    limit = max(ALIGNED, ALIGNED_LOW * ratio, 2 * shift.spread)
    return shift.certain and shift.length > limit and shift.doubt_of_zero >= SURE


def check_shift(shift: Misalignment, facts: dict[str, Any]) -> Iterator[Finding]:
    """misaligned, alignment-unknown; sets the fact `misalignment`, None where unknown."""
    facts["misalignment"] = asdict(shift) if shift.certain else None
    numbers = asdict(shift)
    if not shift.certain:
        yield Finding(
            "alignment-unknown",
            "note",
            f"cannot tell whether depth and colour are aligned: {shift.reason}",
            "",
            numbers,
        )
        return
    if is_misaligned(shift, max(facts["ratio"])):
        across = f"{abs(shift.x):.1f} px to the {'right' if shift.x > 0 else 'left'}"
        down = f"{abs(shift.y):.1f} px {'down' if shift.y > 0 else 'up'}"
        yield Finding(
            "misaligned",
            "warning",
            f"the depth map is misaligned with the image: it lies {across} and {down} "
            f"(± {shift.spread:.1f})",
            "register the depth to the colour camera (--depth-intrinsics, --rgb-intrinsics, "
            f"--extrinsics), or move it back (--shift {shift.x:.0f},{shift.y:.0f})",
            numbers,
        )
