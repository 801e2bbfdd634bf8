"""How large a model is and what it costs, counted without computing anything.

Building every network takes a while, so the numbers are stored in the package (`weights.facts`).
scripts/facts.py writes them; a test counts again.
"""

from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ducos.models import MODELS, create, load_model
from ducos.prompts import PROMPTS, create_prompt
from ducos.upscaling.weights import WEIGHTS

SIZE = (480, 640)


def count_all() -> dict[str, dict[str, Any]]:
    """Facts of every embedded weight file, model and prompt, by name."""
    counted = {}
    for path in sorted(WEIGHTS.glob("*.safetensors")):
        model, spec, about = load_model(path)
        trained = f"{spec.name}, trained on {about.get('trained_on', 'unknown')}"
        counted[path.stem] = {
            **_size_and_cost(model.to("meta")),
            "licence": about["licence"],
            "prompt": spec.prompt,
            "about": trained,
        }
    for name in MODELS:
        counted[name] = count(name)
    for name in PROMPTS:
        with torch.device("meta"):
            prompt = create_prompt(name)
        counted[f"prompt {name}"] = {
            "parameters": parameter_count(prompt),
            "channels": list(prompt.channels),
        }
    return counted


def count(name: str) -> dict[str, Any]:
    """Facts of an entry of MODELS."""
    # DADA's thousands of diffusion steps hold no convolution to count; one of them suffices.
    shorter: dict[str, Any] = {"free_steps": 0, "trained_steps": 1} if name == "dada" else {}
    with torch.device("meta"):
        return _size_and_cost(create(name, **shorter).eval())


def _size_and_cost(model: nn.Module) -> dict[str, Any]:
    return {"parameters": parameter_count(model), "gmac": gmac(model)}


def parameter_count(module: nn.Module) -> int:
    """Numbers in all parameters, trained or not."""
    return sum(p.numel() for p in module.parameters())


def gmac(model: nn.Module, scale: int = 8) -> float | None:
    """Multiply-accumulates in billions of convolutions and products for a 640×480 image; None for
    filters without weights."""
    if not parameter_count(model):
        return None
    H, W = SIZE
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.empty(1, 3, H, W), torch.empty(1, 1, H // scale, W // scale))
    return round(counter.get_total_flops() / 2e9, 1)
