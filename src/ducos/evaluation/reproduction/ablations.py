"""Tables besides accuracy: how the variants of an ablation are trained, what each prompt costs."""

import shlex
import time

import torch
from torch import nn

from ducos.errors import InputError
from ducos.evaluation import published
from ducos.evaluation.reproduction.recipes import RECIPES
from ducos.evaluation.reproduction.report import Plain
from ducos.models import create
from ducos.prompts import create_prompt
from ducos.upscaling import gmac, parameter_count


def training_commands(name: str) -> Plain:
    """How each network of an ablation is trained; its weights then come back with --weights."""
    recipe = RECIPES[name]
    rows = []
    for variant, settings in (recipe.variants or {}).items():
        command = ["ducos", "train", "configs/paper.toml", "-o", f"runs/{name}/{variant}"]
        foundation = not {"model.prompt=none", "model.prompt=tiny"} & set(settings)
        prompt = ("model.prompt_options.weights=FILE",) if foundation else ()
        for setting in (*recipe.training, *settings, *prompt):
            command += ["--set", setting]
        rows.append([variant, shlex.join(command)])
    weights = f"--weights NAME=runs/{name}/NAME/best.safetensors"
    title = f"To train, and then to score with `ducos reproduce {name} {weights}`"
    return Plain(title, ["variant", "command"], rows)


def prompt_table(timed: bool) -> Plain:
    """Parameters and MACs of the released network with each prompt, beside the paper's."""
    header = ["prompt", "printed as", "parameters M", "paper M", "difference M", "GMAC 640×480"]
    header += ["paper ms"] + (["prompt CPU s"] if timed else [])
    rows = []
    for row in published.raw("prompt_cost"):
        network = released_network(row["prompt"])
        millions = parameter_count(network) / 1e6
        try:
            macs = f"{gmac(network):.1f}"
        except InputError:  # the released adapter joins maps of one size; DepthFormer's differ
            macs = "–"
        printed = float(row["parameters_m"])
        cells = [row["prompt"], row["printed_as"], f"{millions:.2f}", f"{printed:.2f}"]
        cells += [f"{millions - printed:+.2f}", macs, row["milliseconds"]]
        rows.append(cells + ([f"{prompt_seconds(row['prompt']):.2f}"] if timed else []))
    return Plain("Size and cost with each prompt (random weights)", header, rows)


def released_network(prompt: str) -> nn.Module:
    """The authors' network with this prompt, as shapes only: enough to count."""
    with torch.device("meta"):
        return create("ducos-released", prompt=prompt).eval()


def prompt_seconds(name: str) -> float:
    """CPU seconds of one prompt alone on one 640×480 image; random weights cost the same."""
    prompt = create_prompt(name).eval()
    rgb = torch.rand(1, 3, 480, 640)
    with torch.inference_mode():
        started = time.process_time()
        prompt(rgb)
        return time.process_time() - started
