"""Ground truth -> what a low-resolution sensor or a published protocol would hand to the network.

Every degradation has one form, so that they can be swapped by name:

    low, low_valid = DEGRADATIONS[name](target, valid, rgb, size, generator, unit="m")

    target (B, 1, H, W), valid (B, 1, H, W) bool: ground truth; what invalid pixels hold is ignored.
    rgb (B, 3, H, W) in [0, 1] or None: only sensors that depend on reflectance look at it.
    size (h, w): of the result, any ratio per axis.
    generator: source of all randomness; the same seed gives the same map. None: torch's own.
    unit: "m", or "level" for 8-bit codes (Middlebury, Lu).
    low (B, 1, h, w) in the target's unit, 0 where low_valid (B, 1, h, w) is False.

First the resamplings, then the protocols of the field with noise and compression, then models of
real sensors. A hole of the target never bleeds: whatever is stored in it, the result is the same.
"""

from functools import partial
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Generator, Tensor

from ducos import resize
from ducos.errors import InputError
from ducos.normalise import range_of
from ducos.resize import Size

Rgb = Tensor | None
Seed = Generator | None
Low = tuple[Tensor, Tensor]


class Degradation(Protocol):
    """See the head of this file."""

    def __call__(
        self,
        target: Tensor,
        valid: Tensor,
        rgb: Tensor | None,
        size: Size,
        generator: Generator | None = None,
        *,
        unit: str = "m",
    ) -> Low: ...


# ---------------------------------------------------------------------------------- resampling


