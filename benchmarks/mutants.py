"""Are small changes of the code noticed by the tests? One module after another, with cosmic-ray.

    pip install 'ducos[mutants]'
    python benchmarks/mutants.py                    # all modules, an hour or more
    python benchmarks/mutants.py normalise dual
    python benchmarks/mutants.py --sample 60 units   # so many changes, drawn with a fixed seed

Method: a copy of the repository, in which one change at a time is made (another operator, number,
condition, a decorator or `not` less; cosmic-ray knows them) and the tests of that module run. A
change that no test notices has survived; each is printed as a diff. The tests run in a fork of a
process that has imported torch and pytest already, since that would take longer than they do.
"""

import argparse
import difflib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
MODULES = {
    "normalise": ("normalise.py", "tests/test_normalise.py tests/upscaling/test_ranges.py"),
    "journal": ("batch/journal.py", "tests/batch/test_journal.py"),
    "dual": ("training/dual.py", "tests/training/test_dual.py"),
    "units": ("files/units.py", "tests/files/test_units.py"),
    "resize": ("resize.py", "tests/test_resize.py"),
    "losses": ("training/losses.py", "tests/training/test_losses.py"),
    "mixing": ("models/ducos/mixing.py", "tests/models/test_mixing.py tests/models/test_modes.py "
               "tests/models/test_strips.py::test_any_size_and_ratio[compact]"),
}  # fmt: skip
IMPORTED = ("torch", "torch._dynamo", "scipy.ndimage", "hypothesis", "PIL", "pytest", "pydantic",
            "cv2", "safetensors.torch", "pytest_timeout")  # fmt: skip
Change = Callable[[], str | None]


def changes(source: str) -> list[Change]:
    """Every change that cosmic-ray can make, always in the same order; each -> the changed code."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    nodes, found = list(ast_nodes(get_ast(source))), []
    for name in sorted(operator_names()):
        if not get_operator(name).arguments():
            operator = get_operator(name)()
            count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            found += [lambda o=operator, n=n: mutate_code(source, o, n) for n in range(count)]
    return found


def noticed(tests: list[str], seconds: float) -> bool:
    """Whether the tests fail, or take too long, in a process of their own."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        import pytest

        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-o",
                   "addopts=", "-m", "not slow"]  # fmt: skip
        os._exit(int(pytest.main([*options, *tests])))
    until = time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.02)
    if ended == (0, 0):
        os.killpg(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)
    return ended[1] != 0


def copy_of_repository(place: Path) -> Path:
    """Where this process and its forks import from, and stand."""
    skipped = shutil.ignore_patterns(".venv", ".git", "*.pyc", ".mypy_cache", "runs", "data")
    shutil.copytree(REPOSITORY, place, ignore=skipped)
    shutil.copytree(REPOSITORY / "src/ducos/data", place / "src/ducos/data", dirs_exist_ok=True)
    sys.dont_write_bytecode = True
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    python = {"PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ.update(one_thread | python)
    sys.path[:0] = [str(place / "src"), str(place)]
    os.chdir(place)
    for name in IMPORTED:
        import_module(name)
    import_module("torch").set_num_threads(1)
    return place


def measure(name: str, place: Path, sample: int | None) -> None:
    """Changes of one module; prints how many were noticed, and the others."""
    path, tests = place / "src/ducos" / MODULES[name][0], MODULES[name][1].split()
    source = path.read_text(encoding="utf-8")
    every = changes(source)
    drawn = random.Random(0).sample(every, min(sample or len(every), len(every)))
    started = time.monotonic()
    if noticed(tests, 600):
        raise SystemExit(f"the tests of {name} fail without any change")
    limit = 20 + 10 * (time.monotonic() - started)
    alive, total = [], 0
    for change in drawn:
        changed = change()
        if changed is None or changed == source:
            continue
        total += 1
        path.write_text(changed, encoding="utf-8")
        if not noticed(tests, limit):
            alive.append(changed)
    path.write_text(source, encoding="utf-8")
    share = 100 * (total - len(alive)) / max(1, total)
    took = (time.monotonic() - started) / (total + 1)
    print(f"{name}: {total} of {len(every)} changes, {total - len(alive)} noticed "
          f"({share:.1f} %), {took:.1f} s each")  # fmt: skip
    for changed in alive:
        lines = difflib.unified_diff(source.split("\n"), changed.split("\n"), name, name, "", "", 1)
        print("\n".join(list(lines)[2:]))
    sys.stdout.flush()


def main() -> None:
    """The modules that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="|".join(MODULES))
    parser.add_argument("--sample", type=int, help="so many changes of a module, not all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = copy_of_repository(Path(folder, "copy"))
        for name in options.modules or MODULES:
            measure(name, place, options.sample)
        os.chdir(REPOSITORY)


if __name__ == "__main__":
    main()
