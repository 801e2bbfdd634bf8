"""Throughput of `ducos batch` against the ideal: cores times the rate of one thread.

The ideal is what one process with one thread makes when nothing is read or written: images and maps
are in memory, results are thrown away. The batch reads PNG files and writes PNG files.

    python benchmarks/batch.py [--frames 50] [--workers 2] [--model NAME] [--size 640x480]
"""

import argparse
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


def one_thread_rate(folder: Path, options: Options, count: int) -> float:
    """Frames per second of one thread, nothing read, nothing written."""
    upscaler = Upscaler(options.model, threads=1, shift=(0, 0))
    pairs = find_pairs(folder).pairs[:count]
    held = [
        (np.asarray(Image.open(pair.rgb)), np.asarray(Image.open(pair.depth))) for pair in pairs
    ]
    upscaler(*held[0])
    started = time.perf_counter()
    for image, depth in held:
        upscaler(image, depth)
    return len(held) / (time.perf_counter() - started)


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
        ideal = given.workers * one_thread_rate(folder, options, min(8, given.frames))
        moments: list[float] = []
        run_batch(
            find_pairs(folder).pairs,
            Path(place) / "out",
            options=options,
            workers=given.workers,
            progress=lambda _: moments.append(time.perf_counter()),
        )
        whole = given.frames / (moments[-1] - moments[0])
        # Without the first frame of each worker, which waits for its start and its model.
        steady = moments[given.workers :]
        rate = (len(steady) - 1) / (steady[-1] - steady[0])
    print(f"ideal {ideal:.2f} frames/s: {given.workers} workers times one thread")
    print(f"batch {rate:.2f} frames/s once running: {rate / ideal:.2f} of the ideal")
    print(f"batch {whole:.2f} frames/s with starting the workers: {whole / ideal:.2f} of the ideal")


if __name__ == "__main__":
    main()
