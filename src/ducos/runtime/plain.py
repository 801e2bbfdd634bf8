"""Upsampling that looks at no colours and needs no weights: `models.classical.interpolation`."""

from collections.abc import Callable

from ducos.arrays import AnyArray, Size
from ducos.sampling import bicubic, bilinear, nearest

PLAIN: dict[str, Callable[[AnyArray, Size], AnyArray]] = {
    "bicubic": bicubic,
    "bilinear": bilinear,
    "nearest": nearest,
}
"""Name -> function of measurements (h, w) and the size of the image."""
