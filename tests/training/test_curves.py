"""The picture of a run: what is in the log is in the picture."""

import json
from pathlib import Path

import pytest

from ducos.training.curves import smooth, training_curves


def write(folder: Path, rows: list[dict[str, float]]) -> Path:
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_every_kind_of_number_gets_a_panel(tmp_path: Path) -> None:
    rows = [
        {"step": s, "loss": 1.0, "reconstruction": 1 / s, "edge": 0.1 * s, "multiplier_edge": s,
         "slack_edge": -s, "validation_relative_x4": 1 - s / 10, "seconds": s}
        for s in (1, 2, 3, 4)
    ]  # fmt: skip
    whole = training_curves(write(tmp_path, rows))
    fewer = training_curves(write(tmp_path, [{"step": r["step"], "edge": r["edge"]} for r in rows]))
    assert whole is not None
    assert fewer is not None
    assert whole.shape[0] > fewer.shape[0]  # a second row of panels
    assert whole.shape[1] > fewer.shape[1]


def test_nothing_to_draw_yet(tmp_path: Path) -> None:
    assert training_curves(write(tmp_path, [{"step": 1, "reconstruction": 0.5}])) is None
    assert training_curves(write(tmp_path, [])) is None


def test_smoothing_keeps_steps_and_levels() -> None:
    points = [(float(x), 3.0) for x in range(50)]
    assert smooth(points) == points
    jump = smooth([(float(x), float(x >= 20)) for x in range(40)])
    assert [x for x, _ in jump] == list(range(40))
    assert jump[0][1] == 0
    assert jump[-1][1] == 1
    assert jump[20][1] == pytest.approx(0.6)  # two steps before, itself and two after
