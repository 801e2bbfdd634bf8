"""The checks that cost next to nothing, as warnings of every super-resolution."""

from collections.abc import Iterable, Sequence
from typing import Any

from ducos.arrays import Floats
from ducos.doctor.colour import check_orientation, common_orientation
from ducos.doctor.findings import Finding
from ducos.doctor.inverse import check_inverse
from ducos.doctor.pixels import noise_level
from ducos.doctor.units import check_range, check_unit
from ducos.files import DepthMap


def cheap_warnings(low: DepthMap, image: Floats | None = None) -> list[str]:
    """Sentences about a unit that is hard to believe, and about a mirrored map if the image
    (H, W, 3) is given; the doctor's own words and advice."""
    flipped: Iterable[Finding] = ()
    if image is not None and not low.is_scattered:
        flipped = check_orientation(image, low, facts(low), in_haste=True)
    return sentences([*unit_findings(low), *flipped])


def cheap_warnings_together(views: Sequence[tuple[Floats, DepthMap]]) -> list[str]:
    """The same of frames of one recording: each sentence once, and frames that agree are flipped
    or not; what a single one says of that does not count."""
    found: dict[str, list[Finding]] = {}
    shares = []
    for image, low in views:
        for finding in unit_findings(low):
            found.setdefault(finding.code, []).append(finding)
        known = facts(low)
        alone = list(check_orientation(image, low, known)) if not low.is_scattered else []
        shares += [known["orientation"]] if "orientation" in known else []
        if len(views) < 3:
            found.setdefault("mirrored", []).extend(alone)
    most = [each[0] for each in found.values() if 2 * len(each) > len(views)]
    together = common_orientation(shares)
    return sentences([*most, *([together] if together else [])])


def unit_findings(low: DepthMap) -> list[Finding]:
    found = [*check_unit(low)] or [*check_range(low)]
    return found if low.is_scattered else [*found, *check_inverse(low)]


def facts(low: DepthMap) -> dict[str, Any]:
    """What `check_orientation` asks for."""
    return {"noise": noise_level(low.depth, low.valid, low.unit == "relative")}


def sentences(findings: Iterable[Finding]) -> list[str]:
    """All but notes."""
    return [f"{each.sentence}: {each.advice}" for each in findings if each.severity != "note"]
