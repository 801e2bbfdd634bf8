"""Maps that are computed or read a few rows at a time.

A network is a chain of local steps (convolutions, resizing, arithmetic) between statistics of the
whole image (means, moments). `Rows` describes the result of local steps without computing it; a
`Workspace` computes it strip by strip and keeps the few maps that must exist as a whole, in memory
while they fit its budget, else in nameless temporary files.

Each strip is read with the rows around it that its convolutions reach. Inside the image those extra
rows see a false border, and are cut off again; at the image's border they do not exist, and the
convolution pads as it does for the whole image. So strips equal the whole.
"""

import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor
from typing import BinaryIO, Protocol

import torch
from torch import Tensor

from ducos.resize import Size

SMALLEST_STRIP = 8
SHARE_OF_STRIPS = 0.25
# Beyond this, larger strips save no time: few rows are computed twice, and caches overflow.
LARGEST_STRIP_BYTES = 96 * 2**20


class Rows(Protocol):
    """A map (1, C, H, W) of which any rows can be asked for; row_bytes: needed to make one row."""

    channels: int
    height: int
    width: int
    row_bytes: int

    def read(self, first: int, last: int) -> Tensor:
        """Rows first ≤ i < last: (1, C, last − first, W)."""
        ...


class Computed:
    """Rows that a function makes when asked."""

    def __init__(
        self,
        read: Callable[[int, int], Tensor],
        channels: int,
        height: int,
        width: int,
        row_bytes: int,
    ):
        self.read = read
        self.channels = channels
        self.height = height
        self.width = width
        self.row_bytes = row_bytes


def whole(x: Tensor, device: torch.device) -> Rows:
    """Rows of a tensor (1, C, H, W) that exists anyway, handed out on the network's device."""
    _, C, H, W = x.shape
    bytes_per_row = C * W * x.element_size()
    return Computed(lambda first, last: x[:, :, first:last].to(device), C, H, W, bytes_per_row)


