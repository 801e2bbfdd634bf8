"""What a prior says about the pixels, as arrays: `models.ducos.prior.Guess` for some rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray
from ducos.runtime.surroundings import Surroundings
from ducos.sampling import Span, area, bilinear

Floats = NDArray[np.float32]
Run = Callable[..., list[AnyArray]]


class Guess:
    """Of a prior (H, W) and what surrounds the same pixels; run: of the pieces of a network.

    says: whether it says anything; a flat map does not, and then nothing else may be asked.
    """

    def __init__(self, prior: Floats, around: Surroundings, run: Run, strips: list[Span]):
        self.around, self.run = around, run
        low, trust = around.low[None, None], around.trust[None, None]
        given: dict[str, Any] = {"low": low, "trust": trust, "give_back": around.large}
        small = area(prior, around.low_size)[None, None]
        curve, has = run("prior_curve", prior=small, **given)
        self.says = bool(has.item() > 0)
        if not self.says:
            return
        self.fitted = np.empty(around.size, np.float32)
        for a, b in strips:
            (self.fitted[None, None, a:b],) = run(
                "prior_align", prior=prior[None, None, a:b], curve=curve
            )
        seen = area(self.fitted, around.low_size)
        colours = around.colours[None]
        (fit,) = run("prior_fit", colours=colours, fitted=seen[None, None], **given)
        self.fit, self.rest = fit[0], around.low - seen
        self.kept: dict[str, Floats] | None = None

    def known(self, first: int, last: int) -> dict[str, Floats]:
        """Of these rows, (1, ?, n, W) each: `fitted`, the prior in the unit of the measurements,
        and `depths`, those that it suggests."""
        if self.around.large:
            return self._known(first, last)
        if self.kept is None:
            self.kept = self._known(0, self.around.size[0])
        return {name: each[:, :, first:last] for name, each in self.kept.items()}

    def _known(self, first: int, last: int) -> dict[str, Floats]:
        around, rows = self.around, (first, last)
        maps = around.known(first, last)
        fitted = self.fitted[None, None, first:last]
        (depths,) = self.run(
            "prior_suggest",
            image=around.image[None, :, first:last],
            up=maps["up"],
            contrast=maps["contrast"],
            fitted=fitted,
            rest=around.linear(self.rest, rows)[None, None],
            fit=bilinear(self.fit, around.size, rows)[None],
        )
        return {"fitted": fitted, "depths": depths}

    def seen(self, first: int, last: int) -> dict[str, Any]:
        """The same of these rows of the padded image."""
        return self.around.of_padded(first, last, self.known)

    @property
    def padded(self) -> Floats:
        """`fitted` of the padded image, (1, 1, H', W')."""
        rows, columns = self.around.row_axis, self.around.column_axis
        return np.ascontiguousarray(self.fitted[rows[:, None], columns])[None, None]
