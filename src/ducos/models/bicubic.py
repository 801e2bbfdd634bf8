"""Bicubic upsampling that ignores holes: the yardstick, and the answer without any weights."""

from torch import Tensor, nn

from ducos.models.prediction import Prediction
from ducos.resize import bicubic


class Bicubic(nn.Module):
    """Pillow's bicubic of the low-resolution map; the colour image gives only the size."""

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) with holes already filled -> depth (B, 1, H, W)."""
        return Prediction(bicubic(low, (rgb.shape[-2], rgb.shape[-1])))
