"""What is wrong with a pair of colour image and depth map, before anybody blames the model.

`examine` runs one check after the other; a check returns findings, each with a code, a severity, a
sentence, the numbers it rests on, and what to do. Severities:

    error    the pair cannot be used like this;
    warning  the result will be worse than it could be, or means something else than you think;
    note     good to know, nothing to do.

A sound pair has notes at most. `docs/doctor.md` states how often each check is right.

Chapters: `units`, `levels` and `pixels` look at the depth map alone, `colour` at the image and at
how the map lies on it; `registration` measures that, by `edges` first and then by `refinement`;
`correction` turns it into the shift that `ducos upscale --shift auto` undoes.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import Floats
from ducos.cameras import points_as_map
from ducos.doctor.colour import check_colour, check_orientation, check_shift, check_sizes
from ducos.doctor.findings import SEVERITIES, Finding, Report
from ducos.doctor.inverse import check_inverse
from ducos.doctor.levels import check_flat, check_saturation, check_step
from ducos.doctor.pixels import check_flying, check_holes, check_noise, check_scattered
from ducos.doctor.registration import misalignment
from ducos.doctor.shifts import Misalignment
from ducos.doctor.units import check_range, check_unit
from ducos.errors import InputError
from ducos.files import DepthMap, is_points, read_colour, read_low


def examine(
    rgb: Any,
    depth: Any,
    *,
    unit: str = "auto",
    scale: float | None = None,
    mask: Any = None,
    camera: Any = None,
    pose: Any = None,
) -> Report:
    """Look at a pair as `super_resolve` would read it; same arguments.

    camera, pose: of a file of points, the colour camera and where it stands.

    A depth map that cannot be read is a finding, not an exception; a missing file is the latter.
    """
    report = look_at(rgb, depth, unit=unit, scale=scale, mask=mask, camera=camera, pose=pose)
    if report.low is not None and report.comparable:
        place(report, misalignment(report.rgb, report.low.depth, report.low.valid))
    return report


def place(report: Report, shift: Misalignment) -> None:
    """Enter where the map lies on the image, and what is to be said about it."""
    report.shift = shift
    report.findings += check_shift(shift, report.facts)
    report.findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))


def look_at(
    rgb: Any,
    depth: Any,
    *,
    unit: str,
    scale: float | None,
    mask: Any,
    camera: Any = None,
    pose: Any = None,
) -> Report:
    """All of `examine` but where the map lies on the image."""
    image = read_colour(rgb)
    if isinstance(depth, str | Path) and not Path(depth).is_file():
        raise InputError(f"no such depth file: {depth}")
    try:
        if is_points(depth):
            size = (image.shape[0], image.shape[1])
            low, _ = points_as_map(depth, size, camera, pose, unit=unit, scale=scale, image=rgb)
        else:
            low = read_low(depth, unit, scale, mask)
    except InputError as problem:
        unreadable = Finding("unreadable", "error", str(problem), "give a raw, single-channel map")
        return Report([unreadable], {"colour_size": list(image.shape[:2])}, image, None)

    facts = _facts(image, low)
    if low.is_scattered:
        return _of_points(image, low, facts)
    findings = [*check_colour(image), *check_sizes(image, low), *check_unit(low)]
    findings += check_inverse(low)
    unit_is_sound = not any(finding.code in ("unit", "unit-levels") for finding in findings)
    flat = check_flat(low)
    findings += flat
    if unit_is_sound:
        findings += check_range(low)
    findings += check_holes(low)
    turned: list[Finding] = []
    if not flat:
        findings += [*check_step(low, facts), *check_saturation(low, facts)]
        findings += [*check_noise(low, facts), *check_flying(low, facts)]
        turned = list(check_orientation(image, low, facts))
        findings += turned
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    wrong = any(finding.code != "perhaps-mirrored" for finding in turned)
    return Report(findings, facts, image, low, comparable=not flat and not wrong)


def _of_points(image: Floats, low: DepthMap, facts: dict[str, Any]) -> Report:
    """Scattered points have neither edges nor areas: most checks would only see that."""
    findings = [*check_colour(image), *check_sizes(image, low), *check_unit(low)]
    findings += [*check_flat(low), *check_range(low), *check_scattered(low)]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Report(findings, facts, image, low)


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
