"""Everything a run needs to go on, in one safetensors file: loading it never runs code from it."""

import json
from pathlib import Path

import torch
from torch import Tensor

from ducos.errors import InputError
from ducos.models import read_tensors, write_tensors

FORMAT = "ducos-1-training"


def save_training(path: Path, groups: dict[str, dict[str, Tensor]], values: dict) -> None:
    """Write everything a run needs to go on: groups of tensors, and plain values as JSON."""
    tensors = {f"{group}/{n}": t for group, named in groups.items() for n, t in named.items()}
    write_tensors(path, tensors, {"format": FORMAT, "values": json.dumps(values)})


def load_training(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict]:
    """Undo `save_training`."""
    tensors, header = read_tensors(path)
    if header.get("format") != FORMAT:
        raise InputError(f"{path} is not a training state; expected the last.safetensors of a run")
    groups: dict[str, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        group, _, rest = name.partition("/")
        groups.setdefault(group, {})[rest] = value
    try:
        return groups, json.loads(header["values"])
    except (KeyError, ValueError, RecursionError):
        raise InputError(f"{path} lacks the values of a training state; it is damaged") from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and counters, flattened to names such as `12.exp_avg`."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{key}": value for index, slots in state.items() for key, value in slots.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Undo `optimizer_tensors`; rates come from the config, not from the file."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
