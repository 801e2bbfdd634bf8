"""Upsampling that never looks at the colours of the image, only at its size; needs no weights.

Holes are filled before a model sees the map. Bicubic is the yardstick of every table.
"""

from torch import Tensor

from ducos.models.classical.measurements import image_size
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic, bilinear, nearest


class Nearest(Model):
    """Each output pixel takes the measurement whose area holds its centre."""

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        return Prediction(nearest(low, image_size(rgb)))


class Bilinear(Model):
    """Linear interpolation between measurements; never overshoots."""

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        return Prediction(bilinear(low, image_size(rgb)))


class Bicubic(Model):
    """Pillow's bicubic of the low-resolution map; the colour image gives only the size."""

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) with holes already filled -> depth (B, 1, H, W)."""
        return Prediction(bicubic(low, image_size(rgb)))
