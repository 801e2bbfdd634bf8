"""What a write may replace: never an input, and of other files only results of this package.

A result says that it is one, near its start or its end: depth maps state their unit, pictures and
meshes that ducos made them. NPY, PFM and BMP have no room for a remark, so such files are taken for
somebody else's.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from ducos.errors import InputError
from ducos.files.paths import PathLike

MADE_BY = "made by ducos"
"""What pictures, clouds and meshes of ours carry."""

_REMARKS = (b"depth_unit", b"depth_invalid", MADE_BY.encode(), b'"format":"ducos-1', b'"ducos-1')
_NPZ_NAMES = (b"unit.npy", b"scale.npy", b"invalid.npy")
_LOOKED_AT = 1 << 16  # bytes at each end


def check_replaced(
    targets: Iterable[PathLike], inputs: Iterable[PathLike], *, overwrite: bool = False
) -> None:
    """Refuse, before the work, results that would replace inputs or files that are not ours.

    Args:
        inputs: files that the work reads; not even `overwrite` lets a result take their place.
    """
    read = {_identity(path): path for path in inputs}
    for target in targets:
        if (there := _identity(target)) is None:
            continue
        if there in read:
            raise InputError(
                f"{target} is an input ({read[there]}) and would be replaced; give another name "
                "for the result"
            )
        if not overwrite and not is_ours(Path(target)):
            raise InputError(
                f"{target} is there already and does not look like a result of ducos; give another "
                "name, or pass --overwrite to replace it"
            )


def _identity(path: PathLike) -> tuple[int, int] | None:
    """What a file is, whatever its names; None if there is none."""
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return about.st_dev, about.st_ino


def is_ours(path: Path) -> bool:
    """Whether an existing file says that this package wrote it; an empty one belongs to nobody."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_LOOKED_AT)
            file.seek(max(0, size - _LOOKED_AT))
            tail = file.read(_LOOKED_AT)
    except OSError:
        return False
    if size == 0:
        return True
    if head.startswith(b"PK"):
        return all(name in tail for name in _NPZ_NAMES)
    return any(remark in head or remark in tail for remark in _REMARKS)
