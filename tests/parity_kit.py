"""Parity vectors: networks filled with seeded weights, fed stored inputs, compared with outputs of
the original authors' code. `tests/parity/*.json` says what each vector is."""

import importlib.util
import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

FOLDER = Path(__file__).parent / "parity"
_spec = importlib.util.spec_from_file_location("parity_fill", FOLDER / "fill.py")
fill = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fill)


@cache
def facts(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text())


def arrays(name: str) -> dict[str, Tensor]:
    with np.load(FOLDER / f"{name}.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file.files}


def weights(name: str) -> dict[str, Tensor]:
    """The authors' state dict, every key of it, with seeded values."""
    about = facts(name)
    values = fill.fill_all(about["keys"], about["gain"], about["overrides"])
    return {key: torch.from_numpy(value) for key, value in values.items()}


def assert_equal_keys(module: nn.Module, name: str) -> None:
    """Same names and shapes as the authors' checkpoint, nothing missing, nothing added."""
    ours = {key: list(value.shape) for key, value in module.state_dict().items()}
    assert ours == {key: list(shape) for key, shape in facts(name)["keys"]}


def assert_matches(ours: Tensor, theirs: Tensor, relative: float = 1e-4) -> None:
    """Largest difference below `relative` of the reference's largest value."""
    assert ours.shape == theirs.shape, (tuple(ours.shape), tuple(theirs.shape))
    error = (ours - theirs).abs().max().item()
    assert error <= relative * theirs.abs().max().item(), error
