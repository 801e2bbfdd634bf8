"""Every resampling and padding of the project.

One pixel-centre rule everywhere: pixel i of n covers [i, i+1)/n of the image, its centre is at
(i + 0.5)/n. Under this rule two maps of different size cover the same field of view, for any pair
of sizes and any ratio per axis.

`bicubic` equals Pillow's BICUBIC on float images (a = -0.5, antialiased when shrinking), which is
the resampler of the field's benchmarks. OpenCV's INTER_CUBIC and torch without antialias differ.

The rule is in `kernels`; `arrays` of numpy follow it in `sampling`. Here torch's own kernels do the
work, and the same matrices while a graph is exported: runtimes differ in how they resize, and some
are wrong (docs/export.md).
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import handle_torch_function

from ducos.arrays import Size
from ducos.deferred import exporting, is_deferred
from ducos.kernels import (
    LIKE_COLOUR,
    UNLIKE_WEIGHT,
    antialiased_weights,
    area_weights,
    nearest_index,
    padded_index,
)

LEVELS = 13  # of an exported graph, whose loops are fixed: maps of up to 2^13 pixels a side


def bicubic(x: Tensor, size: Size) -> Tensor:
    """Pillow's bicubic of (B, C, h, w) to (B, C, H, W); shrinking antialiases."""
    return antialiased(x, size, "bicubic")


def bilinear(x: Tensor, size: Size) -> Tensor:
    """Antialiased bilinear of (B, C, h, w) to (B, C, H, W); never leaves the range of its input."""
    return antialiased(x, size, "bilinear")


def grown(x: Tensor, size: Size) -> Tensor:
    """`bilinear` to a size that is nowhere smaller, where all runtimes agree on one operator."""
    if exporting():
        return F.interpolate(x, size=(size[0], size[1]), mode="bilinear", align_corners=False)
    return bilinear(x, size)


def antialiased(x: Tensor, size: Size, mode: str) -> Tensor:
    """torch's antialiased "bicubic" or "bilinear", without its gaps."""
    if exporting():
        return by_matrices(x, size, lambda i, j, n, N: _antialiased(mode, i, j, n, N))
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
    for axis, N in ((-2, size[0]), (-1, size[1])):
        index = nearest_index(torch.arange(N, device=x.device), x.shape[axis], N)
        x = x.index_select(axis, index)
    return x


def area(x: Tensor, size: Size) -> Tensor:
    """Mean of the pixels of (B, C, H, W) that each pixel of a smaller (B, C, h, w) touches."""
    if exporting():
        return by_matrices(x, size, area_weights)
    return F.interpolate(x, size=(size[0], size[1]), mode="area")


def by_matrices(x: Tensor, size: Size, weights: Callable[..., Tensor]) -> Tensor:
    """(B, C, h, w) -> (B, C, H, W) by a matrix per axis, of sizes that only a graph's user knows;
    weights: see `kernels`."""

    def matrix(n: int, N: int) -> Tensor:
        i, j = torch.arange(N, device=x.device)[:, None], torch.arange(n, device=x.device)[None]
        return weights(i, j, n, N).to(x.dtype)

    (h, w), (H, W) = x.shape[-2:], size
    return matrix(h, H) @ (x @ matrix(w, W).transpose(0, 1))


def _antialiased(mode: str, i: Tensor, j: Tensor, n: Any, N: Any) -> Tensor:
    larger = torch.maximum(n, N) if isinstance(n, Tensor) else torch.sym_max(n, N)
    return antialiased_weights(mode, i, j, n, N, larger)


def to_cells(x: Tensor, side: int) -> Tensor:
    """Space to depth, `F.pixel_unshuffle`: (B, C, H, W) -> (B, C side², H / side, W / side)."""
    if not exporting():
        return F.pixel_unshuffle(x, side)
    # In two turns, of rows and of neighbours: runtimes are slow to turn a map around at once.
    B, C, H, W = x.shape
    h, w = H // side, W // side
    rows = x.reshape(B * C, h, side, W).transpose(1, 2)
    columns = rows.reshape(B * C * side, h * w, side).transpose(1, 2)
    return columns.reshape(B, C * side**2, h, w)


