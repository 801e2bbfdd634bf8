"""`models.mixing` over rows: the measured pixels around each strip, and the tail's corrections."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.models.ducos.guide import applied, fits, shrunk
from ducos.models.ducos.mixing import (
    TAPS,
    MixingTail,
    Window,
    gather,
    local_contrast,
    mix,
    window_of,
    within_reach,
)
from ducos.models.ducos.paper import DuCos
from ducos.models.prediction import Prediction
from ducos.models.tiling.rows import (
    Computed,
    Rows,
    Stored,
    Workspace,
    local,
    padded,
    padded_axes,
    resized,
    whole,
)
from ducos.resize import bicubic, bilinear


class Surroundings:
    """Windows into the low-resolution map, for any rows of the image.

    low (1, 1, h, w); valid (1, 1, h, w) bool or None; rgb (1, 3, H, W); up: rows of bicubic(low) at
    that size; windows: of the guided depths that the network has.
    """

    def __init__(
        self, low: Tensor, valid: Tensor | None, rgb: Tensor, up: Rows, *, windows: list[int]
    ):
        self.low = low
        self.valid = valid
        self.size = size = (rgb.shape[-2], rgb.shape[-1])
        self.up = up
        self.image = whole(rgb, low.device)
        h, w = low.shape[-2:]
        # Rows and columns apart: the phase of a whole image would take as much as its result.
        self.down = window_of((h, 1), (size[0], 1), low)
        self.across = window_of((1, w), (1, size[1]), low)
        self.guided = self.follow(rgb, windows) if windows else None

    def window(self, rows: Tensor, columns: Tensor | None = None) -> tuple[Window, slice]:
        """Window of these image rows (and columns; None: all), and the rows of the low-resolution
        map it points into: its indices count from there."""
        down, across = self.down, self.across
        index = down.rows[rows]
        reached = slice(int(index.min()), int(index.max()) + 1)
        phase_y, phase_x = down.phase[0, 0, rows, 0], across.phase[0, 1, 0]
        if columns is None:
            columns = torch.arange(self.size[1], device=rows.device)
        phase_x = phase_x[columns]
        shape = (len(rows), len(columns))
        phase = torch.stack([phase_y[:, None].expand(shape), phase_x[None, :].expand(shape)])
        window = Window(
            index - reached.start,
            across.columns[columns],
            down.row_weights[rows],
            across.column_weights[columns],
            phase[None],
        )
        return window, reached

    def follow(self, rgb: Tensor, windows: list[int]) -> Rows:
        """`models.guide.follow`; what is kept is as small as the measurements."""
        device = self.low.device
        h, w = self.low.shape[-2:]
        fitted = fits(shrunk(rgb, (h, w)).to(device), self.low, self.valid, windows)
        coefficients = resized(whole(fitted, device), self.size, bilinear)

        def read(first: int, last: int) -> Tensor:
            window, reached = self.window(torch.arange(first, last, device=device))
            _, contrast = local_contrast(self.low[:, :, reached], window)
            up, image = self.up.read(first, last), self.image.read(first, last)
            return applied(coefficients.read(first, last), image, up, contrast, windows)

        needed = self.up.row_bytes + self.image.row_bytes + coefficients.row_bytes
        return Computed(read, len(windows), *self.size, needed + 4 * 16 * self.size[1])

    def described(self, model: DuCos) -> Rows:
        """`DuCos.describe`: what the body sees."""
        stride = model.stride
        device = self.low.device
        rows, columns = (axis.to(device) for axis in padded_axes(self.size, model.multiple))
        up = padded(self.up, model.multiple)
        image = padded(self.image, model.multiple)
        ahead = None if self.guided is None else padded(self.guided, model.multiple)
        h, w = self.low.shape[-2:]
        ratio = self.low.new_tensor([self.size[0] / h, self.size[1] / w]).log2() / 4

        def read(first: int, last: int) -> Tensor:
            window, reached = self.window(rows[first * stride : last * stride], columns)
            low = self.low[:, :, reached]
            valid = None if self.valid is None else self.valid[:, :, reached]
            mean, contrast = local_contrast(low, window)
            strip = up.read(first * stride, last * stride)
            colours = image.read(first * stride, last * stride)
            guided = None if ahead is None else ahead.read(first * stride, last * stride)
            inputs = model.describe(strip, mean, contrast, window, low, valid, colours, guided)
            inputs = inputs[:, :, : last - first]
            inputs[:, -2:] = ratio[None, :, None, None]  # of the image, not of the strip
            return inputs

        channels = model.head.in_channels
        height, width = len(rows) // stride, len(columns) // stride
        full = stride * (up.row_bytes + image.row_bytes + 4 * 16 * len(columns))
        full += 0 if ahead is None else stride * ahead.row_bytes
        return Computed(read, channels, height, width, full + 4 * 3 * channels * width)


def mixing_tail(
    work: Workspace, tail: MixingTail, features: Rows, around: Surroundings
) -> Prediction:
    """`MixingTail.forward`. The weights are kept between corrections: making them again would cost
    more than reading them, even from a file."""
    H, W = around.size
    low, valid = around.low, around.valid
    stride = tail.stride
    predicted = local(
        lambda features: F.pixel_shuffle(tail.predict(features), stride),
        [features],
        sum(tail.maps),
        reach=1,
        grow=stride,
    )
    kept = Stored(work, TAPS**2 + 1, H, W) if tail.corrections else None
    depth = torch.empty(1, 1, 0 if work.planning else H, W, dtype=low.dtype)
    sigma = torch.empty_like(depth)
    everything = Computed(
        predicted.read,
        3 * predicted.channels,
        H,
        W,
        predicted.row_bytes + around.up.row_bytes + 4 * W * 6 * TAPS**2,
    )
    for first, last in work.strips(everything, whole_cells=stride):
        maps = predicted.read(first, last)[..., :W]
        window, reached = around.window(torch.arange(first, last, device=low.device))
        near = low[:, :, reached]
        hole = None if valid is None else gather(~valid[:, :, reached], window)
        up = around.up.read(first, last)
        _, contrast = local_contrast(near, window)
        neighbours = gather(near, window)
        guided = None if around.guided is None else around.guided.read(first, last)
        proposal = tail.propose(maps, near, hole, up, window, neighbours, contrast, guided)
        depth[:, :, first:last] = proposal.depth
        sigma[:, :, first:last] = proposal.sigma
        if kept is not None:
            kept.write(first, torch.cat([proposal.weights, proposal.trust], 1))

    for _ in range(tail.corrections):
        assert kept is not None
        if work.planning:
            missing = torch.zeros_like(low)
        else:
            missing = low - bicubic(depth, (low.shape[-2], low.shape[-1])).to(low.device)
        if valid is not None:
            missing = missing * valid
        for first, last in work.strips(kept):
            weights, trust = kept.read(first, last).split([TAPS**2, 1], 1)
            window, reached = around.window(torch.arange(first, last, device=low.device))
            depth[:, :, first:last] += (trust * mix(weights, missing[:, :, reached], window)).cpu()

    def bounded(first: int, last: int) -> Tensor:
        window, reached = around.window(torch.arange(first, last, device=low.device))
        strip = depth[:, :, first:last].to(low.device)
        return within_reach(strip, gather(low[:, :, reached], window))

    for first, last in work.strips(Computed(bounded, 1, H, W, 4 * W * 4 * TAPS**2)):
        depth[:, :, first:last] = bounded(first, last)
    return Prediction(depth, {"sigma": sigma})
