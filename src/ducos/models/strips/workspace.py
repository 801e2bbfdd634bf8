"""Where a pass in strips keeps its whole maps: in memory while they fit a budget, else in nameless
temporary files."""

import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import torch
from torch import Tensor

from ducos.models.strips.rows import Rows, given

SMALLEST_STRIP = 8  # rows; strips begin at multiples of it, so that no cell of a network is cut
SHARE_OF_STRIPS = 0.25
# Beyond this, larger strips save no time: few rows are computed twice, and caches overflow.
LARGEST_STRIP_BYTES = 96 * 2**20


class Stored:
    """A whole map (1, C, H, W), in memory or in a temporary file; freed with its last reference."""

    def __init__(self, work: "Workspace", channels: int, height: int, width: int):
        self.channels = channels
        self.width = width
        self.device = work.device
        self.dtype = work.dtype
        self.row_bytes = channels * width * self.dtype.itemsize
        self.values: Tensor | None = None
        self.file: BinaryIO | None = None
        size = self.row_bytes * height
        in_memory = work.claim(size)
        weakref.finalize(self, work.release, size, in_memory)
        if work.planning:
            return
        if in_memory:
            self.values = torch.empty(1, channels, height, width, dtype=self.dtype)
        else:
            self.file = tempfile.TemporaryFile(prefix="ducos-", buffering=0)  # noqa: SIM115
            work.files.add(self.file)
            weakref.finalize(self, work.close, self.file)

    def read(self, first: int, last: int) -> Tensor:
        """Rows first ≤ i < last: (1, C, last − first, W)."""
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
                raise OSError("a temporary file of a pass in strips ended early")
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
        planned: the workspace in which the same pass was planned.
        progress: called with the share of the planned work that is done, in [0, 1].
    """

    def __init__(
        self,
        memory: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        planning: bool = False,
        planned: "Workspace | None" = None,
        progress: Callable[[float], None] | None = None,
    ):
        self.device = device
        self.dtype = dtype
        self.planning = planning
        self.progress = progress
        self.work = 0
        self.total: int = planned.work if planned else 0
        self.answers: list[Any] = planned.answers if planned else []
        self.asked = 0
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

    def given(self, x: Tensor) -> Rows:
        """Rows of a tensor (1, C, H, W) that exists anyway."""
        return given(self, x)

    def strips(self, *sources: Rows) -> Iterator[tuple[int, int]]:
        """Bounds of strips to read together from maps of one size; counts them as work."""
        height = sources[0].height
        work_per_row = sum(x.channels for x in sources) * sources[0].width
        if self.planning:
            self.work += height * work_per_row
            return
        rows = self.strip_bytes // sum(x.row_bytes for x in sources)
        rows = max(SMALLEST_STRIP, rows // SMALLEST_STRIP * SMALLEST_STRIP)
        for first in range(0, height, rows):
            last = min(height, first + rows)
            yield first, last
            self.work += (last - first) * work_per_row
            if self.progress is not None and self.total:
                self.progress(min(1.0, self.work / self.total))

    def store(self, source: Rows, room: Stored | None = None) -> Stored:
        """Compute a whole map, into the room of another of its size if there is one."""
        target = room or Stored(self, source.channels, source.height, source.width)
        for first, last in self.strips(source):
            target.write(first, source.read(first, last))
        return target

    def tensor(self, source: Rows) -> Tensor:
        """Compute a whole map (1, C, H, W) as a tensor, outside of the budget, on the CPU."""
        if self.planning:
            target = torch.zeros(1, 1, 1, 1, dtype=self.dtype).expand(source.shape)
        else:
            target = torch.empty(source.shape, dtype=self.dtype)
        for first, last in self.strips(source):
            target[:, :, first:last] = source.read(first, last)
        return target

    def once(self, make: Callable[[], Any]) -> Any:
        """make(), or what it gave when this pass was planned."""
        if self.asked == len(self.answers):
            self.answers.append(make())
        self.asked += 1
        return self.answers[self.asked - 1]
