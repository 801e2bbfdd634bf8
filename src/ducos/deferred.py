"""What a network says about its pass, so that the same pass can run a few rows at a time.

A network's `forward` is written once, in torch, over tensors. To run it on an image that does not
fit into memory it is handed *deferred* maps instead (`models.strips`): they have a shape, and torch
functions of them give further deferred maps, but nothing is computed until rows are asked for. The
few things such a pass must be told are said with the functions below. For tensors they cost, and
do, next to nothing.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function


def exporting() -> bool:
    """Whether a graph is being made of this pass, which must then serve sizes and values that are
    not known yet: nothing may be decided by them."""
    return torch.compiler.is_exporting() or torch.jit.is_tracing()


def is_deferred(*maps: Any) -> bool:
    """Whether any of these is a deferred map: no tensor, but torch functions take it."""
    # Not torch's has_torch_function, which says yes to everything under `with torch.device(...)`.
    return any(
        hasattr(type(each), "__torch_function__") and not isinstance(each, Tensor) for each in maps
    )


def kept(x: Any, over: Any = None) -> Any:
    """x, because it is needed more than once: a deferred map is now computed and kept.

    over: a kept map of which x takes the room, because nothing else needs it any more; x must be
        made of its single pixels.
    """
    return handle_torch_function(kept, (x,), x, over) if is_deferred(x) else x


def whole(x: Any) -> Tensor:
    """x as a tensor: for maps that are small even of a large image."""
    return handle_torch_function(whole, (x,), x) if is_deferred(x) else x


def at_once(function: Callable[[Tensor], Any], x: Any) -> Any:
    """function(x), which needs the whole map x and gives a tuple of maps (1, C, ?, ?)."""
    if is_deferred(x):
        return handle_torch_function(at_once, (x,), function, x)
    return function(x)


def local(
    function: Callable[..., Any],
    *inputs: Any,
    channels: int | tuple[int, ...],
    reach: int = 0,
    shrink: int = 1,
    grow: int = 1,
) -> Any:
    """function(*inputs), a function that looks at a neighbourhood only: it can be called for any
    rows of an image alone.

    A chain of torch functions is local without this. It is for functions that use an intermediate
    more than once, which a chain of deferred maps would compute as often.

    Args:
        inputs: maps of one size, the first of them a tensor or deferred; others may also be
            objects whose `rows(first, last)` is the same object for some rows.
        channels: of the result; several numbers for a function with several results, all kept.
        reach: how many rows up and down its convolutions see, in rows of the shrunk map.
        shrink: input rows per row of the convolutions (stride, space-to-depth).
        grow: result rows per row of the convolutions (depth-to-space, deconvolution).
    """
    if not is_deferred(*inputs):
        return function(*inputs)
    options: dict[str, Any] = {"reach": reach, "shrink": shrink, "grow": grow}
    return handle_torch_function(local, inputs, function, *inputs, channels=channels, **options)
