"""What each prompt costs on one 640×480 image: parameters, MACs, CPU seconds, peak memory.

Method: one process per row, one thread, float32, random weights (cost does not depend on them), no
autograd; once at side 56 to warm up, then the median CPU time (time.process_time) of --rounds runs.
GMAC: multiply-accumulates in billions, counted by torch without computing anything. Memory: largest
resident set of the process above what it held before the prompt was built, weights included.
"own" is the working size the authors chose, a number the shorter side given by `side`.

    python benchmarks/prompt_cost.py [--rounds 3] [--prompts dinov2-s,dinov2-b] [--sides own,252]

By default large prompts run at 252 only: at their own size they take a minute each.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from ducos.prompts import PROMPTS, create_prompt
from ducos.upscaling import parameter_count
from ducos.upscaling.counting import SIZE

ROW = "{:20} {:>5} {:>12} {:>8} {:>7} {:>10}"


def resident_mb(field: str) -> float:
    """VmRSS (now) or VmHWM (largest so far) of this process; elsewhere than Linux the largest."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(s for s in status.read_text().splitlines() if s.startswith(field))
        return int(line.split()[1]) * 1024 / 1e6  # it says kB and means KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measure(name: str, side: int | None, rounds: int) -> dict:
    """One row; meant to run in a process of its own."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    options = {} if side is None else {"side": side}
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        create_prompt(name, **options)(torch.empty(1, 3, *SIZE))
    before = resident_mb("VmRSS")
    prompt = create_prompt(name, tuning="frozen", **options).eval()
    rgb = torch.rand(1, 3, *SIZE)
    seconds = []
    with torch.inference_mode():
        prompt.side = 56  # to warm up; `tiny` knows no working size and takes its own
        prompt(rgb)
        prompt.side = side
        for _ in range(rounds):
            started = time.process_time()
            prompt(rgb)
            seconds.append(time.process_time() - started)
    return {
        "prompt": name,
        "side": side or "own",
        "parameters": parameter_count(prompt),
        "gmac": round(counter.get_total_flops() / 2e9, 1),
        "seconds": round(statistics.median(seconds), 2),
        "memory_mb": round(resident_mb("VmHWM") - before),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompts", default=",".join(PROMPTS))
    parser.add_argument("--sides", default="")
    parser.add_argument("--one", nargs=2, metavar=("PROMPT", "SIDE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, side = options.one
        print(json.dumps(measure(name, None if side == "own" else int(side), options.rounds)))
        return
    print(__doc__.split("\n\n")[1], "\n")
    print(ROW.format("prompt", "side", "parameters", "GMAC", "CPU s", "memory MB"))
    for name in options.prompts.split(","):
        default = "own" if name == "tiny" else "252" if name.endswith("l") else "own,252"
        for side in (options.sides or default).split(","):
            command = [sys.executable, __file__, "--rounds", str(options.rounds)]
            run = subprocess.run(
                [*command, "--one", name, side], stdout=subprocess.PIPE, text=True, check=True
            )
            row = json.loads(run.stdout)
            print(ROW.format(*row.values()), flush=True)


if __name__ == "__main__":
    main()
