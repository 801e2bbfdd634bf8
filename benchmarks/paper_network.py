r"""The paper's own network and the released one, trained for a minute each, beside ours.

    python benchmarks/paper_network.py -o runs/paper-network --weights dinov2-s.safetensors \
        --train data/synth --heldout data/heldout [--json docs/results/paper-network.json]

Each network starts from random weights with the same frozen DINOv2-S (from the hub, or by
scripts/convert_dinov2_onnx.py) and the same patches (configs/paper-network.toml), and gets about
the same CPU time; the number of steps follows from what one step costs. The score is RMSE relative
to bicubic's on crops of held-out scenes, since the paper's networks take a minute for a whole
image. A row is finished when its weights are there; the same command goes on where it was stopped.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ducos.data import open_dataset
from ducos.models import load_model
from ducos.pictures import Curve, curve_panels, write_image
from ducos.training import load_config, train

CONFIG = Path("configs/paper-network.toml")
# Name -> (steps, what differs from the config). About 0.3, 0.75 and 0.06 CPU seconds a step.
ROWS: dict[str, tuple[int, tuple[str, ...]]] = {
    "ducos": (200, ()),
    "ducos-released": (80, ("model.name=ducos-released",)),
    "ducos-compact": (1000, ("model.name=ducos-compact", "train.rate=1e-3")),
}
CROP, CROPS = 64, 12
METRES = 0.00025  # of a step of stored depth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--weights", default="hub", help="of DINOv2-S")
    parser.add_argument("--train", default="data/synth")
    parser.add_argument("--heldout", default="data/heldout")
    parser.add_argument("--only", choices=list(ROWS), help="this network alone")
    parser.add_argument("--json", type=Path, help="all curves and figures in one file")
    parser.add_argument("--picture", type=Path, help="the curves as a picture, .png or .jpg")
    options = parser.parse_args()
    torch.set_num_threads(1)
    crops = options.out / "crops"
    write_crops(options.heldout, crops)
    rows = []
    for name, (steps, changes) in ROWS.items():
        if options.only not in (None, name):
            continue
        folder = options.out / name
        settings = [*changes, f"train.steps={steps}", f"train.validate_every={-(-steps // 3)}"]
        settings += [f"train.log_every={max(1, steps // 50)}"]
        settings += [f"train.steps_per_epoch={steps // 15}", f"data.train=synth:{options.train}"]
        settings += [f"data.validation=synth:{crops}", f"data.validation_images={CROPS}"]
        settings += [f"model.prompt_options.weights={options.weights}"]
        if not (folder / "final.safetensors").exists():
            started = time.process_time()
            resume = (folder / "last.safetensors").exists()
            train(load_config(CONFIG, settings), folder, quiet=True, device="cpu", resume=resume)
            took = {"train_cpu_s": round(time.process_time() - started, 1)}
            (folder / "took.json").write_text(json.dumps(took))
        rows.append(facts(name, folder, steps))
        print(shown(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
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
    """What a finished run left: parameters that learn, figures, curves."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    model, _, _ = load_model(folder / "final.safetensors")
    frozen = {id(p) for p in model.prompt.parameters()} if model.prompt is not None else set()
    frozen |= {id(p) for n, p in model.named_parameters() if n.startswith("depth_anything.")}
    curves: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for key, value in row.items():
            if key.startswith(("reconstruction", "alignment", "multiplier_", "validation_rel")):
                curves.setdefault(key, []).append((row["step"], round(value, 6)))
    last = {key: values[-1][1] for key, values in curves.items() if key.startswith("validation")}
    learning = sum(p.numel() for p in model.parameters() if id(p) not in frozen)
    took = json.loads((folder / "took.json").read_text())
    return {"name": name, "steps": steps, "parameters": learning, **took, **last, "curves": curves}


def shown(row: dict) -> str:
    at = {key: row[f"validation_relative_x{key}"] for key in (2, 4)}
    return (
        f"{row['name']}: {row['steps']} steps in {row['train_cpu_s']:.0f} CPU s with validation,"
        f" {row['parameters'] / 1e6:.2f} M, ×2 {at[2]:.3f}, ×4 {at[4]:.3f} of bicubic's"
    )


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
            shares = [100 * step / row["steps"] for step, _ in points]
            lines.append(Curve(row["name"], list(zip(shares, map(float, means), strict=True))))
        drawn.append((title, lines))
    return curve_panels("", drawn, "% of the run", log="", marks=False)


if __name__ == "__main__":
    main()
