"""`ducos` as a person types it: in a process of its own, or in this one where speed counts."""

import subprocess
import sys

import pytest

from ducos import cli


def ducos(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ducos", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def ducos_here(capsys: pytest.CaptureFixture, *arguments: object) -> tuple[int, str, str]:
    """The same entry point without a new process, for the many cases of bad input."""
    sys_argv, sys.argv = sys.argv, ["ducos", *map(str, arguments)]
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = sys_argv
    captured = capsys.readouterr()
    return code, captured.out, captured.err
