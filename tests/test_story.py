"""Figures, drawings and the site are what the stored runs and the code say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import REPOSITORY

RESULTS = sorted((REPOSITORY / "docs" / "results").glob("*.json"))


def run(*command: str, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        # Scripts stand beside what they import; a command run in this process may forbid that.
        env={k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"},
    )


def test_tables_equal_the_stored_runs() -> None:
    """README, first page, results page and model cards; after a run: python scripts/results.py."""
    finished = run("scripts/results.py", "--check")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_every_run_says_what_made_it(path: Path) -> None:
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["run"] == path.stem
    assert len(report["date"]) == 10
    assert report["weights"]
    assert report["command"]
    assert report.get("by") == "hand" or report["digest"] is not None
    assert ("source" in report) == (report.get("by") == "hand")


def test_no_figure_is_stored_twice() -> None:
    seen: dict[tuple, str] = {}
    for path in RESULTS:
        for row in json.loads(path.read_text(encoding="utf-8")).get("rows", []):
            place = row.get("dataset") or row.get("case")
            if place is None:
                continue
            key = (row["model"], place, row.get("scale"), row.get("protocol"))
            assert key not in seen, f"{path.name} and {seen.get(key)}"
            seen[key] = path.name


def test_drawings_are_as_drawn_now() -> None:
    """After a change: python scripts/diagrams.py"""
    finished = run("scripts/diagrams.py", "--check")
    assert finished.returncode == 0, finished.stderr


def test_the_log_is_newest_first() -> None:
    lines = (REPOSITORY / "dev" / "LOG.md").read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if line.startswith("## ")]
    dates = [line.split()[1].rstrip(":") for line in heads]
    assert all(line.endswith(")") for line in heads), "## YYYY-MM-DD: what (verdict)"
    assert dates == sorted(dates, reverse=True)


def test_the_site_builds_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    built = run("-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path))
    assert built.returncode == 0, built.stderr
    checked = run("scripts/site_links.py", str(tmp_path))
    assert checked.returncode == 0, checked.stderr
    assert len(list(tmp_path.rglob("*.html"))) > 35
