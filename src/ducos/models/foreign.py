"""Checkpoints of other people's programs, read in a child process: pickles and MATLAB files.

Pickles go through torch's restricted reader, and one that needs more than tensors, containers and
numbers is refused. The libraries of all these formats can crash on a damaged file (scipy did on one
of 224 bytes), hang, or unpack without a bound: that stays in the child, which has limits of time
and memory. Only tensors come back, as a safetensors file.
"""

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ducos.children import ONE_THREAD, environment, python_program
from ducos.errors import InputError, needed, one_line
from ducos.files import existing_file
from ducos.models.checkpoint import read_tensors

State = dict[str, Tensor]

SECONDS = 600.0
"""What reading a checkpoint may take."""

_SPARE = 2 << 30  # bytes of memory beyond what the libraries and the file's own numbers need
_PROGRAM = "from ducos.models.foreign import answer_parent; answer_parent(*task)"


def read_checkpoint(path: Path) -> State:
    """All tensors of a checkpoint, by name; its first bytes decide what it is."""
    with existing_file(path).open("rb") as file:
        start = file.read(16)
    if not start.startswith((b"MATLAB 5.0", b"MATLAB 7.3", b"PK", b"\x80")):
        return read_tensors(path)[0]
    if start.startswith(b"MATLAB 7.3"):
        needed("h5py", "train")
    with tempfile.TemporaryDirectory() as folder:
        command = python_program(_PROGRAM, os.path.abspath(path), str(path), folder)
        try:
            child = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(ONE_THREAD),
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"{path} was not read within {SECONDS:g} s; it is damaged") from None
        except OSError as problem:
            raise InputError(f"{path} needs a helper process: {one_line(problem)}") from None
        said = Path(folder, "problem.txt")
        if said.exists():
            raise InputError(said.read_text(encoding="utf-8"))
        if child.returncode:
            raise InputError(
                f"{path} could not be read: the library crashed on it or ran out of memory (exit "
                f"code {child.returncode}); download it again"
            )
        return read_tensors(Path(folder, "tensors.safetensors"))[0]


def answer_parent(path: str, shown: str, folder: str) -> None:
    """The child's whole life: read one file, and leave its tensors or one sentence in a folder.

    Args:
        path: where the file is; shown: how the user called it, for messages.
    """
    _limit_memory(os.path.getsize(path))
    try:
        state = {name: value.contiguous().clone() for name, value in read_here(Path(path)).items()}
        save_file(state, Path(folder, "tensors.safetensors"))
    except Exception as problem:  # whatever a library raises on bad bytes
        reason = (
            str(problem)
            if isinstance(problem, InputError)
            else (
                f"{path} could not be read as a checkpoint ({one_line(problem)}); download it again"
            )
        )
        Path(folder, "problem.txt").write_text(reason.replace(path, shown), encoding="utf-8")


def _limit_memory(length: int) -> None:
    """Bound this process to what it has now, and what a file of this length honestly needs."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if sys.platform == "linux":
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + _SPARE + 16 * length
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def read_here(path: Path) -> State:
    """Each format to a flat dict of tensors, in this process."""
    with path.open("rb") as file:
        start = file.read(16)
    if start.startswith(b"MATLAB 5.0"):
        return _read_matlab(path, _matlab5_arrays)
    if start.startswith(b"MATLAB 7.3"):
        return _read_matlab(path, _matlab73_arrays)
    # zip archive of current torch; bare pickle of old torch
    return _state_dict_in(_unpickle(path), path)


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
        wanted = re.search(r"GLOBAL (\S+)", str(problem))
        what = f"needs {wanted[1]}, which" if wanted else "holds more than tensors, which"
        raise InputError(
            f"{path} {what} could run code from the file, so it is refused; expected a pickle of "
            "tensors, containers and numbers: save its state dict alone with torch.save"
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, IndexError, TypeError) as problem:
        reason = one_line(problem)
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
            f"{path} is a MATLAB file without a MatConvNet network ({one_line(problem)}); "
            "expected a struct net with a cell array layers"
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
    import scipy.io

    layers = scipy.io.loadmat(path)["net"][0, 0]["layers"][0]
    for index, layer in enumerate(layers):
        for field in set(FIELDS) & set(layer.dtype.names):
            for part, array in enumerate(layer[0, 0][field][0]):
                yield f"layers.{index}.{field}.{part}", array


def _matlab73_arrays(path: Path) -> Arrays:
    h5py = needed("h5py", "train")
    with h5py.File(path) as file:
        for index, layer in enumerate(file["net/layers"][:, 0]):
            for field in set(FIELDS) & set(file[layer]):
                for part, reference in enumerate(file[layer][field][:, 0]):
                    # HDF5 lists the axes of MATLAB's column-major arrays in reverse.
                    yield f"layers.{index}.{field}.{part}", file[reference][()].T
