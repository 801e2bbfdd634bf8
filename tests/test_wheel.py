"""The wheel: everything that the package needs at run time, nothing of the repository, small."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.places import REPOSITORY

LARGEST = 12_000_000  # bytes


@pytest.mark.slow
def test_the_wheel_is_small_and_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path)]
    made = subprocess.run([*command, str(REPOSITORY)], capture_output=True, text=True, timeout=240)
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("ducos-*.whl")
    assert wheel.stat().st_size < LARGEST
    names = set(zipfile.ZipFile(wheel).namelist())
    package = REPOSITORY / "src"
    data = {".py", ".json", ".png", ".csv", ".toml", ".typed", ".safetensors", ".md"}
    needed = {
        path.relative_to(package).as_posix()
        for path in (package / "ducos").rglob("*")
        if path.is_file() and path.suffix in data
    }
    assert needed <= names
    assert all(name.startswith("ducos") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    # What is embedded states its terms: the weights in their header, the example beside it.
    assert {"ducos/weights/ducos-tiny.safetensors", "ducos/example/README.md"} <= names
