"""What the doctor says: findings with words and numbers, and the report that collects them."""

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from ducos.arrays import Floats
from ducos.doctor.shifts import Misalignment
from ducos.files import DepthMap

Severity = Literal["error", "warning", "note"]
SEVERITIES = ("error", "warning", "note", "none")  # worst first; none: nothing was found


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

    rgb (H, W, 3) and low are the pair as read, for the report image; low: None if unreadable.
    comparable: the edges of both can be laid over each other. shift: how they lie, once measured.
    """

    findings: list[Finding]
    facts: dict[str, Any]
    rgb: Floats
    low: DepthMap | None
    comparable: bool = False
    shift: Misalignment | None = None

    @property
    def worst(self) -> str:
        """error, warning, note or none."""
        return worst_of(self.findings)

    @property
    def sound(self) -> bool:
        return self.worst in ("note", "none")

    def find(self, code: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.code == code), None)

    def to_json(self) -> str:
        """One JSON object: sound, worst, findings and facts."""
        return as_json(self.findings, self.facts)

    def lines(self) -> list[str]:
        """For the terminal."""
        return as_lines(self.findings, "a sound pair")


def worst_of(findings: list[Finding]) -> str:
    """The severity of the first of the sorted findings, or none."""
    return findings[0].severity if findings else "none"


def as_json(findings: list[Finding], facts: dict[str, Any]) -> str:
    """One JSON object: sound, worst, findings and facts."""
    worst = worst_of(findings)
    content = {
        "sound": worst in ("note", "none"),
        "worst": worst,
        "findings": [asdict(finding) for finding in findings],
        "facts": facts,
    }
    return json.dumps(_plain(content))


def as_lines(findings: list[Finding], sound: str) -> list[str]:
    """A line for each finding, worst first, and a verdict: `sound` if there are notes at most."""
    lines = []
    for finding in findings:
        advice = f" → {finding.advice}" if finding.advice else ""
        lines.append(f"{finding.severity}: {finding.sentence}{advice}")
    verdict = {"error": "not usable as it is", "warning": "usable, with the above in mind"}
    return [*lines, f"verdict: {verdict.get(worst_of(findings), sound)}"]


def _plain(value: Any) -> Any:
    """JSON has neither NumPy numbers nor infinity."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
