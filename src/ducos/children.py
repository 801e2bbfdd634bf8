"""How every child process of this package starts: nothing is imported from the current folder.

`python -m` and `python -c` put the current folder before all libraries. There a recording may lie
that somebody else made, and a file `numpy.py` in it would be executed. So a child is told where to
import from, and inherits no variable that makes Python run or find other code.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""One thread per process: many processes of one are faster than one of many, and repeatable."""

# Of the variables that begin with PYTHON; the others change what is imported, or stop and ask.
KEPT = {
    "PYTHONHOME",  # without it an embedded Python does not find its own library
    "PYTHONHASHSEED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "PYTHONUTF8",
    "PYTHONIOENCODING",
    "PYTHONMALLOC",
    "PYTHONFAULTHANDLER",
}

PACKAGES = str(Path(__file__).parents[1])  # the folder that holds this package
_MODULE = "import runpy; runpy.run_module(task[0], run_name='__main__', alter_sys=True)"


def safe_path() -> list[str]:
    """Where this process imports from, without the current folder; this package last, if there."""
    here = os.path.realpath(os.getcwd())
    others = [place for place in sys.path if place and os.path.realpath(place) != here]
    return others if PACKAGES in others else [*others, PACKAGES]


def python_program(program: str, *task: object) -> list[str]:
    """The command that runs a program text; it finds `task` (plain values) as a list."""
    start = "import json, sys; sys.path[:], task = json.loads(sys.argv.pop()); " + program
    return [sys.executable, "-P", "-c", start, json.dumps([safe_path(), task])]


def python_module(name: str) -> list[str]:
    """The command that runs a module of this package, as `python -m` would."""
    return python_program(_MODULE, name)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that a child gets: ours, without what could make Python run other code."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON") or k in KEPT}
    return {**kept, "PYTHONSAFEPATH": "1", **(more or {})}
