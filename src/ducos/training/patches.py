"""Training batches: crop, flip, zoom, degrade, normalise.

`PatchBatches(...)[step]` is a pure function of (seed, step): the order of images, every crop and
every draw of noise follow from the two. Resuming a run, adding loader workers or splitting a batch
over processes therefore cannot change what is learned from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ducos.data import Dataset, Pair
from ducos.degrade import DEGRADATIONS, each_moved
from ducos.errors import InputError
from ducos.normalise import Range, range_of
from ducos.prompts import Prompt
from ducos.resize import fill_holes, low_size
from ducos.training.augment import (
    Augmentation,
    crop,
    draw_turn,
    grained,
    punch_holes,
    recolour,
    remeasured,
    shaded,
    softened,
    spoilt,
    wavered,
)
from ducos.training.measured import common_ratio, cut_measured, patch_sides
from ducos.training.prompt_cache import FeatureCache, cut, patch_place

RESAMPLINGS = ("bicubic", "nearest", "last-pixel", "area")
SENSOR_MODELS = ("tof", "lidar", "stereo")
SENSOR = "sensor"  # a "degradation" that takes the map the pair came with
COARSEST_GRAIN = 1.5  # low-resolution pixels: as coarse as the spots of `tof`
REACH = 0.25  # truth farther outside the measured range than this share of it cannot be known


@dataclass
class Batch:
    """rgb (B,3,H,W) in [0,1]; low (B,1,h,w) and target (B,1,H,W) normalised by `range`, which comes
    from `low` alone; low_valid, valid: their masks, `valid` without what no one could tell from
    this `low` (the room beyond a sensor's reach); inverse (B,): target is inverse depth; prompt:
    stored features of these patches, where a cache was given; sensor: which of SENSORS the network
    is told of each patch."""

    rgb: Tensor
    low: Tensor
    low_valid: Tensor
    target: Tensor
    valid: Tensor
    range: Range
    inverse: Tensor
    prompt: Prompt | None = None
    sensor: tuple[str, ...] | None = None

    def part(self, start: int, stop: int) -> "Batch":
        """The samples start..stop, for one process of several."""
        return self._each(lambda tensor: tensor[start:stop])

    def to(self, device: torch.device) -> "Batch":
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        def apply(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, Prompt):
                depth = None if value.depth is None else change(value.depth)
                return Prompt(tuple(change(map) for map in value.features), depth)
            if isinstance(value, Range):
                return Range(change(value.lowest), change(value.highest))
            if isinstance(value, tuple):
                return tuple(value[i] for i in change(torch.arange(len(value))).tolist())
            return change(value)

        return Batch(*(apply(getattr(self, f.name)) for f in fields(self)))


class Patches(NamedTuple):
    """Of one batch, in the dataset's unit: rgb (B,3,n,n), target and valid (B,1,n,n), low and
    low_valid (B,1,m,m), inverse (B,), places (B,2,3) of the colours in their images."""

    rgb: Tensor
    target: Tensor
    valid: Tensor
    low: Tensor
    low_valid: Tensor
    inverse: Tensor
    places: Tensor


class PatchBatches:
    """Batch number `step` of a run.

    Args:
        dataset: pairs with targets.
        crop: side of the square patches in pixels.
        measurements: patches of a large scale are larger, so that the side of their low-resolution
            map has this many pixels (rounded up to a multiple of 32 pixels of the image).
        scales: (smallest, largest); one scale is drawn per batch, log-uniformly, so that all its
            low-resolution maps have one size.
        degradations: name -> share, drawn per batch; `sensor` takes the pairs' own maps.
        cache: stored features of a frozen prompt; batches then carry their part of them.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        batch_size: int,
        crop: int,
        scales: tuple[float, float],
        degradations: dict[str, float],
        augmentation: Augmentation,
        seed: int,
        measurements: int = 1,
        cache: FeatureCache | None = None,
    ):
        unknown = sorted(set(degradations) - {SENSOR, *DEGRADATIONS})
        if unknown:
            known = ", ".join((SENSOR, *DEGRADATIONS))
            raise InputError(f"unknown degradation {unknown[0]!r}; choose of: {known}")
        if len(dataset) == 0:
            raise InputError(f"{dataset.name} holds no pairs to train on")
        self.dataset = dataset
        self.batch_size = batch_size
        self.crop = crop
        self.measurements = measurements
        self.scales = scales
        self.degradations = degradations
        self.augmentation = augmentation
        self.seed = seed
        self.cache = cache

    @property
    def steps_per_epoch(self) -> int:
        return max(1, len(self.dataset) // self.batch_size)

    def __getitem__(self, step: int) -> Batch:
        epoch, within = divmod(step, self.steps_per_epoch)
        order = np.random.default_rng([self.seed, 1, epoch]).permutation(len(self.dataset))
        chosen = np.take(
            order, range(within * self.batch_size, (within + 1) * self.batch_size), mode="wrap"
        )
        rng = np.random.default_rng([self.seed, 2, step])
        names = list(self.degradations)
        shares = np.array([self.degradations[name] for name in names], float)
        smallest, largest = self.scales
        scale = float(np.exp(rng.uniform(np.log(smallest), np.log(largest))))
        name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        pairs = [self.dataset[int(index)] for index in chosen]
        if name == SENSOR:
            patches = self.measured(pairs, rng)
        else:
            patches = self.simulated(pairs, name, scale, rng)
        rgb = self.some_spoilt(patches.rgb, rng)
        low_valid = punch_holes(patches.low_valid, self.augmentation.holes, rng)
        limits = range_of(patches.low, low_valid)
        target = limits.apply(patches.target)
        knowable = (target > -REACH) & (target < 1 + REACH)
        any_low = low_valid.any(3, keepdim=True).any(2, keepdim=True)
        return Batch(
            rgb=rgb,
            low=limits.apply(fill_holes(patches.low, low_valid, rgb)),
            low_valid=low_valid,
            target=target,
            valid=patches.valid & knowable & any_low,
            range=limits,
            inverse=patches.inverse,
            prompt=self.stored_prompt(pairs, patches.places, target.shape[-1]),
            sensor=self.told(name, pairs, rng),
        )

    def told(self, name: str, pairs: list[Pair], rng: np.random.Generator) -> tuple[str, ...]:
        """Which of SENSORS the network is told made the maps: for a share of them, the truth. The
        rest is unknown, and so is whoever merely resampled."""
        makers = ["unknown"] * len(pairs)
        if self.augmentation.hint and name in (SENSOR, *SENSOR_MODELS):
            named = rng.random(len(pairs)) < self.augmentation.hint
            for i in np.flatnonzero(named):
                makers[i] = pairs[i].sensor if name == SENSOR else name
        return tuple(makers)

    def some_spoilt(self, rgb: Tensor, rng: np.random.Generator) -> Tensor:
        """Pictures (B,3,n,n), shares of them shaded and spoilt; maps are made before, as a sensor
        that sends its own light sees in the dark."""
        for share, change in ((self.augmentation.shade, shaded), (self.augmentation.spoil, spoilt)):
            if share:
                chosen = rng.random(len(rgb)) < share
                pictures = zip(rgb, chosen, strict=True)
                rgb = torch.stack([change(one, rng) if bad else one for one, bad in pictures])
        return rgb

    def simulated(
        self, pairs: list[Pair], name: str, scale: float, rng: np.random.Generator
    ) -> "Patches":
        """Patches whose low-resolution map is made of the truth."""
        resampled = name in RESAMPLINGS
        side = max(self.crop, math.ceil(self.measurements * scale / 32) * 32)
        drawn = [self.patch(pair, side, scale, rng, resampled) for pair in pairs]
        rgb, target, valid, inverse, places = (
            torch.stack(part) for part in zip(*drawn, strict=True)
        )
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        size = low_size((side, side), scale)
        scene = (target, valid, rgb)
        if name in SENSOR_MODELS and self.augmentation.misplace > 0:
            furthest = self.augmentation.misplace * scale
            moves = torch.from_numpy(furthest * rng.uniform(-1, 1, (len(pairs), 2)) ** 3)
            moves = moves.round().long()
            scene = (each_moved(target, moves), each_moved(valid, moves), each_moved(rgb, moves))
        low, low_valid = DEGRADATIONS[name](*scene, size, generator)
        if name in SENSOR_MODELS:
            target, valid = self.some_remeasured(target, valid, rng)
        return Patches(rgb, target, valid, low, low_valid, inverse, places)

    def some_remeasured(
        self, target: Tensor, valid: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Truth and mask (B,1,n,n), a share of them as another device would have measured them."""
        if not self.augmentation.remeasure:
            return target, valid
        target, valid = target.clone(), valid.clone()
        for i in np.flatnonzero(rng.random(len(target)) < self.augmentation.remeasure):
            again = remeasured(target[i, 0].numpy(), valid[i, 0].numpy(), rng)
            target[i, 0], valid[i, 0] = map(torch.from_numpy, again)
        return target, valid

    def measured(self, pairs: list[Pair], rng: np.random.Generator) -> "Patches":
        """Patches with the sensor's own map; only turned and recoloured, since zoom, inversion and
        rounding would have to be the sensor's."""
        ratio = common_ratio(pairs)
        sides = patch_sides(pairs, ratio, self.crop)
        drawn = []
        for pair in pairs:
            patch = cut_measured(pair, ratio, sides, rng)
            turn = draw_turn(self.augmentation, rng)
            size = (pair.target.shape[0], pair.target.shape[1])
            place = patch_place(size, patch.top, patch.left, sides[0], **vars(turn))
            rgb = turn(patch.rgb)
            if self.augmentation.colour > 0:
                rgb = recolour(rgb, self.augmentation.colour, rng)
            maps = (patch.target, patch.valid, patch.low, patch.low_valid)
            drawn.append((as_planes(rgb), *(as_planes(turn(m)) for m in maps), place))
        rgb, target, valid, low, low_valid, places = (
            torch.stack(part) for part in zip(*drawn, strict=True)
        )
        inverse = torch.zeros(len(pairs), dtype=torch.bool)
        return Patches(rgb, target, valid, low, low_valid, inverse, places)

    def stored_prompt(self, pairs: list[Pair], places: Tensor, side: int) -> Prompt | None:
        """The cached features of the whole images, cut to the patches at places (B, 2, 3)."""
        if self.cache is None:
            return None
        whole = [self.cache.features(pair) for pair in pairs]
        sizes = [(pair.rgb.shape[0], pair.rgb.shape[1]) for pair in pairs]
        return cut(whole, places, (side, side), sizes)

    def patch(
        self, pair: Pair, side: int, scale: float, rng: np.random.Generator, resampled: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One augmented patch: rgb (3,n,n), target (1,n,n), valid (1,n,n), inverse (), and the
        place (2,3) of its colours in the image. A sensor model, unlike mere resampling, needs
        metres and the true scene."""
        options = self.augmentation
        rgb, target, valid, square = crop(pair, side, options.zoom, options.shift, rng)
        turn = draw_turn(options, rng)
        rgb, target, valid = turn(rgb), turn(target), turn(valid)
        place = patch_place(*square, side, **vars(turn))
        inverse = bool(rng.random() < options.invert) and resampled
        if inverse:
            valid = valid & (target > 0)
            target = np.where(valid, 1 / np.where(valid, target, 1), 0).astype(np.float32)
        if resampled and options.waver and rng.random() < options.waver:
            target, valid = wavered(target, valid, rng)
        if resampled and options.soften and rng.random() < options.soften:
            target = softened(target, valid, 0.3 * 15 ** rng.random())
        if resampled and options.grain and rng.random() < options.grain:
            target = grained(target, valid, rng, COARSEST_GRAIN * scale)
        if rng.random() < options.quantise and valid.any():
            lowest, highest = float(target[valid].min()), float(target[valid].max())
            step = max(highest - lowest, 1e-6) / rng.uniform(60, 255)
            target = np.where(valid, np.round(target / step) * step, 0).astype(np.float32)
        if options.colour > 0:
            rgb = recolour(rgb, options.colour, rng)
        return (
            as_planes(rgb),
            as_planes(target),
            as_planes(valid),
            torch.tensor(inverse),
            place,
        )


def as_planes(m: NDArray[Any]) -> Tensor:
    """(n, n, C) or (n, n) -> (C, n, n), C = 1 for the latter."""
    planes = m[None] if m.ndim == 2 else m.transpose(2, 0, 1)
    return torch.from_numpy(np.ascontiguousarray(planes))
