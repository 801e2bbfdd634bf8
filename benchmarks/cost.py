"""CPU seconds of models on one 640×480 image, side by side.

Method: one thread; every model runs once to warm up, then the models take turns, so that a busy
machine slows all of them alike; CPU time of the process (time.process_time), median of the rounds.
Weights are random but those of `ducos-tiny`: cost does not depend on them. Ratios are to FDSR, the
strongest small baseline.

    python benchmarks/cost.py [--rounds 5] [--models fdsr,ducos-tiny,fdkn] [--json]
"""

import argparse
import json
import statistics
import time

import torch

from ducos.models import create
from ducos.upscaling import load, parameter_count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default="fdsr,ducos-tiny,fdkn,djf")
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rgb = torch.rand(1, 3, 480, 640)
    low = torch.rand(1, 1, 480 // options.scale, 640 // options.scale)
    models = {
        name: load(name) if name == "ducos-tiny" else create(name).eval()
        for name in options.models.split(",")
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    with torch.inference_mode():
        for turn in range(options.rounds + 1):
            for name, model in models.items():
                started = time.process_time()
                model(rgb, low)
                if turn:
                    seconds[name].append(time.process_time() - started)
    if options.json:
        rows = [
            {"model": n, "parameters": parameter_count(m), "seconds": statistics.median(seconds[n])}
            for n, m in models.items()
        ]
        print(json.dumps({"rows": rows}))
        return
    print(__doc__.split("\n\n")[1])
    reference = statistics.median(seconds.get("fdsr", [float("nan")]))
    print(f"\n{'model':16} {'parameters':>12} {'CPU s':>8} {'/ FDSR':>8}")
    for name, model in models.items():
        median = statistics.median(seconds[name])
        print(f"{name:16} {parameter_count(model):12,} {median:8.3f} {median / reference:8.2f}")


if __name__ == "__main__":
    main()
