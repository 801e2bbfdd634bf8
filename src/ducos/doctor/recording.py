"""What is wrong with a recording: the doctor's findings over frames spread along it, together.

A fault of the camera is in most frames, an accident in one: each finding says in how many frames
it was made. Where the depth lies on the images is measured over all of them at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ducos.captures import FrameRef, read_frame
from ducos.doctor.colour import FEWEST_FRAMES, check_shift, common_orientation
from ducos.doctor.examination import look_at, place
from ducos.doctor.findings import SEVERITIES, Finding, Report, as_json, as_lines, worst_of
from ducos.doctor.refinement import View
from ducos.doctor.registration import common_misalignment
from ducos.doctor.rig import placed, spread_out
from ducos.errors import InputError
from ducos.files import Found, FramePair


@dataclass
class RecordingReport:
    """All that was found, worst first.

    reports: of the frames looked at, by name; None where the image could not be read.
    facts: of the recording as a whole.
    """

    findings: list[Finding]
    facts: dict[str, Any]
    reports: dict[str, Report | None]

    @property
    def worst(self) -> str:
        """error, warning, note or none."""
        return worst_of(self.findings)

    @property
    def worst_frame(self) -> Report | None:
        """The frame with the gravest finding, for the report image."""
        seen = [report for report in self.reports.values() if report is not None]
        return min(seen, key=lambda report: SEVERITIES.index(report.worst), default=None)

    def to_json(self) -> str:
        return as_json(self.findings, self.facts)

    def lines(self) -> list[str]:
        """For the terminal."""
        return as_lines(self.findings, "a sound recording")


def examine_recording(
    found: Found,
    *,
    unit: str = "auto",
    scale: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> RecordingReport:
    """Look at up to sixteen frames of a recording as `ducos batch` would read them."""
    chosen = spread_out(found.pairs)
    reports: dict[str, Report | None] = {}
    by_frame: dict[str, list[Finding]] = {}
    for number, pair in enumerate(chosen):
        reports[pair.out], by_frame[pair.out] = looked_at(pair, unit, scale)
        if progress:
            progress((number + 1) / len(chosen))
    readable = [report for report in reports.values() if report is not None and report.low]
    facts: dict[str, Any] = {"frames": len(found.pairs), "looked_at": list(reports)}
    findings = [
        *together(without_orientation(by_frame, readable)),
        *check_common_orientation(readable),
        *check_matches(found),
        *check_same(readable, facts),
        *check_common_shift(readable, facts),
    ]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return RecordingReport(findings, facts, reports)


def looked_at(
    pair: FramePair, unit: str, scale: float | None
) -> tuple[Report | None, list[Finding]]:
    """The report on one frame and what it found; a frame that cannot be read is a finding."""
    try:
        if isinstance(pair, FrameRef):
            frame = placed(read_frame(pair, unit, scale))
            report = look_at(frame.image, frame.low, unit="auto", scale=None, mask=None)
        else:
            report = look_at(pair.rgb, pair.depth, unit=unit, scale=scale, mask=pair.mask)
    except InputError as problem:
        return None, [Finding("unreadable", "error", str(problem), "leave it out or mend it")]
    return report, list(report.findings)


def together(by_frame: dict[str, list[Finding]]) -> list[Finding]:
    """One finding for each code, with the words of the first frame that has it.

    What is wrong with less than half of the frames is no error of the recording.
    """
    frames_with: dict[str, list[str]] = {}
    first: dict[str, Finding] = {}
    for frame, findings in by_frame.items():
        for finding in findings:
            frames_with.setdefault(finding.code, []).append(frame)
            first.setdefault(finding.code, finding)
    common = []
    for code, frames in frames_with.items():
        finding = first[code]
        rare = 2 * len(frames) < len(by_frame)
        common.append(
            replace(
                finding,
                severity="warning" if finding.severity == "error" and rare else finding.severity,
                sentence=f"in {len(frames)} of {len(by_frame)} frames, such as {frames[0]}: "
                + finding.sentence,
                numbers={"frames": frames, "first": finding.numbers},
            )
        )
    return common


def without_orientation(
    by_frame: dict[str, list[Finding]], reports: list[Report]
) -> dict[str, list[Finding]]:
    """Findings without what single frames say of mirroring: of several frames all decide."""
    if len(reports) < FEWEST_FRAMES:
        return by_frame
    for report in reports:
        report.comparable |= report.find("mirrored") is not None
    return {
        frame: [each for each in findings if "mirrored" not in each.code]
        for frame, findings in by_frame.items()
    }


def check_common_orientation(reports: list[Report]) -> list[Finding]:
    """mirrored, if the frames agree that they are; then their edges cannot be compared."""
    found = common_orientation(
        [r.facts["orientation"] for r in reports if "orientation" in r.facts]
    )
    if found is None:
        return []
    for report in reports:
        report.comparable = False
    return [replace(found, sentence=f"in most of {len(reports)} frames: {found.sentence}")]


def check_matches(found: Found) -> list[Finding]:
    """unmatched: images without depth map, or the reverse."""
    if not found.unmatched:
        return []
    names = [failure.name for failure in found.unmatched]
    return [
        Finding(
            "unmatched",
            "warning",
            f"{len(names)} files have no partner, such as {names[0]}: {found.unmatched[0].reason}",
            "give both files of a pair the same name",
            {"names": names},
        )
    ]


def check_same(reports: list[Report], facts: dict[str, Any]) -> list[Finding]:
    """units-differ, sizes-differ: one camera has one of each. Sets the facts `units`, `sizes`."""
    facts["units"] = sorted({str(report.facts["unit"]) for report in reports})
    sizes = {
        (tuple(report.facts["colour_size"]), tuple(report.facts["depth_size"]))
        for report in reports
    }
    facts["sizes"] = [{"colour": list(rgb), "depth": list(low)} for rgb, low in sorted(sizes)]
    findings = []
    if len(facts["units"]) > 1:
        findings.append(
            Finding(
                "units-differ",
                "warning",
                f"the numbers of different frames look like different units: "
                f"{', '.join(facts['units'])}",
                "pass --unit or --scale",
            )
        )
    if len(sizes) > 1:
        findings.append(
            Finding(
                "sizes-differ",
                "note",
                f"the frames have {len(sizes)} different sizes, so they are not of one rig",
                "",
            )
        )
    return findings


def check_common_shift(reports: list[Report], facts: dict[str, Any]) -> list[Finding]:
    """misaligned, alignment-unknown of all frames together, entered in the report of each.

    Sets the facts `ratio` and `misalignment`.
    """
    judged = [report for report in reports if report.comparable]
    if not judged or len(facts["sizes"]) > 1:
        return []
    views = [View(each.rgb, each.low.depth, each.low.valid) for each in judged if each.low]
    shift = common_misalignment(views)
    for report in judged:
        place(report, shift)
    facts["ratio"] = judged[0].facts["ratio"]
    return list(check_shift(shift, facts))
