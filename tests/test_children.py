"""A recording may bring a `numpy.py`: no process of ours runs code of the current folder."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ducos
from ducos.children import environment, safe_path
from tests.batch.test_batch import write_folder

TRAPS = ("numpy", "torch", "json", "PIL", "OpenEXR", "tifffile", "socket", "ducos", "sitecustomize")


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A folder with one pair, and with modules that leave a trace when they are executed."""
    folder = write_folder(tmp_path / "recording", 1)
    for name in TRAPS:
        trap = f"import os\nopen({str(tmp_path)!r} + '/ran-' + __name__ + str(os.getpid()), 'w')\n"
        (folder / f"{name}.py").write_text(trap + "raise SystemExit('trapped')\n")
    return folder


def run(folder: Path, *command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python as the installed command `ducos` starts it, which has no current folder either."""
    return subprocess.run(
        [sys.executable, "-P", *map(str, command)],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


def traces(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.glob("ran-*"))


def test_batch_runs_nothing_of_the_folder(trapped: Path) -> None:
    """Neither the command nor its workers."""
    done = run(
        trapped, "-m", "ducos", "batch", ".", "-o", "out", "--model", "bicubic", "--workers", 1
    )
    assert (traces(trapped), done.returncode) == ([], 0), done.stderr
    assert (trapped / "out/000.png").is_file()


@pytest.mark.slow
def test_the_workers_of_a_cluster_run_nothing_of_the_folder(trapped: Path) -> None:
    """Ray adds the current folder of whoever starts it to the path of its workers."""
    command = ["-m", "ducos", "batch", ".", "-o", "out", "--model", "bicubic", "--workers", 1]
    done = run(trapped, *command, "--engine", "ray")
    assert (traces(trapped), done.returncode) == ([], 0), done.stderr
    assert (trapped / "out/000.png").is_file()


def test_the_server_and_its_workers_run_nothing_of_the_folder(trapped: Path) -> None:
    program = """
import asyncio
from ducos.serve.pool import Pool, Task
from ducos.serve.settings import Settings
async def look():
    pool = Pool(Settings(models={"bicubic": "bicubic"}))
    await pool.start()
    task = await pool.submit(Task({"task": "doctor", "folder": ".", "options": {}}))
    try:
        await task.answer
    except Exception as problem:
        print("answered:", problem)
    await pool.close()
asyncio.run(look())
"""
    done = run(trapped, "-c", program)
    assert (traces(trapped), done.returncode) == ([], 0), done.stderr
    assert "answered: " in done.stdout


def test_python_m_forgets_the_folder_before_libraries(trapped: Path) -> None:
    """Without -P Python itself puts the folder first; only what is imported later can be kept."""
    for name in ("json", "socket", "ducos", "sitecustomize"):
        (trapped / f"{name}.py").unlink()
    command = [sys.executable, "-m", "ducos", "upscale", "rgb/000.png", "depth/000.png"]
    command += ["-o", "sharp.png", "--model", "bicubic"]
    done = subprocess.run(command, cwd=trapped, capture_output=True, text=True, timeout=240)
    assert (traces(trapped), done.returncode) == ([], 0), done.stderr


def test_the_trial_of_half_precision_runs_nothing_of_the_folder(trapped: Path) -> None:
    program = "from ducos.training.processes import half_precision_runs as r; print(r())"
    done = run(trapped, "-c", program)
    assert traces(trapped) == []
    assert done.stdout.strip() in ("True", "False"), done.stderr


def test_the_scene_generator_runs_nothing_of_the_folder(trapped: Path) -> None:
    """With or without Blender: its worker imports numpy first of all."""
    program = "from ducos.synth.generate import _render_scene as r; from pathlib import Path\n"
    program += "from ducos.synth.worker import Job\n"
    program += "print(r(Path('.'), Job(1, 0, (8, 8), '', None)))"
    done = run(trapped, "-c", program)
    assert traces(trapped) == []
    assert "exit code" in done.stdout or "[]" in done.stdout, done.stderr


def test_readers_in_a_child_run_nothing_of_the_folder(trapped: Path) -> None:
    """Also where the parent's own path begins with the current folder, as in a notebook."""
    from ducos.files import write_depth

    write_depth(trapped / "depth.exr", np.ones((4, 4), np.float32))
    program = "import sys, ducos.files as f; f.read_depth; sys.path.insert(0, '')\n"
    program += "print(f.read_depth('depth.exr').depth.sum())"
    done = run(trapped, "-c", program)
    assert (traces(trapped), done.stdout.strip()) == ([], "16.0"), done.stderr


def test_children_start_in_one_way_only() -> None:
    """`children` alone knows where the interpreter is, so nobody starts it without a safe path."""
    package = Path(ducos.__file__).parent
    for path in package.rglob("*.py"):
        if path.name != "children.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
            assert "executable" not in names, f"{path} starts Python by itself; see ducos.children"


def test_what_a_child_inherits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), "/usr/lib/x"])
    assert safe_path() == ["/usr/lib/x", str(Path(ducos.__file__).parents[1])]
    for name in ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONHASHSEED"):
        monkeypatch.setenv(name, "7")
    told = environment({"OMP_NUM_THREADS": "1"})
    assert {name for name in told if name.startswith("PYTHON")} >= {"PYTHONHASHSEED"}
    assert not {"PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT"} & told.keys()
    assert (told["PYTHONSAFEPATH"], told["OMP_NUM_THREADS"]) == ("1", "1")
