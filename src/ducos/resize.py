"""Every resampling and padding of the project.

One pixel-centre rule everywhere: pixel i of n covers [i, i+1)/n of the image, its centre is at
(i + 0.5)/n. Under this rule two maps of different size cover the same field of view, for any pair
of sizes and any ratio per axis.

`bicubic` equals Pillow's BICUBIC on float images (a = -0.5, antialiased when shrinking), which is
the resampler of the field's benchmarks. OpenCV's INTER_CUBIC and torch without antialias differ.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import handle_torch_function

from ducos.arrays import Size
from ducos.deferred import is_deferred

LIKE_COLOUR = 0.07  # standard deviation of colours of one surface
UNLIKE_WEIGHT = 0.01  # of a pixel of another colour
FARTHER = 2.0  # exponent of depth in the weights of what fills a hole: see fill_holes


def bicubic(x: Tensor, size: Size) -> Tensor:
    """Pillow's bicubic of (B, C, h, w) to (B, C, H, W); shrinking antialiases."""
    return antialiased(x, size, "bicubic")


def bilinear(x: Tensor, size: Size) -> Tensor:
    """Antialiased bilinear of (B, C, h, w) to (B, C, H, W); never leaves the range of its input."""
    return antialiased(x, size, "bilinear")


def antialiased(x: Tensor, size: Size, mode: str) -> Tensor:
    """torch's antialiased "bicubic" or "bilinear", without its gaps."""
    if tuple(x.shape[-2:]) == tuple(size):
        return x
    if is_deferred(x):  # it knows how
        return handle_torch_function(antialiased, (x,), x, size, mode)
    if x.dtype == torch.bfloat16:  # torch has no such kernel
        return antialiased(x.float(), size, mode).to(x.dtype)
    if size[1] == 1:  # torch 2.13 repeats the first row when the output is one column wide
        turned = F.interpolate(x.transpose(2, 3), size=size[::-1], mode=mode, antialias=True)
        return turned.transpose(2, 3)
    return F.interpolate(x, size=size, mode=mode, antialias=True)


def nearest(x: Tensor, size: Size) -> Tensor:
    """Value of the source pixel whose area holds the target pixel's centre."""
    return F.interpolate(x, size=size, mode="nearest-exact")


