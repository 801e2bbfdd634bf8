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


def fill_holes(x: Tensor, valid: Tensor, guide: Tensor | None = None) -> Tensor:
    """Replace invalid pixels by a smooth continuation of the valid ones (pull-push pyramid).

    Each level halves the map by averaging valid pixels only; holes take the bilinear value of the
    next coarser level. With colours as a guide, values then spread within a hole from pixel to
    pixel of like colour, at every level, so that an edge in a hole lies where the colours change.
    Valid pixels are returned untouched. All-invalid maps become zero.

    Args:
        x: (B, 1, h, w); valid: (B, 1, h, w), bool or weights in [0, 1], how much each pixel says
            about the holes around; guide: (B, C, H, W) in [0, 1] of any size.
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
    if guide is not None:
        guide = F.adaptive_avg_pool2d(guide, (h, w))
    below = pooled_weight if weighted else coarse_valid
    filled = bilinear(fill_holes(coarse, below, guide), (h, w))
    x = torch.where(valid, x, filled)
    return x if guide is None else _spread_in_holes(x, valid, guide)


def _spread_in_holes(x: Tensor, valid: Tensor, guide: Tensor) -> Tensor:
    """Four rounds in which each invalid pixel becomes the mean of itself and its eight neighbours,
    weighted by likeness of colour."""
    alike, little = 0.07, 0.01  # standard deviation of like colours; weight of unlike ones
    weights = [
        torch.exp((beside - guide).square().sum(1, keepdim=True) / (-2 * alike**2)) + little
        for beside in _neighbours(guide)
    ]
    total = 1 + sum(weights)
    for _ in range(4):
        mixed = x.clone()
        for weight, beside in zip(weights, _neighbours(x), strict=True):
            mixed.addcmul_(weight, beside)
        x = torch.where(valid, x, mixed / total)
    return x


def _neighbours(x: Tensor) -> list[Tensor]:
    """The eight pixels around each of (B, C, h, w), edge pixels repeated: eight such maps."""
    h, w = x.shape[-2:]
    padded = F.pad(x, (1, 1, 1, 1), mode="replicate")
    places = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    return [padded[..., i : i + h, j : j + w] for i, j in places]


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
