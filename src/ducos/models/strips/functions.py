"""What torch functions make of deferred maps: the few that our networks are written with."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos import deferred
from ducos.models.blocks import Moments, moments
from ducos.models.strips.rows import (
    FLOAT,
    Rows,
    bytes_to_make,
    local_rows,
    padded,
    resized,
    rows_of,
)
from ducos.models.strips.workspace import Stored
from ducos.resize import Size, antialiased, pad_to_multiple

BY_PIXEL = {"add", "addcmul", "leaky_relu", "lerp", "mul", "relu", "sigmoid", "sub"}
"""Functions of single pixels, by name: `torch.add`, `Tensor.__add__` and `Tensor.add` are one."""


def answer(function: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """function(*args, **kwargs), some of which are `Rows`."""
    if function in RULES:
        return RULES[function](*args, **kwargs)
    name = function.__name__.strip("_")
    if name in BY_PIXEL:
        return by_pixel(function, args, kwargs)
    raise TypeError(
        f"{name} has no form for strips; add one to {__name__}, or call it within "
        "ducos.deferred.local"
    )


def by_pixel(function: Callable[..., Tensor], args: tuple, kwargs: dict) -> Rows:
    """Arithmetic: rows of the result are made of the same rows of the arguments."""
    maps = [x for x in args if isinstance(x, Rows)]
    shapes = [x.shape for x in args if isinstance(x, Rows | Tensor)]
    _, channels, height, width = torch.broadcast_shapes(*shapes)

    def read(first: int, last: int) -> Tensor:
        return function(*[rows_of(x, first, last, height) for x in args], **kwargs)

    row_bytes = bytes_to_make(maps, FLOAT * channels * width)
    return Rows(maps[0].work, read, (channels, height, width), row_bytes)


def cat(maps: list[Any], dim: int) -> Rows:
    """Concatenation along the channels."""
    assert dim == 1
    first = next(x for x in maps if isinstance(x, Rows))
    height, width = first.height, first.width

    def read(top: int, bottom: int) -> Tensor:
        return torch.cat([rows_of(x, top, bottom, height) for x in maps], 1)

    channels = sum(x.shape[1] for x in maps)
    row_bytes = bytes_to_make(maps, FLOAT * channels * width)
    return Rows(first.work, read, (channels, height, width), row_bytes)


def conv2d(
    x: Rows,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Rows:
    """A convolution that keeps the size, or shrinks it by its stride."""
    (step, reach), side = (one_of(n) for n in (stride, padding)), weight.shape[-1]
    assert side == 2 * reach + 1
    assert one_of(dilation) == 1
    return local_rows(
        lambda x: F.conv2d(x, weight, bias, stride, padding, dilation, groups),
        [x],
        weight.shape[0],
        reach=reach,
        shrink=step,
    )


def conv_transpose2d(
    x: Rows, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, *rest: Any
) -> Rows:
    """A deconvolution whose cells do not overlap."""
    step = one_of(stride)
    assert weight.shape[-1] == step
    return local_rows(
        lambda x: F.conv_transpose2d(x, weight, bias, stride, *rest),
        [x],
        weight.shape[1],
        grow=step,
    )


def one_of(n: int | tuple[int, ...]) -> int:
    """A number that holds for both axes."""
    if isinstance(n, int):
        return n
    assert len(set(n)) == 1
    return n[0]


def pixel_shuffle(x: Rows, factor: int) -> Rows:
    """Depth-to-space."""
    shuffle = F.pixel_shuffle
    return local_rows(lambda x: shuffle(x, factor), [x], x.channels // factor**2, grow=factor)


def pixel_unshuffle(x: Rows, factor: int) -> Rows:
    """Space-to-depth."""
    shuffle = F.pixel_unshuffle
    return local_rows(lambda x: shuffle(x, factor), [x], x.channels * factor**2, shrink=factor)


def interpolate(x: Rows, size: Any, **how: Any) -> Rows:
    """Any separable resampling of torch."""
    how = {name: value for name, value in how.items() if value is not None}
    return resized(x, (size[0], size[1]), lambda x, size: F.interpolate(x, size=size, **how))


def resample(x: Rows, size: Size, mode: str) -> Rows:
    """`resize.bicubic` and `resize.bilinear`."""
    return resized(x, size, lambda x, size: antialiased(x, size, mode))


def mean(x: Rows, dim: Any, *, keepdim: bool) -> Tensor:
    """Mean of each channel over the image, (1, C, 1, 1); x is kept on the way."""
    assert tuple(dim) == (2, 3)
    assert keepdim
    target = None if x.is_kept else Stored(x.work, x.channels, x.height, x.width)
    total = torch.zeros(1, x.channels, 1, 1, dtype=torch.float64, device=x.device)
    for first, last in x.work.strips(x):
        strip = x.read(first, last)
        if target is not None:
            target.write(first, strip)
        total += strip.sum((2, 3), keepdim=True, dtype=torch.float64)
    if target is not None:
        x.become(target)
    return (total / (x.height * x.width)).to(x.dtype)


def moments_of(a: Rows, b: Rows) -> Moments:
    """`blocks.moments` over the image, in one look at both maps, summed in float64."""
    sums = torch.zeros(5, 1, a.channels, 1, 1, dtype=torch.float64, device=a.device)
    for first, last in a.work.strips(a, b):
        x, y = a.read(first, last).double(), b.read(first, last).double()
        products = (p * q for p, q in ((x, x), (y, y), (x, y)))  # one of them at a time
        terms = chain((x, y), products)
        sums += torch.stack([term.sum((2, 3), keepdim=True) for term in terms])
    mean_a, mean_b, square_a, square_b, product = sums / (a.height * a.width)
    return Moments(
        (square_a - mean_a**2).clamp_min(0),
        (square_b - mean_b**2).clamp_min(0),
        product - mean_a * mean_b,
    )


def local(
    function: Callable[..., Any], *inputs: Any, channels: int | tuple[int, ...], **how: int
) -> Any:
    """`deferred.local`: a step, or several maps that are kept at once."""
    if isinstance(channels, int):
        return local_rows(function, inputs, channels, **how)
    assert how == {"reach": 0, "shrink": 1, "grow": 1}
    step = local_rows(function, inputs, sum(channels))
    work, height = step.work, step.height
    stored = [Stored(work, count, height, step.width) for count in channels]
    for first, last in work.strips(step):
        made = function(*[rows_of(x, first, last, height) for x in inputs])
        for target, strip in zip(stored, made, strict=True):
            target.write(first, strip)
    shapes = [(count, height, step.width) for count in channels]
    return tuple(
        Rows(work, target.read, shape, target.row_bytes).become(target)
        for target, shape in zip(stored, shapes, strict=True)
    )


def whole(x: Rows) -> Tensor:
    """`deferred.whole`, on the network's device."""
    values = x.work.tensor(x) if x.values is None else x.values
    return values.to(x.device)


def at_once(function: Callable[[Tensor], Any], x: Rows) -> tuple[Rows, ...]:
    """`deferred.at_once`: once for the planned pass and the real one."""
    maps = x.work.once(lambda: function(x.read(0, x.height)))
    return tuple(x.work.given(map) for map in maps)


RULES: dict[Any, Callable[..., Any]] = {
    torch.cat: cat,
    torch.conv2d: conv2d,
    torch.conv_transpose2d: conv_transpose2d,
    torch.mean: mean,
    F.interpolate: interpolate,
    F.pixel_shuffle: pixel_shuffle,
    F.pixel_unshuffle: pixel_unshuffle,
    antialiased: resample,
    pad_to_multiple: padded,
    moments: moments_of,
    deferred.kept: Rows.keep,
    deferred.whole: whole,
    deferred.at_once: at_once,
    deferred.local: local,
}
