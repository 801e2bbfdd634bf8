r"""What each use of a prior is worth, at the same small budget for every row, on real priors, too.

    python benchmarks/prior_ablations.py -o runs/prior-ablations --train data/synth \
        --heldout data/heldout --real FOLDER

Two tables. *Uses*: the embedded ducos-tiny and a branch for the prior (configs/prior-ablation.toml)
learn on, and one thing changes per row. *Fusion*: how Correlative Fusion blends and how often can
only be learned anew, so there everything but the small prompt starts from random weights, for more
steps. Every row is scored on the same images: RMSE relative to bicubic's, geometric mean over
images, of held-out renderings with simulated priors and of real images with real ones (FOLDER: see
benchmarks/priors.py); the tables show mean ± standard deviation over the seeds. Seeds differ in
start and in patches, and rows of one seed share both.

Every finished run leaves one JSON file; the same command goes on where it was stopped, and
`--runs 1` stops after one. --table prints what is there.
"""

import argparse
import hashlib
import json
import statistics
import time
from datetime import date
from pathlib import Path

import numpy as np
import torch

from ducos.evaluation.reproduction.priors import RealPair, compared, real_pairs, rmse
from ducos.evaluation.results import write_json
from ducos.training import load_config, train
from ducos.upscaling import Upscaler, version_of
from priors import rendered

CONFIG = Path("configs/prior-ablation.toml")
START = Path("src/ducos/weights/ducos-tiny.safetensors")
NO_CONSTRAINT = "dual.constraints=[]"
FIXED = "dual.preset=fixed"
ALIGN, EDGE = 'dual.constraints=["alignment"]', 'dual.constraints=["edge"]'
ANEW = (
    "model.start=",
    f"model.start_prompt={START}",
    "train.rate=1e-3",
    "train.steps=200",
)
# Table -> row -> what differs from the config.
TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "uses": {
        "no prior": ("model.kwargs.prior=false", NO_CONSTRAINT),
        "Y′ as guide only": ("model.kwargs.prior=guide", NO_CONSTRAINT),
        "CF only": ("model.kwargs.prior=fusion", FIXED, ALIGN),
        "GR only": ("model.kwargs.prior=teacher", FIXED, EDGE),
        "CF + GR": ("model.kwargs.prior=fusion", FIXED),
        "guide + CF": (NO_CONSTRAINT,),
        "guide + CF + GR, `fixed`": (FIXED,),
        "guide + CF + GR, `paper`": ("dual.preset=paper",),
        "guide + CF + GR, `constrained`": (),
    },
    "fusion": {
        "Pearson, 2 iterations": ANEW,
        "addition": (*ANEW, "model.kwargs.fusion=add"),
        "concatenation": (*ANEW, "model.kwargs.fusion=concat"),
        "1 iteration": (*ANEW, "model.kwargs.iterations=1"),
        "3 iterations": (*ANEW, "model.kwargs.iterations=3"),
        "4 iterations": (*ANEW, "model.kwargs.iterations=4"),
    },
}
RATIOS = (8, 16)
COMMAND = (
    "python benchmarks/prior_ablations.py -o OUT --train TRAIN --heldout HELDOUT --real PRIORS"
)
WRONG = "rendered ×16, wrong prior"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--train", default="data/synth", help="rendered pairs to learn from")
    parser.add_argument("--heldout", default="data/heldout", help="other scenes, to score")
    parser.add_argument("--real", type=Path, help="folder of real images with real priors")
    parser.add_argument("--images", type=int, default=10, help="held-out renderings to score")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=10**6, help="stop after so many runs")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    parser.add_argument("--json", type=Path, help="write every run's figures into one file")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.table:
        left = options.runs
        for seed in range(options.seeds):  # every row once before any row twice
            for table, rows in TABLES.items():
                for number, row in enumerate(rows):
                    if left and not file_of(options.out, table, number, seed).exists():
                        run(options, table, number, row, seed)
                        left -= 1
    found = [json.loads(path.read_text()) for path in sorted(options.out.glob("*.json"))]
    if options.json:
        stated = {
            "run": "prior-ablations",
            "command": COMMAND,
            "weights": f"ducos-tiny {version_of('ducos-tiny')}",
        }
        stated["digest"] = hashlib.sha256(START.read_bytes()).hexdigest()[:12]
        write_json(options.json, {**stated, "date": date.today().isoformat(), "runs": found})
    for table, rows in TABLES.items():
        print(as_table(table, list(rows), [each for each in found if each["table"] == table]))


