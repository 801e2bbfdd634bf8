"""Training batches: crop, flip, zoom, degrade, normalise.

`PatchBatches(...)[step]` is a pure function of (seed, step): the order of images, every crop and
every draw of noise follow from the two. Resuming a run, adding loader workers or splitting a batch
over processes therefore cannot change what is learned from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from ducos.data.pair import Array, Dataset, Mask, Pair
from ducos.degrade import DEGRADATIONS
from ducos.degrade.sensors import moved
from ducos.errors import InputError
from ducos.normalise import Range, range_of
from ducos.prompts.cache import FeatureCache, cut, patch_place
from ducos.prompts.prompt import Prompt
from ducos.resize import Size, fill_holes, low_size

RESAMPLINGS = ("bicubic", "nearest", "area")
SENSORS = ("tof", "lidar", "stereo")
REACH = 0.25  # truth farther outside the measured range than this share of it cannot be known


@dataclass
class Batch:
    """rgb (B,3,H,W) in [0,1]; low (B,1,h,w) and target (B,1,H,W) normalised by `range`, which comes
    from `low` alone; low_valid, valid: their masks, `valid` without what no one could tell from
    this `low` (the room beyond a sensor's reach); inverse (B,): target is inverse depth; prompt:
    stored features of these patches, where a cache was given."""

    rgb: Tensor
    low: Tensor
    low_valid: Tensor
    target: Tensor
    valid: Tensor
    range: Range
    inverse: Tensor
    prompt: Prompt | None = None

    def part(self, start: int, stop: int) -> "Batch":
        """The samples start..stop, for one process of several."""
        return self._each(lambda tensor: tensor[start:stop])

    def to(self, device: torch.device) -> "Batch":
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        def apply(value: Tensor | Range | Prompt | None) -> Tensor | Range | Prompt | None:
            if value is None:
                return None
            if isinstance(value, Prompt):
                depth = None if value.depth is None else change(value.depth)
                return Prompt(tuple(change(map) for map in value.features), depth)
            if isinstance(value, Range):
                return Range(change(value.lowest), change(value.highest))
            return change(value)

        return Batch(*(apply(getattr(self, f.name)) for f in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Augmentation:
    """What varies from patch to patch. Shares are probabilities.

    zoom: smallest factor by which an image is shrunk before cropping: more edges per patch.
    invert: share of patches turned into inverse depth; benchmarks such as Middlebury are disparity.
    quantise: share of patches rounded to 60 to 255 levels, as those benchmarks are.
    colour: strength of gamma, gain, tint, noise, blur and JPEG on the colour image (0 = off).
    shift: largest registration error between colour and depth, in pixels; most are far smaller.
    misplace: largest error of a sensor model's map against colour and truth, in its own pixels:
        the camera beside the sensor is calibrated only so well, and the truth goes with the camera.
    holes: share of patches whose low-resolution map gets holes.
    """

    flip: bool = True
    zoom: float = 1.0
    invert: float = 0.0
    quantise: float = 0.0
    colour: float = 0.0
    shift: float = 0.0
    misplace: float = 0.0
    holes: float = 0.0


class PatchBatches:
    """Batch number `step` of a run.

    Args:
        dataset: pairs with targets.
        crop: side of the square patches in pixels.
        measurements: patches of a large scale are larger, so that the side of their low-resolution
            map has this many pixels (rounded up to a multiple of 32 pixels of the image).
        scales: (smallest, largest); one scale is drawn per batch, log-uniformly, so that all its
            low-resolution maps have one size.
        degradations: name -> share, drawn per batch.
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
        unknown = sorted(set(degradations) - set(DEGRADATIONS))
        if unknown:
            raise InputError(
                f"unknown degradation {unknown[0]!r}; choose of: {', '.join(DEGRADATIONS)}"
            )
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
        smallest, largest = self.scales
        scale = float(np.exp(rng.uniform(np.log(smallest), np.log(largest))))
        names = list(self.degradations)
        shares = np.array([self.degradations[name] for name in names], float)
        name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        may_invert = name in RESAMPLINGS  # a sensor model needs metres
        pairs = [self.dataset[int(index)] for index in chosen]
        side = max(self.crop, math.ceil(self.measurements * scale / 32) * 32)
        patches = [self.patch(pair, side, rng, may_invert) for pair in pairs]
        rgb, target, valid, inverse, places = (
            torch.stack(part) for part in zip(*patches, strict=True)
        )
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        size = low_size((side, side), scale)
        scene = (target, valid, rgb)
        if name in SENSORS and self.augmentation.misplace > 0:
            furthest = self.augmentation.misplace * scale
            moves = torch.from_numpy(rng.uniform(-furthest, furthest, (len(pairs), 2))).round()
            moves = moves.long()
            scene = (moved(target, moves), moved(valid, moves), moved(rgb, moves))
        low, low_valid = DEGRADATIONS[name](*scene, size, generator)
        low_valid = punch_holes(low_valid, self.augmentation.holes, rng)
        limits = range_of(low, low_valid)
        target = limits.apply(target)
        knowable = (target > -REACH) & (target < 1 + REACH)
        return Batch(
            rgb=rgb,
            low=limits.apply(fill_holes(low, low_valid)),
            low_valid=low_valid,
            target=target,
            valid=valid & knowable & low_valid.any(3, keepdim=True).any(2, keepdim=True),
            range=limits,
            inverse=inverse,
            prompt=self.stored_prompt(pairs, places, side),
        )

    def stored_prompt(self, pairs: list[Pair], places: Tensor, side: int) -> Prompt | None:
        """The cached features of the whole images, cut to the patches at places (B, 2, 3)."""
        if self.cache is None:
            return None
        whole = [self.cache.features(pair) for pair in pairs]
        sizes = [(pair.rgb.shape[0], pair.rgb.shape[1]) for pair in pairs]
        return cut(whole, places, (side, side), sizes)

    def patch(
        self, pair: Pair, side: int, rng: np.random.Generator, may_invert: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One augmented patch: rgb (3,n,n), target (1,n,n), valid (1,n,n), inverse (), and the
        place (2,3) of its colours in the image."""
        options = self.augmentation
        rgb, target, valid, square = crop(pair, side, options.zoom, options.shift, rng)
        turns = (False, False, False)
        if options.flip:
            rgb, target, valid, turns = flip(rgb, target, valid, rng)
        mirror, upside_down, transpose = turns
        place = patch_place(
            *square, side, mirror=mirror, upside_down=upside_down, transpose=transpose
        )
        inverse = bool(rng.random() < options.invert) and may_invert
        if inverse:
            valid = valid & (target > 0)
            target = np.where(valid, 1 / np.where(valid, target, 1), 0).astype(np.float32)
        if rng.random() < options.quantise and valid.any():
            lowest, highest = float(target[valid].min()), float(target[valid].max())
            step = max(highest - lowest, 1e-6) / rng.uniform(60, 255)
            target = np.where(valid, np.round(target / step) * step, 0).astype(np.float32)
        if options.colour > 0:
            rgb = recolour(rgb, options.colour, rng)
        return (
            torch.from_numpy(np.ascontiguousarray(rgb.transpose(2, 0, 1))),
            torch.from_numpy(np.ascontiguousarray(target))[None],
            torch.from_numpy(np.ascontiguousarray(valid))[None],
            torch.tensor(inverse),
            place,
        )


def crop(
    pair: Pair, side: int, zoom: float, shift: float, rng: np.random.Generator
) -> tuple[Array, Array, Mask, tuple[Size, float, float]]:
    """A random square, possibly of the shrunk image; depth is picked, never mixed at edges.

    Also where its colours are: size of the (shrunk) image, top, left.
    """
    rgb: Any = pair.rgb
    target: Any = pair.target
    valid: Any = pair.valid
    H, W = target.shape
    factor = float(np.exp(rng.uniform(np.log(zoom), 0)))
    factor = max(factor, side / H, side / W)
    if factor != 1:
        H, W = max(side, round(H * factor)), max(side, round(W * factor))
        rgb = cv2.resize(
            rgb, (W, H), interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
        )
        target = cv2.resize(target, (W, H), interpolation=cv2.INTER_NEAREST_EXACT)
        valid = (
            cv2.resize(valid.astype(np.uint8), (W, H), interpolation=cv2.INTER_NEAREST_EXACT) > 0
        )
    top, left = int(rng.integers(H - side + 1)), int(rng.integers(W - side + 1))
    x, y = 0.0, 0.0
    if shift > 0:
        x, y = shift * rng.uniform(-1, 1, 2) ** 3
        move = np.array([[1, 0, x], [0, 1, y]], np.float32)
        rgb = cv2.warpAffine(rgb, move, (W, H), borderMode=cv2.BORDER_REFLECT)
    square = np.s_[top : top + side, left : left + side]
    return rgb[square], target[square], valid[square], ((H, W), top - y, left - x)


def flip(
    rgb: Array, target: Array, valid: Mask, rng: np.random.Generator
) -> tuple[Array, Array, Mask, tuple[bool, bool, bool]]:
    """Mirror, turn upside down and transpose, each with even odds; also says which."""
    mirror, upside_down, transpose = (bool(draw) for draw in rng.random(3) < 0.5)

    def turn(m: Any) -> Any:
        m = m[:, ::-1] if mirror else m
        m = m[::-1] if upside_down else m
        return np.swapaxes(m, 0, 1) if transpose else m

    return turn(rgb), turn(target), turn(valid), (mirror, upside_down, transpose)


def recolour(image: Array, strength: float, rng: np.random.Generator) -> Array:
    """Gamma, gain, tint, grey, blur, noise and JPEG, as between cameras."""
    rgb: Any = image
    gamma, gain = np.exp(rng.normal(0, 0.3 * strength, 2))
    tint = np.exp(rng.normal(0, 0.08 * strength, 3))
    rgb = np.clip(gain * tint * rgb.astype(np.float64) ** gamma, 0, 1)
    if rng.random() < 0.1 * strength:
        rgb = np.repeat(rgb.mean(2, keepdims=True), 3, 2)
    if rng.random() < 0.3 * strength:
        rgb = cv2.GaussianBlur(rgb, (0, 0), rng.uniform(0.3, 1.0))
    if rng.random() < 0.5 * strength:
        rgb = rgb + rng.normal(0, rng.uniform(0, 0.03), rgb.shape)
    rgb = np.clip(rgb, 0, 1)
    if rng.random() < 0.3 * strength:
        quality = int(rng.integers(50, 96))
        code = cv2.imencode(
            ".jpg", (rgb * 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality]
        )
        rgb = np.asarray(cv2.imdecode(code[1], cv2.IMREAD_COLOR)) / 255.0
    return np.asarray(rgb, np.float32)


def punch_holes(valid: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Knock blobs out of a share of the masks (B, 1, h, w), up to a third of a map wide."""
    valid = valid.clone()
    h, w = valid.shape[-2:]
    for sample in valid:
        if rng.random() >= share:
            continue
        for _ in range(int(rng.integers(1, 8))):
            y, x = rng.uniform(0, h), rng.uniform(0, w)
            radius = np.exp(rng.uniform(np.log(0.5), np.log(max(1.0, min(h, w) / 6))))
            rows = torch.arange(h)[:, None] + 0.5 - y
            columns = torch.arange(w)[None] + 0.5 - x
            sample[0] &= rows**2 + columns**2 > radius**2
    return valid
