"""What is wrong with a pair of colour image and depth map, before anybody blames the model.

`examine` runs one check after the other; a check returns findings, each with a code, a severity, a
sentence, the numbers it rests on, and what to do. Severities:

    error    the pair cannot be used like this;
    warning  the result will be worse than it could be, or means something else than you think;
    note     good to know, nothing to do.

A sound pair has notes at most. `docs/doctor.md` states how often each check is right.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ducos.errors import InputError
from ducos.infer import LARGEST_ASPECT_MISMATCH, read_colour, read_low
from ducos.io import DepthMap
from ducos.misalignment import UPRIGHT, Misalignment, misalignment, orientation_strengths
from ducos.units import UNITS

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Severity = Literal["error", "warning", "note"]


@dataclass
class Finding:
    """One thing found.

    code: stable name for programs. sentence: for people. advice: what to do, may be empty.
    numbers: what the sentence rests on.
    """

    code: str
    severity: Severity
    sentence: str
    advice: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass
class Report:
    """All that was found, worst first, and the measured facts of a pair.

    rgb (H, W, 3) and low are the pair as read, for the picture; low is None if it was unreadable.
    """

    findings: list[Finding]
    facts: dict[str, Any]
    rgb: Floats
    low: DepthMap | None
    shift: Misalignment | None = None

    @property
    def worst(self) -> str:
        """error, warning, note or none."""
        return self.findings[0].severity if self.findings else "none"

    @property
    def sound(self) -> bool:
        return self.worst in ("note", "none")

    def find(self, code: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.code == code), None)

    def to_json(self) -> str:
        """One JSON object: sound, worst, findings and facts."""
        content = {
            "sound": self.sound,
            "worst": self.worst,
            "findings": [asdict(finding) for finding in self.findings],
            "facts": self.facts,
        }
        return json.dumps(_plain(content))

    def lines(self) -> list[str]:
        """For the terminal."""
        lines = []
        for finding in self.findings:
            advice = f" → {finding.advice}" if finding.advice else ""
            lines.append(f"{finding.severity}: {finding.sentence}{advice}")
        verdict = {"error": "not usable as it is", "warning": "usable, with the above in mind"}
        return [*lines, f"verdict: {verdict.get(self.worst, 'a sound pair')}"]


def examine(
    rgb: Any,
    depth: Any,
    *,
    unit: str = "auto",
    scale: float | None = None,
    mask: Any = None,
) -> Report:
    """Look at a pair as `super_resolve` would read it; same arguments.

    A depth map that cannot be read is a finding, not an exception; a missing file is the latter.
    """
    image = read_colour(rgb)
    if isinstance(depth, str | Path) and not Path(depth).is_file():
        raise InputError(f"no such depth file: {depth}")
    try:
        low = read_low(depth, unit, scale, mask)
    except InputError as problem:
        unreadable = Finding("unreadable", "error", str(problem), "give a raw, single-channel map")
        return Report([unreadable], {"colour_size": list(image.shape[:2])}, image, None)

    facts = _facts(image, low)
    findings = [*_check_colour(image), *_check_sizes(image, low), *_check_unit(low)]
    unit_is_sound = not any(finding.code in ("unit", "unit-levels") for finding in findings)
    flat = _check_flat(low)
    findings += flat
    if unit_is_sound:
        findings += _check_range(low)
    findings += _check_holes(low)
    shift = None
    if not flat:
        findings += [*_check_step(low, facts), *_check_saturation(low, facts)]
        findings += [*_check_noise(low, facts), *_check_flying(low, facts)]
        turned = list(_check_orientation(image, low))
        findings += turned
        if not turned:
            shift = misalignment(image, low.depth, low.valid)
            findings += _check_shift(shift, facts)
    order = ("error", "warning", "note")
    findings.sort(key=lambda finding: order.index(finding.severity))
    return Report(findings, facts, image, low, shift)


def _plain(value: Any) -> Any:
    """JSON has neither NumPy numbers nor infinity."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _facts(image: Floats, low: DepthMap) -> dict[str, Any]:
    (H, W), (h, w) = image.shape[:2], low.depth.shape
    known = low.depth[low.valid]
    names = ("nearest", "percentile_1", "median", "percentile_99", "farthest")
    return {
        "colour_size": [H, W],
        "depth_size": [h, w],
        "ratio": [H / h, W / w],
        "unit": low.unit,
        "unit_scale": low.scale,
        "unit_decision": low.note,
        "hole_share": float(1 - low.valid.mean()),
        **{name: float(q) for name, q in zip(names, np.percentile(known, (0, 1, 50, 99, 100)))},
    }


