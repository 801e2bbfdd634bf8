"""The field's protocols with noise and compression.

They differ in the order of their steps, in the grid that blur and noise act on and in the range
that noise is a share of, so each function says all three. `protocols` states the constants.
"""

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

from ducos import resize
from ducos.arrays import Size
from ducos.degrade.contract import Low, Rgb, Seed, standard_normal, with_zero_holes
from ducos.degrade.resampling import bicubic
from ducos.normalise import range_of

BLUR = 3.6  # standard deviation in pixels
NOISE = 0.07  # of the range
SENSOR_RANGE = {"m": 5.0, "level": 255.0}  # what real-world protocols divide by
CODE = {"m": 0.001, "level": 1.0}  # one step of the stored integers: 16-bit mm, 8-bit levels
DROPPED_BITS = 4
RELATIVE_NOISE, CONSTANT_NOISE = 0.02, 0.05  # of the value, and of the range


def noisy(
    target: Tensor,
    valid: Tensor,
    rgb: Rgb,
    size: Size,
    generator: Seed = None,
    *,
    unit: str = "m",
    own_range: bool = True,
) -> Low:
    """DuCos's order: bicubic first, then blur and noise on the *low-resolution* grid, then clip.

    Blur is scipy's Gaussian, noise is a share of the map's own range, or of the sensor's range
    (the TOFDSR tables: 0.35 m) with own_range=False; either way it is clipped to the clean map's
    range. Real sensor maps are given as the target: (low, low_valid, rgb, size, ...).
    """
    low, low_valid = bicubic(target, valid, rgb, size)
    limits = range_of(low, low_valid)
    span = limits.highest - limits.lowest if own_range else SENSOR_RANGE[unit]
    low = _blurred(low, low_valid, BLUR) + NOISE * span * standard_normal(low, generator)
    return with_zero_holes(low.clamp(limits.lowest, limits.highest), low_valid)


def noisy_dornet(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """DORNet's order: bicubic down and *up again*, then blur and noise on the colour image's grid.

    The result therefore has the colour image's size (the target's when rgb is None), not `size`:
    the blur is narrower than in `noisy` by the scale, and the noise, a share of the sensor's range
    (0.35 m), is independent per high-resolution pixel. Numbers of the two protocols do not compare.
    """
    clean, clean_valid = bicubic(target, valid, rgb, size)
    limits = range_of(clean, clean_valid)
    H, W = (target if rgb is None else rgb).shape[-2:]
    low, low_valid = resize.masked_bicubic(clean, clean_valid, (H, W))
    noise = NOISE * SENSOR_RANGE[unit] * standard_normal(low, generator)
    low = _blurred(low, low_valid, BLUR) + noise
    return with_zero_holes(low.clamp(limits.lowest, limits.highest), low_valid)


def _blurred(x: Tensor, valid: Tensor, sigma: float) -> Tensor:
    """scipy.ndimage.gaussian_filter (mirrored border, cut at 4 sigma) over valid pixels alone."""
    radius = int(4 * sigma + 0.5)
    offsets = torch.arange(-radius, radius + 1, device=x.device, dtype=torch.float64)
    kernel = torch.exp(-0.5 * (offsets / sigma) ** 2)
    kernel = (kernel / kernel.sum()).to(x.dtype)

    def convolved(values: Tensor) -> Tensor:
        for axis in (-2, -1):
            length = values.shape[axis]
            # Mirror including the border pixel, as often as the kernel needs on small maps.
            index = torch.arange(-radius, length + radius, device=x.device) % (2 * length)
            index = torch.minimum(index, 2 * length - 1 - index)
            shape = (1, 1, -1, 1) if axis == -2 else (1, 1, 1, -1)
            values = F.conv2d(values.index_select(axis, index), kernel.view(shape))
        return values

    weight = convolved(valid.to(x.dtype))
    total = convolved(torch.where(valid, x, 0))
    return total / weight.clamp_min(torch.finfo(x.dtype).tiny)


def compressed(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """Bit-depth reduction, downsampling and noise, in the order that keeps the depth readable.

    The stored integers lose their last four bits (steps of 16 mm, cut off downwards), the map is
    downsampled and the bits are shifted back, and only then is it normalised, with its own range,
    and noise is added: N(0, 0.02) times the normalised value plus N(0, 0.05).
    """
    step = CODE[unit] * 2**DROPPED_BITS
    low, low_valid = bicubic(_whole_steps(target, step) * step, valid, rgb, size)
    limits = range_of(low, low_valid)
    noise = _compression_noise(limits.apply(low), generator)
    return with_zero_holes(low + noise * limits.span, low_valid)


def compressed_as_released(
    target: Tensor,
    valid: Tensor,
    rgb: Rgb,
    size: Size,
    generator: Seed = None,
    *,
    unit: str = "m",
    normalised_first: bool = False,
) -> Low:
    """The published "compressed" protocol with its defects: **not a usable input**.

    It shifts four bits away and never shifts them back, yet normalises with the range of the
    unshifted ground truth: the signal shrinks to 1/16 of the range, about as large as the noise.
    In NYU's variant (normalised_first=True) the depth was already in [0, 1] when it was cast to an
    integer, so that nothing but noise is left. Kept to show that the published column measures what
    a network sees in the colour image, or a constant. Downsampling is scipy's spline zoom on
    integers, of order 2: neither antialiased nor centred on our pixel grid.

    The result is in the target's unit; dividing it by the target's range gives the numbers the
    published networks were fed.
    """
    limits = range_of(target, valid)
    filled = resize.fill_holes(target, valid)
    stored = limits.apply(filled) if normalised_first else filled / CODE[unit]
    shifted = _whole_steps(stored, 1).long() >> DROPPED_BITS
    zoomed = _spline_zoom(shifted, size).to(target)
    fed = zoomed if normalised_first else limits.apply(zoomed * CODE[unit])
    fed = fed + _compression_noise(fed, generator)
    low_valid = resize.nearest(valid.to(target.dtype), size) > 0.5
    return with_zero_holes(limits.undo(fed), low_valid)


def _whole_steps(x: Tensor, step: float) -> Tensor:
    """Number of whole steps in x; a value on a step counts it although float32 may fall short."""
    return torch.floor(x / step + 1e-3)


def _compression_noise(normalised: Tensor, generator: Seed) -> Tensor:
    relative = RELATIVE_NOISE * standard_normal(normalised, generator)
    return relative * normalised + CONSTANT_NOISE * standard_normal(normalised, generator)


def _spline_zoom(codes: Tensor, size: Size) -> Tensor:
    """scipy.ndimage.zoom of order 2 on 16-bit integers (B, 1, H, W), result rounded to integers."""
    H, W = codes.shape[-2:]
    factors = (size[0] / H, size[1] / W)
    maps = codes[:, 0].cpu().numpy().astype(np.uint16)
    zoomed = np.stack([ndimage.zoom(one, factors, order=2) for one in maps])
    return torch.from_numpy(zoomed.astype(np.int64))[:, None]