def low_size(size: Size, scale: float) -> Size:
    """Size of the low-resolution map at this scale, by floor division as in the field's loaders.

    Rounding of the division counts: 270 // 2.7 is 99.
    """
    return max(1, int(size[0] // scale)), max(1, int(size[1] // scale))


def masked_bicubic(x: Tensor, valid: Tensor, size: Size) -> tuple[Tensor, Tensor]:
    """Bicubic that never looks at invalid pixels: holes neither bleed nor ring.

    Without holes this is exactly `bicubic`. Next to a hole the hole is first filled from its
    surroundings, so the kernel sees a smooth continuation instead of a cliff.

    Args:
        x: (B, 1, h, w); values at invalid pixels are ignored (they may be NaN).
        valid: (B, 1, h, w) bool.

    Returns:
        values (B, 1, H, W), finite everywhere if any pixel is valid; and the mask (B, 1, H, W) of
        target pixels whose nearest source pixel (growing) or the larger part of whose area
        (shrinking) is valid.
    """
    filled = fill_holes(x, valid)
    grows = size[0] >= x.shape[-2] and size[1] >= x.shape[-1]
    share = valid.to(x.dtype)
    mask = nearest(share, size) if grows else bilinear(share, size)
    return bicubic(filled, size), mask > 0.5


def fill_holes(
    x: Tensor, valid: Tensor, guide: Tensor | None = None, far: Tensor | float = 0.0
) -> Tensor:
    """Replace invalid pixels by what the valid ones around suggest; these are returned untouched.

    Without a guide, by a smooth continuation. With colours as a guide, by a mean of the next valid
    pixels to the left, right, top and bottom, where near ones and those of like colour count more:
    an edge in a hole then lies where the colours change. All-invalid maps become zero.

    Args:
        x: (B, 1, h, w); valid: (B, 1, h, w), bool or weights in [0, 1], how much each pixel says
            about the holes around; guide: (B, C, H, W) in [0, 1] of any size.
        far: exponent of the value in the weights, a number or (B, 1, 1, 1). Holes are mostly
            shadows that a near surface casts on a far one: above 0 the larger value counts more.
    """
    smooth = continued(x, valid)
    known = valid > 0
    if guide is None or bool(known.all()):
        return smooth
    guide = F.adaptive_avg_pool2d(guide, (x.shape[-2], x.shape[-1]))
    weight = valid.to(x.dtype)
    typical = (weight * smooth).sum((2, 3), keepdim=True) / weight.sum((2, 3), keepdim=True)
    likely = (smooth / typical.clamp_min(torch.finfo(x.dtype).tiny)).clamp(0.05, 20) ** far
    said = torch.cat([smooth, weight * likely, guide], 1)  # of each pixel, if it is asked
    total, mixed = torch.zeros_like(x), torch.zeros_like(x)
    for axis, backwards in ((3, False), (3, True), (2, False), (2, True)):
        there, distance = _next_valid(known, axis, backwards)
        value, trust, *colours = said.gather(axis, there.expand(-1, said.shape[1], -1, -1)).split(
            (1, 1, guide.shape[1]), 1
        )
        unlike = (colours[0] - guide).square().sum(1, keepdim=True)
        alike = torch.exp(unlike / (-2 * LIKE_COLOUR**2)) + UNLIKE_WEIGHT
        vote = torch.where(distance > 0, trust * alike / distance.clamp_min(1) ** 2, 0.0)
        total, mixed = total + vote, torch.addcmul(mixed, vote, value)
    found = (total > 0) & ~known
    return torch.where(found, mixed / total.clamp_min(torch.finfo(x.dtype).tiny), smooth)


def _next_valid(known: Tensor, axis: int, backwards: bool) -> tuple[Tensor, Tensor]:
    """Where, along an axis, the next valid pixel before (or behind) each of (B, 1, h, w) is, and
    how far; the distance is 0 if there is none, or if the pixel itself is valid."""
    n = known.shape[axis]
    index = torch.arange(n, device=known.device)
    index = (index[:, None] if axis == 2 else index).expand_as(known)
    if backwards:
        places = torch.where(known, index, n).flip(axis).cummin(axis).values.flip(axis)
        there = places < n
    else:
        places = torch.where(known, index, -1).cummax(axis).values
        there = places >= 0
    return places.clamp(0, n - 1), torch.where(there, (places - index).abs(), 0)


def continued(x: Tensor, valid: Tensor) -> Tensor:
    """A smooth continuation of the valid pixels into holes (pull-push pyramid).

    Each level halves the map by averaging valid pixels only; holes take the bilinear value of the
    next coarser level. x (B, 1, h, w); valid (B, 1, h, w), bool or weights in [0, 1].
    """
    weight = valid.to(x.dtype)
    weighted = valid.dtype != torch.bool
    valid = weight > 0
    x = torch.where(valid, x, torch.zeros_like(x))
    if bool(valid.all()):
        return x
    h, w = x.shape[-2:]
    if h == 1 and w == 1:
        return x
    half = ((h + 1) // 2, (w + 1) // 2)
    pooled_weight = F.adaptive_avg_pool2d(weight, half)
    coarse_valid = pooled_weight > 0
    safe_weight = pooled_weight.clamp_min(torch.finfo(x.dtype).tiny)
    coarse = F.adaptive_avg_pool2d(weight * x if weighted else x, half) / safe_weight
    coarse = torch.where(coarse_valid, coarse, torch.zeros_like(coarse))
    below = pooled_weight if weighted else coarse_valid
    return torch.where(valid, x, bilinear(continued(coarse, below), (h, w)))


def pad_to_multiple(x: Tensor, multiple: int) -> Tensor:
    """Pad (B, C, H, W) at the bottom and right so that both sides are multiples.

    Mirrors without repeating the edge pixel where the image is large enough, else repeats the edge
    pixel. Undo with ``y[..., :H, :W]``.
    """
    H, W = x.shape[-2:]
    bottom, right = -H % multiple, -W % multiple
    if not bottom and not right:
        return x
    if is_deferred(x):  # it knows how
        return handle_torch_function(pad_to_multiple, (x,), x, multiple)
    mode = "reflect" if bottom < H and right < W else "replicate"
    return F.pad(x, (0, right, 0, bottom), mode=mode)


def padded_axes(size: Size, multiple: int) -> tuple[Tensor, Tensor]:
    """Which row and which column of an image each one of `pad_to_multiple(image)` repeats."""
    H, W = size
    bottom, right = -H % multiple, -W % multiple
    mirrored = bottom < H and right < W

    def axis(n: int, extra: int) -> Tensor:
        index = torch.arange(n + extra)
        return torch.where(index < n, index, 2 * (n - 1) - index if mirrored else n - 1)

    return axis(H, bottom), axis(W, right)


def moved(x: Tensor, right: int, down: int, beyond: float | None = None) -> Tensor:
    """Maps (..., H, W) moved by whole pixels; what comes in repeats the border, or is `beyond`."""
    if right == down == 0:
        return x
    H, W = x.shape[-2:]
    rows = torch.arange(H, device=x.device) - down  # where each row comes from
    columns = torch.arange(W, device=x.device) - right
    out = x.index_select(-2, rows.clamp(0, H - 1)).index_select(-1, columns.clamp(0, W - 1))
    if beyond is None:
        return out
    inside = ((rows >= 0) & (rows < H))[:, None] & ((columns >= 0) & (columns < W))
    return torch.where(inside, out, torch.full_like(out, beyond))
