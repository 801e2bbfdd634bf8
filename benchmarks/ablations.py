"""What each part of the network is worth, at the same small budget for every row.

Method: configs/ablation.toml (400 steps of three 128-px patches from 300 rendered pairs, all ratios
from 2 to 16) with one thing changed per row, several seeds each, one thread. The score is RMSE
divided by bicubic's on twelve images of held-out scenes, mean over the images; the table shows the
mean over the seeds and, behind ±, their standard deviation. A row is finished when its weights
are there: run the command again to go on. With so few steps only differences well above ± mean
anything.

    python benchmarks/ablations.py -o runs/ablations
    python benchmarks/ablations.py -o runs/ablations --rows fusion --seeds 1
    python benchmarks/ablations.py -o runs/ablations --dinov2 dinov2-s.safetensors
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

# Row -> overrides of the config. The first row is the config as it is.
ROWS: dict[str, dict[str, str]] = {
    "reference": {},
    "prompt: none": {"model.prompt": '"none"', "model.start_prompt": '""',
                     "dual.constraints": '["alignment"]'},
    "prompt: tiny, not pre-trained": {"model.start_prompt": '""'},
    "guide: none": {"model.kwargs.guided": "false"},
    "fusion: add": {"model.kwargs.fusion": '"add"'},
    "fusion: concat": {"model.kwargs.fusion": '"concat"'},
    "iterations: 1": {"model.kwargs.iterations": "1"},
    "iterations: 3": {"model.kwargs.iterations": "3"},
    "iterations: 4": {"model.kwargs.iterations": "4"},
    "duals: fixed": {"dual.preset": '"fixed"'},
    "duals: constrained": {"dual.preset": '"constrained"'},
    "duals: none": {"dual.constraints": "[]"},
    "tail: convolution": {"model.kwargs.tail": '"convolution"'},
}  # fmt: skip
SCALES = (4, 8, 16)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--config", type=Path, default=Path("configs/ablation.toml"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", default="", help="only rows that contain this text")
    parser.add_argument("--dinov2", type=Path, help="weights for the row `prompt: dinov2-s`")
    parser.add_argument("--set", action="append", default=[], help="for every row, as in train")
    options = parser.parse_args()
    rows = dict(ROWS)
    if options.dinov2:
        weights = str(options.dinov2.resolve())
        rows["prompt: dinov2-s"] = {
            "model.prompt": '"dinov2-s"',
            "model.prompt_options.weights": json.dumps(weights),
            "model.prompt_options.side": "476",  # of Middlebury's large pictures too
            "model.start_prompt": '""',
            "data.prompt_cache": json.dumps(str(options.out / "dinov2-cache")),
            "dual.constraints": '["alignment"]',  # it has no depth to take edges from
        }
    chosen = [name for name in rows if options.rows in name]
    options.out.mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):  # every row once before any row twice
        for name in chosen:
            run(options, name, rows[name], seed)
            (options.out / "table.md").write_text(table(options, rows, chosen) + "\n")
    print(table(options, rows, chosen))


def folder_of(out: Path, name: str, seed: int) -> Path:
    return out / f"{name.replace(': ', '-').replace(', ', '-').replace(' ', '-')}-{seed}"


def command(config: Path, overrides: dict[str, str], seed: int, more: list[str]) -> list[str]:
    """The words of the `ducos train` command of a row, without its folder."""
    given = [f"{key}={value}" for key, value in {**overrides, "train.seed": str(seed)}.items()]
    return ["train", str(config), *(word for text in given + more for word in ("--set", text))]


def run(options: argparse.Namespace, name: str, overrides: dict[str, str], seed: int) -> None:
    folder = folder_of(options.out, name, seed)
    if (folder / "final.safetensors").exists():
        return
    words = command(options.config, overrides, seed, options.set)
    resume = ["--resume"] if (folder / "last.safetensors").exists() else []
    print(f"{name}, seed {seed}", flush=True)
    subprocess.run(
        [sys.executable, "-m", "ducos", *words, "-o", str(folder), *resume],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def score(folder: Path) -> list[float] | None:
    """Held-out RMSE relative to bicubic per scale, at the end of a run; None before it."""
    log = folder / "metrics.jsonl"
    if not (folder / "final.safetensors").exists():
        return None
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    last = [line for line in lines if "validation_relative_rmse" in line][-1]
    return [last[f"validation_relative_x{scale}"] for scale in SCALES]


def table(options: argparse.Namespace, rows: dict[str, dict[str, str]], chosen: list[str]) -> str:
    lines = ["| row | ×4 | ×8 | ×16 | seeds | `ducos train configs/ablation.toml` with |"]
    lines += ["|---|---|---|---|---|---|"]
    for name in chosen:
        found = [score(folder_of(options.out, name, seed)) for seed in range(options.seeds)]
        scores = [values for values in found if values]
        if not scores:
            continue
        cells = []
        for column in zip(*scores, strict=True):
            spread = f" ± {statistics.stdev(column):.3f}" if len(column) > 1 else ""
            cells.append(f"{statistics.mean(column):.3f}{spread}")
        changes = " ".join(f"--set '{key}={value}'" for key, value in rows[name].items())
        shown = f"`{changes}`" if changes else "nothing"
        lines.append(f"| {name} | {' | '.join(cells)} | {len(scores)} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