def file_of(out: Path, table: str, number: int, seed: int) -> Path:
    return out / f"{table}-{number}-{seed}.json"


def run(options: argparse.Namespace, table: str, number: int, row: str, seed: int) -> None:
    """Train one row with one seed, score it, write its file."""
    torch.set_num_threads(1)
    file = file_of(options.out, table, number, seed)
    changes = [*TABLES[table][row], f"train.seed={seed}"]
    changes += [f"data.train=synth:{options.train}", f"data.validation=synth:{options.heldout}"]
    folder = file.with_suffix("")
    started = time.process_time()
    final = folder / "final.safetensors"
    if not final.exists():
        train(load_config(CONFIG, changes), folder, quiet=True, device="cpu", threads=1,
              resume=(folder / "last.safetensors").exists())  # fmt: skip
    trained = time.process_time() - started
    images = {"rendered": rendered(options.heldout, options.images)}
    images |= real_pairs(options.real) if options.real else {}
    figures = scored(final, images)
    last = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()][-1]
    fact = {"table": table, "row": row, "seed": seed, "changes": list(TABLES[table][row])}
    fact |= {"figures": figures, "train_cpu_s": round(trained, 1)}
    fact["last"] = {key: value for key, value in last.items() if isinstance(value, int | float)}
    file.write_text(json.dumps(fact, indent=1, ensure_ascii=False) + "\n")
    shown = "  ".join(f"{name} {value:.3f}" for name, value in figures.items())
    print(f"{row}, seed {seed}: {shown} ({trained:.0f} s)", flush=True)


def scored(weights: Path, images: dict[str, list[RealPair]]) -> dict[str, float]:
    """RMSE relative to bicubic's, geometric means: by source of the images and ratio."""
    network, bicubic = Upscaler(weights, shift="off"), Upscaler("bicubic", shift="off")
    takes = network.runtime.takes_prior
    figures = {}
    for source, pairs in images.items():
        for ratio in RATIOS:
            ratios, wrong = [], []
            for number, whole in enumerate(pairs):
                pair, low = compared(whole, ratio)
                truth = pair.depth, pair.valid
                base = rmse(bicubic(pair.rgb, low).depth, *truth)
                given = {"prior": pair.prior} if takes else {}
                ratios.append(rmse(network(pair.rgb, low, **given).depth, *truth) / base)
                if WRONG.startswith(f"{source} ×{ratio},") and takes:
                    other = pairs[(number + 1) % len(pairs)].prior
                    given = {"prior": np.resize(other, pair.depth.shape)}
                    wrong.append(rmse(network(pair.rgb, low, **given).depth, *truth) / base)
            figures[f"{source} ×{ratio}"] = float(np.exp(np.mean(np.log(ratios))))
            if wrong:
                figures[WRONG] = float(np.exp(np.mean(np.log(wrong))))
    return figures


def as_table(title: str, rows: list[str], found: list[dict]) -> str:
    """Mean ± standard deviation over the seeds, as Markdown."""
    columns = list(dict.fromkeys(name for each in found for name in each["figures"]))
    lines = [f"| {title} | {' | '.join(columns)} | seeds |", "|---" * (len(columns) + 2) + "|"]
    for row in rows:
        runs = [each["figures"] for each in found if each["row"] == row]
        cells = [cell([each[name] for each in runs if name in each]) for name in columns]
        lines.append(f"| {row} | {' | '.join(cells)} | {len(runs)} |")
    return "\n".join(lines) + "\n"


def cell(values: list[float]) -> str:
    if not values:
        return "–"
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread}"


if __name__ == "__main__":
    main()
