"""Throughput of `ducos batch` against the ideal: cores times the rate of one thread.

The ideal is what one process with one thread makes when nothing is read or written: images and maps
are in memory, results are thrown away. The batch reads PNG files and writes PNG files.

Printed twice: by the wall clock, which means something if the machine does nothing else; and by CPU
time, the ideal's per frame over the batch's, which other work hardly changes. The CPU time of a
batch is that of all its processes, without what their start takes: two batches, of a few frames and
of all, are subtracted.

    python benchmarks/batch.py [--frames 50] [--workers 2] [--model NAME] [--size 640x480]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ducos.batch import run_batch
from ducos.data.shapes import Shapes
from ducos.degrade.resampling import area
from ducos.files import find_pairs
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
    upscaler = Upscaler(options.model, threads=1, shift=(0, 0))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--model")
    parser.add_argument("--size", default="640x480")
    given = parser.parse_args()
    width, height = (int(side) for side in given.size.split("x"))
    options = Options(model=given.model, shift=(0, 0))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "in"
        folder.mkdir()
        write_frames(folder, given.frames, (width, height))
        few = min(2 * given.workers, given.frames)
        pairs = find_pairs(folder).pairs
        cpu = cpu_seconds()
        run_batch(pairs[:few], Path(place) / "few", options=options, workers=given.workers)
        start = cpu_seconds() - cpu
        before = one_thread(folder, options, min(8, given.frames))
        moments: list[float] = []
        cpu = cpu_seconds()
        run_batch(
            pairs,
            Path(place) / "out",
            options=options,
            workers=given.workers,
            progress=lambda _: moments.append(time.perf_counter()),
        )
        frame_cpu = (cpu_seconds() - cpu - start) / max(1, given.frames - few)
        after = one_thread(folder, options, min(8, given.frames))
        alone, alone_cpu = ((a + b) / 2 for a, b in zip(before, after))
        ideal = given.workers / alone
        whole = given.frames / (moments[-1] - moments[0])
        # Without the first frame of each worker, which waits for its start and its model.
        steady = moments[given.workers :]
        rate = (len(steady) - 1) / (steady[-1] - steady[0])
    print(f"ideal {ideal:.2f} frames/s: {given.workers} workers times one thread")
    print(f"batch {rate:.2f} frames/s once running: {rate / ideal:.2f} of the ideal")
    print(f"batch {whole:.2f} frames/s with starting the workers: {whole / ideal:.2f} of the ideal")
    print(f"CPU {alone_cpu:.3f} s per frame in memory, {frame_cpu:.3f} s in the batch: ", end="")
    print(f"{alone_cpu / frame_cpu:.2f} of the ideal")


if __name__ == "__main__":
    main()
