r"""The paper's own network and the released one, trained for minutes each, beside ours.

    python benchmarks/paper_network.py -o runs/paper-network --weights dinov2-s.safetensors \
        --train data/synth --heldout data/heldout [--json docs/results/paper-network.json]

Each network starts from random weights with the same frozen DINOv2-S (from the hub, or by
scripts/convert_dinov2_onnx.py) and the same patches (configs/paper-network.toml); how many steps
each gets follows from what one costs. The score is RMSE relative to bicubic's on crops of held-out
scenes, since the paper's networks take a minute for a whole image. A row is finished when its
weights are there; the same command goes on where it was stopped, and --show tells what there is.
"""

import argparse
import json
from datetime import date
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ducos.data import open_dataset
from ducos.evaluation.results import write_json
from ducos.models import create, load_model, save_model, stored_weights
from ducos.pictures import Curve, curve_panels, write_image
from ducos.training import load_config, train

CONFIG = Path("configs/paper-network.toml")
# Name -> (steps, what differs from the config). About 0.3, 0.75 and 0.06 CPU seconds a step.
ROWS: dict[str, tuple[int, tuple[str, ...]]] = {
    "ducos": (800, ()),
    "ducos-released": (250, ("model.name=ducos-released",)),
    "ducos-compact": (1000, ("model.name=ducos-compact", "train.rate=1e-3")),
}
COMMAND = (
    "python benchmarks/paper_network.py -o OUT --weights DINOV2 --train TRAIN --heldout HELDOUT"
)
CROP, CROPS = 64, 12
METRES = 0.00025  # of a step of stored depth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--weights", default="hub", help="of DINOv2-S")
    parser.add_argument("--train", default="data/synth")
    parser.add_argument("--heldout", default="data/heldout")
    parser.add_argument("--only", choices=list(ROWS), help="this network alone")
    parser.add_argument("--show", action="store_true", help="only what there is, also unfinished")
    parser.add_argument("--keep", type=Path, help="write the weights of `ducos`, .safetensors")
    parser.add_argument("--json", type=Path, help="all curves and figures in one file")
    parser.add_argument("--picture", type=Path, help="the curves as a picture, .png or .jpg")
    options = parser.parse_args()
    torch.set_num_threads(1)
    crops = options.out / "crops"
    if not options.show:
        write_crops(options.heldout, crops)
    for name, (steps, changes) in ROWS.items():
        if options.show or options.only not in (None, name):
            continue
        folder = options.out / name
        settings = [*changes, f"train.steps={steps}", f"train.validate_every={-(-steps // 3)}"]
        settings += [f"train.log_every={max(1, steps // 50)}"]
        settings += [f"train.steps_per_epoch={steps // 15}", f"data.train=synth:{options.train}"]
        settings += [f"data.validation=synth:{crops}", f"data.validation_images={CROPS}"]
        settings += [f"model.prompt_options.weights={options.weights}"]
        if not (folder / "final.safetensors").exists():
            resume = (folder / "last.safetensors").exists()
            train(load_config(CONFIG, settings), folder, quiet=True, device="cpu", resume=resume)
        print(shown(facts(name, folder, steps)), flush=True)
    there = {name: steps for name, (steps, _) in ROWS.items() if (options.out / name).exists()}
    rows = [facts(name, options.out / name, steps) for name, steps in there.items()]
    if options.show:
        print(*map(shown, rows), sep="\n")
    if options.keep:
        keep(options.out / "ducos" / "final.safetensors", options.keep)
    if options.json:
        stated = {
            "run": "paper-network",
            "command": COMMAND,
            "weights": "trained here",
            "digest": "",
        }
        write_json(options.json, {**stated, "date": date.today().isoformat(), "runs": rows})
    if options.picture:
        write_image(options.picture, picture(rows))


def write_crops(heldout: str, folder: Path) -> None:
    """The middles of held-out images, in the layout of rendered pairs."""
    pairs = open_dataset(f"synth:{heldout}")
    folder.mkdir(parents=True, exist_ok=True)
    for index in np.linspace(0, len(pairs) - 1, CROPS).round().astype(int):
        pair = pairs[int(index)]
        top, left = ((n - CROP) // 2 for n in pair.target.shape)
        middle = np.s_[top : top + CROP, left : left + CROP]
        stored = np.where(pair.valid, pair.target / METRES, 0)[middle].round().astype(np.uint16)
        Image.fromarray(stored).save(folder / f"{pair.name}_depth.png")
        colours = (pair.rgb[middle] * 255).round().astype(np.uint8)
        Image.fromarray(colours).save(folder / f"{pair.name}_rgb.png")


def facts(name: str, folder: Path, steps: int) -> dict:
    """What a run has left so far: parameters that learn, figures, curves."""
    curves: dict[str, list[tuple[int, float]]] = {}
    done = 0
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        done = row["step"]
        for key, value in row.items():
            if key.startswith(("reconstruction", "alignment", "multiplier_", "validation_rel")):
                curves.setdefault(key, []).append((done, round(value, 6)))
    last = {key: values[-1][1] for key, values in curves.items() if key.startswith("validation")}
    with torch.device("meta"):
        model = create(name, prompt="dinov2-s")
    prompts = ("prompt.", "depth_anything.")
    learning = sum(p.numel() for n, p in model.named_parameters() if not n.startswith(prompts))
    about = {"name": name, "steps": done, "planned": steps, "parameters": learning}
    return {**about, **last, "curves": curves}


def shown(row: dict) -> str:
    found = [f"×{key} {row.get(f'validation_relative_x{key}', float('nan')):.3f}" for key in (2, 4)]
    return (
        f"{row['name']}: {row['steps']} of {row['planned']} steps, {row['parameters'] / 1e6:.2f} M"
        f" that learn, {', '.join(found)} of bicubic's"
    )


def keep(final: Path, path: Path) -> None:
    """The weights that were learned, in half precision; DINOv2's come from the hub again."""
    model, spec, about = load_model(final)
    learned = {name: tensor.half() for name, tensor in stored_weights(model).items()}
    spec.prompt_options["weights"] = "hub"
    told = {key: about[key] for key in ("steps", "multipliers", "validation", "training_set")}
    about = {**told, "licence": about["licence"], "trained_on": "rendered pairs, 32-pixel patches"}
    save_model(path, spec, learned, about)


def picture(rows: list[dict]) -> np.ndarray:
    """Reconstruction, held-out error, alignment and its multiplier, against the share of a run."""
    panels = {
        "reconstruction": "reconstruction, running mean",
        "validation_relative_rmse": "held-out RMSE / bicubic",
        "alignment": "alignment, running mean",
        "multiplier_alignment": "its multiplier",
    }
    drawn = []
    for key, title in panels.items():
        lines = []
        for row in rows:
            points = row["curves"].get(key, [])
            reach = 0 if key.startswith(("multiplier", "validation")) else len(points) // 12
            values = [value for _, value in points]
            means = [np.mean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]
            shares = [100 * step / row["planned"] for step, _ in points]
            lines.append(Curve(row["name"], list(zip(shares, map(float, means), strict=True))))
        drawn.append((title, lines))
    return curve_panels("", drawn, "% of the run", log="", marks=False)


if __name__ == "__main__":
    main()