def from_cells(x: Tensor, side: int) -> Tensor:
    """Depth to space, `F.pixel_shuffle`: (B, C side², h, w) -> (B, C, h side, w side)."""
    if not exporting():
        return F.pixel_shuffle(x, side)
    B, C, h, w = x.shape
    columns = x.reshape(B * C // side, side, h * w).transpose(1, 2)
    rows = columns.reshape(B * C // side**2, side, h, w * side).transpose(1, 2)
    return rows.reshape(B, C // side**2, h * side, w * side)


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
    if guide is None or all_of(known):
        return smooth
    guide = area(guide, (x.shape[-2], x.shape[-1]))
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


def precise(x: Tensor) -> Tensor:
    """x in float64, where small differences of large numbers follow; Apple's GPUs have none."""
    return x if x.device.type == "mps" else x.double()


def number(n: int, like: Tensor) -> Tensor:
    """A size as a tensor without axes: in a graph that is exported, sizes are not known."""
    return torch.full((), n, dtype=like.dtype, device=like.device)


def all_of(mask: Tensor) -> bool:
    """Whether all of it is true, so that work can be saved. No if nobody can know: while a graph is
    exported, or of tensors without values."""
    return not exporting() and not mask.is_meta and bool(mask.all())


def _next_valid(known: Tensor, axis: int, backwards: bool) -> tuple[Tensor, Tensor]:
    """Where, along an axis, the next valid pixel before (or behind) each of (B, 1, h, w) is, and
    how far; the distance is 0 if there is none, or if the pixel itself is valid."""
    n = known.shape[axis]
    index = torch.arange(n, device=known.device)
    index = (index[:, None] if axis == 2 else index).expand_as(known)
    if exporting():
        places = _running(torch.where(known, index, n if backwards else -1), axis, backwards)
    elif backwards:
        places = torch.where(known, index, n).flip(axis).cummin(axis).values.flip(axis)
    else:
        places = torch.where(known, index, -1).cummax(axis).values
    there = places < n if backwards else places >= 0
    return places.clamp(0, n - 1), torch.where(there, (places - index).abs(), 0)


def _running(x: Tensor, axis: int, backwards: bool) -> Tensor:
    """Running maximum (or, backwards, minimum) along an axis by doubling: no runtime has an
    operator for it."""
    n = x.shape[axis]
    for level in range(LEVELS):
        index = torch.arange(n, device=x.device) + (2**level if backwards else -(2**level))
        other = x.index_select(axis, index.clamp(0, n - 1))
        x = torch.minimum(x, other) if backwards else torch.maximum(x, other)
    return x


def continued(x: Tensor, valid: Tensor, levels: int = LEVELS) -> Tensor:
    """A smooth continuation of the valid pixels into holes (pull-push pyramid).

    Each level halves the map by averaging valid pixels only; holes take the bilinear value of the
    next coarser level. x (B, 1, h, w); valid (B, 1, h, w), bool or weights in [0, 1]: those of the
    levels below are weights, too, unless all of them are 0 or 1.
    """
    weight = valid.to(x.dtype)
    weighted = ((weight > 0) & (weight < 1)).flatten(1).any(1)[:, None, None, None]
    return _continued(x, weight, weighted, levels, (x.shape[-2], x.shape[-1]), 2)


def _continued(
    x: Tensor, weight: Tensor, weighted: Tensor, levels: int, whole: Size, shrink: int
) -> Tensor:
    """whole: size of the finest level; shrink: by how much the next one is coarser than that. Sizes
    in a graph are formulas, and halves of halves of halves take minutes to simplify."""
    valid = weight > 0
    x = torch.where(valid, x, torch.zeros_like(x))
    if levels == 0 or all_of(valid):
        return x
    h, w = x.shape[-2:]
    if not exporting() and h == 1 and w == 1:
        return x
    half = ((whole[0] + shrink - 1) // shrink, (whole[1] + shrink - 1) // shrink)
    pooled_weight = area(weight, half)
    safe_weight = pooled_weight.clamp_min(torch.finfo(x.dtype).tiny)
    coarse = area(weight * x, half) / safe_weight
    coarse = torch.where(pooled_weight > 0, coarse, torch.zeros_like(coarse))
    below = torch.where(weighted, pooled_weight, (pooled_weight > 0).to(x.dtype))
    filled = _continued(coarse, below, weighted, levels - 1, whole, 2 * shrink)
    return torch.where(valid, x, bilinear(filled, (h, w)))


def pad_to_multiple(x: Tensor, multiple: int) -> Tensor:
    """Pad (B, C, H, W) at the bottom and right so that both sides are multiples.

    Mirrors without repeating the edge pixel where the image is large enough, else repeats the edge
    pixel. Undo with ``y[..., :H, :W]``.
    """
    H, W = x.shape[-2:]
    if exporting():
        rows, columns = (axis.to(x.device) for axis in padded_axes((H, W), multiple))
        return x.index_select(2, rows).index_select(3, columns)
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
    tall, wide = ((n + multiple - 1) // multiple * multiple for n in size)
    # As numbers in tensors: a graph that is exported decides by the size that it meets.
    enough = [torch.full((), N) < torch.full((), 2 * n) for n, N in ((H, tall), (W, wide))]
    mirrored = (enough[0] & enough[1]).long()
    rows = padded_index(torch.arange(tall), H, mirrored)
    return rows, padded_index(torch.arange(wide), W, mirrored)


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
