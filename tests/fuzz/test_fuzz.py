"""The short run of the fuzzer, and all that the long one has ever found."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.mutators import mutated, npz_with
from tests.fuzz.readers import HERE, readers
from tests.fuzz.run import stop, tried
from tests.places import REPOSITORY

FOUND = sorted((HERE / "found").iterdir())


def cases_of(name: str) -> int:
    """Fewer where each costs a process, or a network."""
    reader = readers()[name]
    if reader.shares > 1:
        return 3
    return 12 if name == "weights" or reader.child else 100


@pytest.mark.parametrize("name", readers())
def test_damaged_files_give_one_sentence(name: str, tmp_path: Path) -> None:
    """Always the same cases, so that none of them crashes this process today and not tomorrow."""
    reader = readers()[name]
    seeds = reader.seeds(tmp_path)
    former = signal.signal(signal.SIGALRM, stop)
    try:
        path = tmp_path / "case" / reader.name
        path.parent.mkdir(exist_ok=True, parents=True)
        for number in range(cases_of(name)):
            rng = random.Random(f"{name} {number}")
            seed = rng.choice(seeds)
            inside = reader.name.endswith(".npz") and rng.random() < 0.5
            path.write_bytes(npz_with(seed, rng) if inside else mutated(seed, rng))
            assert tried(reader, path) is None, f"case {number}"
    finally:
        signal.signal(signal.SIGALRM, former)


def long_run(*options: str, place: Path) -> str:
    # A test before may have told this process's children to import nothing from their folder.
    with_tests = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    with_tests["PYTHONPATH"] = str(REPOSITORY)
    words = [sys.executable, "-m", "tests.fuzz.run", "--keep", str(place), "--seconds", "60"]
    done = subprocess.run(
        [*words, *options], cwd=REPOSITORY, env=with_tests, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout


def test_the_long_run_is_of_processes_of_their_own(tmp_path: Path) -> None:
    told = long_run("--only", "recording mkv", "journal", "--most", "3", place=tmp_path)
    assert told == "recording mkv: 3 files, 0 found\njournal: 3 files, 0 found\n"


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_was_found_once_stays_harmless(path: Path, tmp_path: Path) -> None:
    """By every reader that takes files of this ending."""
    fitting = [r for r in readers().values() if Path(r.name).suffix in (path.suffix, ".bin")]
    former = signal.signal(signal.SIGALRM, stop)
    try:
        for reader in fitting:
            case = tmp_path / reader.name
            case.write_bytes(path.read_bytes())
            assert tried(reader, case) is None
    finally:
        signal.signal(signal.SIGALRM, former)
    assert fitting


def test_the_fuzzer_finds_what_it_is_for(tmp_path: Path) -> None:
    """A reader that is not ours: numpy's own raises what it likes."""
    from tests.fuzz import run
    from tests.fuzz.readers import Reader

    def careless(path: Path) -> None:
        raise KeyError(path.read_bytes()[:4])

    path = tmp_path / "a"
    path.write_bytes(b"abcd")
    assert "KeyError" in str(run.tried(Reader("a", careless, lambda folder: [b""]), path))
