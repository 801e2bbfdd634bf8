"""Throughput of `ducos batch` against the ideal: cores times the rate of one thread.

The ideal is what one process with one thread makes when nothing is read or written: images and maps
are in memory, results are thrown away. The batch reads PNG files and writes PNG files. Batches with
one worker and with all are made in turn, with the ideal measured between them.

Printed by the wall clock, which means something if the machine does nothing else, and by CPU time,
the ideal's per frame over the batch's, which other work hardly changes. The CPU time of a batch is
that of all its processes. "Once running" leaves out what a batch costs once: the start of the
workers and, with `--shift check`, the look at some frames of the recording. It is the difference of
two batches, of a few frames and of all.

    python benchmarks/batch.py [--frames 50] [--workers 2] [--rounds 3] [--model NAME]
                               [--size 640x480] [--shift check]
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image

from ducos.batch import run_batch
from ducos.data.shapes import Shapes
from ducos.degrade.resampling import area
from ducos.files import FramePair, find_pairs
from ducos.upscaling import Options, Upscaler


def write_frames(folder: Path, count: int, size: tuple[int, int]) -> None:
    """Pairs of generated shapes: colour at `size`, depth at a quarter, in millimetres."""
    width, height = size
    shapes = Shapes(count, height, width)
    for kind in ("rgb", "depth"):
        (folder / kind).mkdir()
    for n in range(count):
        pair = shapes[n]
        planes = [torch.tensor(plane)[None, None] for plane in (pair.target, pair.valid)]
        low, _ = area(*planes, None, (height // 4, width // 4))[:2]
        image = np.rint(255 * pair.rgb).astype(np.uint8)
        Image.fromarray(image).save(folder / "rgb" / f"{n:03}.png")
        stored = np.rint(1000 * low[0, 0].numpy()).astype(np.uint16)
        Image.fromarray(stored).save(folder / "depth" / f"{n:03}.png")


def one_thread(folder: Path, options: Options, count: int) -> tuple[float, float]:
    """Seconds per frame of one thread, nothing read, nothing written: wall, CPU."""
    upscaler = Upscaler(options.model, threads=1, shift="off")
    pairs = find_pairs(folder).pairs[:count]
    held = [
        (np.asarray(Image.open(pair.rgb)), np.asarray(Image.open(pair.depth))) for pair in pairs
    ]
    upscaler(*held[0])
    started = time.perf_counter(), time.process_time()
    for image, depth in held:
        upscaler(image, depth)
    ended = time.perf_counter(), time.process_time()
    return (ended[0] - started[0]) / len(held), (ended[1] - started[1]) / len(held)


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@dataclass
class Made:
    """What a batch took. steady: seconds per frame without the first one of each worker."""

    wall: float
    cpu: float
    steady: float


def batch(pairs: Sequence[FramePair], options: Options, workers: int) -> Made:
    """One whole batch into a folder of its own."""
    moments: list[float] = []
    cpu, began = cpu_seconds(), time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        run_batch(
            pairs,
            out,
            options=options,
            workers=workers,
            progress=lambda _: moments.append(time.perf_counter()),
        )
    wall, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    steady = moments[workers:]  # the first call comes before the first frame
    each = (steady[-1] - steady[0]) / max(1, len(steady) - 1)
    return Made(wall, cpu, each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model")
    parser.add_argument("--size", default="640x480")
    parser.add_argument("--shift", default="check", help="as of `ducos batch`; off: nobody looks")
    given = parser.parse_args()
    width, height = (int(side) for side in given.size.split("x"))
    options = Options(model=given.model, shift=given.shift)
    teams = sorted({1, given.workers})
    alone: list[tuple[float, float]] = []
    few: dict[int, list[Made]] = {workers: [] for workers in teams}
    whole: dict[int, list[Made]] = {workers: [] for workers in teams}
    with tempfile.TemporaryDirectory() as place:
        write_frames(Path(place), given.frames, (width, height))
        pairs = find_pairs(place).pairs
        for _ in range(given.rounds):
            for workers in teams:
                alone.append(one_thread(Path(place), options, min(8, given.frames)))
                few[workers].append(batch(pairs[: 4 * workers], options, workers))
                whole[workers].append(batch(pairs, options, workers))
    wall, cpu = (median(each) for each in zip(*alone))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"one thread, in memory: {cpu:.3f} CPU s per frame, {1 / wall:.2f} frames/s by the clock")
    print(f"medians of {given.rounds} rounds, load of the machine at the end {load:.1f}")
    for workers in teams:
        ideal = workers / wall
        made, more = whole[workers], given.frames - 4 * workers
        rate = given.frames / median(each.wall for each in made)
        steady = 1 / median(each.steady for each in made)
        spent = median(each.cpu for each in made) / given.frames
        once = median((m.cpu - f.cpu) / more for m, f in zip(made, few[workers]))
        print(f"{workers} workers, {given.frames} frames:")
        print(f"  CPU   {once:.3f} s per frame once running: {cpu / once:.2f} of the ideal")
        print(f"  CPU   {spent:.3f} s per frame with all that is done once: {cpu / spent:.2f}")
        print(f"  clock {steady:.2f} frames/s once running: {steady / ideal:.2f} of {ideal:.2f}")
        print(f"  clock {rate:.2f} frames/s from start to end: {rate / ideal:.2f}")


if __name__ == "__main__":
    main()
