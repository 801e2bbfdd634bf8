"""One image under a protocol: the input every model gets, and the figures of what it answers."""

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ducos.arrays import Floats, Mask, Size
from ducos.data import Pair
from ducos.degrade import DEGRADATIONS
from ducos.errors import InputError
from ducos.evaluation.metrics import measure
from ducos.evaluation.protocols import UNITS, Protocol
from ducos.resize import low_size


@dataclass
class Case:
    """One input with its ground truth, as every model gets it; depth in the dataset's unit.

    rgb: (H, W, 3); low, low_valid: (h, w); target, valid: (H, W).
    uncut: size of the image before the protocol cut it. input: as in `Row`. sensor: what made a
    map that is given as it is.
    """

    name: str
    rgb: Floats
    low: Floats
    low_valid: Mask
    target: Floats
    valid: Mask
    uncut: Size
    input: str
    sensor: str = "unknown"


def make_case(pair: Pair, protocol: Protocol, scale: float | None, unit: str) -> Case:
    """Cut the pair and make its low-resolution input, the same one every time."""
    uncut = (pair.target.shape[0], pair.target.shape[1])
    H, W = size = protocol.cut(uncut, scale)
    rgb, target, valid = pair.rgb[:H, :W], pair.target[:H, :W], pair.valid[:H, :W]
    low, low_valid, origin, sensor = target, valid, "target", "unknown"
    if protocol.source != "target" and pair.low is not None and pair.low_valid is not None:
        low, low_valid, origin, sensor = pair.low, pair.low_valid, "sensor", pair.sensor
    elif protocol.source == "sensor":
        raise InputError(
            f"{protocol.name} needs the map of a real sensor, and this pair has none; choose"
            " another protocol, such as synthetic"
        )
    if scale is not None:
        seed = zlib.crc32(f"{protocol.seed}/{pair.name}".encode())
        made, made_valid = DEGRADATIONS[protocol.low](
            as_batch(low),
            as_batch(low_valid),
            torch.from_numpy(np.ascontiguousarray(rgb)).permute(2, 0, 1)[None],
            low_size(size, scale),
            torch.Generator().manual_seed(seed),
            unit=unit,
        )
        low, low_valid, sensor = made[0, 0].numpy(), made_valid[0, 0].numpy(), "unknown"
    return Case(pair.name, rgb, low, low_valid, target, valid, uncut, origin, sensor)


def score(prediction: Floats, case: Case, protocol: Protocol, unit: str) -> dict[str, float]:
    """Figures of one image, in the unit they are reported in."""
    inside = protocol.scored((case.target.shape[0], case.target.shape[1]))
    scored = case.valid[inside]
    missing = ~np.isfinite(prediction[inside])
    values = np.where(missing, 0, prediction[inside]).astype(np.float64)
    factor = UNITS[unit][1]
    figures = measure(factor * values, factor * case.target[inside].astype(np.float64), scored)
    figures["missing"] = 100 * float(missing[scored].mean()) if scored.any() else math.nan
    return figures


def as_batch(values: NDArray[Any]) -> Tensor:
    """(H, W) -> tensor (1, 1, H, W)."""
    return torch.from_numpy(np.ascontiguousarray(values))[None, None]


def scale_name(scale: float | None) -> str:
    """A scale as the name of a folder."""
    return "as-given" if scale is None else f"x{scale:g}"
