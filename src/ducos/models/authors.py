"""An authors' published checkpoint -> the state dict of our network of the same method.

Files may be pickles written by torch (``.pth``, ``.pt``, or no suffix at all), MATLAB files with a
MatConvNet network (v5, or v7.3 which is HDF5), or safetensors. Their first bytes decide, not their
name (`foreign`). No file can run code.

The result has exactly our names and shapes, or there is an `InputError` that says what differs.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ducos.errors import InputError, one_line
from ducos.models.baselines import djf
from ducos.models.checkpoint import BROKEN, ModelSpec, load_strictly, stored_weights
from ducos.models.foreign import State, read_checkpoint
from ducos.models.justified import check_justified


def convert(method: str, path: Path) -> State:
    """Read a checkpoint of this method's authors as the state dict of our network.

    Build the network with ``create(method, **arguments(method, state))``.

    Args:
        method: name in `models.MODELS`.
        path: the file as its authors published it, or a safetensors copy of it.
    """
    path = Path(path)
    state = _without_parallel_prefix(read_checkpoint(path))
    if any(name.startswith("layers.") for name in state):
        state = _from_matconvnet(method, state, path)
    try:
        spec = ModelSpec(method, kwargs=arguments(method, state))
        check_justified(spec, state, path)
        model = spec.build()
    except InputError:
        raise
    except BROKEN as problem:
        raise InputError(
            f"{path} does not hold the network of {method} ({one_line(problem)}); check the method "
            "and download the file again"
        ) from None
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
    except BROKEN as problem:
        raise InputError(
            f"{path} is no MatConvNet network of {method}: {one_line(problem)}"
        ) from None
