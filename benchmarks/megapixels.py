"""Cost and memory of one super-resolution against the size of its image.

    python benchmarks/megapixels.py --runtime onnx 0.3 1 3 12

Each size is computed in a process of its own: CPU seconds and peak memory are those of the whole
process, with imports. Images are noise over a plane, from a map at a quarter of each side.
"""

import argparse
import resource
import subprocess
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megapixels", nargs="*", type=float, default=[0.3, 1, 3, 12])
    parser.add_argument("--runtime", default="onnx")
    parser.add_argument("--scale", type=float, default=4)
    parser.add_argument("--tile", default="auto")
    parser.add_argument("--one", action="store_true", help="in this process")
    asked = parser.parse_args()
    if asked.one:
        measure(asked.megapixels[0], asked)
        return
    print("| megapixels | CPU s | of it the call | peak MB |\n|---|---|---|---|")
    for size in asked.megapixels:
        flags = ["--one", "--runtime", asked.runtime, "--scale", str(asked.scale)]
        flags += ["--tile", asked.tile]
        subprocess.run([sys.executable, __file__, str(size), *flags], check=True)


def measure(megapixels: float, asked: argparse.Namespace) -> None:
    import numpy as np

    from ducos import super_resolve

    height = round((megapixels * 1e6 * 3 / 4) ** 0.5)
    width = round(height * 4 / 3)
    random = np.random.default_rng(0)
    image = random.integers(0, 255, (height, width, 3), np.uint8)
    low = (round(height / asked.scale), round(width / asked.scale))
    depth = 2 + np.linspace(0, 1, low[1]) + 0.01 * random.standard_normal(low)
    start = time.process_time()
    super_resolve(
        image, depth, unit="m", shift="off", threads=1, runtime=asked.runtime, tile=asked.tile
    )
    used, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"| {megapixels:g} | {used:.1f} | {used - start:.1f} | {peak / 1024:.0f} |", flush=True)


if __name__ == "__main__":
    main()
