"""Training batches: crop, augment, degrade, normalise.

`PatchBatches(...)[step]` is a pure function of (seed, step): the order of images, every crop and
every draw of noise follow from the two. Resuming a run, adding loader workers or splitting a batch
over processes therefore cannot change what is learned from.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ducos.data import Dataset, Pair
from ducos.degrade import DEGRADATIONS
from ducos.errors import InputError, needed
from ducos.kernels import FARTHER
from ducos.normalise import range_of
from ducos.prompts import Prompt
from ducos.resize import fill_holes, low_size
from ducos.training.augmentations import augment, strengths
from ducos.training.config import SENSOR, check_degradations
from ducos.training.measured import common_ratio, cut_measured, patch_sides
from ducos.training.prompt_cache import FeatureCache, cut
from ducos.training.samples import Batch, Patch, Patches

cv2 = needed("cv2", "train")

AS_LARGE = 1.1  # scales below are 1
REACH = 0.25  # truth farther outside the measured range than this share of it cannot be known

SHRINKING = ("area", "bicubic", "nearest")  # in the order of `models.ducos.shrinking.shares`
MOST_ANISOTROPIC = 5 / 3  # scale of one axis relative to the other


class PatchBatches:
    """Batch number `step` of a run.

    Args:
        dataset: pairs with targets.
        crop: side of the square patches in pixels.
        measurements: patches of a large scale are larger, so that the side of their low-resolution
            map has this many pixels (rounded up to a multiple of 32 pixels of the image).
        scales: (smallest, largest); one scale is drawn per batch, log-uniformly, so that all its
            low-resolution maps have one size.
        anisotropy: share of batches whose scale differs across and down, by up to two thirds; both
            stay within `scales`.
        degradations: name -> share, drawn per batch; `sensor` takes the pairs' own maps.
        augmentations: name -> strength; those left out have the default of AUGMENTATIONS.
        when: degradation -> strengths that differ where it makes the map.
        told_shrinking: share of patches of which the network is told how their map was shrunk; the
            map of a patch has too few edges to tell, that of an image has enough.
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
        augmentations: Mapping[str, float],
        seed: int,
        measurements: int = 1,
        anisotropy: float = 0.0,
        when: Mapping[str, Mapping[str, float]] | None = None,
        told_shrinking: float = 0.0,
        cache: FeatureCache | None = None,
    ):
        check_degradations(degradations)
        if len(dataset) == 0:
            raise InputError(f"{dataset.name} holds no pairs to train on")
        self.dataset = dataset
        self.batch_size = batch_size
        self.crop = crop
        self.measurements = measurements
        self.scales = scales
        self.anisotropy = anisotropy
        self.degradations = degradations
        every = strengths(**augmentations)
        differing = when or {}
        self.strengths = {
            name: strengths(**{**every, **differing.get(name, {})}) for name in degradations
        }
        self.told_shrinking = told_shrinking
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
        if scale < AS_LARGE:  # or maps as large as their images, which are common, never came up
            scale = 1.0
        name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        pairs = [self.dataset[int(index)] for index in chosen]
        if name == SENSOR:
            patches = self.measured(pairs, rng)
        else:
            patches = self.simulated(pairs, name, scale, rng)
        augment("reference", patches, self.strengths[name], rng)
        augment("input", patches, self.strengths[name], rng)
        if self.told_shrinking and name in SHRINKING:
            told = rng.random(len(pairs)) < self.told_shrinking
            one_hot = torch.tensor([[name == way for way in SHRINKING]], dtype=torch.float32)
            clean = (patches.noise == 0) & torch.from_numpy(told)  # noise hides how it was shrunk
            patches.shrunk_by = one_hot * clean[:, None]
        return self.batch(pairs, patches)

    def batch(self, pairs: list[Pair], patches: Patches) -> Batch:
        """The patches normalised by the range of their low-resolution maps."""
        low, low_valid = patches.low, patches.low_valid
        limits = range_of(low, low_valid)
        target = limits.apply(patches.target)
        knowable = (target > -REACH) & (target < 1 + REACH)
        # Of inverse depth a user does not say that it is one, so nobody knows what is far.
        far = torch.where(patches.inverse, 0.0, FARTHER)[:, None, None, None]
        any_low = low_valid.any(3, keepdim=True).any(2, keepdim=True)
        return Batch(
            rgb=patches.rgb,
            low=limits.apply(fill_holes(low, low_valid, patches.rgb, far)),
            low_valid=low_valid,
            target=target,
            valid=patches.valid & knowable & any_low,
            range=limits,
            inverse=patches.inverse,
            prompt=self.stored_prompt(pairs, patches.places, target.shape[-1]),
            told=patches.told,
            noise=patches.noise / limits.span.flatten(),
            prior=patches.prior,
            shrunk_by=patches.shrunk_by,
        )

    def simulated(
        self, pairs: list[Pair], name: str, scale: float, rng: np.random.Generator
    ) -> Patches:
        """Patches whose low-resolution map is made of the ground truth."""
        down, across = self.ratios(scale, rng)
        side = max(self.crop, math.ceil(self.measurements * max(down, across) / 32) * 32)
        drawn = [self.patch(pair, side, scale, name, rng) for pair in pairs]
        patches = Patches.of(drawn, [name] * len(pairs))
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        scene = replace(patches)  # what the sensor sees need not be what the network is shown
        augment("scene", scene, self.strengths[name], rng)
        size = low_size((side, side), down)[0], low_size((side, side), across)[1]
        patches.low, patches.low_valid = DEGRADATIONS[name](
            scene.target, scene.valid, scene.rgb, size, generator
        )
        return patches

    def ratios(self, scale: float, rng: np.random.Generator) -> tuple[float, float]:
        """The scale down and across; without `anisotropy` nothing is drawn."""
        if not self.anisotropy or rng.random() >= self.anisotropy:
            return scale, scale
        factor = MOST_ANISOTROPIC ** rng.uniform(-1, 1)
        other = float(np.clip(scale * factor, *self.scales))
        return (scale, other) if rng.random() < 0.5 else (other, scale)

    def patch(
        self, pair: Pair, side: int, scale: float, name: str, rng: np.random.Generator
    ) -> Patch:
        """One augmented patch, its low-resolution map not yet made."""
        kind = DEGRADATIONS[name].kind
        patch = Patch(pair.rgb, pair.target, pair.valid, kind, scale, pair.rgb)
        augment("image", patch, self.strengths[name], rng)
        cut_square(patch, side, rng)
        augment("patch", patch, self.strengths[name], rng)
        return patch

    def measured(self, pairs: list[Pair], rng: np.random.Generator) -> Patches:
        """Patches with the sensor's own map, which only what applies to "real" maps may change."""
        ratio = common_ratio(pairs)
        sides = patch_sides(pairs, ratio, self.crop)
        drawn = []
        for pair in pairs:
            patch = cut_measured(pair, ratio, sides, rng)
            augment("patch", patch, self.strengths[SENSOR], rng)
            drawn.append(patch)
        return Patches.of(drawn, [pair.sensor for pair in pairs])

    def stored_prompt(self, pairs: list[Pair], places: Tensor, side: int) -> Prompt | None:
        """The cached features of the whole images, cut to the patches at places (B, 2, 3)."""
        if self.cache is None:
            return None
        whole = [self.cache.features(pair) for pair in pairs]
        sizes = [(pair.rgb.shape[0], pair.rgb.shape[1]) for pair in pairs]
        return cut(whole, places, (side, side), sizes)


def cut_square(patch: Patch, side: int, rng: np.random.Generator) -> None:
    """A random square of the zoomed image; depth is picked, never mixed at edges.

    An image smaller than the square is enlarged.
    """
    rgb: Any = patch.rgb
    target: Any = patch.target
    valid: Any = patch.valid
    H, W = target.shape
    factor = max(patch.zoom, side / H, side / W)
    if factor != 1:
        H, W = max(side, round(H * factor)), max(side, round(W * factor))
        smooth = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
        picked = cv2.INTER_NEAREST_EXACT
        rgb = cv2.resize(rgb, (W, H), interpolation=smooth)
        target = cv2.resize(target, (W, H), interpolation=picked)
        valid = cv2.resize(valid.astype(np.uint8), (W, H), interpolation=picked) > 0
    top, left = int(rng.integers(H - side + 1)), int(rng.integers(W - side + 1))
    square = np.s_[top : top + side, left : left + side]
    patch.image, patch.top, patch.left = rgb, top, left
    patch.rgb, patch.target, patch.valid = rgb[square], target[square], valid[square]
