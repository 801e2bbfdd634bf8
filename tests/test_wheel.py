"""The wheel: everything that the package needs at run time, nothing of the repository, small."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ducos.models import read_about
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
    needed = {
        path.relative_to(package).as_posix()
        for path in (package / "ducos").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    inside = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert inside == needed
    about = {name.partition("/")[2]: name for name in names - inside}
    assert {"licenses/LICENSE", "licenses/src/ducos/serve/page/three.LICENSE.txt"} <= set(about)


def test_what_is_embedded_states_its_terms() -> None:
    """Every file that is no code of the project: weights, pictures, libraries of the page."""
    package = REPOSITORY / "src" / "ducos"
    weights = sorted((package / "weights").glob("*.safetensors"))
    assert weights
    for each in weights:
        assert read_about(each)["licence"] == "Apache-2.0"
    beside = (package / "example" / "README.md").read_text()
    assert "released under CC0" in beside
    for each in (package / "example").glob("*.png"):
        assert f"`{each.name}`" in beside
    bundled = (package / "serve" / "page" / "page.js").read_text()
    assert "Holds three.js, MIT: three.LICENSE.txt" in bundled.splitlines()[0]
    assert "MIT License" in (package / "serve" / "page" / "three.LICENSE.txt").read_text()


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