# ------------------------------------------------------------------------ the picture and the sizes


def _check_colour(image: Floats) -> Iterator[Finding]:
    lowest, highest = (float(x) for x in np.percentile(image, (1, 99)))
    if highest - lowest < 0.02:
        yield Finding(
            "colour-blank",
            "error",
            f"the colour image is blank: 98 % of it lie between {lowest:.2f} and {highest:.2f}",
            "give the picture that belongs to this depth map",
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


LARGEST_USEFUL_RATIO = 20.0
SMALL_ASPECT_MISMATCH = 1.03


def _check_sizes(image: Floats, low: DepthMap) -> Iterator[Finding]:
    (H, W), (h, w) = image.shape[:2], low.depth.shape
    ratios = (H / h, W / w)
    mismatch = max(ratios[0] / ratios[1], ratios[1] / ratios[0])
    numbers = {"ratio_down": ratios[0], "ratio_across": ratios[1], "mismatch": mismatch}
    sizes = f"colour {W}×{H}, depth {w}×{h}"
    if (H > W and h < w) or (H < W and h > w):
        yield Finding(
            "turned",
            "error",
            f"one of the two is turned by 90°: {sizes}",
            "turn the depth map as the picture (phones store the sensor's orientation)",
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
            f"the ratio is ×{max(ratios):.3g}: {sizes}; beyond ×16 edges are guesses",
            "shrink the colour image, or expect a smooth result",
            numbers,
        )


# ------------------------------------------------------------------------------ what numbers mean

STORED_AS = {
    0.001: "millimetres",
    1.0: "metres",
    0.01: "centimetres",
    1 / 5000: "5000 per metre (TUM, ICL-NUIM, NYU exports)",
    1 / 4000: "0.25 mm (RealSense L515, structured light)",
    1 / 10000: "0.1 mm (RealSense D405, TOFDSR exports)",
    1 / 256: "256 per metre (KITTI)",
}
USUAL_MEDIAN = (0.2, 7.0)  # metres, indoors and out with a depth camera
USUAL_FARTHEST = 12.0
USUAL_NEAREST = 0.08
TYPICAL_MEDIAN = 2.0
FAR_FOR_NEAREST = 1.6  # metres: indoors something is usually nearer


def _check_unit(low: DepthMap) -> Iterator[Finding]:
    """Is the guessed unit believable? A given or stated one is not questioned here."""
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
        yield Finding(
            "unit-levels",
            "warning",
            f"whole numbers up to {stored.max():.0f} only: 8-bit levels or disparity rather than "
            f"{STORED_AS[low.scale]}",
            "pass --unit relative; if they are distances, --scale METRES_PER_VALUE",
            numbers,
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
    guess = f"read as {STORED_AS[low.scale]} the median would be {median * low.scale:.3g} m"
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
    yield Finding(
        "unit",
        "warning",
        f"{guess}, unusual for a depth camera",
        f"say what a stored value means; it fits {candidates}"
        if candidates
        else "say what a stored value means with --unit or --scale; no usual scale fits",
        {**numbers, "candidates": ranked},
    )


def _are_whole(stored: Floats) -> bool:
    """Whether the stored values are integers, up to the rounding of metres in float32."""
    return bool(np.abs(stored - np.rint(stored)).max() <= 1e-6 * np.abs(stored).max() + 1e-4)


def _is_believable(nearest: float, median: float, farthest: float) -> bool:
    return (
        USUAL_MEDIAN[0] <= median <= USUAL_MEDIAN[1]
        and farthest <= USUAL_FARTHEST
        and nearest >= USUAL_NEAREST
    )


USUAL_RANGE = (0.1, 20.0)  # metres: of depth cameras, and of what the models were trained on
OUTSIDE_SHARE = 0.01


def _check_range(low: DepthMap) -> Iterator[Finding]:
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


def _check_flat(low: DepthMap) -> list[Finding]:
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


# ------------------------------------------------------------------------------------------- holes

FEW_HOLES, MANY_HOLES = 0.02, 0.5


def _check_holes(low: DepthMap) -> Iterator[Finding]:
    holes = ~low.valid
    share = float(holes.mean())
    if share <= FEW_HOLES:
        return
    h, w = holes.shape
    pieces, count = ndimage.label(holes)
    largest = float(np.bincount(pieces.ravel())[1:].max() / holes.size)
    margin = _margin_share(holes)
    words = []
    if margin > 0.5 * share:
        words.append("mostly a margin, as registration leaves it")
    elif largest > 0.5 * share:
        words.append(f"mostly one area of {100 * largest:.0f} % of the map")
    elif share * h * w / count < 4:
        words.append("scattered single pixels")
    else:
        words.append(f"{count} separate areas")
    many = share > MANY_HOLES
    yield Finding(
        "holes",
        "warning" if many else "note",
        f"{100 * share:.0f} % of the depth map are holes, {words[0]}",
        "what fills them is inferred, not measured; --keep-holes leaves them" if many else "",
        {"share": share, "pieces": int(count), "largest": largest, "margin": margin},
    )


def _margin_share(holes: Mask) -> float:
    """Share of the map in whole empty rows and columns at its four sides."""
    rows, columns = np.flatnonzero(~holes.all(1)), np.flatnonzero(~holes.all(0))
    inside = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    return float(1 - inside / holes.size)


# ------------------------------------------------------------- step, saturation, noise, mixed edges

COARSE_STEP = 0.005  # of the median depth
FEWEST_LEVELS = 64  # of a relative map


def _check_step(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
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


PILE_SHARE = 0.01  # of the valid pixels
PILE_HEIGHT = 12.0  # times what the neighbouring levels hold
SMOOTH, CONTINUING = 0.03, 0.25  # step at the rim of a pile, and share of the rim with such steps


def _check_saturation(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
    """Many pixels at exactly the largest or smallest value, and none of that density beside it."""
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
        if code == "saturated-near" and not _continues(low, pile):
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
    rim = ndimage.binary_dilation(pile) & ~pile & low.valid
    end = float(low.depth[pile].mean())
    steps = np.abs(low.depth[rim] - end)
    return bool(steps.size) and float((steps < SMOOTH * abs(end)).mean()) > CONTINUING


STRONG_NOISE = 0.01  # of the depth, one standard deviation


def _check_noise(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
    relative = noise_level(low.depth, low.valid, low.unit == "relative")
    facts["noise"] = relative
    if relative > STRONG_NOISE:
        of = "range" if low.unit == "relative" else "depth"
        yield Finding(
            "noise",
            "warning",
            f"noise of about {100 * relative:.1f} % of the {of} (one standard deviation)",
            "average several frames, or choose a model trained with noise",
            {"relative_sigma": relative},
        )


def noise_level(depth: Floats, valid: Mask, relative: bool) -> float:
    """Standard deviation of pixel noise as a share of the depth (of the range if relative).

    Second differences along both axes at once vanish on every plane of the inverse depth and on
    straight edges along an axis; their lower quartile belongs to smooth parts of the scene. In a
    map with steps coarser than the noise it is 0.
    """
    if min(depth.shape) < 3:
        return 0.0
    known = depth[valid]
    if relative:
        span = float(np.percentile(known, 99) - np.percentile(known, 1))
        plane = depth.astype(np.float64) / max(span, 1e-9)
    else:
        distance = np.where(valid, depth, 1.0).astype(np.float64)  # its inverse may be large
        plane = np.where(valid, float(np.median(known)) / distance, 0.0)
    along = plane[:, :-2] - 2 * plane[:, 1:-1] + plane[:, 2:]
    mixed = (along[:-2] - 2 * along[1:-1] + along[2:]) / 6  # unit gain for white noise
    if not relative:
        mixed = mixed / np.where(valid, plane, 1.0)[1:-1, 1:-1]
    whole = ndimage.binary_erosion(valid, np.ones((3, 3)), border_value=1)[1:-1, 1:-1]
    if whole.sum() < 16:
        return 0.0
    return float(np.quantile(np.abs(mixed[whole]), 0.25) / 0.3186)  # quartile of |N(0, 1)|


EDGE_JUMP, MIXED_DISTANCE = 0.1, 0.02  # of the depth
MANY_MIXED = 0.25  # of the edge pixels


def _check_flying(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
    if low.unit == "relative":
        return
    mixed, edges = mixed_pixels(low.depth, low.valid)
    share = float(mixed.sum() / max(int(edges.sum()), 1))
    facts["mixed_edge_share"] = share
    if edges.sum() >= 20 and share > MANY_MIXED:
        yield Finding(
            "flying-pixels",
            "note",
            f"{100 * share:.0f} % of the pixels at depth edges float between the two surfaces "
            f"({100 * mixed.mean():.1f} % of the map), as averaging sensors and resizing make them",
            "never resize a depth map with interpolation before handing it over",
            {"share_of_edges": share, "share": float(mixed.mean())},
        )


def mixed_pixels(depth: Floats, valid: Mask) -> tuple[Mask, Mask]:
    """Pixels (h, w) between two surfaces, and all pixels at depth edges.

    Along a row or column, two pixels on either side foretell the middle one, exactly on planes of
    inverse depth. At an edge the two foretellings disagree; a mixed pixel agrees with neither.
    """
    mixed, edges = np.zeros_like(valid), np.zeros_like(valid)
    # In double precision, where the smallest float32 has an inverse.
    inverse = np.where(valid, 1 / np.where(valid, depth, 1.0).astype(np.float64), np.nan)
    for axis in (0, 1):
        if depth.shape[axis] < 5:
            continue
        line = np.moveaxis(inverse, axis, 0)
        before, after = 2 * line[1:-3] - line[:-4], 2 * line[3:-1] - line[4:]
        middle = line[2:-2]
        is_edge = np.abs(after - before) > EDGE_JUMP * middle
        apart = np.minimum(np.abs(middle - before), np.abs(middle - after)) > (
            MIXED_DISTANCE * middle
        )
        between = (middle - before) * (after - middle) > 0
        np.moveaxis(edges, axis, 0)[2:-2] |= is_edge
        np.moveaxis(mixed, axis, 0)[2:-2] |= is_edge & apart & between
    return mixed, edges


# ------------------------------------------------------------------- does it fit the colour image?

MIRROR_MARGIN = 1.0  # in the strengths of orientation_strengths
MIRROR_STRENGTH = 4.0


def _check_orientation(image: Floats, low: DepthMap) -> Iterator[Finding]:
    strengths = orientation_strengths(image, low.depth, low.valid)
    best = max(strengths, key=lambda way: strengths[way])
    clear = strengths[best] - strengths.get(UPRIGHT, 0.0) > MIRROR_MARGIN
    if UPRIGHT not in strengths:
        if strengths[best] > MIRROR_STRENGTH:
            yield Finding("turned-how", "note", f"its edges fit a depth map {best}", "", strengths)
    elif clear and strengths[best] > MIRROR_STRENGTH:
        yield Finding(
            "mirrored",
            "error",
            f"the depth map seems {best}: its edges fit the colour image only so",
            "turn or mirror one of the two",
            strengths,
        )


ALIGNED = 1.5  # pixels of the colour image
ALIGNED_LOW = 0.3  # pixels of the depth map
SURE = 0.95


def _check_shift(shift: Misalignment, facts: dict[str, Any]) -> Iterator[Finding]:
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
    ratio = max(facts["ratio"])
    limit = max(ALIGNED, ALIGNED_LOW * ratio, 2 * shift.spread)
    if shift.length > limit and shift.doubt_of_zero >= SURE:
        across = f"{abs(shift.x):.1f} px to the {'right' if shift.x > 0 else 'left'}"
        down = f"{abs(shift.y):.1f} px {'down' if shift.y > 0 else 'up'}"
        yield Finding(
            "misaligned",
            "warning",
            f"the depth lies {across} and {down} against the colour image (± {shift.spread:.1f})",
            "register the depth to the colour camera (--depth-intrinsics, --rgb-intrinsics, "
            "--extrinsics), or shift it back",
            numbers,
        )
