"""Classical smoothers of the bicubic map that stop at colour edges, computed by OpenCV.

OpenCV is imported when a filter runs, not before. Its smoothers know no holes; they are made to by
smoothing the trusted depth and the trust apart.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ducos.errors import needed
from ducos.models.classical.measurements import image_size, measured_share, trust, upsampling_ratio
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic, nearest

Array = NDArray[np.float32]


class DomainTransform(Model):
    """Means along rows and columns stretched by their colour changes (Gastal, Oliveira 2011).

    Args:
        sigma_space: in low-resolution pixels.
        sigma_colour: in units of [0, 1] colour.
    """

    def __init__(self, *, sigma_space: float = 0.7, sigma_colour: float = 0.3):
        super().__init__()
        self.sigma_space = sigma_space
        self.sigma_colour = sigma_colour

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        cv2 = needed("cv2", "train")

        sigma_space = self.sigma_space * upsampling_ratio(rgb, low)

        def smoother(colour: Array, values: Array) -> Array:
            filtered = cv2.ximgproc.dtFilter(colour, values, sigma_space, self.sigma_colour)
            return filtered.astype(np.float32, copy=False)

        size = image_size(rgb)
        weight = nearest(trust(low, valid), size)
        return Prediction(smooth_each(rgb, bicubic(low, size), weight, smoother))


class FastGlobalSmoother(Model):
    """Weighted least squares: close to the measurements, smooth except at edges (Min et al. 2014).

    Args:
        reach: how far a measurement smooths, in low-resolution pixels.
        sigma_colour: in units of [0, 1] colour.
        sigma_measured: width of the trusted bump around a measurement, in low-resolution pixels.
    """

    def __init__(
        self, *, reach: float = 0.5, sigma_colour: float = 0.03, sigma_measured: float = 0.15
    ):
        super().__init__()
        self.reach = reach
        self.sigma_colour = sigma_colour
        self.sigma_measured = sigma_measured

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        cv2 = needed("cv2", "train")

        # a smoothness weight of L² spreads a value over about L pixels
        smoothness = (self.reach * upsampling_ratio(rgb, low)) ** 2

        def smoother(colour: Array, values: Array) -> Array:
            filtered = cv2.ximgproc.fastGlobalSmootherFilter(
                eight_bit(colour), values, smoothness, 255 * self.sigma_colour
            )
            return filtered.astype(np.float32, copy=False)

        H, W = image_size(rgb)
        weight = measured_share(low, valid, H, W, self.sigma_measured)
        return Prediction(smooth_each(rgb, bicubic(low, (H, W)), weight, smoother))


def smooth_each(
    rgb: Tensor, depth: Tensor, weight: Tensor, smoother: Callable[[Array, Array], Array]
) -> Tensor:
    """Weighted smoothing of each image of a batch: smooth(weight · depth) / smooth(weight).

    Args:
        rgb: (B, 3, H, W); depth, weight: (B, 1, H, W), weight positive.
        smoother: (colour (H, W, 3) in [0, 1], map (H, W)) -> map (H, W), a linear averaging.
    """
    smoothed = []
    for colour, values, weights in zip(rgb, depth[:, 0], weight[:, 0]):
        guide = _array(colour.permute(1, 2, 0))
        shares = _array(weights)
        numerator = smoother(guide, shares * _array(values))
        smoothed.append(torch.from_numpy(numerator / smoother(guide, shares)))
    return torch.stack(smoothed)[:, None].to(depth)


def _array(x: Tensor) -> Array:
    return np.ascontiguousarray(x.detach().cpu().numpy(), dtype=np.float32)


def eight_bit(colour: Array) -> NDArray[np.uint8]:
    """(H, W, 3) in [0, 1] -> bytes, for filters that take no other guide; depth stays float."""
    return np.clip(colour * 255 + 0.5, 0, 255).astype(np.uint8)
