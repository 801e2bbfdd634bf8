"""Where weights come from, as their file states it: data, code, and the weights they began with."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from ducos import __version__
from ducos.data import Dataset, digest
from ducos.models import read_about
from ducos.training.config import Config

PACKAGE = Path(__file__).parents[1]
STARTS = ("start", "start_prompt", "start_prior")
CARRIED = ("name", "version", "training_set", "steps", "multipliers", "code", "config", *STARTS)


def lineage(config: Config, training_set: Dataset) -> dict[str, Any]:
    """What is known before the first step.

    training_set: which pairs, by number and digest. code: the commit. start: the same of the
    weights that this run began with, and so on to the first ones.
    """
    stated: dict[str, Any] = {
        "name": config.model.name,
        "version": config.model.version,
        "training_set": {"pairs": len(training_set), "sha256": digest(training_set)},
        "code": code_version(),
    }
    for key in STARTS:
        path = getattr(config.model, key)
        if path:
            stated[key] = {n: v for n, v in read_about(Path(path)).items() if n in CARRIED}
    return stated


@cache
def code_version() -> str:
    """The commit of this code, with "-dirty" where it was changed since; else the version."""
    if not _git("ls-files", "--error-unmatch", "__init__.py"):
        return f"ducos {__version__}"  # installed, maybe into a repository of something else
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*")


def _git(*arguments: str) -> str:
    """What git says in the folder of the package; empty if it fails or is not there."""
    command = ["git", "-C", str(PACKAGE), *arguments]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return finished.stdout.strip() if finished.returncode == 0 else ""
