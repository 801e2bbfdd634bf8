"""HDF5, also as MATLAB 7.3 writes it. Read in the child process: the library can crash."""

import math
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import AnyArray
from ducos.errors import InputError
from ducos.files.formats.arrays import chosen_array
from ducos.files.formats.limits import check_length, check_size, limit_memory
from ducos.files.formats.stored import Facts, Layers, Stored


def read_hdf5(source: Path, key: str | None) -> Stored:
    """One dataset; facts from its attributes, the mask from a dataset `valid` beside `depth`."""
    import h5py

    with h5py.File(source, "r") as file:
        shapes: dict[str, tuple[int, ...]] = {}

        def note(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                shapes[name] = (item.shape or ()) if item.dtype.kind in "iuf" else ()

        file.visititems(note)  # follows no links

        def array(name: str) -> AnyArray:
            dataset = file[name]
            # Data kept elsewhere would let a file show any other file of this machine.
            if dataset.external or dataset.is_virtual or dataset.file.filename != file.filename:
                raise InputError(f"{source} keeps {name!r} in another file; give that file")
            check_size(source, dataset.shape)
            check_size(source, dataset.chunks or (1,))
            check_length(source, dataset.shape)
            limit_memory(dataset.size + math.prod(dataset.chunks or (0,)))
            return np.asarray(dataset[()])

        chosen = chosen_array(source, list(shapes), shapes, key)
        facts = {k: str(v) for k, v in file[chosen].attrs.items() if k.startswith("depth_")}
        has_mask = chosen == "depth" and "valid" in shapes
        return Stored(array(chosen), facts, array("valid") != 0 if has_mask else None)


def write_hdf5(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    """Depth as dataset `depth` with the facts as its attributes, every layer by its name."""
    import h5py

    memory = BytesIO()  # the library may crash when the disk is full
    with h5py.File(memory, "w") as file:
        for name, values in {"depth": array, **layers}.items():
            file.create_dataset(
                name, data=values, compression="gzip", shuffle=True, fletcher32=True
            )
        file["depth"].attrs.update(facts)
    path.write_bytes(memory.getbuffer())
