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
    data = {".py", ".onnx", ".json", ".png", ".csv", ".toml", ".typed", ".safetensors", ".md"}
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


LARGEST_INSTALL = 250_000_000  # bytes of a fresh environment with the core dependencies


@pytest.mark.slow
def test_a_fresh_environment_without_torch_passes_selftest(tmp_path: Path) -> None:
    """Only the wheel and its core dependencies, from the package index."""
    home = tmp_path / "environment"
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path)]
    subprocess.run([*command, str(REPOSITORY)], check=True, capture_output=True, timeout=240)
    (wheel,) = tmp_path.glob("ducos-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=120)
    there = home / ("Scripts" if sys.platform == "win32" else "bin")
    install = [there / "python", "-m", "pip", "install", "-q", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=280)
    if done.returncode:
        pytest.skip(f"no package index: {done.stderr[-200:]}")
    listed = subprocess.run([there / "python", "-m", "pip", "list"], capture_output=True, text=True)
    assert not {"torch", "scipy", "opencv-python"} & set(listed.stdout.split())
    assert sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) < LARGEST_INSTALL
    # In an empty folder, so that nothing of the repository is found.
    tested = subprocess.run(
        [there / "ducos", "selftest"], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
