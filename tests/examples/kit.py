"""Examples as a reader uses them: as a program, and by their functions."""

import importlib.util
import subprocess
import sys
from types import ModuleType

from tests.places import REPOSITORY

EXAMPLES = REPOSITORY / "examples"


def loaded(place: str) -> ModuleType:
    """An example's functions; `place` is a file below examples/."""
    spec = importlib.util.spec_from_file_location(place.replace("/", "_")[:-3], EXAMPLES / place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(place: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """An example as a program."""
    command = [sys.executable, str(EXAMPLES / place), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)
