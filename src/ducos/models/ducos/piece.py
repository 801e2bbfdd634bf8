"""What a piece of the compact network is: a part of its pass as it is traced for other runtimes.

A piece sees some rows of the image and knows no sizes: what follows from these is among its inputs,
made by `ducos.runtime`.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ducos.models.ducos.around import Around, Window
from ducos.models.ducos.compact import DuCosCompact

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
