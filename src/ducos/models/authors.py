"""An authors' published checkpoint -> the state dict of our network of the same method.

Files may be pickles written by torch (``.pth``, ``.pt``, or no suffix at all), MATLAB files with a
MatConvNet network (v5, or v7.3 which is HDF5), or safetensors. Their first bytes decide, not their
name. No file can run code: pickles go through torch's restricted reader, and one that needs more
than tensors, containers and numbers is refused.

The result has exactly our names and shapes, or there is an `InputError` that says what differs.
"""

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import torch
from torch import Tensor

from ducos.errors import InputError, needed
from ducos.models import create
from ducos.models.baselines import djf
from ducos.models.checkpoint import load_strictly, read_tensors, stored_weights

h5py = needed("h5py", "train")

State = dict[str, Tensor]


def convert(method: str, path: Path) -> State:
    """Read a checkpoint of this method's authors as the state dict of our network.

    Build the network with ``create(method, **arguments(method, state))``.

    Args:
        method: name in `models.MODELS`.
        path: the file as its authors published it, or a safetensors copy of it.
    """
    path = Path(path)
    state = _without_parallel_prefix(_read(path))
    if any(name.startswith("layers.") for name in state):
        state = _from_matconvnet(method, state, path)
    model = create(method, **arguments(method, state))
    load_strictly(model, state, path)
    return stored_weights(model)


def arguments(method: str, state: State) -> dict[str, Any]:
    """Keyword arguments that the network of this state dict was built with.

    They follow from the tensors' shapes; a state dict of something else gets none.
    """
    return ARGUMENTS[method](state) if method in ARGUMENTS else {}


def _djf_arguments(state: State) -> dict[str, Any]:
    filters = djf.filters_of(state)
    return {"filters": filters} if filters else {}


def _dornet_arguments(state: State) -> dict[str, Any]:
    # The released TOFDSR checkpoints were stripped of the branch that only training uses.
    return {"training_branch": any(name.startswith("Dab.") for name in state)}


ARGUMENTS: dict[str, Callable[[State], dict[str, Any]]] = {
    "djf": _djf_arguments,
    "djfr": _djf_arguments,
    "dornet": _dornet_arguments,
    "dornet-t": _dornet_arguments,
}


def _without_parallel_prefix(state: State) -> State:
    """Drop the ``module.`` that torch's DataParallel puts before every name."""
    if not all(name.startswith("module.") for name in state):
        return state
    return {name.removeprefix("module."): value for name, value in state.items()}


def _from_matconvnet(method: str, layers: State, path: Path) -> State:
    if method not in ("djf", "djfr"):
        raise InputError(
            f"{path} is a MatConvNet network, which only djf and djfr are; got {method}"
        )
    try:
        return djf.from_authors_keys(layers)
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from None


# Reading: each format to a flat dict of tensors.


def _read(path: Path) -> State:
    if not path.is_file():
        raise InputError(f"no such checkpoint: {path}")
    with path.open("rb") as file:
        start = file.read(16)
    if start.startswith(b"MATLAB 5.0"):
        return _read_matlab(path, _matlab5_arrays)
    if start.startswith(b"MATLAB 7.3"):
        return _read_matlab(path, _matlab73_arrays)
    if start.startswith((b"PK", b"\x80")):  # zip archive of current torch; bare pickle of old torch
        return _state_dict_in(_unpickle(path), path)
    return read_tensors(path)[0]


def _unpickle(path: Path) -> Any:
    # Training scripts like to store their loss beside the weights as a numpy number.
    rebuild_number = np.float64(0).__reduce__()[0]
    numpy_numbers: list[Any] = [
        (rebuild_number, "numpy.core.multiarray.scalar"),  # its name before numpy 2
        (rebuild_number, "numpy._core.multiarray.scalar"),
        np.dtype,
        *(type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8")),
    ]
    try:
        with torch.serialization.safe_globals(numpy_numbers):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as problem:
        # Torch's own message advises to load the file unsafely: quote only the name in it.
        needed = re.search(r"GLOBAL (\S+)", str(problem))
        what = f"needs {needed[1]}, which" if needed else "holds more than tensors, which"
        raise InputError(
            f"{path} {what} could run code from the file, so it is refused; expected a pickle of "
            "tensors, containers and numbers: save its state dict alone with torch.save"
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, IndexError, TypeError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise InputError(
            f"{path} is not a readable torch checkpoint ({reason}); download it again"
        ) from None


def _state_dict_in(loaded: Any, path: Path) -> State:
    """The state dict of a checkpoint: the checkpoint itself, or its one entry that is one."""
    if _is_state_dict(loaded):
        return dict(loaded)
    entries = loaded if isinstance(loaded, Mapping) else {}
    found = [name for name, value in entries.items() if _is_state_dict(value)]
    if len(found) != 1:
        raise InputError(
            f"{path} holds {len(found)} state dicts ({', '.join(map(str, found)) or 'none'}) in a "
            f"{type(loaded).__name__} of {[str(name) for name in entries][:5]}; expected one: save "
            "the wanted one alone with torch.save"
        )
    return dict(entries[found[0]])


def _is_state_dict(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) > 0
        and all(isinstance(name, str) for name in value)
        and all(isinstance(tensor, Tensor) for tensor in value.values())
    )


Arrays = Iterator[tuple[str, np.ndarray]]


def _read_matlab(path: Path, arrays: Callable[[Path], Arrays]) -> State:
    """``net.layers{6}.weights{1}`` of a MatConvNet file becomes ``layers.5.weights.0``."""
    try:
        found = dict(arrays(path))
    except (OSError, KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
        raise InputError(
            f"{path} is a MATLAB file without a MatConvNet network ({problem}); expected a struct "
            "net with a cell array layers"
        ) from None
    for name, array in found.items():
        if not np.issubdtype(array.dtype, np.floating):
            raise InputError(
                f"{path}: {name} is of type {array.dtype}, expected numbers; if the network lives "
                "on a GPU in MATLAB, gather it before saving"
            )
    return {name: torch.tensor(array, dtype=torch.float32) for name, array in found.items()}


FIELDS = ("weights", "weights_depth")  # of a convolution; other layers have neither


def _matlab5_arrays(path: Path) -> Arrays:
    layers = scipy.io.loadmat(path)["net"][0, 0]["layers"][0]
    for index, layer in enumerate(layers):
        for field in set(FIELDS) & set(layer.dtype.names):
            for part, array in enumerate(layer[0, 0][field][0]):
                yield f"layers.{index}.{field}.{part}", array


def _matlab73_arrays(path: Path) -> Arrays:
    with h5py.File(path) as file:
        for index, layer in enumerate(file["net/layers"][:, 0]):
            for field in set(FIELDS) & set(file[layer]):
                for part, reference in enumerate(file[layer][field][:, 0]):
                    # HDF5 lists the axes of MATLAB's column-major arrays in reverse.
                    yield f"layers.{index}.{field}.{part}", file[reference][()].T
