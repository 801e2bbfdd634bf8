"""What a reproduction found: blocks of lines, plain tables, what was skipped, and notes.

Measured and published figures stand side by side and are never mixed: what was not measured here
says so in its status.
"""

from dataclasses import dataclass, field
from pathlib import Path

from ducos.evaluation.published import Figures

METRICS = {"rmse": ("RMSE", 2), "mae": ("MAE", 2), "delta105": ("δ1.05", 2)}


@dataclass
class Line:
    """One method on one dataset at one scale.

    method: its id; name: as papers print it. weights: the file that was measured, if one was.
    measured: rmse, mae, delta105, or empty; reported: published figures by column.
    """

    dataset: str
    protocol: str
    scale: float | None
    unit: str
    method: str
    name: str
    status: str
    images: int = 0
    weights: str = ""
    measured: dict[str, float] = field(default_factory=dict)
    reported: dict[str, Figures] = field(default_factory=dict)


@dataclass
class Block:
    """Lines that stand under one another: one dataset under one protocol at one scale."""

    title: str
    lines: list[Line]


@dataclass
class Plain:
    """A table that is not about accuracy: parameters, training commands."""

    title: str
    header: list[str]
    rows: list[list[str]]


@dataclass
class Report:
    """What a reproduction found.

    skipped: datasets that are not here, each with how to get it. notes: what a reader must know.
    curves: draw figures against scale instead of bars. pictures: other files written.
    """

    name: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    tables: list[Plain] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curves: bool = False
    pictures: list[Path] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """Headings of the published figures, in order of appearance."""
        lines = [line for block in self.blocks for line in block.lines]
        return list(dict.fromkeys(column for line in lines for column in line.reported))
