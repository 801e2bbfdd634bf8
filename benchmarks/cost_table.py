"""Parameters, MACs, CPU seconds and peak memory of every model on one 640×480 image, in one run.

Method: one process per model and one thread; random weights, because cost does not depend on them;
a run on a 64×64 image to warm up, then 640×480 from an 80×60 map (×8). CPU seconds are those of the
process, so that a busy machine does not change them much: median of three runs, one run for models
above 50 GMAC. Peak memory is the process's largest resident size, interpreter and torch (about 235
MB) included. MACs are counted on shapes, without computing: convolutions and matrix products only,
so transforms, sorting and filters written in OpenCV count as nothing.

    python benchmarks/cost_table.py -o cost
    python benchmarks/cost_table.py --models fdsr,fdkn --accuracy reproduce/synthetic/table.csv

With --accuracy (a table that `ducos reproduce synthetic` wrote; repeatable) it also draws accuracy
against cost for the models that have weights and were measured there. --cost takes the costs of an
earlier run instead of measuring.
"""

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HEIGHT, WIDTH, SCALE = 480, 640, 8
EXPENSIVE = 50  # GMAC; beyond it, one run must do
WEIGHTS = {"ducos-compact": "ducos-tiny"}  # network -> its embedded weights, in accuracy tables
COLUMNS = ("model", "parameters", "gmac", "cpu_seconds", "peak_mb", "runs", "note")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("cost"), help="folder to write to")
    parser.add_argument("--models", default="", help="comma-separated; default: all")
    parser.add_argument("--limit", type=float, default=900, help="seconds allowed per model")
    parser.add_argument("--cost", type=Path, help="cost.csv of an earlier run, for the plot alone")
    parser.add_argument(
        "--accuracy",
        type=Path,
        action="append",
        default=[],
        help="table.csv of `ducos reproduce synthetic`",
    )
    parser.add_argument("--dataset", default="middlebury", help="of the accuracy plot")
    parser.add_argument("--scale", type=float, default=8, help="of the accuracy plot")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return

    options.out.mkdir(parents=True, exist_ok=True)
    rows = read_costs(options.cost) if options.cost else measure_all(options)
    if options.accuracy:
        draw(rows, options.accuracy, options.dataset, options.scale, options.out)


def read_costs(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return [
            {**row, "cpu_seconds": float(row["cpu_seconds"] or 0)} for row in csv.DictReader(file)
        ]


def measure_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The table, printed and written row by row."""
    from ducos.models import MODELS

    names = options.models.split(",") if options.models else list(MODELS)
    print(__doc__.split("\n\n")[1] + "\n")
    print(f"{'model':22} {'parameters':>12} {'GMAC':>8} {'CPU s':>8} {'peak MB':>8} {'runs':>5}")
    rows = []
    for name in names:
        row = measured_apart(name, options.limit)
        rows.append(row)
        shown = [_shown(row[key], digits) for key, digits in zip(COLUMNS[1:6], (0, 1, 2, 0, 0))]
        print(f"{name:22} {shown[0]:>12} {shown[1]:>8} {shown[2]:>8} {shown[3]:>8} {shown[4]:>5}"
              f"  {row['note']}", flush=True)  # fmt: skip
        with (options.out / "cost.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    print(f"wrote {options.out / 'cost.csv'}")
    return rows


def measured_apart(name: str, limit: float) -> dict[str, Any]:
    """`measure` in a process of its own, so that peak memory is this model's alone."""
    empty = {**dict.fromkeys(COLUMNS), "model": name, "note": ""}
    command = [sys.executable, __file__, "--one", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {**empty, "note": f"took more than {limit:g} s"}
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {**empty, "note": reason}
    return {**empty, **json.loads(done.stdout.splitlines()[-1])}


def measure(name: str) -> dict[str, Any]:
    """One row of the table."""
    import torch

    from ducos.models import create
    from ducos.upscaling import gmac, parameter_count

    torch.set_num_threads(1)
    torch.manual_seed(0)
    note = ""
    try:
        with torch.device("meta"):
            macs: float | None = gmac(create(name).eval(), SCALE)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        macs, note = None, "MACs not countable on shapes alone"
    model = create(name).eval()
    rounds = 1 if macs is not None and macs > EXPENSIVE else 3
    seconds = []
    with torch.inference_mode():
        model(torch.rand(1, 3, 64, 64), torch.rand(1, 1, 8, 8))
        rgb = torch.rand(1, 3, HEIGHT, WIDTH)
        low = torch.rand(1, 1, HEIGHT // SCALE, WIDTH // SCALE)
        for _ in range(rounds):
            started = time.process_time()
            model(rgb, low)
            seconds.append(time.process_time() - started)
    return {
        "parameters": parameter_count(model),
        "gmac": macs,
        "cpu_seconds": round(statistics.median(seconds), 3),
        "peak_mb": round(peak_memory()),
        "runs": rounds,
        "note": note,
    }


def peak_memory() -> float:
    """Largest resident size of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.is_file():  # ru_maxrss would start from the size of the parent process
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (1024 * 1024 if sys.platform == "darwin" else 1024)


def draw(
    rows: list[dict[str, Any]], tables: list[Path], dataset: str, scale: float, out: Path
) -> None:
    """RMSE against CPU seconds, the latter on a logarithmic axis."""
    from ducos.pictures.charts import Point, scatter
    from ducos.pictures.palette import write_image

    measured: dict[str, float] = {}
    for table in tables:
        with table.open(newline="") as file:
            measured |= {
                line["method"]: float(line["rmse"])
                for line in csv.DictReader(file)
                if line["dataset"] == dataset and line["scale"] == f"{scale:g}" and line["rmse"]
            }
    named = [(WEIGHTS.get(row["model"], row["model"]), row["cpu_seconds"]) for row in rows]
    points = [
        Point(name, seconds, measured[name])
        for name, seconds in named
        if name in measured and seconds
    ]
    if not points:
        sys.exit(f"{tables[0]} has no measured row of these models on {dataset} ×{scale:g}")
    picture = scatter(
        f"{dataset} ×{scale:g}: RMSE against CPU seconds at 640×480",
        points,
        x_title="CPU seconds, one thread (logarithmic)",
        y_title="RMSE",
    )
    write_image(out / "accuracy-cost.png", picture)
    print(f"wrote {out / 'accuracy-cost.png'}: {len(points)} models")


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}".replace(",", " ")


if __name__ == "__main__":
    main()
