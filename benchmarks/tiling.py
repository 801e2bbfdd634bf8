"""Peak memory and time of one 4000×3000 image with a 240×180 depth map, tiled.

Method: the bundled example, enlarged, is written to files; a child process of its own, one thread,
calls super_resolve on them with every step of the network run strip by strip. Memory: largest
resident set of that process (getrusage), Python and torch included; "before" is its largest
resident set when imports and weights are loaded. CPU seconds: user and system time of the child's
call. Tiling does not change the result: the same call on the example at 640×480, whole and tiled,
gives the largest difference in normalised depth.

    python benchmarks/tiling.py [--width 4000] [--height 3000] [--tile auto] [--model ducos-tiny]
                                [--picture crop.png]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ducos import files
from ducos.example import LOW, RGB, TRUTH
from ducos.pictures.palette import write_image
from ducos.upscaling import Result, load, super_resolve

CROP = 800


def largest_mb() -> float:
    """Largest resident set of this process so far; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def write_inputs(folder: Path, width: int, height: int) -> None:
    """rgb.png of this size and low.png of 240×180, both from the bundled example."""
    with Image.open(RGB) as image:
        image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC).save(
            folder / "rgb.png", compress_level=1
        )
    with Image.open(TRUTH) as depth:
        depth.resize((240, 180), Image.Resampling.NEAREST).save(folder / "low.png")


def measure(folder: Path, model: str, tile: str, picture: Path | None) -> dict:
    """One row; meant to run in a process of its own."""
    torch.set_num_threads(1)
    load(model)
    before = largest_mb()
    started, wall = time.process_time(), time.perf_counter()
    result = super_resolve(
        folder / "rgb.png", folder / "low.png", unit="mm", model=model, tile=tile
    )
    seconds, wall = time.process_time() - started, time.perf_counter() - wall
    peak = largest_mb()
    if picture is not None:
        save_crop(result, picture)
    return {"before": before, "peak": peak, "cpu": seconds, "wall": wall}


def save_crop(result: Result, path: Path) -> None:
    """The middle of the result in grey, with its contrast stretched."""
    H, W = result.depth.shape
    top, left = max(0, H // 2 - CROP // 2), max(0, W // 2 - CROP // 2)
    crop = result.depth[top : top + CROP, left : left + CROP]
    darkest, brightest = np.percentile(crop, [1, 99])
    grey = np.clip((crop - darkest) / (brightest - darkest), 0, 1)
    write_image(path, (np.repeat(grey[:, :, None], 3, 2) * 255).astype(np.uint8))


def difference(model: str) -> float:
    """Largest difference between tiled and whole, in normalised depth, on a 640×480 image."""
    low = files.read_depth(LOW, unit="mm")
    whole = super_resolve(RGB, low, model=model, tile="off").depth
    tiled = super_resolve(RGB, low, model=model, tile="1MB").depth
    return float(np.abs(whole - tiled).max() / np.ptp(low.depth[low.valid]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=4000)
    parser.add_argument("--height", type=int, default=3000)
    parser.add_argument("--tile", default="auto", help="as in super_resolve, such as 600MB")
    parser.add_argument("--model", default="ducos-tiny")
    parser.add_argument("--picture", type=Path, help="where to save the middle of the result")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        row = measure(options.child, options.model, options.tile, options.picture)
        print(json.dumps(row))
        return
    print(__doc__.split("\n\n")[1])
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder), options.width, options.height)
        command = [sys.executable, __file__, "--child", folder, *sys.argv[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    row = json.loads(done.stdout.splitlines()[-1])
    print(f"\n{options.width}×{options.height}, {options.model}, tile {options.tile}")
    print(f"peak memory {row['peak']:.0f} MB (before the call {row['before']:.0f} MB)")
    print(f"{row['cpu']:.0f} CPU seconds, {row['wall']:.0f} by the clock")
    print(f"tiled against whole at 640×480: at most {difference(options.model):.1e}")


if __name__ == "__main__":
    main()
