"""Objectives and constraints: pure functions of a prediction and its batch, each -> scalar.

`table.OBJECTIVES` are what is minimised, `table.CONSTRAINTS` what `dual.Dual` holds below an ε.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.cameras import CLOSE, EDGE
from ducos.errors import InputError
from ducos.normalise import Range

# A batch has, beside others: target (B,1,H,W) normalised, valid (B,1,H,W) bool, range: Range,
# inverse (B,) bool: True where the target is inverse depth (disparity-like).
Batch = Any
FINEST = 1e-4  # of the range: smaller errors are rounding
ONE_SIGMA = 0.6827  # share of a normal distribution within one standard deviation


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the True pixels of each image of (B, 1, H, W), then over the images.

    Every image counts alike, as in evaluation, and a batch split over processes gives the same
    gradient as a whole one. Invalid values may be NaN; an image without valid pixels adds 0.
    """
    total = torch.where(mask, x, torch.zeros_like(x)).sum((1, 2, 3))
    return (total / mask.sum((1, 2, 3)).clamp_min(1)).mean()


def min_max(x: Tensor, mask: Tensor, floor: float = 1e-6) -> Tensor:
    """N of Eq. 9: each image of (B, 1, H, W) to [0, 1] over its True pixels; 0 elsewhere.

    floor: smallest range to divide by; it bounds the gradient of an almost flat map.
    """
    infinity = torch.full_like(x, torch.inf)
    lowest = torch.where(mask, x, infinity).amin((2, 3), keepdim=True)
    highest = torch.where(mask, x, -infinity).amax((2, 3), keepdim=True)
    any_valid = mask.any(3, keepdim=True).any(2, keepdim=True)
    lowest = torch.where(any_valid, lowest, torch.zeros_like(lowest))
    span = torch.where(any_valid, highest - lowest, torch.ones_like(lowest))
    normalised = (x - lowest) / span.clamp_min(floor)
    return torch.where(mask, normalised, torch.zeros_like(x))


def gradient(x: Tensor) -> tuple[Tensor, Tensor]:
    """Forward differences of (B, 1, H, W) along x and y, both (B, 1, H-1, W-1)."""
    return x[..., :-1, 1:] - x[..., :-1, :-1], x[..., 1:, :-1] - x[..., :-1, :-1]


def gradient_mask(mask: Tensor) -> Tensor:
    """True where all pixels of both forward differences are."""
    return mask[..., :-1, :-1] & mask[..., :-1, 1:] & mask[..., 1:, :-1]


def gradient_magnitude(x: Tensor) -> Tensor:
    """G of Eq. 9: (B, 1, H, W) -> (B, 1, H-1, W-1)."""
    dx, dy = gradient(x)
    return (dx**2 + dy**2 + 1e-12).sqrt()


def reconstruction(prediction: Any, batch: Batch) -> Tensor:
    """L_rec of Eq. 11: mean absolute error over valid pixels."""
    return masked_mean((prediction.depth - batch.target).abs(), batch.valid)


def rms(prediction: Any, batch: Batch) -> Tensor:
    """Root mean square error of each image, averaged: what evaluation reports.

    The mean absolute error alone asks for the likelier side of an edge whose place is uncertain;
    this asks for the mean of both sides, and weighs a large error by its size.
    """
    error = prediction.depth - batch.target
    error = torch.where(batch.valid, error, torch.zeros_like(error))
    mean = error.square().sum((1, 2, 3)) / batch.valid.sum((1, 2, 3)).clamp_min(1)
    tiny = 1e-4  # of the range: the root's slope stays bounded where nothing is wrong
    return ((mean + tiny**2).sqrt() - tiny).mean()


def edge_snap(prediction: Any, batch: Batch, *, radius: int = 4) -> Tensor:
    """Distance to the nearer of the two surfaces at depth edges, mean over valid pixels.

    What `cameras.flying_share` counts: edges are where the truth jumps by a tenth within
    `radius` pixels, its nearest and farthest values there are the two surfaces, and pixels whose
    truth lies on neither are not asked. The other objectives answer an edge whose place is
    uncertain with a depth in between, where nothing is; to this one either side is right.
    """
    asked, distance = at_edges(prediction, batch, radius)
    return masked_mean(torch.where(asked, distance, torch.zeros_like(distance)), batch.valid)


