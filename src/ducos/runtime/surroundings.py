"""What surrounds each pixel, as arrays: `models.ducos.around` for some rows of an image."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray, Size
from ducos.sampling import (
    Span,
    area,
    bicubic,
    bilinear,
    nearest,
    padded_axes,
    spline_mean,
    taps,
)

Floats = NDArray[np.float32]
FLAT = 1e-7  # variance by rounding, of measurements in float32: such a map has no contrast
AT_ONCE = 1_000_000  # pixels of an image whose maps are made once and kept


class Rows(NamedTuple):
    """reached: rows of the measurements that some rows of the image look at; rows (n, 4): which of
    these are the neighbours of each; weights (n, 4): the spline's."""

    reached: Span
    rows: AnyArray
    weights: Floats


class Surroundings:
    """Of image (3, H, W), low and trust (h, w); fit (4 sides, h, w) and shrinking (1, 3) are set
    when they are known."""

    fit: Floats
    shrinking: Floats

    def __init__(self, image: Floats, low: Floats, trust: Floats, sides: list[int], multiple: int):
        self.image, self.low, self.trust = image, low, trust
        self.sides = sides
        self.size: Size = (image.shape[1], image.shape[2])
        self.low_size: Size = (low.shape[0], low.shape[1])
        self.ratio = np.array(self.size, np.float32) / np.array(self.low_size, np.float32)
        self.colours = area(image, self.low_size)
        self.row_axis, self.column_axis = padded_axes(self.size, multiple)
        self.padded: Size = (len(self.row_axis), len(self.column_axis))
        self.centred = low.astype(np.float64) - 0.5
        rows, columns = (taps(np.arange(N), n, N) for n, N in zip(self.low_size, self.size))
        self.rows, self.row_weights = rows[0], rows[1].astype(np.float32)
        self.columns, self.column_weights = columns[0], columns[1].astype(np.float32)
        row_phase, column_phase = (each[2].astype(np.float32) for each in (rows, columns))
        self.phases = row_phase[self.row_axis], column_phase[self.column_axis]
        self.large = self.size[0] * self.size[1] > AT_ONCE
        self.all_trusted = bool((trust == 1).all())
        self.kept: dict[str, Floats] | None = None

    @property
    def padded_image(self) -> Floats:
        """(3, H', W')."""
        if self.padded == self.size:
            return self.image
        (H, W), padded = self.size, np.empty((3, *self.padded), np.float32)
        padded[:, :H, :W] = self.image
        padded[:, :H, W:] = self.image[:, :, self.column_axis[W:]]
        padded[:, H:] = padded[:, self.row_axis[H:]]
        return padded

    def known(self, first: int, last: int) -> dict[str, Floats]:
        """Of these rows, (1, ?, n, W) each: `up`, the bicubic depth; mean and contrast of the
        neighbours; `hole`, which share of them is none; `guided`, the depths of the colours."""
        if self.large:
            return self._known(first, last)
        if self.kept is None:
            self.kept = self._known(0, self.size[0])
        return {name: each[:, :, first:last] for name, each in self.kept.items()}

    def _known(self, first: int, last: int) -> dict[str, Floats]:
        rows = (first, last)
        up = bicubic(self.low, self.size, rows)
        # In float64, as a difference of squares.
        mean, squares = spline_mean(np.stack([self.centred, self.centred**2]), self.size, rows)
        contrast = (2 * np.sqrt((squares - mean**2 - FLAT).clip(0))).astype(np.float32)
        hole = np.zeros_like(up)
        if not self.all_trusted:
            hole = spline_mean(1 - self.trust, self.size, rows)
        maps = {"up": up, "mean": (mean + 0.5).astype(np.float32), "contrast": contrast}
        maps |= {"hole": hole}
        shown = {name: each[None, None] for name, each in maps.items()}
        return {**shown, "guided": self._guided(rows, up, contrast)[None]}

    def _guided(self, rows: Span, up: Floats, contrast: Floats) -> Floats:
        """`models.ducos.guide.applied`: (sides, n, W)."""
        fit = bilinear(self.fit, self.size, rows)
        image = self.image[:, slice(*rows)]
        depths = []
        for number, window in enumerate((1.0, 2.0)[: len(self.sides)]):
            red, green, blue, intercept = fit[4 * number : 4 * number + 4]
            depth = red * image[0] + green * image[1] + blue * image[2] + intercept
            away = np.float32(window) * contrast
            depths.append(np.minimum(np.maximum(depth, up - away), up + away))
        return np.stack(depths)

    def seen(self, first: int, last: int) -> dict[str, Floats]:
        """What the body sees of these rows of the padded image."""
        index = self.row_axis[first:last]
        top, bottom = int(index.min()), int(index.max()) + 1
        maps = {"image": self.image[None, :, top:bottom], **self.known(top, bottom)}
        if self.padded == self.size:
            return maps
        return {name: x[:, :, (index - top)[:, None], self.column_axis] for name, x in maps.items()}

    def window(self, first: int, last: int) -> Rows:
        """Where the neighbours of these rows lie."""
        index = self.rows[first:last]
        top, bottom = int(index.min()), int(index.max()) + 1
        return Rows((top, bottom), index - top, self.row_weights[first:last])

    def shrunk(self, depth: Floats) -> Floats:
        """To the size of the measurements, as these were; see `models.ducos.shrinking`."""
        ways = zip(self.shrinking[0], (area, bicubic, nearest), strict=True)
        parts = [share * way(depth, self.low_size) for share, way in ways if share > 0]
        return np.asarray(sum(parts), np.float32)

    def linear(self, low: Floats, rows: Span) -> Floats:
        """Interpolated linearly, some rows."""
        return bilinear(low, self.size, rows)

    def nearest(self, low: Floats, rows: Span) -> Floats:
        """The measurement that each pixel lies in, some rows."""
        return nearest(low, self.size)[slice(*rows)]
