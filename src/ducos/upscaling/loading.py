"""Models ready for use, on their device: each is loaded once and kept."""

import os
from functools import lru_cache
from pathlib import Path
from threading import Lock

import torch
from torch import nn

from ducos.errors import InputError
from ducos.models import create, load_model
from ducos.upscaling.options import check_device
from ducos.upscaling.weights import default_model, find_weights

_one_at_a_time = Lock()  # two threads that ask for the same model get the same


def load(
    name: str | os.PathLike[str] | None = None,
    *,
    device: str | torch.device = "cpu",
    accept_noncommercial: bool = False,
) -> nn.Module:
    """A model ready for use: an embedded one, one without weights, or a weight file's path.

    accept_noncommercial: whether its prompt may need weights that forbid commercial use.
    """
    place = device_of(device)
    path = find_weights(name)
    with _one_at_a_time:
        if path is None:
            return _without_weights(default_model() if name is None else os.fspath(name))
        return _of_file(path, path.stat().st_mtime_ns, place, accept_noncommercial)


def device_of(name: str | torch.device) -> torch.device:
    """The device of a name; "auto" is a GPU if there is one."""
    if isinstance(name, torch.device):
        return name
    check_device(name)
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next((kind for kind, there in has.items() if there), "cpu"))
    kind = name.partition(":")[0]
    if not has.get(kind, True):
        raise InputError(f"this computer has no {kind} that torch can use; pass device cpu or auto")
    return torch.device(name)


def _without_weights(name: str) -> nn.Module:
    model = create(name)
    if any(True for _ in model.parameters()):  # a network from outside the package
        raise InputError(f"{name} is a network: train it and give its .safetensors file")
    return model.eval()


@lru_cache(maxsize=4)
def _of_file(
    path: Path, changed: int, device: torch.device, accept_noncommercial: bool
) -> nn.Module:
    """Weight files are kept in memory until they change on disk."""
    return load_model(path, accept_noncommercial=accept_noncommercial)[0].to(device)
