"""The only door to Blender: everything that needs `bpy` asks for it here, when it needs it."""

from importlib.util import find_spec
from typing import Any

from ducos.errors import InputError

ADVICE = (
    "got a Python without the package bpy (Blender 5.0.1), expected it for rendering; do: "
    "pip install 'ducos[synth]', or, beside NumPy 2 and against bpy's declared numpy<2 "
    "(it renders all the same): pip install --no-deps bpy==5.0.1"
)


def require_blender() -> None:
    """Raise InputError if bpy is not installed; does not import it (which takes a second)."""
    if find_spec("bpy") is None:
        raise InputError(ADVICE)


def blender() -> Any:
    """The module bpy. Typed Any: it has no stubs, and its types are made at run time."""
    require_blender()
    import bpy

    return bpy
