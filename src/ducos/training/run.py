"""The state of a training run: what is saved and picked up again, and the weights for use."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ducos.errors import InputError, one_line
from ducos.models import (
    MODELS,
    Model,
    ModelSpec,
    load_strictly,
    read_tensors,
    save_model,
    stored_weights,
)
from ducos.training.config import Config
from ducos.training.dual import Dual
from ducos.training.state import load_optimizer, load_training, optimizer_tensors, save_training

# What a state raises whose tensors or values are not those of a run.
DAMAGED = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError)


@dataclass
class Run:
    """Everything that changes while training; what `save` writes and `resume` reads."""

    model: Model
    optimizer: torch.optim.Optimizer
    dual: Dual
    average: dict[str, Tensor]
    step: int = 0
    best: float = float("inf")


def load_start(model: Model, config: Config) -> None:
    """Start from other weights, or from another model's prompt, where the config names them."""
    if config.model.start:
        tensors, _ = read_tensors(Path(config.model.start))
        # Weights that were not taught about sensors, or priors, may start a network that will be.
        new = ("hints.", "prior.")
        silent = {n: t for n, t in model.state_dict().items() if n.startswith(new)}
        if config.model.start_prior:
            branch, _ = read_tensors(Path(config.model.start_prior))
            silent |= {n: t for n, t in branch.items() if n.startswith("prior.")}
        load_strictly(model, {**silent, **tensors}, Path(config.model.start))
    if config.model.start_prompt:
        path = Path(config.model.start_prompt)
        tensors, _ = read_tensors(path)
        if model.prompt is None:
            raise InputError(f"{config.model.name} has no prompt to start from {path}")
        prefix = "prompt."
        prompt = {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}
        if not prompt:
            raise InputError(f"{path} holds no prompt; expected tensors named prompt.*")
        load_strictly(model.prompt, prompt, path)


def save(run: Run, path: Path) -> None:
    """Everything needed to go on, in one file, atomically."""
    groups = {
        "model": stored_weights(run.model),
        "optimizer": optimizer_tensors(run.optimizer),
        "average": run.average,
        "rng": {"torch": torch.get_rng_state()},
    }
    values = {"step": run.step, "best": run.best, "dual": run.dual.state_dict()}
    save_training(path, groups, values)


def restore(run: Run, path: Path) -> None:
    """Undo `save`."""
    groups, values = load_training(path)
    try:
        load_strictly(run.model, groups["model"], path)
        load_optimizer(run.optimizer, groups.get("optimizer", {}))
        # The config decides whether an average is kept; a run without one starts it here.
        saved = groups.get("average", {})
        for name, value in run.average.items():
            value.copy_(saved.get(name, run.model.state_dict()[name]))
        torch.set_rng_state(groups["rng"]["torch"])
        run.dual.load_state_dict(values["dual"])
        run.step, run.best = int(values["step"]), float(values["best"])
    except InputError:
        raise
    except DAMAGED as problem:
        reason = one_line(problem)
        raise InputError(
            f"{path} is a damaged training state ({reason}); begin again in another folder, from "
            "the best weights if there are any (model.start)"
        ) from None


def save_weights(
    run: Run, spec: ModelSpec, config: Config, path: Path, score: dict, origin: dict
) -> None:
    """Weights for use: the average where one is kept. origin: as `lineage` tells it."""
    weights = {**stored_weights(run.model), **run.average}
    about = {
        **origin,
        "licence": MODELS[spec.name].licence,
        "prompt_licence": getattr(run.model.prompt, "licence", None),
        "trained_on": config.data.train,
        "steps": run.step,
        "validation": score,
        "multipliers": run.dual.multipliers,
        "config": config.model_dump(),
    }
    save_model(path, spec, weights, about)


def start_average(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights, for `update_average`."""
    return {n: v.clone() for n, v in stored_weights(model).items() if v.is_floating_point()}


def update_average(average: dict[str, Tensor], model: nn.Module, decay: float) -> None:
    """Exponential moving average of the weights."""
    current = model.state_dict()
    for name, value in average.items():
        value.lerp_(current[name], 1 - decay)
