"""Modules that were elsewhere in 0.1: their old names work for one release, with a warning.

The docs of 0.1 taught imports such as ``from ducos.io import read_depth``. A finder at the end of
Python's own answers for names that no longer exist, and only for those.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ROOMS = {
    "ducos.camera": "ducos.cameras",
    "ducos.camera_files": "ducos.cameras",
    "ducos.cloud": "ducos.cameras",
    "ducos.config": "ducos.training",
    "ducos.dual": "ducos.training",
    "ducos.evaluate": "ducos.evaluation",
    "ducos.infer": "ducos.upscaling",
    "ducos.io": "ducos.files",
    "ducos.losses": "ducos.training",
    "ducos.metrics": "ducos.evaluation",
    "ducos.protocols": "ducos.evaluation",
    "ducos.registration": "ducos.cameras",
    "ducos.train": "ducos.training",
    "ducos.degrade.sensors": "ducos.degrade.devices",
}
"""Old module -> the room, or the module, that has its names now."""


class OldNames(MetaPathFinder, Loader):
    """Imports an old name as a module that hands on to the new room."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in ROOMS else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        room = ROOMS[name]
        warnings.warn(
            f"{name} has moved: import from {room}; the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )

        def get(attribute: str) -> Any:
            return getattr(import_module(room), attribute)

        module.__getattr__ = get  # type: ignore[method-assign]


def watch() -> None:
    """Answer for old names, once per process."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.append(OldNames())
