"""Decoding in a child process, so that a crash, a hang or a flood stays there.

The libraries of these formats print to the terminal, unpack without a bound, or crash on damaged
files (HDF5 did on 1 of about 1500 randomly damaged ones), and no `except` catches that. The child
costs about 0.2 s and is bounded in time and memory.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, cast

import numpy as np

from ducos.children import environment, python_program
from ducos.errors import InputError, one_line
from ducos.files.formats.exr import read_exr
from ducos.files.formats.hdf5 import read_hdf5
from ducos.files.formats.limits import limit_memory, refusing
from ducos.files.formats.pictures import read_deep_png
from ducos.files.formats.stored import Stored
from ducos.files.formats.tiff import read_tiff

READERS_IN_CHILD = {
    "TIFF": read_tiff,
    "EXR": read_exr,
    "HDF5": read_hdf5,
    "16-bit colour PNG": read_deep_png,
}

CHILD_SECONDS = 120.0
"""A TIFF, EXR or HDF5 file that takes longer to decode is refused."""

_CHILD_PROGRAM = "from ducos.files.formats.child import answer_parent; answer_parent(*task)"


def decode_in_child(source: Path, name: str, key: str | None) -> Stored:
    """Decode in a process of its own, so that a crash, a hang or a flood stays there."""
    task = (name, os.path.abspath(source), str(source), key)
    # Threads reserve memory by the gigabyte, which would count against the child's limit.
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    with tempfile.TemporaryFile() as answer:
        try:
            finished = subprocess.run(
                python_program(_CHILD_PROGRAM, *task),
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                env=environment(one_thread),
                timeout=CHILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"{source} was not decoded within {CHILD_SECONDS:.0f} s; the file is damaged "
                "or needs a simpler form, such as NPZ"
            ) from None
        except OSError as problem:
            raise InputError(
                f"{source} is a {name} file and needs a helper process, which did not start: "
                f"{one_line(problem)}"
            ) from problem
        if finished.returncode:
            raise InputError(
                f"{source} could not be read as {name}: the library crashed on it or ran out of "
                f"memory (exit code {finished.returncode}); the file is damaged"
            )
        answer.seek(0)
        with refusing(source, name), np.load(answer, allow_pickle=False) as arrays:
            facts = json.loads(str(arrays["facts"]))
            if "problem" in facts:
                raise InputError(facts["problem"])
            return Stored(arrays["array"], facts, arrays.get("valid"))


def answer_parent(name: str, path: str, shown: str, key: str | None) -> None:
    """The child's whole life: decode one file, write an NPZ with the answer to standard output.

    Args:
        path: where the file is; shown: how the user called it, for messages.
    """
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the libraries print must not end up in the answer
    limit_memory(0)
    try:
        with refusing(Path(path), name):
            stored = READERS_IN_CHILD[name](Path(path), key)
            if stored.array.dtype.hasobject:
                raise ValueError(f"it holds values of type {stored.array.dtype}")
        arrays = {"array": stored.array, "facts": np.array(json.dumps(stored.facts))}
        if stored.valid is not None:
            arrays["valid"] = stored.valid
    except InputError as problem:
        arrays = {"facts": np.array(json.dumps({"problem": str(problem).replace(path, shown)}))}
    np.savez(answer, **cast(dict[str, Any], arrays))
    answer.close()