def bicubic(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """Pillow's bicubic: the field's synthetic protocol."""
    return _with_zero_holes(*resize.masked_bicubic(target, valid, size))


def nearest(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """The value at each low-resolution pixel's centre: no mixing of surfaces, but aliased."""
    low_valid = resize.nearest(valid.to(target.dtype), size) > 0.5
    return _with_zero_holes(resize.nearest(target, size), low_valid)


def area(
    target: Tensor, valid: Tensor, rgb: Rgb, size: Size, generator: Seed = None, *, unit: str = "m"
) -> Low:
    """Mean of the valid part of each low-resolution pixel's area, border pixels by their share."""
    weight = valid.to(target.dtype)
    covered = _area_mean(weight, size)
    total = _area_mean(torch.where(valid, target, 0), size)
    return _with_zero_holes(total / covered, covered > 0.5)


# ------------------------------------------------------------- noise and compression protocols

BLUR = 3.6  # standard deviation in pixels
NOISE = 0.07  # of the range
SENSOR_RANGE = {"m": 5.0, "level": 255.0}  # what real-world protocols divide by


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
    low = _blurred(low, low_valid, BLUR) + NOISE * span * _normal(low, generator)
    return _with_zero_holes(low.clamp(limits.lowest, limits.highest), low_valid)


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
    noise = NOISE * SENSOR_RANGE[unit] * _normal(low, generator)
    low = _blurred(low, low_valid, BLUR) + noise
    return _with_zero_holes(low.clamp(limits.lowest, limits.highest), low_valid)


CODE = {"m": 0.001, "level": 1.0}  # one step of the stored integers: 16-bit mm, 8-bit levels
DROPPED_BITS = 4
RELATIVE_NOISE, CONSTANT_NOISE = 0.02, 0.05  # of the value, and of the range


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
    return _with_zero_holes(low + noise * limits.span, low_valid)


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
    return _with_zero_holes(limits.undo(fed), low_valid)


# -------------------------------------------------------------------------------- real sensors

FOCAL = 525.0  # pixels on the target's grid: 62° across 640 pixels, a usual colour camera


def tof(
    target: Tensor,
    valid: Tensor,
    rgb: Rgb,
    size: Size,
    generator: Seed = None,
    *,
    unit: str = "m",
    focal: float = FOCAL,
) -> Low:
    """A time-of-flight camera (Kinect, Helios, the ToF chip of a phone).

    - A pixel adds up the light of its whole area, so at silhouettes it reports a depth between the
      two surfaces, nearer to the brighter one: flying pixels.
    - Returned light falls with the square of the distance, with reflectance and with the cosine of
      incidence; depth noise grows as it falls: 2 mm + 2.5 mm × (z / 1 m)² for a matt grey wall.
    - Light that came by way of other surfaces arrives late, so the error is always to the far side,
      smooth over the image: up to 1.5 % of the depth, 2.6 % where the direct light is weak.
    - Pixels with too little light (black, grazing, far) are dropped; where that happens is noisy.
    """
    _needs_metres("tof", unit)
    depth = resize.fill_holes(target, valid)
    facing = _cosine_of_incidence(depth, focal)
    light = _reflectance(depth, rgb) * facing / depth.clamp_min(0.1) ** 2
    share = torch.where(valid, light, 0)
    low_light = _area_mean(share, size)
    low = _area_mean(share * depth, size) / low_light.clamp_min(torch.finfo(depth.dtype).tiny)

    grey_wall_at_1m = 0.5
    weakness = grey_wall_at_1m / low_light.clamp_min(1e-4)  # 1 for that wall, more for worse
    late = 0.015 * low * _smooth_field(low, generator) * weakness.clamp(0.2, 3).sqrt()
    low = low + late + (0.002 + 0.0025 * weakness).clamp_max(0.15) * _normal(low, generator)

    threshold = 0.006  # the grey wall's light from 9 m, a black surface's from 3 m
    seen = low_light > threshold * (0.5 * _normal(low, generator)).exp()
    measured = _area_mean(valid.to(depth.dtype), size) > 0.5
    return _with_zero_holes(low, seen & measured & (low > 0))


def lidar(
    target: Tensor,
    valid: Tensor,
    rgb: Rgb,
    size: Size,
    generator: Seed = None,
    *,
    unit: str = "m",
    spacing: float = 7.0,
) -> Low:
    """A phone's LiDAR: few laser spots, blown up to a smooth map (256×192 on current phones).

    Spots hit the scene on a coarse grid, `spacing` pixels of the result apart and shifted at random
    within their cells; each reports one surface (it times the first strong echo) with 3 mm + 0.3 %
    noise. What lies between spots is interpolated, so silhouettes wobble by several pixels, thin
    things vanish and nothing is missing, except beyond 5 m or where no spot near by returned.
    """
    _needs_metres("lidar", unit)
    H, W = target.shape[-2:]
    h, w = size
    rows, columns = max(2, round(h / spacing)), max(2, round(w / spacing))
    jitter = 0.35 * (2 * _uniform(target, (target.shape[0], 2, rows, columns), generator) - 1)
    spot_y = (torch.arange(rows, device=target.device).view(-1, 1) + 0.5 + jitter[:, 0]) / rows
    spot_x = (torch.arange(columns, device=target.device) + 0.5 + jitter[:, 1]) / columns
    y = (spot_y * H).long().clamp(0, H - 1)
    x = (spot_x * W).long().clamp(0, W - 1)
    batch = torch.arange(target.shape[0], device=target.device).view(-1, 1, 1)
    spots, hit = target[batch, 0, y, x][:, None], valid[batch, 0, y, x][:, None]

    spots = torch.where(hit, spots, 0)
    spots = spots + (0.003 + 0.003 * spots) * _normal(spots, generator)
    hit = hit & (spots > 0.05) & (spots < 5.0)
    low, low_valid = resize.fill_holes(spots, hit), hit.to(target.dtype)
    return _with_zero_holes(resize.bilinear(low, size), resize.bilinear(low_valid, size) > 0.5)


def stereo(
    target: Tensor,
    valid: Tensor,
    rgb: Rgb,
    size: Size,
    generator: Seed = None,
    *,
    unit: str = "m",
    focal: float = FOCAL,
    baseline: float = 0.075,
) -> Low:
    """Stereo or structured light (Kinect v1, RealSense): two viewpoints `baseline` metres apart.

    - The second viewpoint, to the right, does not see a strip to the left of each near thing: a
      hole, wider the nearer the thing.
    - Disparity = focal × baseline / depth is matched with an error of 0.1 px and kept in steps of
      1/8 px, so depth comes in planes whose distance grows with its square.
    - Nearer than 0.3 m or farther than 8 m there is no match.
    """
    _needs_metres("stereo", unit)
    # Matching happens at the cameras' own resolution; the low-resolution map is a thinned result.
    depth = torch.where(valid, target, torch.inf).clamp_min(0.05)
    disparity = focal * baseline / depth  # pixels; 0 in holes, which hide nothing
    column = torch.arange(target.shape[-1], device=target.device, dtype=target.dtype)
    seen_at = torch.where(valid, column - disparity, torch.inf)  # column in the second view
    # A point is hidden when one to its right in our view lands on it or to its left in the other.
    leftmost_from_here = seen_at.flip(-1).cummin(-1).values.flip(-1)
    leftmost_to_the_right = F.pad(leftmost_from_here[..., 1:], (0, 1), value=torch.inf)
    is_hidden = leftmost_to_the_right <= seen_at

    step = 1 / 8
    matched = ((disparity + 0.1 * _normal(disparity, generator)) / step).round() * step
    measured = focal * baseline / matched.clamp_min(step)
    in_range = (measured > 0.3) & (measured < 8.0)
    return nearest(measured, valid & ~is_hidden & in_range, rgb, size)


def misregister(
    target: Tensor,
    valid: Tensor,
    rgb: Rgb,
    size: Size,
    generator: Seed = None,
    *,
    unit: str = "m",
    largest: int = 3,
) -> Low:
    """Bicubic of a map that sits up to `largest` pixels of the target's grid beside the image.

    Colour and depth cameras are calibrated only so well: each map of the batch is moved by a whole
    number of pixels along each axis; what comes in from outside the image is unknown.
    """
    B, _, H, W = target.shape
    moves = (_uniform(target, (B, 2), generator) * (2 * largest + 1)).long() - largest
    rows = torch.arange(H, device=target.device) - moves[:, :1]  # (B, H), where each comes from
    columns = torch.arange(W, device=target.device) - moves[:, 1:]  # (B, W)
    known_rows = ((rows >= 0) & (rows < H))[:, None, :, None]
    known_columns = ((columns >= 0) & (columns < W))[:, None, None, :]
    known = moved(valid, moves) & known_rows & known_columns
    return bicubic(moved(target, moves), known, rgb, size)


def moved(x: Tensor, moves: Tensor) -> Tensor:
    """Each map of (B, C, H, W) moved by whole pixels, moves (B, 2): down and right; the border is
    repeated into what comes in from outside."""
    H, W = x.shape[-2:]
    maps = []
    for one, (down, right) in zip(x, moves.tolist(), strict=True):
        rows = (torch.arange(H, device=x.device) - down).clamp(0, H - 1)
        columns = (torch.arange(W, device=x.device) - right).clamp(0, W - 1)
        maps.append(one.index_select(1, rows).index_select(2, columns))
    return torch.stack(maps)


DEGRADATIONS: dict[str, Degradation] = {
    "bicubic": bicubic,
    "nearest": nearest,
    "area": area,
    "noisy": noisy,
    "noisy-tofdsr": partial(noisy, own_range=False),
    "noisy-dornet": noisy_dornet,
    "compressed": compressed,
    "compressed-as-released": compressed_as_released,
    "compressed-as-released-nyu": partial(compressed_as_released, normalised_first=True),
    "tof": tof,
    "lidar": lidar,
    "stereo": stereo,
    "misregister": misregister,
}


# -------------------------------------------------------------------------------- shared parts


def _with_zero_holes(low: Tensor, low_valid: Tensor) -> Low:
    return torch.where(low_valid, low, torch.zeros_like(low)), low_valid


def _needs_metres(name: str, unit: str) -> None:
    if unit != "m":
        raise InputError(f"{name} models a metric sensor and needs depth in metres, got {unit!r}")


def _normal(like: Tensor, generator: Seed) -> Tensor:
    """Standard normal numbers; drawn on the generator's device, so that a seed means one map."""
    device = like.device if generator is None else generator.device
    return torch.randn(like.shape, generator=generator, device=device).to(like)


def _uniform(like: Tensor, shape: tuple[int, ...], generator: Seed) -> Tensor:
    """Uniform numbers in [0, 1)."""
    device = like.device if generator is None else generator.device
    return torch.rand(shape, generator=generator, device=device).to(like)


def _area_mean(x: Tensor, size: Size) -> Tensor:
    """Exact mean over each target pixel's area, (B, 1, H, W) -> (B, 1, h, w), for any ratio."""
    vertical = _overlap(x.shape[-2], size[0], x)
    horizontal = _overlap(x.shape[-1], size[1], x)
    return vertical @ x @ horizontal.T


def _overlap(source: int, target: int, like: Tensor) -> Tensor:
    """Share (target, source) that each source pixel has in each target pixel; rows sum to 1."""
    edges = torch.arange(target + 1, device=like.device, dtype=torch.float64) * source / target
    start, stop = edges[:-1, None], edges[1:, None]
    pixel = torch.arange(source, device=like.device, dtype=torch.float64)
    shared = (torch.minimum(stop, pixel + 1) - torch.maximum(start, pixel)).clamp_min(0)
    return (shared * target / source).to(like.dtype)


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


def _whole_steps(x: Tensor, step: float) -> Tensor:
    """Number of whole steps in x; a value on a step counts it although float32 may fall short."""
    return torch.floor(x / step + 1e-3)


def _compression_noise(normalised: Tensor, generator: Seed) -> Tensor:
    relative = RELATIVE_NOISE * _normal(normalised, generator)
    return relative * normalised + CONSTANT_NOISE * _normal(normalised, generator)


def _spline_zoom(codes: Tensor, size: Size) -> Tensor:
    """scipy.ndimage.zoom of order 2 on 16-bit integers (B, 1, H, W), result rounded to integers."""
    H, W = codes.shape[-2:]
    factors = (size[0] / H, size[1] / W)
    maps = codes[:, 0].cpu().numpy().astype(np.uint16)
    zoomed = np.stack([ndimage.zoom(one, factors, order=2) for one in maps])
    return torch.from_numpy(zoomed.astype(np.int64))[:, None]


def _reflectance(depth: Tensor, rgb: Rgb) -> Tensor:
    """Reflectance (B, 1, H, W) guessed from the picture's brightness; grey without a picture."""
    if rgb is None:
        return torch.full_like(depth, 0.5)
    # Pictures are gamma-coded; nothing real reflects less than 2 %.
    return (rgb.mean(1, keepdim=True) ** 2.2).clamp_min(0.02)


def _cosine_of_incidence(depth: Tensor, focal: float) -> Tensor:
    """Cosine between each pixel's ray and its surface normal (B, 1, H, W), in (0, 1].

    For planar depth Z at (u, v) pixels from the image centre the normal is proportional to
    (f Z_u, f Z_v, -(Z + u Z_u + v Z_v)) and the ray to (u, v, f), hence f Z / (|normal| |ray|). Of
    the two one-sided slopes the smaller counts: a silhouette is not a slanted surface.
    """
    H, W = depth.shape[-2:]
    v = (torch.arange(H, device=depth.device, dtype=depth.dtype) + 0.5 - H / 2).view(-1, 1)
    u = torch.arange(W, device=depth.device, dtype=depth.dtype) + 0.5 - W / 2
    slope_u, slope_v = _smaller_slope(depth, -1), _smaller_slope(depth, -2)
    along_axis = depth + u * slope_u + v * slope_v
    normal = ((focal * slope_u) ** 2 + (focal * slope_v) ** 2 + along_axis**2).sqrt()
    ray = (u**2 + v**2 + focal**2).sqrt()
    return (focal * depth / (normal * ray).clamp_min(1e-6)).clamp(0, 1)


def _smaller_slope(depth: Tensor, axis: int) -> Tensor:
    step = depth.diff(dim=axis)
    zero = torch.zeros_like(depth.narrow(axis, 0, 1))
    before = torch.cat([zero, step], axis)
    after = torch.cat([step, zero], axis)
    return torch.where(before.abs() < after.abs(), before, after)


def _smooth_field(like: Tensor, generator: Seed) -> Tensor:
    """Random field (B, 1, h, w) in [0, 1) that changes over about a quarter of the map."""
    B, _, h, w = like.shape
    coarse = _uniform(like, (B, 1, 5, 5), generator)
    return resize.bilinear(coarse, (h, w))
