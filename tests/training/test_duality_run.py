"""Real runs on generated shapes: the multipliers do what the paper and the theory say."""

import json
from pathlib import Path

import pytest

from ducos.training.config import load_config
from ducos.training.loop import train
from tests import places

CONFIG = places.CONFIGS / "shapes.toml"


def run(out: Path, *overrides: str) -> list[dict]:
    """The rows of metrics.jsonl at which a dual step was made."""
    short = ["train.steps=60", "train.validate_every=60", "data.validation_images=1"]
    train(load_config(CONFIG, [*short, *overrides]), out, quiet=True)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if "slack_edge" in row]


def test_a_multiplier_rises_while_violated_and_falls_after(tmp_path: Path) -> None:
    rows = run(tmp_path)
    epsilon_rate = 2.0
    before, rose, fell_after = 0.0, False, False
    for row in rows:
        after, slack = row["multiplier_alignment"], row["slack_alignment"]
        assert after == pytest.approx(max(0.0, before - epsilon_rate * slack), abs=1e-9)
        rose |= slack < 0 and after > before
        fell_after |= rose and slack > 0 and after < before
        before = after
    assert rose
    assert fell_after


def test_the_papers_preset_follows_algorithm_1(tmp_path: Path) -> None:
    plain = ["dual.alignment={}", "dual.edge={}"]
    rows = run(tmp_path, "dual.preset=paper", *plain)
    epochs, rate = len(rows), 0.01
    multipliers = {"alignment": 0.01, "edge": 0.05}
    for epoch, row in enumerate(rows, start=1):
        rate *= 1 - epoch / epochs
        for name in multipliers:
            loss = -row[f"slack_{name}"]  # no epsilon: the violation is the loss itself
            multipliers[name] = max(0.0, multipliers[name] + rate * loss)
            assert row[f"multiplier_{name}"] == pytest.approx(multipliers[name], abs=1e-9)
    assert epochs == 6
