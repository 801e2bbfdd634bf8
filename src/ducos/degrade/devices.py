"""Models of real sensors: what a time-of-flight camera, a phone's LiDAR or a stereo pair would have
measured, and a depth camera that is not quite aligned with the colour camera.

The constants were chosen to look like such sensors; they are not a calibration of any one device.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos import resize
from ducos.arrays import Size
from ducos.degrade.contract import (
    Low,
    Rgb,
    Seed,
    needs_metres,
    standard_normal,
    uniform,
    with_zero_holes,
)
from ducos.degrade.resampling import area_mean, bicubic, nearest

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
    optics: float = 0.6,
    softness: float = 2.0,
    raggedness: float = 1.5,
    fatness: float = 0.8,
    grain: float = 4.0,
    grain_size: float = 1.5,
) -> Low:
    """A time-of-flight camera (Kinect, Helios, the ToF chip of a phone).

    - A pixel adds up the light of its whole area, so at silhouettes it reports a depth between the
      two surfaces, nearer to the brighter one: flying pixels. The lens spreads the light over
      neighbours, too: a Gaussian of up to `optics` pixels, drawn per map.
    - Silhouettes are ragged: light scattered inside the lens and the device's outlier removal move
      them to and fro along an edge, by up to `raggedness` pixels (r.m.s., drawn per map). Near
      things swallow what is beside them, as light strays from them and devices close the shadow
      beside a silhouette, or lose their rim to outlier removal: by about three times up to
      `fatness` pixels, either way, mostly far less.
    - Devices smooth, by a Gaussian of up to `softness` pixels, drawn per map: half of them their
      raw readings, which is light, so that the brighter surface gains, the others the depths.
    - Returned light falls with the square of the distance, with reflectance and with the cosine of
      incidence; depth noise grows as it falls: 2 mm + 2.5 mm × (z / 1 m)² for a matt grey wall,
      times a factor of 0 to `grain`, mostly near 1, and in spots of up to `grain_size` pixels
      instead of single ones, as devices differ in light and average over time and space to
      different extent.
    - Light that came by way of other surfaces arrives late, which bends surfaces smoothly; devices
      are calibrated so that the error has both signs: up to 0.75 % of the depth, 1.3 % where the
      direct light is weak. (An error of one sign would teach networks to subtract its mean.)
    - Pixels with too little light (black, grazing, far) are dropped; where that happens is noisy,
      and how little is too little differs: some devices drop nothing.
    """
    needs_metres("tof", unit)
    depth = resize.fill_holes(target, valid)
    facing = _cosine_of_incidence(depth, focal)
    light = _reflectance(depth, rgb) * facing / depth.clamp_min(0.1) ** 2
    share = torch.where(valid, light, 0)
    smoothing = softness * uniform(depth, (depth.shape[0],), generator)
    smooths_light = uniform(depth, (depth.shape[0],), generator) < 0.5
    spread = torch.hypot(
        optics * uniform(depth, (depth.shape[0],), generator), smoothing * smooths_light
    )
    low_light = _softened(area_mean(share, size), spread)
    total = _softened(area_mean(share * depth, size), spread)
    low_light, total = _ragged(torch.cat([low_light, total], 1), raggedness, generator).chunk(2, 1)
    low = torch.where(
        low_light > 0, total / low_light, area_mean(depth, size)
    )  # dark: dropped below
    growth = 2 * uniform(low, (low.shape[0],), generator) - 1
    low = _fattened(low, fatness * growth * growth.abs())
    low = _softened(low, smoothing * ~smooths_light)

    grey_wall_at_1m = 0.5
    weakness = grey_wall_at_1m / low_light.clamp_min(1e-4)  # 1 for that wall, more for worse
    late = 0.015 * low * (_smooth_field(low, generator) - 0.5) * weakness.clamp(0.2, 3).sqrt()
    spots = _softened(
        standard_normal(low, generator), grain_size * uniform(low, (low.shape[0],), generator)
    )
    left = grain * uniform(low, (low.shape[0], 1, 1, 1), generator) ** 2
    low = low + late + (left * (0.002 + 0.0025 * weakness)).clamp_max(0.15) * spots

    # At most the grey wall's light from 9 m, a black surface's from 3 m.
    threshold = 0.006 * uniform(low, (low.shape[0], 1, 1, 1), generator) ** 2
    seen = low_light > threshold * (0.5 * standard_normal(low, generator)).exp()
    measured = area_mean(valid.to(depth.dtype), size) > 0.5
    return with_zero_holes(low, seen & measured & (low > 0))


def _softened(x: Tensor, sigma: Tensor) -> Tensor:
    """Each map of (B, 1, h, w) blurred by a Gaussian of its own sigma (B,), in pixels."""
    offsets = torch.arange(-5, 6, device=x.device, dtype=x.dtype)
    kernel = torch.exp(-0.5 * (offsets / sigma.clamp_min(0.05)[:, None]) ** 2)  # (B, 11)
    kernel = (kernel / kernel.sum(1, keepdim=True))[:, None, None]  # (B, 1, 1, 11)
    maps = x.transpose(0, 1)  # (1, B, h, w): one group per map
    maps = F.conv2d(F.pad(maps, (5, 5, 0, 0), "replicate"), kernel, groups=len(x))
    maps = F.conv2d(F.pad(maps, (0, 0, 5, 5), "replicate"), kernel.mT, groups=len(x))
    return maps.transpose(0, 1)


def _ragged(x: Tensor, most: float, generator: Seed) -> Tensor:
    """Maps (B, C, h, w) seen through a random drift of 0 to `most` pixels r.m.s., drawn per map,
    that changes over about three pixels; all C alike."""
    B, _, h, w = x.shape
    drift = standard_normal(x.new_empty(2 * B, 1, h, w), generator)
    drift = _softened(drift, torch.full_like(drift[:, 0, 0, 0], 1.5)).view(B, 2, h, w)
    drift = drift / drift.square().mean((1, 2, 3), keepdim=True).sqrt().clamp_min(1e-6)
    drift = drift * most * uniform(x, (B, 1, 1, 1), generator)
    rows = (torch.arange(h, device=x.device, dtype=x.dtype)[:, None] + drift[:, 0] + 0.5) / h
    columns = (torch.arange(w, device=x.device, dtype=x.dtype) + drift[:, 1] + 0.5) / w
    places = torch.stack([columns, rows], -1) * 2 - 1
    return F.grid_sample(x, places, padding_mode="border", align_corners=False)


def _fattened(depth: Tensor, sigma: Tensor) -> Tensor:
    """Depth (B, 1, h, w) as a power mean over a Gaussian neighbourhood of |sigma| (B,) pixels, in
    which the near outweighs the far if sigma is positive, else the far the near: one of two thirds
    the depth 130 times, so that its silhouette moves by about three sigma."""
    power = torch.where(sigma < 0, 12.0, -12.0).view(-1, 1, 1, 1).to(depth)
    unit = depth.amin((1, 2, 3), keepdim=True).clamp_min(1e-2)  # keeps the powers representable
    weighted = (depth / unit).clamp(1e-2, 1e3) ** power
    return unit * _softened(weighted, sigma.abs()) ** (1 / power)


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
    coarse = uniform(like, (B, 1, 5, 5), generator)
    return resize.bilinear(coarse, (h, w))


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
    needs_metres("lidar", unit)
    H, W = target.shape[-2:]
    h, w = size
    rows, columns = max(2, round(h / spacing)), max(2, round(w / spacing))
    jitter = 0.35 * (2 * uniform(target, (target.shape[0], 2, rows, columns), generator) - 1)
    spot_y = (torch.arange(rows, device=target.device).view(-1, 1) + 0.5 + jitter[:, 0]) / rows
    spot_x = (torch.arange(columns, device=target.device) + 0.5 + jitter[:, 1]) / columns
    y = (spot_y * H).long().clamp(0, H - 1)
    x = (spot_x * W).long().clamp(0, W - 1)
    batch = torch.arange(target.shape[0], device=target.device).view(-1, 1, 1)
    spots, hit = target[batch, 0, y, x][:, None], valid[batch, 0, y, x][:, None]

    spots = torch.where(hit, spots, 0)
    spots = spots + (0.003 + 0.003 * spots) * standard_normal(spots, generator)
    hit = hit & (spots > 0.05) & (spots < 5.0)
    low, low_valid = resize.fill_holes(spots, hit), hit.to(target.dtype)
    return with_zero_holes(resize.bilinear(low, size), resize.bilinear(low_valid, size) > 0.5)


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
    needs_metres("stereo", unit)
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
    matched = ((disparity + 0.1 * standard_normal(disparity, generator)) / step).round() * step
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
    moves = (uniform(target, (target.shape[0], 2), generator) * (2 * largest + 1)).long() - largest
    known = each_moved(valid, moves, beyond=False)
    return bicubic(each_moved(target, moves), known, rgb, size)


def each_moved(x: Tensor, moves: Tensor, beyond: bool | None = None) -> Tensor:
    """Each map of (B, C, H, W) moved by its own moves (B, 2), down and right; see resize.moved."""
    pairs = zip(x, moves.tolist(), strict=True)
    return torch.stack([resize.moved(one, right, down, beyond) for one, (down, right) in pairs])
