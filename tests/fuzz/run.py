"""Damage files and read them: `python -m tests.fuzz.run --seconds 3600`, which is `make fuzz`.

What counts as found: an exception other than InputError, a message of several lines, a crash, a
read of over 5 s of computing or 240 s by the clock, growth of over 1 GB. The input is kept in
--keep; a small one belongs into tests/fuzz/found afterwards, where the suite reads it each time.
"""

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

from ducos.errors import InputError
from tests.fuzz.mutators import mutated, npz_with
from tests.fuzz.readers import Reader, readers

GROWTH = 1_000_000  # kilobytes


class Slow(BaseException):
    """A read that takes too long; no reader's `except` may swallow it."""


def stop(number: int, frame: object) -> None:
    raise Slow


def tried(reader: Reader, path: Path) -> str | None:
    """What is wrong with the reading of one file, or None."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 5)
    signal.alarm(240)  # on a busy machine a helper process waits for its turn
    try:
        reader.read(path)
    except InputError as problem:
        if "\n" in str(problem) or len(str(problem)) > 1500:
            return f"a message of {len(str(problem))} characters: {str(problem)[:200]!r}"
    except Slow:
        return "it took too long"
    except Exception:
        return traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"it took {growth // 1000} MB" if growth > GROWTH else None


def fuzz_here(name: str, first: int, seconds: float, most: int, folder: Path) -> None:
    """Cases of one reader in this process; each is on disk before it is read."""
    reader = readers()[name]
    signal.signal(signal.SIGALRM, stop)
    seeds = reader.seeds(folder)
    path = folder / "case" / reader.name
    path.parent.mkdir(parents=True, exist_ok=True)
    for seed in seeds:  # what is imported when a reader is first used takes time, too
        path.write_bytes(seed)
        with suppress(InputError):
            reader.read(path)
    done, until = 0, time.monotonic() + seconds
    with (folder / "said").open("w", buffering=1) as said:
        for number in range(first, first + most):
            if time.monotonic() > until:
                break
            rng = random.Random(f"{name} {number}")
            seed = rng.choice(seeds)
            inside = reader.name.endswith(".npz") and rng.random() < 0.5
            path.write_bytes(npz_with(seed, rng) if inside else mutated(seed, rng))
            (folder / "number").write_text(str(number))
            if (trouble := tried(reader, path)) is not None:
                said.write(json.dumps({"number": number, "trouble": trouble}) + "\n")
            done = number + 1 - first
        said.write(json.dumps({"done": done}) + "\n")


def in_a_fork(name: str, first: int, seconds: float, most: int, folder: Path) -> int:
    """The same in a process of its own, which has all imports already: how it ended."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            fuzz_here(name, first, seconds, most, folder)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fuzz(name: str, first: int, seconds: float, most: int, keep: Path) -> tuple[int, list[str]]:
    """Cases of one reader, whatever becomes of the process: how many, and what was found."""
    count, found, until = 0, [], time.monotonic() + seconds
    while count < most and time.monotonic() < until:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            left = until - time.monotonic()
            code = in_a_fork(name, first + count, left, most - count, place)
            report = place / "said"
            lines = report.read_text().splitlines() if report.exists() else []
            said = [json.loads(line) for line in lines]
            for each in said:
                if "trouble" in each:
                    found.append(f"{name}, case {each['number']}: {each['trouble']}")
                    save(name, each["number"], place, keep)
            if said and "done" in said[-1]:
                return count + said[-1]["done"], found
            at = place / "number"
            if not at.exists():
                return count, [*found, f"{name}: the fuzzer itself did not start"]
            number = int(at.read_text())
            found.append(f"{name}, case {number}: the process ended with {code}")
            save(name, number, place, keep)
            count = number + 1 - first
    return count, found


def save(name: str, number: int, folder: Path, keep: Path) -> None:
    """Make the case again by its number, and keep it."""
    reader, rng = readers()[name], random.Random(f"{name} {number}")
    seed = rng.choice(reader.seeds(folder))
    inside = reader.name.endswith(".npz") and rng.random() < 0.5
    keep.mkdir(parents=True, exist_ok=True)
    words = name.replace(" ", "-").replace("/", "-")
    target = keep / f"{words}-{number}{Path(reader.name).suffix}"
    target.write_bytes(npz_with(seed, rng) if inside else mutated(seed, rng))


def main() -> None:
    """All readers in turn, each for its share of the time; the slow ones, which get more, first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="of all readers together")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--most", type=int, default=10**9, help="cases of a reader")
    parser.add_argument("--only", nargs="*", default=[], help="names of readers")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    options = parser.parse_args()
    chosen = [readers()[name] for name in options.only or readers()]
    names = sorted(options.only or readers(), key=lambda name: -readers()[name].shares)
    total = []
    for name in names:
        seconds = options.seconds * readers()[name].shares / sum(each.shares for each in chosen)
        count, found = fuzz(name, options.first, seconds, options.most, options.keep)
        print(f"{name}: {count} files, {len(found)} found", *found, sep="\n  ", flush=True)
        total += found
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS") != "1":  # libraries read it when they are imported
        os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "tests.fuzz.run", *sys.argv[1:]])
    main()
