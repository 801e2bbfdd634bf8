"""Depth super-resolution: a colour image and a small, noisy depth map in, a sharp one out.

    import ducos
    result = ducos.super_resolve("rgb.png", "depth.png")
    result.depth  # (H, W) float32, metres, at the size of the colour image

Names are imported on first use, so `import ducos` is instant.
"""

from typing import TYPE_CHECKING

from ducos import moved
from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.data import DATASETS
    from ducos.degrade import DEGRADATIONS
    from ducos.errors import InputError
    from ducos.evaluation import PROTOCOLS
    from ducos.models import MODELS, create
    from ducos.prompts import PROMPTS
    from ducos.serve import Client
    from ducos.training import CONSTRAINTS, Constraint, Dual
    from ducos.upscaling import Result, load, super_resolve
else:
    __getattr__, __dir__, __all__ = doors(__name__)

__version__ = "0.2.0"  # the one place; pyproject.toml reads it
moved.watch()
