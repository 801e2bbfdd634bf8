"""What every dataset yields: one colour image with its depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ducos.arrays import Floats, Mask


@dataclass
class Pair:
    """One scene. Depth is in metres, or in the dataset's own levels (see `Dataset.unit`).

    rgb: (H, W, 3) float32 in [0, 1].
    target: (H, W) float32 ground truth, finite everywhere (0 where the file has nothing), and
        `valid` (H, W) bool: True where it may be scored.
    low: (h, w) float32 map of a real sensor in the same unit, or None when the low-resolution
        input is to be made from the target; `low_valid` (h, w) bool is its mask.
    sensor: what made `low`, one of SENSORS.
    """

    name: str
    rgb: Floats
    target: Floats
    valid: Mask
    low: Floats | None = None
    low_valid: Mask | None = None
    sensor: str = "unknown"


class Dataset(Protocol):
    """A sequence of pairs.

    name: shown in tables. unit: "m" or "level" (8-bit codes of Middlebury and Lu).
    """

    name: str
    unit: str

    @property
    def scenes(self) -> Sequence[str]:
        """The scene each pair shows: views of one scene look alike, so splits never part them."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Pair: ...
