"""CPU seconds of models on one 640×480 image, side by side: the network alone, and all around it.

Method: every model runs once to warm up, then the models take turns, so that a busy machine slows
all of them alike; CPU time of the process (time.process_time), least of the rounds, because what
others do can only add to it. `super_resolve` is called on a colour image and a map
(the bundled time-of-flight example, holes filled) and checks for a shift, as
by default; "check off" is without. Weights are random but those of ducos: cost does not depend on
them. Ratios are to FDSR, the strongest small baseline.

    python benchmarks/cost.py [--rounds 5] [--threads 1] [--scale 8] [--models fdsr,ducos-tiny]

A name may say its runtime, as in `ducos-tiny:onnx`; without one it is torch.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ducos import example
from ducos.files import read_colour, read_depth
from ducos.models import create
from ducos.runtime import PLAIN, open_network
from ducos.sampling import area, fill_holes
from ducos.upscaling import Upscaler, find_weights, load, parameter_count

USUAL = "ducos-tiny:onnx,ducos-tiny,fdsr,fdkn,guided-filter,bicubic,bicubic:onnx"
EMBEDDED = ("ducos-tiny", "ducos-small")
COLUMNS = ("network", "super_resolve", "check off")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=USUAL)
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    torch.manual_seed(0)
    image = read_colour(example.RGB)
    depth = read_depth(example.PAIRS["tof"].depth, "mm").depth
    size = (image.shape[0] // asked.scale, image.shape[1] // asked.scale)
    low = np.where(depth > 0, depth, 2).astype(np.float32)
    low = area(low, size) if size[0] < low.shape[0] else low
    ways = {name: calls(name, image, low, asked.threads) for name in asked.models.split(",")}
    seconds: dict[tuple[str, str], list[float]] = {}
    for turn in range(asked.rounds + 1):
        for name, (_, called) in ways.items():
            for column, call in zip(COLUMNS, called, strict=True):
                started = time.process_time()
                call()
                if turn:
                    used = time.process_time() - started
                    seconds.setdefault((name, column), []).append(used)
    rows = [
        {"model": name, "parameters": count, "seconds": min(seconds[name, COLUMNS[0]])}
        | {column: min(seconds[name, column]) for column in COLUMNS}
        for name, (count, _) in ways.items()
    ]
    if asked.json:
        print(json.dumps({"threads": asked.threads, "scale": asked.scale, "rows": rows}))
        return
    show(rows, asked.threads, low.shape)


def calls(
    name: str, image: np.ndarray, low: np.ndarray, threads: int
) -> tuple[int, list[Callable[[], Any]]]:
    """Its parameters, and what is measured: one function for each of COLUMNS.

    image: (H, W, 3); low: (h, w), metres without holes.
    """
    model, _, runtime = name.partition(":")
    embedded = model in EMBEDDED
    if runtime == "onnx":
        upscaler = Upscaler(model, runtime="onnx", threads=threads)
        network = alone(model, image, low, threads)
        count = parameter_count(load(model)) if embedded else 0
    else:
        module = load(model) if embedded else create(model).eval()
        upscaler = Upscaler(module)
        network = in_torch(module, image, low)
        count = parameter_count(module)
    return count, [
        network,
        lambda: upscaler(image, low, unit="m"),
        lambda: upscaler(image, low, unit="m", shift="off"),
    ]


def in_torch(model: torch.nn.Module, image: np.ndarray, low: np.ndarray) -> Callable[[], Any]:
    rgb = torch.tensor(image).permute(2, 0, 1)[None].contiguous()
    given = torch.tensor((low - low.min()) / np.ptp(low))[None, None]

    def call() -> None:
        with torch.inference_mode():
            model(rgb, given)

    return call


def alone(name: str, image: np.ndarray, low: np.ndarray, threads: int) -> Callable[[], Any]:
    """The network on onnxruntime."""
    planes = np.ascontiguousarray(np.moveaxis(image, -1, 0))
    given, trust = (low - low.min()) / np.ptp(low), np.ones_like(low)
    weights = None if name in PLAIN else find_weights(name)
    if weights is None:
        return lambda: PLAIN[name](given, image.shape[:2])
    network = open_network(weights, threads)
    filled = fill_holes(given, trust)
    return lambda: network(planes, filled.copy(), trust, noise=0.001, told={})


def show(rows: list[dict[str, Any]], threads: int, low: tuple[int, ...]) -> None:
    print(f"640×480 from {low[1]}×{low[0]}, threads: {threads}; CPU s, in brackets of FDSR\n")
    print("| | parameters | " + " | ".join(COLUMNS) + " |\n|---|---|" + "---|" * len(COLUMNS))
    reference = next((row for row in rows if row["model"] == "fdsr"), None)
    for row in rows:
        cells = [
            f"{row[c]:.3f}" + (f" ({row[c] / reference[c]:.2f})" if reference else "")
            for c in COLUMNS
        ]
        print(f"| {row['model']} | {row['parameters']:,} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
