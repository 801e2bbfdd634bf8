"""Deferred maps: rows of a map are computed when they are asked for.

A network is a chain of local steps (convolutions, resizing, arithmetic) between statistics of the
whole image (means, moments). `Rows` stands for the result of local steps without computing it; a
`Workspace` computes it strip by strip and keeps the few maps that must exist as a whole.

Each strip is read with the rows around it that its convolutions reach. Inside the image those extra
rows see a false border, and are cut off again; at the image's border they do not exist, and the
convolution pads as it does for the whole image. So strips equal the whole.
"""

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ducos.resize import Size, padded_axes

if TYPE_CHECKING:
    from ducos.models.strips.workspace import Stored, Workspace

FLOAT = 4  # bytes


class Rows:
    """A map (1, C, H, W) of which any rows can be read; networks treat it as a tensor.

    Torch functions of it are answered by `models.strips.functions`.

    Args:
        work: where it is computed.
        read: (first, last) -> rows first ≤ i < last, (1, C, last − first, W).
        row_bytes: needed at most to make one row, the row included.
    """

    def __init__(
        self,
        work: "Workspace",
        read: Callable[[int, int], Tensor],
        shape: tuple[int, int, int],
        row_bytes: int,
    ):
        self.work = work
        self.read = read
        self.channels, self.height, self.width = shape
        self.row_bytes = row_bytes
        self.is_kept = False
        self.stored: Stored | None = None
        self.values: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        return torch.Size((1, self.channels, self.height, self.width))

    @property
    def dtype(self) -> torch.dtype:
        return self.work.dtype

    @property
    def device(self) -> torch.device:
        return self.work.device

    def __len__(self) -> int:
        return 1

    @property
    def own_bytes(self) -> int:
        """Of one row itself."""
        return FLOAT * self.channels * self.width

    def keep(self, over: "Rows | None" = None) -> "Rows":
        """Compute the whole map now, once; what it was made from is let go. over: see
        `deferred.kept`."""
        if self.is_kept:
            return self
        room = over.stored if over is not None else None
        return self.become(self.work.store(self, room))

    def become(self, stored: "Stored") -> "Rows":
        """Be read from this map from now on: it holds the same values."""
        self.stored, self.read, self.row_bytes = stored, stored.read, stored.row_bytes
        self.is_kept = True
        return self

    # What networks write with signs and methods.

    def __add__(self, other: Any) -> Any:
        return torch.add(self, other)  # type: ignore[call-overload]

    def __sub__(self, other: Any) -> Any:
        return torch.sub(self, other)  # type: ignore[call-overload]

    def __mul__(self, other: Any) -> Any:
        return torch.mul(self, other)  # type: ignore[arg-type]

    def __getitem__(self, index: tuple[Any, slice, slice]) -> "Rows":
        """x[..., :H, :W]: the first rows and columns."""
        every, rows, columns = index
        assert every is ...
        assert not rows.start
        shape = (self.channels, len(range(self.height)[rows]), len(range(self.width)[columns]))
        return Rows(self.work, lambda a, b: self.read(a, b)[..., columns], shape, self.row_bytes)

    def mean(self, dim: Any, keepdim: bool = False) -> Any:
        return torch.mean(self, dim, keepdim=keepdim)  # type: ignore[call-overload]

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        from ducos.models.strips.functions import answer

        return answer(function, args, kwargs or {})


def given(work: "Workspace", x: Tensor) -> Rows:
    """Rows of a tensor (1, C, H, W) that exists anyway, handed out on the network's device."""
    _, C, H, W = x.shape
    rows = Rows(
        work,
        lambda first, last: x[:, :, first:last].to(work.device),
        (C, H, W),
        C * W * x.element_size(),
    )
    rows.is_kept, rows.values = True, x
    return rows


