"""What docs/train.md teaches: the commands of its first part, as they stand there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import REPOSITORY

PAGE = (REPOSITORY / "docs" / "train.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """`ducos train` and `ducos eval` of the two-minute part."""
    part = PAGE.split("## In two minutes")[1].split("\n## ")[0]
    return re.findall(r"^    ducos ((?:train|eval) .*)$", part, re.MULTILINE)


def ducos(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of the page, with its results in another folder."""
    words = line.replace("runs/own-sensor", str(folder)).split()
    return subprocess.run(
        [sys.executable, "-m", "ducos", *words, "--threads", "1"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.mark.slow
def test_the_tutorial_makes_weights_that_are_better_on_its_sensor(tmp_path: Path) -> None:
    train, evaluate = commands()
    out = tmp_path / "run"
    assert ducos(train, out).returncode == 0
    finished = ducos(f"{evaluate} --json", out)
    assert finished.returncode == 0, finished.stderr
    rows = json.loads(finished.stdout)["rows"]
    bicubic, before, after = (row["rmse"] for row in rows)
    assert after < before < bicubic


def test_the_tutorial_begins(tmp_path: Path) -> None:
    """Two of its steps, in every run of the tests."""
    train, _ = commands()
    out = tmp_path / "run"
    finished = ducos(f"{train} --set train.steps=2 --set train.validate_every=2", out)
    assert finished.returncode == 0, finished.stderr
    assert (out / "best.safetensors").is_file()
