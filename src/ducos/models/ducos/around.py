"""What surrounds each output pixel: the 4×4 low-resolution pixels around it, and what follows from
them.

All of it can be had for the whole image, or for some of its rows alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ducos.deferred import at_once, exporting, whole
from ducos.kernels import after_and_phase, spline
from ducos.models.ducos.guide import applied, fits, shrunk
from ducos.models.ducos.shrinking import shares
from ducos.resize import Size, all_of, bicubic, bilinear, number, precise

TAPS = 4


class Window(NamedTuple):
    """Where the 4×4 neighbours of each output pixel lie in the low-resolution map.

    rows (H, 4), columns (W, 4): indices, clamped to the map.
    row_weights (H, 4), column_weights (W, 4): cubic B-spline at each neighbour's distance, summing
        to 1. It is zero where the window ends, so nothing jumps when the window moves on.
    row_phase (H,), column_phase (W,): fractional position between low-resolution pixel centres, in
        [0, 1).
    reached: the rows of the low-resolution map in which `rows` count.
    """

    rows: Tensor
    columns: Tensor
    row_weights: Tensor
    column_weights: Tensor
    row_phase: Tensor
    column_phase: Tensor
    reached: slice

    def part(self, first: int, last: int) -> "Window":
        """The window of some rows of the image."""
        some = slice(first, last)
        index = self.rows[some]
        top, bottom = int(index.min()), int(index.max()) + 1
        start = self.reached.start
        return self._replace(
            rows=index - top,
            row_weights=self.row_weights[some],
            row_phase=self.row_phase[some],
            reached=slice(start + top, start + bottom),
        )


def window_of(low_size: Size, size: Size, like: Tensor) -> Window:
    """The window for a low-resolution map of `low_size` under an image of `size`."""

    def axis(n: int, N: int) -> tuple[Tensor, Tensor, Tensor]:
        after, halves = after_and_phase(torch.arange(N, device=like.device), n, N)
        phase = halves.to(like.dtype) / (2 * N)
        offsets = torch.arange(TAPS, device=like.device) - 1
        index = after[:, None] - 1 + offsets  # (N, 4)
        distance = (offsets.to(like.dtype) - phase[:, None]).abs()
        return index.clamp(0, n - 1), torch.where(distance < 1, *spline(distance)), phase

    rows, weight_y, phase_y = axis(low_size[0], size[0])
    columns, weight_x, phase_x = axis(low_size[1], size[1])
    reached = slice(0, low_size[0])
    return Window(rows, columns, weight_y, weight_x, phase_y, phase_x, reached)


def widened(low: Tensor, window: Window) -> list[Tensor]:
    """For each of the four columns of a window: low (B, 1, h, w) -> (B, 1, reached rows, W).

    Columns first: picking single pixels is slow, and the map is still small then; picking rows of
    the widened map copies whole rows.
    """
    reached = low[:, :, window.reached]
    return [reached.index_select(3, window.columns[:, b]) for b in range(TAPS)]


def gather(low: Tensor, window: Window) -> Tensor:
    """The neighbours of each output pixel: low (B, 1, h, w) -> (B, 16, H, W)."""
    if exporting():  # two nodes of a graph instead of twenty
        B, W = low.shape[0], window.columns.shape[0]
        four = low[:, 0, window.reached][:, :, window.columns.T]  # (B, reached rows, 4, W)
        places = TAPS * window.rows.T[:, None] + torch.arange(TAPS)[:, None]  # (4, 4, H)
        return four.reshape(B, -1, W)[:, places.flatten(0, 1)]
    wide = widened(low, window)
    taps = [w.index_select(2, window.rows[:, a]) for a in range(TAPS) for w in wide]
    return torch.cat(taps, 1)


def extremes(low: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """The lowest and the highest of the neighbours of each output pixel, (B, 1, H, W) each."""

    def most(of: Any) -> Tensor:
        wide = reduce(of, widened(low, window))
        return reduce(of, (wide.index_select(2, window.rows[:, a]) for a in range(TAPS)))

    return most(torch.minimum), most(torch.maximum)


def mix(weights: Tensor, low: Tensor, window: Window, about: Tensor | None = None) -> Tensor:
    """Weighted sum of the neighbours: weights (B, 16, H, W), low (B, 1, h, w) -> (B, 1, H, W).

    about (B, 1, H, W): sum their squared differences from it instead, so the variance about a mean.
    A difference of the two sums of squares would be mostly rounding where the map is flat.
    """
    total = torch.zeros_like(weights[:, :1])
    shares = weights.split(1, 1)  # at once: the gradient of 16 slices would be 16 full maps
    wide = widened(low, window)
    for a in range(TAPS):
        for b in range(TAPS):
            tap = wide[b].index_select(2, window.rows[:, a])
            tap = tap if about is None else (tap - about).square()
            total = torch.addcmul(total, shares[TAPS * a + b], tap)
    return total


def spline_mean(low: Tensor, window: Window) -> Tensor:
    """Spline-weighted mean of the neighbours: low (B, 1, h, w) -> (B, 1, H, W), axis by axis."""
    wide = sum(
        column * window.column_weights[:, b] for b, column in enumerate(widened(low, window))
    )
    assert isinstance(wide, Tensor)  # (B, 1, reached rows, W)
    tall = sum(
        wide.index_select(2, window.rows[:, a]) * window.row_weights[:, a, None]
        for a in range(TAPS)
    )
    assert isinstance(tall, Tensor)
    return tall


def nearest_of(low: Tensor, window: Window) -> Tensor:
    """The low-resolution pixel that each output pixel lies in: (B, 1, h, w) -> (B, 1, H, W)."""
    row = torch.where(window.row_phase < 0.5, window.rows[:, 1], window.rows[:, 2])
    column = torch.where(window.column_phase < 0.5, window.columns[:, 1], window.columns[:, 2])
    return low[:, :, window.reached].index_select(3, column).index_select(2, row)


def linear_of(low: Tensor, window: Window) -> Tensor:
    """Linear interpolation between low-resolution pixels: (B, 1, h, w) -> (B, 1, H, W)."""
    reached = low[:, :, window.reached]
    left, right = (reached.index_select(3, window.columns[:, b]) for b in (1, 2))
    wide = torch.lerp(left, right, window.column_phase)
    above, below = (wide.index_select(2, window.rows[:, a]) for a in (1, 2))
    return torch.lerp(above, below, window.row_phase[:, None])


def local_contrast(low: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """Spline-weighted mean and twice the standard deviation of the neighbours, both (B, 1, H, W).

    Unlike the range of the neighbours they change smoothly as the window moves.
    """
    # A difference of squares: in float32 its rounding, and with it the result, would differ from
    # one runtime to the next by a thousandth of the range.
    centred = precise(low) - 0.5
    mean = spline_mean(centred, window)
    variance = spline_mean(centred**2, window) - mean**2
    rounding = 1e-7  # of measurements in float32: a flat map has no contrast
    contrast = 2 * (variance - rounding).clamp_min(0).sqrt()
    return (mean + 0.5).to(low.dtype), contrast.to(low.dtype)


def spline_logits(window: Window) -> Tensor:
    """Log of the spline weight of each neighbour, (1, 16, H, W) in row-major order."""
    log_y = window.row_weights.clamp_min(1e-6).log().T[:, None, :, None]  # (4, 1, H, 1)
    log_x = window.column_weights.clamp_min(1e-6).log().T[None, :, None, :]  # (1, 4, 1, W)
    return (log_y + log_x).flatten(0, 1)[None]


@dataclass(frozen=True)
class Around:
    """What surrounds the pixels of an image, or of some of its rows.

    image (B, 3, H, W) is RGB, upsampled (B, 1, H, W) = bicubic(low), and fit the regressions of low
    on the image over `sides` (see `guide.fits`) or None. These three belong to the whole image; in
    a pass that runs in strips they are deferred. low (B, 1, h, w) and valid (B, 1, h, w), bool or
    weights in [0, 1], or None if everything is fully trusted, are always whole. window and span are
    of the rows that this is about; a span of None means all. shrunk_by (B, 3): as `shrinking`,
    where it is known how a map was shrunk; rows of zeros where not.
    """

    image: Any
    upsampled: Any
    fit: Any
    sides: tuple[int, ...]
    low: Tensor
    valid: Tensor | None
    window: Window
    span: tuple[int, int] | None = None
    shrunk_by: Tensor | None = None

    @classmethod
    def of(
        cls,
        rgb: Any,
        low: Any,
        valid: Tensor | None,
        sides: tuple[int, ...] = (),
        shrunk_by: Tensor | None = None,
    ) -> "Around":
        """Of rgb (B, 3, H, W) and low (B, 1, h, w), which is regressed on it over `sides`."""
        size, low_size = ((x.shape[-2], x.shape[-1]) for x in (rgb, low))
        if valid is not None and all_of(valid == 1):
            valid = None
        upsampled, fit = bicubic(low, size), None
        low = whole(low)
        if sides:
            # At once: in the regression, differences of rounding between strips would grow.
            (fitted,) = at_once(
                lambda image: (fits(shrunk(image, low_size), low, valid, sides),), rgb
            )
            fit = bilinear(fitted, size)
        window = window_of(low_size, size, low)
        return cls(rgb, upsampled, fit, sides, low, valid, window, shrunk_by=shrunk_by)

    def rows(self, first: int, last: int) -> "Around":
        """The same of the image's rows first ≤ i < last."""
        return replace(self, window=self.window.part(first, last), span=(first, last))

    def _here(self, x: Any) -> Tensor:
        """The rows that this is about, of a map of the whole image."""
        return x if self.span is None else x.read(*self.span)

    @property
    def size(self) -> Size:
        """(H, W) of the whole image."""
        return self.image.shape[-2], self.image.shape[-1]

    @cached_property
    def rgb(self) -> Tensor:
        """(B, 3, H, W)."""
        return self._here(self.image)

    @cached_property
    def up(self) -> Tensor:
        """The bicubic depth, (B, 1, H, W)."""
        return self._here(self.upsampled)

    @property
    def row_bytes(self) -> int:
        """What is held for one row: neighbours, which of them are holes, and a few maps."""
        return 4 * self.size[1] * (2 * TAPS**2 + 16 + 8 * len(self.sides))

    @cached_property
    def neighbours(self) -> Tensor:
        """(B, 16, H, W)."""
        return gather(self.low, self.window)

    @cached_property
    def filled_in(self) -> Tensor | None:
        """How far each neighbour is not to be trusted, (B, 16, H, W): 1 where it is filled in."""
        return None if self.valid is None else gather(self._distrust, self.window)

    @property
    def _distrust(self) -> Tensor:
        """(B, 1, h, w): bool where `valid` is."""
        assert self.valid is not None
        return ~self.valid if self.valid.dtype == torch.bool else 1 - self.valid

    @cached_property
    def hole(self) -> Tensor:
        """Mean of that, (B, 1, H, W)."""
        if self.valid is None:
            return torch.zeros_like(self.up)
        return spline_mean(self._distrust.to(self.up.dtype), self.window)

    @cached_property
    def _mean_and_contrast(self) -> tuple[Tensor, Tensor]:
        return local_contrast(self.low, self.window)

    @property
    def mean(self) -> Tensor:
        """Of the neighbours, (B, 1, H, W)."""
        return self._mean_and_contrast[0]

    @property
    def contrast(self) -> Tensor:
        """Twice their standard deviation, (B, 1, H, W)."""
        return self._mean_and_contrast[1]

    @cached_property
    def guided(self) -> Tensor | None:
        """The depths that the image suggests, (B, sides, H, W)."""
        if self.fit is None:
            return None
        return applied(self._here(self.fit), self.rgb, self.up, self.contrast, self.sides)

    @cached_property
    def shrinking(self) -> Tensor:
        """How the map was shrunk: shares of area, bicubic and points, (B, 3)."""
        seen = shares(self.low, self.valid, self.ratio)
        if self.shrunk_by is None:
            return seen
        return torch.where(self.shrunk_by.sum(1, keepdim=True) > 0, self.shrunk_by, seen)

    @property
    def ratio(self) -> Tensor:
        """Pixels of the image per low-resolution pixel, down and across: (2,)."""
        pairs = zip(self.size, self.low.shape[-2:])
        return torch.stack([number(N, self.low) / number(n, self.low) for N, n in pairs])

    def grows(self, by: float) -> bool | Tensor:
        """Whether the larger ratio is at least this; in a graph that is exported, as a tensor."""
        if exporting():
            return self.ratio.amax() >= by
        return max(N / n for N, n in zip(self.size, self.low.shape[-2:])) >= by