def at_edges(prediction: Any, batch: Batch, radius: int) -> tuple[Tensor, Tensor]:
    """Which pixels (B, 1, H, W) are asked at depth edges, and how far the prediction is from the
    nearer of the two surfaces there; see `cameras.flying`."""
    window = 2 * radius + 1
    lowest = torch.full_like(batch.target, -torch.inf)
    far = F.max_pool2d(torch.where(batch.valid, batch.target, lowest), window, 1, radius)
    near = -F.max_pool2d(torch.where(batch.valid, -batch.target, lowest), window, 1, radius)
    off = torch.minimum((batch.target - near).abs(), (batch.target - far).abs())
    metres, nearest = batch.range.undo(batch.target), batch.range.undo(near)
    on_either = off * batch.range.span < CLOSE * metres
    jumps = (far - near) * batch.range.span > EDGE * nearest
    asked = batch.valid & jumps & on_either
    distance = torch.minimum((prediction.depth - near).abs(), (prediction.depth - far).abs())
    return asked, distance


def consistency(prediction: Any, batch: Batch) -> Tensor:
    """RMS of what had to be moved so that the result, shrunk, agrees with its measurements: a
    network that agrees by itself leaves nothing to do. 0 for maps that owe nothing."""
    excess = prediction.aux.get("excess")
    if excess is None:
        return 0 * prediction.depth.sum()
    tiny = 1e-4  # as of `rms`
    return ((excess.square().mean((1, 2, 3)) + tiny**2).sqrt() - tiny).mean()


def flying(prediction: Any, batch: Batch, *, radius: int = 4) -> Tensor:
    """Share of the pixels at depth edges that are on neither surface, in a form with a slope: the
    step at CLOSE of the depth is as soft as CLOSE."""
    asked, distance = at_edges(prediction, batch, radius)
    close = CLOSE * batch.range.undo(batch.target).abs() / batch.range.span
    off = torch.sigmoid(4 * (distance - close) / close.clamp_min(1e-6))
    shares = torch.where(asked, off, torch.zeros_like(off)).sum((1, 2, 3))
    counts = asked.sum((1, 2, 3))
    return (shares / counts.clamp_min(1))[counts > 0].sum() / (counts > 0).sum().clamp_min(1)


def coverage(prediction: Any, batch: Batch) -> Tensor:
    """How far the share of errors below one sigma is from 68.3 %, in a form with a slope. The depth
    itself is not moved by it."""
    expected = prediction.aux.get("sigma")
    if expected is None:
        raise InputError("the coverage constraint needs a model with a sigma; take ducos-compact")
    error = (prediction.depth.detach() - batch.target).abs().clamp_min(FINEST)
    below = torch.sigmoid(4 * (expected.clamp_min(FINEST).log() - error.log()))
    return (masked_mean(below, batch.valid) - ONE_SIGMA).abs()


def sigma(prediction: Any, batch: Batch) -> Tensor:
    """Trains a model's uncertainty to be the error that 68.3 % of the pixels stay below.

    The pinball loss of that quantile, of logarithms: quantiles do not mind, and a pixel in the
    middle of a wall counts like one at an edge. The depth itself is not moved by it.
    """
    expected = prediction.aux.get("sigma")
    if expected is None:
        raise InputError(
            "the sigma objective trains a model's uncertainty, but this model gives none: "
            "take ducos-compact with its mixing tail, or leave `sigma` out of the objectives"
        )
    error = (prediction.depth.detach() - batch.target).abs()
    error = torch.where(batch.valid, error, torch.zeros_like(error))
    above = ((error + FINEST) / (expected + FINEST)).log()
    return masked_mean(torch.maximum(ONE_SIGMA * above, (ONE_SIGMA - 1) * above), batch.valid)


