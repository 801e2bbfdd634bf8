"""Kill `ducos batch` and `ducos train` at random moments, go on, and compare with one whole run.

    python benchmarks/kill.py                    # 50 kills of each
    python benchmarks/kill.py --kills 10 batch
    python benchmarks/kill.py ray                # batch --engine ray, a cluster for each run

Method: one run to the end gives the reference and its duration. Then the same command is started
and killed (SIGKILL: the whole process group, and whatever else it started, so workers too) after a
random share of that duration, again and again in the same folder until it finishes by itself; then
a new folder. All files of the results must be those of the reference, byte for byte, and nothing
else may lie in the folder. The results of Ray are compared with those of a batch without Ray.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

CONFIG = """
[model]
name = "ducos-compact"
[model.kwargs]
channels = 8
[model.prompt_options]
widths = [8, 8, 8, 8]
blocks = [1, 1, 1, 1]
[data]
train = "shapes:6"
crop = 32
validation_images = 1
[train]
steps = 40
steps_per_epoch = 5
batch_size = 2
rate = 1e-3
validate_every = 20
save_every = 2
"""
OWN = {"journal.jsonl", "journal.damaged"}  # lines in the order of finishing, which may differ
OF_TRAINING = ("final.safetensors", "best.safetensors", "last.safetensors")


def write_recording(folder: Path, frames: int) -> Path:
    rng = np.random.default_rng(0)
    for kind in ("rgb", "depth"):
        (folder / kind).mkdir(parents=True)
    for number in range(frames):
        rgb = rng.integers(0, 255, (240, 320, 3), dtype=np.uint8)
        low = rng.integers(900, 3000, (60, 80)).astype(np.uint16)
        Image.fromarray(rgb).save(folder / "rgb" / f"{number:03d}.png")
        Image.fromarray(low).save(folder / "depth" / f"{number:03d}.png")
    return folder


def batch(place: Path, out: Path) -> list[str]:
    source = place / "recording"
    if not source.exists():
        write_recording(source, 40)
    words = ["batch", str(source), "-o", str(out), "--model", "bicubic", "--preview"]
    return [*words, "--workers", "2", "--shift", "off"]


def ray(place: Path, out: Path) -> list[str]:
    return [*batch(place, out), "--engine", "ray"]


def train(place: Path, out: Path) -> list[str]:
    config = place / "run.toml"
    config.write_text(CONFIG)
    words = ["train", str(config), "-o", str(out), "--threads", "1"]
    return [*words, *(["--resume"] if (out / "last.safetensors").exists() else [])]


def made_by_batch(out: Path) -> dict[str, str]:
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in OWN
    }


def made_by_train(out: Path) -> dict[str, str]:
    there = [path for path in out.iterdir() if path.name in OF_TRAINING or path.name[0] == "."]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in there}


@dataclass(frozen=True)
class Job:
    """command: that is killed. made: digests of what it made. shares: of its duration, between
    which it is killed. reference: the uninterrupted command, if it is another one."""

    command: Callable[[Path, Path], list[str]]
    made: Callable[[Path], dict[str, str]]
    shares: tuple[float, float] = (0.2, 0.7)
    reference: Callable[[Path, Path], list[str]] | None = None


JOBS = {
    "batch": Job(batch, made_by_batch),
    "train": Job(train, made_by_train),
    "ray": Job(ray, made_by_batch, (0.5, 1.0), reference=batch),  # half of it is Ray's start
}


def run(words: list[str], seconds: float | None) -> int:
    """The exit code of a command that is killed after so many seconds."""
    with tempfile.TemporaryDirectory(prefix="kill") as place:  # Ray's sockets need short names
        mark = f"DUCOS_KILLED_RUN={place}"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ducos", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "RAY_TMPDIR": place,
                 "DUCOS_KILLED_RUN": place},
        )  # fmt: skip
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()
        finally:
            kill_marked(mark.encode())


def kill_marked(mark: bytes) -> None:
    """End what a run started and left; Ray's processes have groups of their own."""
    while found := [int(each.parent.name) for each in Path("/proc").glob("[0-9]*/environ")
                    if mark in environment_of(each)]:  # fmt: skip
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)


def environment_of(path: Path) -> list[bytes]:
    """The variables of a process that is there and ours; none of a dead one."""
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []


def measure(name: str, kills: int, seed: int, keep: Path) -> bool:
    """So many kills of one command; prints what came of them."""
    job = JOBS[name]
    rng, started = random.Random(seed), time.monotonic()
    done = begun = writing = rounds = equal = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if job.reference:
            assert run(job.reference(place, place / "other"), None) == 0
        now = time.monotonic()
        assert run(job.command(place, place / "reference"), None) == 0
        duration = time.monotonic() - now
        reference = job.made(place / ("other" if job.reference else "reference"))
        assert reference == job.made(place / "reference")
        while done < kills:
            out, code = place / f"round{rounds}", -signal.SIGKILL
            while code == -signal.SIGKILL:
                limit = rng.uniform(*job.shares) * duration if done < kills else None
                code = run(job.command(place, out), limit)
                done += code == -signal.SIGKILL
                if code == -signal.SIGKILL and out.exists():
                    names = [path.name for path in out.iterdir()]
                    begun += any(not name.startswith(".") for name in names)
                    writing += any(name.startswith(".ducos-") for name in names)
            assert code == 0, f"{name} ended with {code} after {done} kills"
            rounds += 1
            found = job.made(out)
            equal += found == reference
            if found != reference:
                unlike = sorted(dict(found.items() ^ reference.items()))
                print(
                    f"{name}, run {rounds} differs in {', '.join(unlike)}; see {keep}", flush=True
                )
                shutil.copytree(out, keep / f"{name}-{rounds}", dirs_exist_ok=True)
                shutil.copytree(place / "reference", keep / name, dirs_exist_ok=True)
    print(
        f"{name}: {done} kills, {begun} after the first file was written and {writing} within a "
        f"write, in {rounds} runs of {len(reference)} files; {equal} of {rounds} runs equal the "
        f"uninterrupted one byte for byte ({time.monotonic() - started:.0f} s)",
        flush=True,
    )
    return equal == rounds


def main() -> None:
    """All commands, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="|".join(JOBS))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("runs/killed"), help="for what differs")
    options = parser.parse_args()
    how = (options.kills, options.seed, options.keep)
    fine = [measure(name, *how) for name in options.jobs or JOBS]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
