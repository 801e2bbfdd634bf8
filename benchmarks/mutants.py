"""Are small changes of the code noticed by the tests? One module after another, with cosmic-ray.

    pip install 'ducos[mutants]'
    python benchmarks/mutants.py                    # all modules, hours
    python benchmarks/mutants.py normalise dual
    python benchmarks/mutants.py --sample 60 units   # so many changes, drawn with a fixed seed

Method: a copy of the repository, in which cosmic-ray makes one change at a time (another operator,
number, condition, a decorator or `not` less) and runs the tests of that module. A change that no
test notices has survived; each is printed as a diff.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
MODULES = {
    "normalise": ("normalise.py", "tests/test_normalise.py tests/upscaling/test_ranges.py"),
    "journal": ("batch/journal.py", "tests/batch"),
    "dual": ("training/dual.py", "tests/training/test_dual.py"),
    "units": ("files/units.py", "tests/files/test_depth_files.py"),
    "resize": ("resize.py", "tests/test_resize.py"),
    "losses": ("training/losses.py", "tests/training/test_losses.py"),
    "mixing": ("models/ducos/mixing.py", "tests/models/test_mixing.py tests/models/test_strips.py"),
}
CONFIG = """
[cosmic-ray]
module-path = "src/ducos/{path}"
timeout = {seconds}
excluded-modules = []
test-command = "{python} -m pytest -x -q -n 0 -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
"""


def cosmic_ray(place: Path, *words: str) -> str:
    """What the tool prints; the copy's package comes before the installed one."""
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "OMP_NUM_THREADS": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "cosmic_ray.cli", *words]
    done = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"cosmic-ray {words[0]} ended with {done.returncode}")
    return done.stdout


def draw(session: Path, most: int) -> int:
    """Keep so many changes of a session, always the same ones; how many there were."""
    with sqlite3.connect(session) as rows:
        order = "operator_name, operator_args, occurrence, start_pos_row, start_pos_col"
        jobs = [
            job for (job,) in rows.execute(f"SELECT job_id FROM mutation_specs ORDER BY {order}")
        ]
        left_out = set(jobs) - set(random.Random(0).sample(jobs, min(most, len(jobs))))
        for table in ("mutation_specs", "work_items"):
            rows.executemany(f"DELETE FROM {table} WHERE job_id = ?", [(job,) for job in left_out])
    return len(jobs)


def measure(name: str, seconds: int, sample: int | None) -> None:
    """Changes of one module; prints how many were noticed, and the others."""
    path, tests = MODULES[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "copy")
        skipped = shutil.ignore_patterns(".venv", ".git", "*.pyc", ".mypy_cache")
        shutil.copytree(REPOSITORY, place, ignore=skipped)
        text = CONFIG.format(path=path, seconds=seconds, python=sys.executable, tests=tests)
        (place / "mutants.toml").write_text(text)
        cosmic_ray(place, "init", "mutants.toml", "session.sqlite")
        whole = draw(place / "session.sqlite", sample or sys.maxsize)
        cosmic_ray(place, "baseline", "mutants.toml")  # do the tests pass at all?
        cosmic_ray(place, "exec", "mutants.toml", "session.sqlite")
        rows = [json.loads(line) for line in cosmic_ray(place, "dump", "session.sqlite").split("\n")
                if line]  # fmt: skip
    tested = [result for _, result in rows if result]
    alive = [result for result in tested if result["test_outcome"] == "survived"]
    noticed = len(tested) - len(alive)
    share = 100 * noticed / max(1, len(tested))
    print(f"{name}: {len(tested)} of {whole} changes, {noticed} noticed ({share:.1f} %)")
    for result in alive:
        print(result["diff"])
    sys.stdout.flush()


def main() -> None:
    """The modules that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="|".join(MODULES))
    parser.add_argument("--seconds", type=int, default=300, help="that the tests may take")
    parser.add_argument("--sample", type=int, help="so many changes of a module, not all")
    options = parser.parse_args()
    for name in options.modules or MODULES:
        measure(name, options.seconds, options.sample)


if __name__ == "__main__":
    main()
