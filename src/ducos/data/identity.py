"""Which pairs exactly: a digest of a dataset, to be stored with what was made of it."""

import hashlib

from ducos.data.files import FileDataset
from ducos.data.pair import Dataset
from ducos.data.subset import Subset


def digest(dataset: Dataset) -> str:
    """SHA-256 of the sorted names of all pairs with the sizes of their files in bytes.

    Pairs that do not lie in files of their own have a name only: that of their scene.
    """
    lines = "\n".join(sorted(_entries(dataset)))
    return hashlib.sha256(lines.encode()).hexdigest()


def _entries(dataset: Dataset) -> list[str]:
    """One line per pair."""
    if isinstance(dataset, Subset):
        every = _entries(dataset.dataset)
        return [every[index] for index in dataset.indices]
    if isinstance(dataset, FileDataset):
        rows = ((row.name, (row.rgb, row.depth, row.low)) for row in dataset.files)
        return [
            " ".join([name, *(str(path.stat().st_size) for path in paths if path is not None)])
            for name, paths in rows
        ]
    return [f"{scene} {index}" for index, scene in enumerate(dataset.scenes)]