def alignment(prediction: Any, batch: Batch) -> Tensor:
    """L_cf of Eq. 7, averaged over the stages: squared distance of the projected map pairs."""
    pairs = prediction.aux.get("alignment")
    if not pairs:
        raise InputError(
            "the alignment constraint needs alignment maps, but this model returns none: "
            "build it with align=True or leave `alignment` out of the constraints"
        )
    return torch.stack([F.mse_loss(depth, prompt) for depth, prompt in pairs]).mean()


def edge(
    prediction: Any, batch: Batch, *, normalise: bool = True, magnitude: bool = True
) -> Tensor:
    """L_gr of Eq. 9-10: the prediction's edges against the foundation model's.

    The foundation depth is the teacher, so no gradient flows into it. Where it is inverse and the
    target is not (or the other way round), the prediction is inverted first: edges of depth and of
    inverse depth have different strengths.

    Args:
        normalise: min-max both maps first (the ablation switches it off).
        magnitude: compare gradient magnitudes (text) or both components (released trainer).
    """
    prompt_depth = prediction.aux.get("prompt_depth")
    if prompt_depth is None:
        raise InputError(
            "the edge constraint needs the prompt's depth, but this prompt gives none: "
            "choose a prompt with a depth head or leave `edge` out of the constraints"
        )
    teacher = prompt_depth.detach()
    ours = like_prompt(prediction.depth, batch, prediction.aux.get("prompt_inverse", False))
    fitted = prediction.aux.get("prompt_fitted")
    if fitted is not None:
        ours = torch.where(fitted > 0, prediction.depth, ours)
    if normalise:
        teacher, ours = min_max(teacher, batch.valid), min_max(ours, batch.valid, floor=1e-3)
    mask = gradient_mask(batch.valid)
    if magnitude:
        return masked_mean((gradient_magnitude(ours) - gradient_magnitude(teacher)).abs(), mask)
    differences = [(a - b).abs() for a, b in zip(gradient(ours), gradient(teacher), strict=True)]
    return torch.stack([masked_mean(d, mask) for d in differences]).mean()


def like_prompt(depth: Tensor, batch: Batch, prompt_inverse: bool) -> Tensor:
    """The normalised depth in the prompt's own kind: as it is, or inverted in metres."""
    limits: Range = batch.range
    flip = (batch.inverse != prompt_inverse)[:, None, None, None]
    # Below a twentieth of the nearest measurement a prediction is an error, not a surface.
    metres = limits.undo(depth)
    floor = (0.05 * limits.lowest).clamp_min(1e-3 * limits.span)
    inverted = limits.span / torch.maximum(metres, floor)
    return torch.where(flip, inverted, depth)


def prompt_depth(prediction: Any, batch: Batch) -> Tensor:
    """Trains a prompt's relative depth: L1 plus multi-scale gradients, against the truth without
    its scale and shift.

    The prompt itself is not rescaled. Dividing it by its own deviation rewards a network that puts
    all its deviation into one corner and is flat elsewhere, and fitting it to the truth has no
    slope where it resembles the truth in nothing, which is where training begins.
    """
    student = prediction.aux.get("prompt_depth")
    if student is None:
        raise InputError(
            "the prompt objective trains a prompt's depth, but this prompt gives none: "
            "choose a prompt with a depth head or leave `prompt` out of the objectives"
        )
    teacher = like_prompt(batch.target, batch, prediction.aux["prompt_inverse"])
    teacher = standardise(teacher, batch.valid)
    loss = masked_mean((student - teacher).abs(), batch.valid)
    error, mask = student - teacher, batch.valid
    for _ in range(4):
        dx, dy = gradient(error)
        loss = loss + 0.5 * masked_mean(dx.abs() + dy.abs(), gradient_mask(mask))
        error, mask = error[..., ::2, ::2], mask[..., ::2, ::2]
    return loss


def standardise(x: Tensor, mask: Tensor) -> Tensor:
    """Remove shift and scale per image: subtract the mean, divide by the mean deviation."""
    count = mask.sum((2, 3), keepdim=True).clamp_min(1)
    x = torch.where(mask, x, torch.zeros_like(x))
    centred = torch.where(mask, x - x.sum((2, 3), keepdim=True) / count, torch.zeros_like(x))
    deviation = centred.abs().sum((2, 3), keepdim=True) / count
    return centred / deviation.clamp_min(1e-4)