def local(
    function: Callable[..., Tensor],
    inputs: Sequence[Rows],
    channels: int,
    *,
    reach: int = 0,
    shrink: int = 1,
    grow: int = 1,
) -> Rows:
    """The rows of function(*inputs), a function that looks at a neighbourhood only.

    Args:
        inputs: maps of one size.
        channels: of the result.
        reach: how many rows up and down its 3×3 convolutions see, in rows of the shrunk map.
        shrink: input rows per row of the convolutions (stride, space-to-depth).
        grow: result rows per row of the convolutions (depth-to-space, deconvolution).
    """
    count = inputs[0].height // shrink
    width = inputs[0].width // shrink * grow

    def read(first: int, last: int) -> Tensor:
        top = max(0, first // grow - reach)
        bottom = min(count, -(-last // grow) + reach)
        result = function(*[x.read(top * shrink, bottom * shrink) for x in inputs])
        return result[:, :, first - top * grow : last - top * grow]

    # Inputs, one intermediate of the wider side, the result, and the copies a convolution makes.
    widest = max(channels * width, *(x.channels * x.width * shrink // grow for x in inputs))
    made_from = sum(x.row_bytes for x in inputs) * shrink // grow
    return Computed(read, channels, count * grow, width, made_from + 4 * 4 * widest)


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
        units = torch.eye(h, device=wide.device, dtype=wide.dtype)[None, None, :, top:bottom]
        weights = method(units, (H, bottom - top))[0, 0, first:last]
        return weights @ wide

    own = 4 * 3 * source.channels * W
    made_from = (source.row_bytes + 4 * source.channels * W) * max(1, ceil(scale))
    return Computed(read, source.channels, H, W, own + made_from)


def padded_axes(size: Size, multiple: int) -> tuple[Tensor, Tensor]:
    """Which row and column of an image each one of `pad_to_multiple(image)` repeats."""
    H, W = size
    bottom, right = -H % multiple, -W % multiple
    mirrored = bottom < H and right < W

    def axis(n: int, extra: int) -> Tensor:
        index = torch.arange(n + extra)
        return torch.where(index < n, index, 2 * (n - 1) - index if mirrored else n - 1)

    return axis(H, bottom), axis(W, right)


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

    own = 4 * 2 * source.channels * len(columns)
    return Computed(read, source.channels, len(rows), len(columns), source.row_bytes + own)


class Stored:
    """A whole map (1, C, H, W), in memory or in a temporary file; freed with its last reference."""

    def __init__(self, workspace: "Workspace", channels: int, height: int, width: int):
        self.channels = channels
        self.height = height
        self.width = width
        self.device = workspace.device
        self.dtype = workspace.dtype
        self.row_bytes = channels * width * self.dtype.itemsize
        self.values: Tensor | None = None
        self.file: BinaryIO | None = None
        size = self.row_bytes * height
        in_memory = workspace.claim(size)
        weakref.finalize(self, workspace.release, size, in_memory)
        if workspace.planning:
            return
        if in_memory:
            self.values = torch.empty(1, channels, height, width, dtype=self.dtype)
        else:
            self.file = tempfile.TemporaryFile(prefix="ducos-", buffering=0)  # noqa: SIM115
            workspace.files.add(self.file)
            weakref.finalize(self, workspace.close, self.file)

    def read(self, first: int, last: int) -> Tensor:
        if self.values is not None:
            return self.values[:, :, first:last].to(self.device)
        assert self.file is not None
        # A file holds row after row with all channels, so that a strip is one piece of it.
        strip = torch.empty(last - first, self.channels, self.width, dtype=self.dtype)
        waiting = bytes_of(strip)
        self.file.seek(first * self.row_bytes)
        while waiting:
            count = self.file.readinto(waiting)  # type: ignore[attr-defined]
            if not count:
                raise OSError("a temporary file of the tiled pass ended early")
            waiting = waiting[count:]
        return strip.transpose(0, 1)[None].to(self.device)

    def write(self, first: int, strip: Tensor) -> None:
        """Set the rows from `first` on to strip (1, C, n, W)."""
        if self.values is not None:
            self.values[:, :, first : first + strip.shape[2]] = strip
            return
        assert self.file is not None
        waiting = bytes_of(strip[0].transpose(0, 1).contiguous().cpu())
        self.file.seek(first * self.row_bytes)
        while waiting:
            waiting = waiting[self.file.write(waiting) :]


def bytes_of(x: Tensor) -> memoryview:
    """The memory of a contiguous tensor."""
    return memoryview(x.numpy().data).cast("B")


class Workspace:
    """Where maps are kept and strips are computed, within a budget of memory.

    As a context manager it closes, and so deletes, all temporary files, whatever happens.

    Args:
        memory: bytes for stored maps and strips together; input, output and the network come on
            top. Strips never have fewer than a few rows, so very wide images need their due.
        planning: compute nothing, only add up `work` and `largest_files`.
        progress: called with the share of `total` that is done, in [0, 1].
        total: the work of a planned run.
    """

    def __init__(
        self,
        memory: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        planning: bool = False,
        progress: Callable[[float], None] | None = None,
        total: int = 0,
    ):
        self.device = device
        self.dtype = dtype
        self.planning = planning
        self.progress = progress
        self.total = total
        self.work = 0
        self.strip_bytes = int(min(memory * SHARE_OF_STRIPS, LARGEST_STRIP_BYTES))
        self.free_memory = memory - self.strip_bytes
        self.file_bytes = 0
        self.largest_files = 0
        self.files: set[BinaryIO] = set()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *problem: object) -> None:
        for file in list(self.files):
            self.close(file)

    def claim(self, size: int) -> bool:
        """Account for a new map; True if it fits in memory, False if it goes to a file."""
        if size <= self.free_memory:
            self.free_memory -= size
            return True
        self.file_bytes += size
        self.largest_files = max(self.largest_files, self.file_bytes)
        return False

    def release(self, size: int, in_memory: bool) -> None:
        """Undo `claim`."""
        if in_memory:
            self.free_memory += size
        else:
            self.file_bytes -= size

    def close(self, file: BinaryIO) -> None:
        """Close a temporary file; it has no name, so that deletes it."""
        file.close()
        self.files.discard(file)

    def strips(self, *sources: Rows, whole_cells: int = 1) -> Iterator[tuple[int, int]]:
        """Bounds of strips to read together from maps of one size; counts them as work.

        whole_cells: strips begin at multiples of it.
        """
        height = sources[0].height
        work_per_row = sum(x.channels for x in sources) * sources[0].width
        if self.planning:
            self.work += height * work_per_row
            return
        rows = self.strip_bytes // sum(x.row_bytes for x in sources)
        rows = max(SMALLEST_STRIP, rows) // whole_cells * whole_cells or whole_cells
        for first in range(0, height, rows):
            last = min(height, first + rows)
            yield first, last
            self.work += (last - first) * work_per_row
            if self.progress is not None and self.total:
                self.progress(min(1.0, self.work / self.total))

    def store(self, source: Rows) -> Stored:
        """Compute a whole map."""
        target = Stored(self, source.channels, source.height, source.width)
        self.overwrite(target, source)
        return target

    def overwrite(self, target: Stored, source: Rows) -> None:
        """Compute a whole map into one that exists; source may read the same rows of target."""
        for first, last in self.strips(source):
            target.write(first, source.read(first, last))

    def store_with_mean(self, source: Rows) -> tuple[Stored, Tensor]:
        """Compute a whole map, and the mean of each channel, (1, C, 1, 1)."""
        target = Stored(self, source.channels, source.height, source.width)
        total = torch.zeros(1, source.channels, 1, 1, dtype=torch.float64, device=self.device)
        for first, last in self.strips(source):
            strip = source.read(first, last)
            target.write(first, strip)
            total += strip.sum((2, 3), keepdim=True, dtype=torch.float64)
        return target, (total / (source.height * source.width)).to(self.dtype)
