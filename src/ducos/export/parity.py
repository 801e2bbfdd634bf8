"""Does an exported file say what torch says? Six pairs, none of the size it was made with.

Each pair is odd in its own way: a non-integer ratio, portrait, ratio 1, holes, a batch, a map that
is stretched. The largest difference counts, as a share of the range of the measurements.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ducos.errors import InputError
from ducos.export.whole_pass import WholePass

LIMIT = 1e-4  # of the range: what a file may differ from torch
Feed = dict[str, NDArray[Any]]
Run = Callable[[Feed], tuple[NDArray[Any], ...]]


@dataclass(frozen=True)
class Pair:
    """Sizes (H, W) of an image and (h, w) of its map, and what is special about it."""

    name: str
    image: tuple[int, int]
    low: tuple[int, int]
    holes: float = 0.0
    batch: int = 1
    mode: int = 0
    sensor: int = 0
    prior: bool = False


PAIRS = (
    Pair("integer ratio", (120, 160), (30, 40)),
    Pair("odd sizes, ratio not an integer", (97, 131), (31, 43), sensor=1),
    Pair("portrait, holes", (161, 83), (40, 21), holes=0.2),
    Pair("ratio 1", (75, 99), (75, 99), holes=0.05),
    Pair("batch of two, repaired", (64, 96), (16, 24), holes=0.1, batch=2, mode=1, sensor=1),
    Pair("stretched, one large hole", (70, 45), (11, 17), holes=-0.5),
)


PRIOR_PAIRS = tuple(
    replace(pair, name=f"{pair.name}, prior", prior=True) for pair in PAIRS if pair.batch == 1
)
"""The same for networks that take a prior, where a runtime can give them one."""


class Agreement(NamedTuple):
    """Of one pair: largest differences of depth and sigma as shares of the range, and of `source`
    as a count of pixels."""

    pair: Pair
    depth: float
    sigma: float
    source: int

    @property
    def sound(self) -> bool:
        """Whether this is as good as torch."""
        return max(self.depth, self.sigma) <= LIMIT and self.source == 0


def measured(model: nn.Module, run: Run, pairs: Iterable[Pair] = PAIRS) -> list[Agreement]:
    """What `run`, an exported file in its runtime, differs from the model in torch."""
    whole = WholePass(model).eval()
    rows = []
    for pair in pairs:
        feed = scene(pair)
        with torch.inference_mode():
            right = [x.numpy() for x in whole(**{k: torch.tensor(v) for k, v in feed.items()})]
        depth, sigma, source = run(feed)
        span = float(np.ptp(feed["depth"][feed["trust"] > 0]))
        apart = [float(np.abs(a - b).max()) / span for a, b in zip((depth, sigma), right[:2])]
        rows.append(Agreement(pair, apart[0], apart[1], int((source != right[2]).sum())))
    return rows


def refuse_if_wrong(rows: list[Agreement]) -> None:
    """Say which pair differs, if any does."""
    wrong = [row for row in rows if not row.sound]
    if wrong:
        worst = max(wrong, key=lambda row: (max(row.depth, row.sigma), row.source))
        (H, W), (h, w) = worst.pair.image, worst.pair.low
        raise InputError(
            f"the exported file differs from torch by {max(worst.depth, worst.sigma):.1e} of the "
            f"range ({worst.source} sources) on a {W}×{H} image with a {w}×{h} map "
            f"({worst.pair.name}); at most {LIMIT:.0e} is allowed, so nothing was written: choose "
            "another format or model"
        )


def scene(pair: Pair) -> Feed:
    """Boxes before a slanted wall, with textured surfaces, seen by both cameras of a pair."""
    random = np.random.default_rng(sum(pair.image))
    depth, colours = _view(pair.low), _colours(pair.image, random)
    depth += 0.005 * random.standard_normal(depth.shape)
    trust = np.ones(depth.shape, np.float32)
    if pair.holes > 0:
        trust[random.random(depth.shape) < pair.holes] = 0
    elif pair.holes < 0:  # a block of that share of each side
        h, w = (int(-pair.holes * n) for n in pair.low)
        trust[:h, -w:] = 0
    count = pair.batch
    feed: Feed = {
        "image": np.stack([colours] * count).astype(np.float32),
        "depth": np.stack([depth[None] * (1 + i) for i in range(count)]).astype(np.float32),
        "trust": np.stack([trust[None]] * count),
        "noise": np.full(count, 0.005, np.float32),
        "metric": np.ones(count, np.float32),
        "mode": np.full(count, pair.mode, np.int64),
        "sensor": np.full(count, pair.sensor, np.int64),
    }
    if pair.prior:  # inverse depth, bent and of no scale
        relative = 1 / (_view(pair.image) - 1) + 0.1 * colours[0]
        feed["prior"] = np.stack([relative[None]] * count).astype(np.float32)
    return feed


def _places(size: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
    rows, columns = ((np.arange(n) + 0.5) / n for n in size)
    return rows[:, None], columns[None]


def _boxes(size: tuple[int, int]) -> list[NDArray[np.bool_]]:
    y, x = _places(size)
    squares = ((0.3, 0.35, 0.2), (0.65, 0.6, 0.25), (0.4, 0.8, 0.12))
    return [(abs(y - top) < side) & (abs(x - left) < side) for top, left, side in squares]


def _view(size: tuple[int, int]) -> NDArray[Any]:
    y, x = _places(size)
    depth = 3 + x + 0.5 * y
    for nearer, box in enumerate(_boxes(size), 1):
        depth = np.where(box, 2.6 - 0.4 * nearer + 0.1 * x, depth)
    return depth


def _colours(size: tuple[int, int], random: np.random.Generator) -> NDArray[Any]:
    y, x = _places(size)
    tones = random.random((4, 3, 1, 1))
    image = tones[0] + 0 * (x + y)
    for tone, box in zip(tones[1:], _boxes(size)):
        image = np.where(box, tone, image)
    waves = 0.1 * np.sin(40 * x) * np.cos(31 * y)
    return (image + waves + 0.03 * random.standard_normal((3, *size))).clip(0, 1)
