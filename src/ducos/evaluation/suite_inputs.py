"""The input that a case of a suite makes of a pair, the same one every time."""

import zlib
from dataclasses import dataclass

import numpy as np
import torch

from ducos.arrays import Floats, Mask
from ducos.data import Pair
from ducos.degrade import DEGRADATIONS, inverse_of, with_faults
from ducos.errors import InputError
from ducos.evaluation.cases import as_batch
from ducos.evaluation.suites import BLOCKS, SuiteCase
from ducos.filters import gaussian

SHIFT = 6  # pixels
SPOTS = 1.0  # pixels, sigma of grain
HOLES = 0.15  # of the map, about


@dataclass(frozen=True)
class SuiteInput:
    """rgb: (H, W, 3); low, low_valid: (H / ratio, W / ratio); truth, valid: (H, W); metres.
    prior: (H, W), relative, if the case has one."""

    rgb: Floats
    low: Floats
    low_valid: Mask
    truth: Floats
    valid: Mask
    prior: Floats | None = None


def suite_input(pair: Pair, case: SuiteCase) -> SuiteInput:
    """Cut the pair to multiples of the ratio and make its low-resolution map."""
    k = case.ratio
    H, W = (n // k * k for n in pair.target.shape)
    if not (H and W):
        raise InputError(f"{pair.name} is smaller than one block of {k} pixels; leave it out")
    rgb = np.ascontiguousarray(pair.rgb[:H, :W], np.float32)
    truth, valid = pair.target[:H, :W], pair.valid[:H, :W]
    if case.soft:
        truth = softened(truth, valid, case.soft)
    seed = zlib.crc32(f"{case.name}/{pair.name}".encode())
    if case.grain:
        truth = grainy(truth, valid, case.grain, np.random.default_rng(seed))
    if k == 1:
        low, low_valid = truth, valid
    elif case.low == BLOCKS:
        low, low_valid = block_means(truth, valid, k)
    else:
        made, known = DEGRADATIONS[case.low](
            as_batch(truth),
            as_batch(valid),
            torch.from_numpy(rgb).permute(2, 0, 1)[None],
            (H // k, W // k),
            torch.Generator().manual_seed(seed),
        )
        low, low_valid = made[0, 0].numpy(), known[0, 0].numpy()
    if case.holes:
        low_valid = low_valid & ~discs(low.shape, np.random.default_rng(seed))
    low = np.where(low_valid, low, np.float32(0))
    image = image_of(rgb, case.image)
    prior = prior_of(truth, valid, image, case.prior, np.random.default_rng(seed))
    return SuiteInput(image, low, low_valid, truth, valid, prior)


def softened(depth: Floats, valid: Mask, sigma: float) -> Floats:
    """depth (H, W), blurred by a Gaussian of sigma pixels; only what is valid counts."""
    share = gaussian(valid.astype(np.float32), sigma)
    total = gaussian(np.where(valid, depth, 0).astype(np.float32), sigma)
    return np.where(valid, total / np.maximum(share, 1e-6), depth).astype(np.float32)


def grainy(depth: Floats, valid: Mask, share: float, rng: np.random.Generator) -> Floats:
    """depth (H, W) with noise in spots, root mean square `share` of its range."""
    if not valid.any():
        return depth
    spots = gaussian(rng.normal(size=depth.shape).astype(np.float32), SPOTS)
    spots *= share * float(np.ptp(depth[valid])) / max(float(spots.std()), 1e-6)
    return np.where(valid, np.maximum(depth + spots, 0.5 * depth), depth).astype(np.float32)


def block_means(depth: Floats, valid: Mask, k: int) -> tuple[Floats, Mask]:
    """(H, W) -> (H / k, W / k): mean of the valid pixels of each block; a hole below half."""
    h, w = (n // k for n in depth.shape)
    count = valid.reshape(h, k, w, k).sum((1, 3))
    total = np.where(valid, depth, 0).astype(np.float64).reshape(h, k, w, k).sum((1, 3))
    known = count >= k * k / 2
    return np.where(known, total / np.maximum(count, 1), 0).astype(np.float32), known


def image_of(rgb: Floats, what: str) -> Floats:
    """The image (H, W, 3) that comes with the map; what: of IMAGES."""
    H, W = rgb.shape[:2]
    if what == "dark":
        return np.zeros_like(rgb)
    if what == "wrong":
        return np.roll(rgb, (H // 2, W // 2), (0, 1))
    if what == "shifted":
        return rgb[:, np.maximum(np.arange(W) - SHIFT, 0)]
    return rgb


def prior_of(
    truth: Floats, valid: Mask, rgb: Floats, what: str, rng: np.random.Generator
) -> Floats | None:
    """The monocular depth (H, W) that comes with the map; what: of PRIORS."""
    if what == "none":
        return None
    inverse = inverse_of(truth, valid)
    if what == "wrong":
        inverse = np.roll(inverse, [n // 2 for n in inverse.shape], (0, 1))
    return with_faults(inverse, rgb, rng)


def discs(size: tuple[int, ...], rng: np.random.Generator) -> Mask:
    """True (h, w) in discs of up to a sixth of the shorter side, until HOLES are covered."""
    h, w = size
    rows, columns = np.mgrid[:h, :w]
    covered = np.zeros((h, w), np.bool_)
    while covered.mean() < HOLES:
        y, x = rng.uniform(0, h), rng.uniform(0, w)
        radius = rng.uniform(0.5, max(1.0, min(h, w) / 6))
        covered |= (rows + 0.5 - y) ** 2 + (columns + 0.5 - x) ** 2 < radius**2
    return covered
