"""Depth super-resolution: a colour image and a small, noisy depth map in, a sharp one out.

    import ducos
    result = ducos.super_resolve("rgb.png", "depth.png")
    result.depth  # (H, W) float32, metres, at the size of the colour image

Names are imported on first use, so `import ducos` is instant.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "super_resolve": "ducos.upscaling.upscaler",
    "Result": "ducos.upscaling.upscaler",
    "load": "ducos.upscaling.upscaler",
    "create": "ducos.models",
    "MODELS": "ducos.models",
    "PROMPTS": "ducos.prompts",
    "DATASETS": "ducos.data",
    "DEGRADATIONS": "ducos.degrade",
    "CONSTRAINTS": "ducos.training.losses",
    "PROTOCOLS": "ducos.evaluation.protocols",
    "Dual": "ducos.training.dual",
    "Constraint": "ducos.training.dual",
    "InputError": "ducos.errors",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'ducos' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
