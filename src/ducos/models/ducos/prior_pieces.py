"""What a prior adds to the compact network, in pieces as those of `pieces`.

They are run where there is a prior; a map that says nothing is none, and the other pieces are run.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from ducos.models.ducos.compact import DuCosCompact
from ducos.models.ducos.piece import FEATURES, MAP, SMALL, Given, Inputs, Piece, window
from ducos.models.ducos.prior import (
    DEGREE,
    DEPTHS,
    Guess,
    PriorBranch,
    curve_of,
    polynomial,
    regressions,
    suggested,
)
from ducos.resize import from_cells, to_cells

COEFFICIENTS = 9  # of `prior.regressions`
DEPTH_MAPS = (1, DEPTHS, "H", "W")


class Guessed(Guess):
    """What a prior says about some rows, of maps that the caller has made."""

    def __init__(self, fitted: Tensor, around: Given, **maps: Any):
        nothing = fitted[:, :, :1, :1]
        super().__init__(fitted, nothing, nothing, torch.ones(1, 1, 1, 1), around)
        self.__dict__.update(maps)


class PriorPiece(Piece):
    """A piece of a network that takes a prior."""

    def __init__(self, network: DuCosCompact):
        super().__init__(network)
        assert network.prior is not None
        self.branch: PriorBranch = network.prior


class Curve(PriorPiece):
    """At the size of the measurements: the curve from the prior to them, and whether it says
    anything."""

    takes: ClassVar[Inputs] = {"prior": SMALL, "low": SMALL, "trust": SMALL}
    outputs = ("curve", "has")

    def forward(self, prior: Tensor, low: Tensor, trust: Tensor) -> Any:
        return curve_of(prior, low, trust)


class Align(PriorPiece):
    """Some rows of the prior, in the unit of the measurements."""

    takes: ClassVar[Inputs] = {"prior": MAP, "curve": (1, DEGREE + 3, 1, 1)}
    outputs = ("fitted",)

    def forward(self, prior: Tensor, curve: Tensor) -> Tensor:
        return polynomial(prior, curve)


class Regress(PriorPiece):
    """At the size of the measurements: their regressions on colours and prior."""

    takes: ClassVar[Inputs] = {"colours": (1, 3, "h", "w"), "fitted": SMALL}
    takes |= {"low": SMALL, "trust": SMALL}
    outputs = ("fit",)

    def forward(self, colours: Tensor, fitted: Tensor, low: Tensor, trust: Tensor) -> Tensor:
        return regressions(torch.cat([colours, fitted], 1), low, trust)[0]


class Suggest(PriorPiece):
    """The depths that a prior suggests for some rows; rest: what it leaves of the measurements,
    interpolated."""

    takes: ClassVar[Inputs] = {"image": (1, 3, "H", "W"), "up": MAP, "contrast": MAP}
    takes |= {"fitted": MAP, "rest": MAP, "fit": (1, COEFFICIENTS, "H", "W")}
    outputs = ("depths",)

    def forward(self, image: Tensor, up: Tensor, contrast: Tensor, *known: Tensor) -> Tensor:
        fitted, rest, fit = known
        maps = {"up": up, "_mean_and_contrast": (up, contrast)}
        around = Given(image, up, up, window(up, up), up, **maps)
        guess = Guessed(fitted, around, rest_here=rest)
        guess.__dict__["fit"] = fit
        return guess.depths


class StartWithPrior(PriorPiece):
    """To the first features, what the body sees of a prior."""

    takes: ClassVar[Inputs] = {"first": (1, FEATURES, "y", "x"), "up": MAP, "contrast": MAP}
    takes |= {"fitted": MAP, "depths": DEPTH_MAPS}
    outputs = ("started",)

    def forward(self, first: Tensor, up: Tensor, contrast: Tensor, *known: Tensor) -> Tensor:
        fitted, depths = known
        maps = {"up": up, "_mean_and_contrast": (up, contrast)}
        guess = Guessed(fitted, Given(up, up, up, window(up, up), up, **maps), depths=depths)
        cells = to_cells(suggested(fitted, guess), self.branch.stride)
        return first + self.branch.head(cells)


class BodyWithPrior(PriorPiece):
    """As `Body`, with a prior of the same size as the image."""

    takes: ClassVar[Inputs] = {"image": (1, 3, "H", "W"), "fitted": MAP}
    takes |= {"first": (1, FEATURES, "y", "x")}
    outputs = ("features",)

    def forward(self, image: Tensor, fitted: Tensor, first: Tensor) -> Tensor:
        guess = Guessed(fitted, Given(image, fitted, fitted, window(fitted, fitted), fitted))
        hinted, _ = self.network.prompt.seen(image)
        return self.network.fuse(first, self.branch.seen(image, guess, hinted), guess)[0]


class ProposeWithPrior(PriorPiece):
    """As `Propose`, with the depths that a prior suggests."""

    takes: ClassVar[Inputs] = {"features": (1, FEATURES, "y", "x"), "up": MAP, "contrast": MAP}
    takes |= {"guided": (1, "sides", "H", "W"), "low": SMALL, "trust": SMALL}
    takes |= {"rows": ("H", 4), "columns": ("W", 4), "row_weights": ("H", 4)}
    takes |= {"column_weights": ("W", 4), "skip": (1,), "depths": DEPTH_MAPS}
    outputs = ("depth", "weights", "gate", "sigma", "leaned")

    def forward(self, features: Tensor, up: Tensor, contrast: Tensor, *known: Tensor) -> Any:
        guided, low, trust, rows, columns, row_weights, column_weights, skip, depths = known
        weighted = {"row_weights": row_weights, "column_weights": column_weights}
        around = Given(
            up, low, trust, window(rows, columns, **weighted), up,
            up=up, _mean_and_contrast=(up, contrast), guided=guided,
        )  # fmt: skip
        guess = Guessed(up, around, depths=depths)
        tail, stride, (H, W) = self.network.tail, self.network.stride, up.shape[-2:]
        maps = (
            from_cells(logits, stride).narrow(2, skip[0], H)[..., :W]
            for logits in (tail.predict(features), self.branch.gates(features))
        )
        predicted, lean = maps
        return tuple(tail.propose(predicted, around, guess, lean))


PRIOR = (Curve, Align, Regress, Suggest, StartWithPrior, BodyWithPrior, ProposeWithPrior)
