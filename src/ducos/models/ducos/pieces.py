"""The compact network in pieces, as they are traced for the runtime without torch.

A piece sees some rows of the image and knows no sizes: what follows from these is among its inputs,
made by `ducos.runtime`. Each is written with the functions of the network itself.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models.ducos.around import Around, Window
from ducos.models.ducos.compact import DuCosCompact
from ducos.models.ducos.guide import fits
from ducos.models.ducos.mixing import hand_back, steepened, within_reach
from ducos.resize import from_cells
from ducos.runtime import PIECES

ROWS, COLUMNS = 32, 64  # of the image that is traced
LOW = (9, 14)
Sizes = tuple[str | int, ...]
Inputs = dict[str, Sizes]
MAP: Sizes = (1, 1, "H", "W")
SMALL: Sizes = (1, 1, "h", "w")
FEATURES = "features"  # a size that the network decides


class Given(Around):
    """What surrounds pixels, of maps that the caller has made; a piece knows no sizes."""

    def __init__(
        self, image: Tensor, low: Tensor, trust: Tensor, window: Window, ratio: Tensor, **maps: Any
    ):
        super().__init__(image, image[:, :1], None, (), low, trust, window)
        self.__dict__.update(maps, numbers=ratio)  # before the properties of that name are asked

    @property
    def ratio(self) -> Tensor:
        return self.__dict__["numbers"]


def window(rows: Tensor, columns: Tensor, **known: Tensor) -> Window:
    """A window over all rows of the low-resolution map that a piece is given."""
    nothing = torch.zeros(0)
    fields: dict[str, Any] = {name: known.get(name, nothing) for name in Window._fields}
    return Window(**{**fields, "rows": rows, "columns": columns, "reached": slice(None)})


class Piece(nn.Module):
    """Inputs by name with their shapes, and outputs; texts are sizes that stay open."""

    takes: ClassVar[Inputs] = {}
    outputs: tuple[str, ...] = ()

    def __init__(self, network: DuCosCompact):
        super().__init__()
        self.network = network
        decided = {FEATURES: network.head.out_channels, "sides": len(network.sides)}
        self.inputs = {
            name: tuple(decided.get(str(n), n) for n in shape) for name, shape in self.takes.items()
        }

    def example(self) -> tuple[Tensor, ...]:
        """Values to trace with."""
        stride = self.network.stride
        sizes = {"H": ROWS, "W": COLUMNS, "h": LOW[0], "w": LOW[1]}
        sizes |= {"y": ROWS // stride, "x": COLUMNS // stride}
        made = []
        for name, sides in self.inputs.items():
            shape = [sizes[n] if isinstance(n, str) else n for n in sides]
            if name in ("rows", "columns"):
                made.append(torch.randint(0, LOW[0], shape))
            elif name in ("mode", "sensor", "skip"):
                made.append(torch.zeros(shape, dtype=torch.int64))
            else:
                made.append(torch.rand(shape) + 0.1)
        return tuple(made)

    def told(self, mode: Tensor, sensor: Tensor) -> dict[str, Tensor]:
        words = {"mode": mode, "sensor": sensor}
        return {subject: words[subject] for subject in self.network.subjects}


class Fit(Piece):
    """At the size of the measurements: the regressions on the colours, how far a faithful result
    may lie from each measurement, and how the map was shrunk."""

    takes: ClassVar[Inputs] = {
        "colours": (1, 3, "h", "w"),
        "low": SMALL,
        "trust": SMALL,
        "noise": (1, 1, 1, 1),
    }
    takes |= {"ratio": (2,), "mode": (1,)}
    outputs = ("fit", "tolerance", "shrinking")

    def forward(self, colours: Tensor, low: Tensor, trust: Tensor, *known: Tensor) -> Any:
        noise, ratio, mode = known
        around = Given(colours, low, trust, window(trust, trust), ratio)
        tolerance = self.network.tolerance(around, {"mode": mode}, noise)
        return fits(colours, low, trust, self.network.sides), tolerance, around.shrinking


class Start(Piece):
    """What is known of some rows of pixels, to the first features of the body (D_1)."""

    takes: ClassVar[Inputs] = {
        "image": (1, 3, "H", "W"),
        "up": MAP,
        "mean": MAP,
        "contrast": MAP,
        "hole": MAP,
    }
    takes |= {"guided": (1, "sides", "H", "W"), "row_phase": ("H",), "column_phase": ("W",)}
    takes |= {"ratio": (2,), "shrinking": (1, 3), "mode": (1,), "sensor": (1,)}
    outputs = ("first",)

    def forward(self, image: Tensor, up: Tensor, mean: Tensor, *known: Tensor) -> Tensor:
        contrast, hole, guided, row_phase, column_phase, ratio, shrinking, mode, sensor = known
        around = Given(
            image, up, hole, window(up, up), ratio,
            up=up, _mean_and_contrast=(mean, contrast), hole=hole, guided=guided,
        )  # fmt: skip
        net = self.network
        cells = net.cells(net.known(image, around), row_phase, column_phase, ratio, shrinking)
        first = net.head(cells)
        return first if net.hints is None else first + net.hints.shift(self.told(mode, sensor), 1)


class Body(Piece):
    """The whole image and D_1 to the features of all stages."""

    takes: ClassVar[Inputs] = {"image": (1, 3, "H", "W"), "first": (1, FEATURES, "y", "x")}
    outputs = ("features",)

    def forward(self, image: Tensor, first: Tensor) -> Tensor:
        hinted, _ = self.network.prompt.seen(image)
        return self.network.fuse(first, hinted)[0]


class Propose(Piece):
    """Features of some rows, to what the tail proposes; skip: rows above them, for the
    convolution."""

    takes: ClassVar[Inputs] = {"features": (1, FEATURES, "y", "x"), "up": MAP, "contrast": MAP}
    takes |= {"guided": (1, "sides", "H", "W"), "low": SMALL, "trust": SMALL}
    takes |= {"rows": ("H", 4), "columns": ("W", 4), "row_weights": ("H", 4)}
    takes |= {"column_weights": ("W", 4), "skip": (1,)}
    outputs = ("depth", "weights", "gate", "sigma")

    def forward(self, features: Tensor, up: Tensor, contrast: Tensor, *known: Tensor) -> Any:
        guided, low, trust, rows, columns, row_weights, column_weights, skip = known
        weighted = {"row_weights": row_weights, "column_weights": column_weights}
        around = Given(
            up, low, trust, window(rows, columns, **weighted), up,
            up=up, _mean_and_contrast=(up, contrast), guided=guided,
        )  # fmt: skip
        tail, (H, W) = self.network.tail, (up.shape[-2], up.shape[-1])
        maps = from_cells(tail.predict(features), self.network.stride)
        proposal = tail.propose(maps.narrow(2, skip[0], H)[..., :W], around)
        return proposal[:4]


class HandBack(Piece):
    """Some rows of a depth, with a share of what its measurements are missing."""

    takes: ClassVar[Inputs] = {
        "missing": SMALL,
        "depth": MAP,
        "weights": (1, 16, "H", "W"),
        "gate": MAP,
    }
    takes |= {"rows": ("H", 4), "columns": ("W", 4)}
    outputs = ("corrected",)

    def forward(self, missing: Tensor, depth: Tensor, weights: Tensor, *known: Tensor) -> Tensor:
        gate, rows, columns = known
        around = Given(depth, missing, gate, window(rows, columns), depth)
        return hand_back(missing, depth, weights, gate, around)


class Settle(Piece):
    """Some rows of a depth, kept to the range of their neighbours, with steeper edges."""

    takes: ClassVar[Inputs] = {
        "depth": MAP,
        "contrast": MAP,
        "low": SMALL,
        "rows": ("H", 4),
        "columns": ("W", 4),
    }
    takes |= {"ratio": (2,), "shrinking": (1, 3)}
    outputs = ("settled",)

    def forward(self, depth: Tensor, contrast: Tensor, low: Tensor, *known: Tensor) -> Tensor:
        rows, columns, ratio, shrinking = known
        known_maps = {"_mean_and_contrast": (depth, contrast), "shrinking": shrinking}
        around = Given(depth, low, depth, window(rows, columns), ratio, **known_maps)
        return steepened(self.network.tail.steepenings, within_reach(depth, around), around)


def pieces_of(model: nn.Module) -> dict[str, Piece]:
    """The pieces by name; refuses a network that has none."""
    if not isinstance(model, DuCosCompact) or not model.sides or "mode" not in model.subjects:
        raise InputError(
            f"{type(model).__name__} has no form without torch; ducos-compact with guides, the "
            "mixing tail and modes has"
        )
    kinds = (Fit, Start, Body, Propose, HandBack, Settle)
    return {name: kind(model).eval() for name, kind in zip(PIECES, kinds, strict=True)}
