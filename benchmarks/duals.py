"""What duality is worth: the same short training with constraints weighed in four ways.

Method: the recipe of the embedded weights (configs/ducos-tiny.toml: its start file, pairs and
augmentations), shortened to so many steps of two 128-px patches, once for each way and seed:

    none         no constraints at all
    fixed        constant multipliers (what the authors' trainer does)
    paper        Alg. 1: epsilon 0, so multipliers can only grow
    constrained  a real epsilon each: multipliers rise while it is violated and fall after

Printed for each way, mean and standard deviation over the seeds: every constraint's value over the
last half of the run and its multiplier at the end; then figures of the suite `heldout`, cases of
CASES with `--images` rendered images: RMSE of bicubic's, and to the nearest value on maps of real
cameras. One thread. A run that is finished is not repeated.

    python benchmarks/duals.py -o runs/duals --data data/heldout --captures DIR [--steps 150]
"""

import argparse
import json
import statistics
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ducos.evaluation import figures_by_model, find_suite, score_suite
from ducos.evaluation.results import write_json
from ducos.training import train
from ducos.training.recipe import load_recipe
from ducos.upscaling import Options

WATCHED = {  # constraint -> epsilon of the preset `constrained`: near what training reaches
    "alignment": 0.002,
    "edge": 0.01,
    "consistency": 0.003,
    "flying": 0.55,
    "coverage": 0.03,
}
WAYS = ("none", "fixed", "paper", "constrained")
CASES = ("bicubic_x4", "bicubic_x16", "grainy_x4", "captures_x4")
FIGURES = ("rendered_rmse", "captures_rmse", "captures_near", "harmed")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--config", type=Path, default=Path("configs/ducos-tiny.toml"))
    parser.add_argument("--data", required=True, help="held-out pairs of `ducos synth`")
    parser.add_argument("--captures", required=True, help="folder of captures")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for seed in range(1, options.seeds + 1):  # every way once before any way twice
        for way in WAYS:
            folder = options.out / f"{way}-{seed}"
            trained(options, way, seed, folder)
            found[way].append({**ends(folder), **scored(options, folder)})
            print(f"{way}, seed {seed}: {found[way][-1]}", flush=True)
    table = [header(), *(row(way, runs) for way, runs in found.items())]
    print("\n".join(table))
    write_json(options.out / "duals.json", {"steps": options.steps, "runs": found})


def trained(options: argparse.Namespace, way: str, seed: int, folder: Path) -> None:
    """One run into its folder; every constraint is watched, whatever weighs it."""
    if (folder / "final.safetensors").is_file():
        return
    settings: dict[str, Any] = {
        "data.crop": 128,
        "train.batch_size": 2,
        "train.steps": options.steps,
        "train.steps_per_epoch": 10,
        "train.warmup": 10,
        "train.average": 0.97,
        "train.log_every": 10,
        "train.save_every": 100_000,
        "train.seed": seed,
        "dual.constraints": list(WATCHED),
        "dual.preset": "fixed" if way == "none" else way,
    }
    if way == "none":
        settings |= {f"dual.{name}.multiplier": 0.0 for name in WATCHED}
    if way == "constrained":
        settings |= {f"dual.{name}.epsilon": epsilon for name, epsilon in WATCHED.items()}
    changes = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    train(load_recipe(options.config, changes).stages[0].config, folder, quiet=True, threads=1)


def ends(folder: Path) -> dict[str, float]:
    """Values of the constraints over the last half of a run, and multipliers at its end."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    late = [row for row in rows if row["step"] > rows[-1]["step"] / 2]
    values = {n: statistics.fmean(row[n] for row in late if n in row) for n in WATCHED}
    last = next(row for row in reversed(rows) if "multiplier_edge" in row)
    return {**values, **{f"multiplier_{n}": last[f"multiplier_{n}"] for n in WATCHED}}


def scored(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Figures of the suite for the final weights; measured once."""
    file = folder / "figures.json"
    if not file.is_file():
        suite = find_suite("heldout")
        suite = replace(suite, cases=tuple(case for case in suite.cases if case.name in CASES))
        rows = score_suite(
            str(folder / "final.safetensors"),
            suite,
            data=options.data,
            captures=options.captures,
            images=options.images,
            options=Options(threads=1),
        )
        (figures,) = figures_by_model(rows).values()
        write_json(file, {name: figures[name] for name in FIGURES})
    stored: dict[str, float] = json.loads(file.read_text())
    return stored


def header() -> str:
    names = [*(f"{n} (multiplier)" for n in WATCHED), *FIGURES]
    return f"| way | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}"


def row(way: str, runs: list[dict[str, float]]) -> str:
    ends = {n: statistics.fmean(run[f"multiplier_{n}"] for run in runs) for n in WATCHED}
    cells = [f"{spread(run[n] for run in runs)} ({end:.3f})" for n, end in ends.items()]
    cells += [spread(run[n] for run in runs) for n in FIGURES]
    return f"| {way} | {' | '.join(cells)} |"


def spread(values: Iterable[float]) -> str:
    """Mean ± standard deviation."""
    known = list(values)
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return f"{statistics.fmean(known):.4f} ± {deviation:.4f}"


if __name__ == "__main__":
    main()
