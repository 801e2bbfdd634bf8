"""Classical filters over a window of measurements, steered by the colour image.

OpenCV has all three, but its joint bilateral and guided filters know neither a low-resolution grid
nor holes, and its weighted median sorts floats into 256 levels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.models.classical.measurements import image_size, low_coordinates, trust, upsampling_ratio
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic, bilinear, nearest

# Logarithm of the weight of a tap outside the image: any real tap outweighs it entirely.
OUTSIDE = -1e9


class JointBilateral(Model):
    """Joint bilateral upsampling (Kopf et al. 2007), holes left out.

    Each output pixel is the mean of the measurements around it, weighted by distance and by
    likeness of its colour to the mean colour of the measurement's area.

    Args:
        radius: measurements on each side, so (2 radius + 1)² are averaged.
        sigma_space: in low-resolution pixels.
        sigma_colour: in units of the [0, 1] colour cube.
    """

    def __init__(self, *, radius: int = 2, sigma_space: float = 0.45, sigma_colour: float = 0.1):
        super().__init__()
        self.radius = radius
        self.sigma_space = sigma_space
        self.sigma_colour = sigma_colour

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        (H, W), (h, w) = image_size(rgb), low.shape[-2:]
        colour = bilinear(rgb, (h, w))  # mean colour of each measurement's area
        log_trust = trust(low, valid).log()
        row, column = low_coordinates(H, W, low)
        nearest_row, nearest_column = row.round().long(), column.round().long()

        # A running softmax: exact for weights far below the smallest float, one tap in memory.
        peak = torch.full((len(low), 1, H, W), OUTSIDE, dtype=low.dtype, device=low.device)
        total, weighted = torch.zeros_like(peak), torch.zeros_like(peak)
        for down in range(-self.radius, self.radius + 1):
            for right in range(-self.radius, self.radius + 1):
                i, j = nearest_row + down, nearest_column + right
                inside = ((i >= 0) & (i < h))[:, None] & ((j >= 0) & (j < w))  # (H, W)
                rows, columns = i.clamp(0, h - 1)[:, None], j.clamp(0, w - 1)
                distance = (row - i)[:, None].square() + (column - j).square()
                unlikeness = (rgb - colour[:, :, rows, columns]).square().sum(1, keepdim=True)
                log_weight = (
                    log_trust[:, :, rows, columns]
                    - distance / (2 * self.sigma_space**2)
                    - unlikeness / (2 * self.sigma_colour**2)
                ).masked_fill(~inside, OUTSIDE)
                new_peak = torch.maximum(peak, log_weight)
                fade, weight = (peak - new_peak).exp(), (log_weight - new_peak).exp()
                total = total * fade + weight
                weighted = weighted * fade + weight * low[:, :, rows, columns]
                peak = new_peak
        return Prediction(weighted / total)


class WeightedMedian(Model):
    """Median of the bicubic map around each pixel, weighted by colour likeness (Ma et al. 2013).

    The result is always one of the values around: flying pixels between two surfaces vanish.

    Args:
        radius, spacing: (2 radius + 1)² taps, `spacing` low-resolution pixels apart.
        sigma_colour: in units of the [0, 1] colour cube.
    """

    BAND = 64  # output rows worked on at a time, to bound memory

    def __init__(self, *, radius: int = 3, spacing: float = 0.25, sigma_colour: float = 0.1):
        super().__init__()
        self.radius = radius
        self.spacing = spacing
        self.sigma_colour = sigma_colour

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        H, W = image_size(rgb)
        step = max(1, round(self.spacing * upsampling_ratio(rgb, low)))
        reach = step * self.radius
        offsets = range(0, 2 * reach + 1, step)
        upsampled = bicubic(low, (H, W))
        # outside the image nothing is trusted
        confidence = F.pad(nearest(trust(low, valid), (H, W)), [reach] * 4)
        padded_depth = F.pad(upsampled, [reach] * 4)
        padded_rgb = F.pad(rgb, [reach] * 4)

        bands = []
        for top in range(0, H, self.BAND):
            band = rgb[:, :, top : top + self.BAND]
            rows = band.shape[-2]
            values, weights = [], []
            for down in offsets:
                for right in offsets:
                    tap = (..., slice(top + down, top + down + rows), slice(right, right + W))
                    unlikeness = (band - padded_rgb[tap]).square().sum(1, keepdim=True)
                    likeness = torch.exp(-unlikeness / (2 * self.sigma_colour**2))
                    values.append(padded_depth[tap])
                    weights.append(likeness * confidence[tap])
            bands.append(weighted_median(torch.cat(values, 1), torch.cat(weights, 1)))
        return Prediction(torch.cat(bands, 2))


def weighted_median(values: Tensor, weights: Tensor) -> Tensor:
    """Smallest value with at least half the weight at or below it: (B, K, H, W) -> (B, 1, H, W)."""
    values, order = values.sort(1)
    cumulated = weights.gather(1, order).cumsum(1)
    index = (cumulated < 0.5 * cumulated[:, -1:]).sum(1, keepdim=True)
    return values.gather(1, index)


class GuidedFilter(Model):
    """Around each measurement depth is a linear function of colour (He et al. 2010).

    The functions are fitted at low resolution, where both images are sharp, then upsampled and
    applied to the full colour image (He, Sun 2015). Holes take no part in the fits.

    Args:
        radius: of the square windows, in low-resolution pixels.
        epsilon: colour variance below which a window counts as flat.
    """

    def __init__(self, *, radius: int = 1, epsilon: float = 1e-4):
        super().__init__()
        self.radius = radius
        self.epsilon = epsilon

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        # Variances are differences of large numbers: float64, on the small image only.
        colour = bilinear(rgb, (low.shape[-2], low.shape[-1])).double()
        depth, weight = low.double(), trust(low, valid).double()
        total = self.box(weight)

        def mean(x: Tensor) -> Tensor:
            return self.box(weight * x) / total

        mean_colour, mean_depth = mean(colour), mean(depth)
        products = (colour[:, :, None] * colour[:, None]).flatten(1, 2)  # (B, 9, h, w)
        spread = (
            mean(products).unflatten(1, (3, 3)) - mean_colour[:, :, None] * mean_colour[:, None]
        )
        common = mean(colour * depth) - mean_colour * mean_depth  # (B, 3, h, w)
        ridge = self.epsilon * torch.eye(3).to(depth)
        slope = torch.linalg.solve(
            spread.permute(0, 3, 4, 1, 2) + ridge, common.permute(0, 2, 3, 1)
        ).permute(0, 3, 1, 2)
        shift = mean_depth - (slope * mean_colour).sum(1, keepdim=True)
        # every pixel lies in many windows: take the mean of their answers
        size = image_size(rgb)
        slope = bilinear(mean(slope).to(low), size)
        shift = bilinear(mean(shift).to(low), size)
        return Prediction((slope * rgb).sum(1, keepdim=True) + shift)

    def box(self, x: Tensor) -> Tensor:
        """Mean over the window of each pixel, over what of it lies inside the image."""
        width = 2 * self.radius + 1
        return F.avg_pool2d(x, width, stride=1, padding=self.radius, count_include_pad=False)
