"""What there is to choose from: models and prompts with size, cost, licence and description."""

from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ducos.models import MODELS, create, load_model
from ducos.prompts import PROMPTS, create_prompt
from ducos.upscaling.upscaler import WEIGHTS

SIZE = (480, 640)


def parameter_count(module: nn.Module) -> int:
    """Numbers in all parameters, trained or not."""
    return sum(p.numel() for p in module.parameters())


def model_rows() -> list[dict]:
    """One row per model: name, parameters, GMAC for a 640×480 image, licence of weights, about.

    Embedded weight files come first; they are ready for use.
    """
    rows = []
    for path in sorted(WEIGHTS.glob("*.safetensors")):
        model, spec, about = load_model(path)
        text = f"{spec.name}, embedded weights; trained on {about.get('trained_on', 'unknown')}"
        rows.append(_row(path.stem, model.to("meta"), about["licence"], spec.prompt, text))
    for name, entry in MODELS.items():
        # DADA's thousands of diffusion steps hold no convolution to count; one of them suffices.
        shorter: dict[str, Any] = {"free_steps": 0, "trained_steps": 1} if name == "dada" else {}
        with torch.device("meta"):
            model = create(name, **shorter).eval()
        rows.append(_row(name, model, entry.licence, entry.prompt, entry.about))
    return rows


def _row(name: str, model: nn.Module, licence: str, prompt: str | None, about: str) -> dict:
    return {
        "name": name,
        "parameters": parameter_count(model),
        "gmac": gmac(model),
        "licence": licence,
        "prompt": prompt,
        "about": about,
    }


def prompt_rows() -> list[dict]:
    """One row per prompt: name, parameters, channels of its features, licence of weights, about."""
    rows = []
    for name, entry in PROMPTS.items():
        with torch.device("meta"):
            prompt = create_prompt(name)
        rows.append(
            {
                "name": name,
                "parameters": parameter_count(prompt),
                "channels": list(prompt.channels),
                "licence": entry.licence,
                "about": entry.about,
            }
        )
    return rows


def gmac(model: nn.Module, scale: int = 8) -> float | None:
    """Multiply-accumulates in billions of convolutions and products for a 640×480 image, counted
    without computing anything; None for filters without weights."""
    if not parameter_count(model):
        return None
    H, W = SIZE
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.empty(1, 3, H, W), torch.empty(1, 1, H // scale, W // scale))
    return round(counter.get_total_flops() / 2e9, 1)