def rows_of(x: Any, first: int, last: int, height: int) -> Any:
    """These rows of an input of a local function; a tensor that is not as tall is the same for
    all rows."""
    if isinstance(x, Rows):
        return x.read(first, last)
    if isinstance(x, Tensor):
        tall = x.ndim >= 2 and x.shape[-2] == height > 1
        return x[..., first:last, :] if tall else x
    return x.rows(first, last) if hasattr(x, "rows") else x


def bytes_to_make(inputs: Sequence[Any], own: int, shrink: int = 1, grow: int = 1) -> int:
    """Per row of a result: its inputs are made one after the other and held; then `own` is."""
    most = held = 0
    for x in inputs:
        if isinstance(x, Tensor):
            continue
        most = max(most, held + x.row_bytes)
        held += x.own_bytes if isinstance(x, Rows) else x.row_bytes
    return max(most * shrink // grow, held * shrink // grow + own)


def local_rows(
    function: Callable[..., Tensor],
    inputs: Sequence[Any],
    channels: int,
    *,
    reach: int = 0,
    shrink: int = 1,
    grow: int = 1,
) -> Rows:
    """The rows of function(*inputs): see `deferred.local`."""
    maps = [x for x in inputs if isinstance(x, Rows)]
    tall = maps[0].height
    count, width = tall // shrink, maps[0].width // shrink * grow

    def read(first: int, last: int) -> Tensor:
        top = max(0, first // grow - reach)
        bottom = min(count, -(-last // grow) + reach)
        result = function(*[rows_of(x, top * shrink, bottom * shrink, tall) for x in inputs])
        return result[:, :, first - top * grow : last - top * grow]

    # One intermediate of the wider side, the result, and the copies a convolution makes.
    widest = max(channels * width, *(x.channels * x.width * shrink // grow for x in maps))
    needed = [x for x in inputs if isinstance(x, Rows) or hasattr(x, "row_bytes")]
    row_bytes = bytes_to_make(needed, 4 * FLOAT * widest, shrink, grow)
    return Rows(maps[0].work, read, (channels, count * grow, width), row_bytes)


def resized(source: Rows, size: Size, method: Callable[[Tensor, Size], Tensor]) -> Rows:
    """The rows of method(source, size), for any separable resampling that is the identity along an
    axis whose size stays.

    The weights of the rows are what the method itself makes of unit rows, so no kernel is restated.
    """
    H, W = size
    h = source.height
    if (h, source.width) == (H, W):
        return source
    scale = h / H
    reach = 2 * max(scale, 1.0) + 2  # a cubic kernel, and either convention of pixel centres

    def read(first: int, last: int) -> Tensor:
        top = max(0, floor(first * scale - reach))
        bottom = min(h, ceil(last * scale + reach))
        wide = method(source.read(top, bottom), (bottom - top, W))
        units = wide.new_zeros(1, 1, h, bottom - top)
        units[0, 0, top:bottom].fill_diagonal_(1)
        weights = method(units, (H, bottom - top))[0, 0, first:last]
        return weights @ wide

    own = 3 * FLOAT * source.channels * W
    made_from = (source.row_bytes + FLOAT * source.channels * W) * max(1, ceil(scale))
    return Rows(source.work, read, (source.channels, H, W), own + made_from)


def padded(source: Rows, multiple: int) -> Rows:
    """The rows of `pad_to_multiple(source, multiple)`."""
    rows, columns = padded_axes((source.height, source.width), multiple)
    if (len(rows), len(columns)) == (source.height, source.width):
        return source

    def read(first: int, last: int) -> Tensor:
        wanted = rows[first:last]
        top, bottom = int(wanted.min()), int(wanted.max()) + 1
        strip = source.read(top, bottom)
        strip = strip.index_select(2, (wanted - top).to(strip.device))
        return strip.index_select(3, columns.to(strip.device))

    own = 2 * FLOAT * source.channels * len(columns)
    shape = (source.channels, len(rows), len(columns))
    return Rows(source.work, read, shape, bytes_to_make([source], own))
