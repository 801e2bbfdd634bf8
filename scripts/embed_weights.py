"""Puts a trained model into the package: weights with metadata, figures of `ducos selftest`.

    python scripts/embed_weights.py runs/ducos-tiny/final.safetensors
    ducos eval --model ducos-tiny --dataset bench:... --scale 2 ... --out figures
    python scripts/embed_weights.py runs/ducos-tiny/final.safetensors --figures figures/results.json

The second call states what was measured with the embedded file; its tensors stay the same.
"""

import argparse
import json
from pathlib import Path

from ducos.example import LOW, RGB, STORED, scores
from ducos.models.checkpoint import ModelSpec, load_model, save_model, stored_weights
from ducos.upscaling import WEIGHTS, super_resolve

NAME = "ducos-tiny"
PARTS = [
    "start",
    "middle",
    "tof",
    "rms",
    "grain",
    "spoil",
    "soft",
    "sharp",
    "hanging",
    "told",
    "silhouettes",
    "devices",
    "light",
    "cloth",
]
CONFIGS = [
    "configs/tiny-prompt.toml",
    *(f"configs/ducos-tiny-{part}.toml" for part in PARTS),
    "configs/ducos-tiny.toml",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("weights", type=Path, help="final.safetensors of a run")
    parser.add_argument("--pairs", default="2300 rendered indoor pairs, no photographs")
    parser.add_argument("--figures", type=Path, nargs="*", default=[], help="results.json of eval")
    options = parser.parse_args()

    model, spec, about = load_model(options.weights)
    # The number of corrections is part of what was trained: state it, whatever the default becomes.
    spec = ModelSpec(
        spec.name,
        spec.prompt,
        spec.prompt_options,
        {**spec.kwargs, "corrections": getattr(model, "tail").corrections},  # noqa: B009
    )
    stated = {
        "licence": about["licence"],
        "trained_on": options.pairs,
        "configs": CONFIGS,
        "steps": about["steps"],
        "multipliers": about["multipliers"],
        "figures": figures(options.figures),
    }
    embedded = WEIGHTS / f"{NAME}.safetensors"
    save_model(embedded, spec, stored_weights(model), stated)
    expected = {
        name: round(scores(super_resolve(RGB, LOW, unit="mm", model=name))["rmse_cm"], 4)
        for name in ("bicubic", NAME)
    }
    STORED.write_text(json.dumps(expected) + "\n")
    print(f"{embedded.name}: {embedded.stat().st_size / 1e6:.2f} MB; example {expected}")


def figures(files: list[Path]) -> dict[str, dict[str, float]]:
    """Protocol -> "dataset ×scale" -> RMSE of the embedded model."""
    found: dict[str, dict[str, float]] = {}
    for file in files:
        results = json.loads(file.read_text())
        protocol = f"{results['protocol']['name']}@{results['protocol']['id']}"
        for row in results["rows"]:
            if row["model"] == NAME:
                scale = f" x{row['scale']:g}" if row["scale"] else ""
                found.setdefault(protocol, {})[f"{row['dataset']}{scale}"] = round(row["rmse"], 4)
    return found


if __name__ == "__main__":
    main()
