"""The mixing tail: the output is a weighted mean of nearby low-resolution pixels.

Instead of a depth value, the network predicts for each output pixel how to weigh the 4×4
low-resolution pixels around it. The result serves every ratio with the same code, stays within the
local range but for a bounded residual, keeps edges sharp, prefers what was measured to what was
filled in, and yields an uncertainty: the weighted spread of the neighbours, scaled by a learned
doubt.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.deferred import exporting, kept, local
from ducos.errors import InputError
from ducos.models.ducos.around import (
    TAPS,
    Around,
    Window,
    extremes,
    linear_of,
    mix,
    nearest_of,
    spline_logits,
)
from ducos.models.ducos.prior import Guess
from ducos.models.ducos.shrinking import shrunk_as
from ducos.models.prediction import Prediction
from ducos.resize import from_cells

MAPS = (TAPS**2, 1, 1, 1, 1, 1)  # logits, level, focus, detail, trust, doubt
CACHED_ROWS = 16
FILLED_IN = 2.0  # logit that a filled-in value lacks beside a measurement: an eighth of its weight
BEYOND = 0.03  # of the range of the neighbours: more shows as a fringe along strong edges
SIGMAS = 2.0  # of the noise: how far a faithful result may lie from a measurement
EDGE = 12.0  # of the noise: measurements around that differ by more are an edge, not noise
FINER = 1.1  # ratio from which there are more pixels than measurements, and edges to place
STEEP = 0.8  # of the local contrast: a change over 3 pixels that is surely an edge
OPERATOR = 0.02  # of the range of the measurements around: how sensors shrink is not quite known


def hand_back(
    missing: Tensor, depth: Tensor, weights: Tensor, trust: Tensor, around: Around
) -> Tensor:
    """depth (B, 1, H, W) with a trusted share of what its measurements are missing (B, 1, h, w)."""
    return depth + trust * mix(weights, missing, around.window)


def within_reach(depth: Tensor, around: Around) -> Tensor:
    """depth (B, 1, H, W), kept to the range of its neighbours and hardly beyond.

    Corrections add up; where they fight noise or a wrong edge, they must not leave the scene.
    """
    lowest, highest = extremes(around.low, around.window)
    beyond = BEYOND * (highest - lowest)
    return torch.minimum(torch.maximum(depth, lowest - beyond), highest + beyond)


def steepened(times: int, depth: Tensor, around: Around) -> Tensor:
    """depth (B, 1, H, W) with steeper edges. Each time, within 3×3 pixels, what is nearer to the
    highest value is raised and what is nearer to the lowest is lowered.

    Half-way values stay, so a slanted plane does; so does whatever changes little for its
    surroundings. A loss in depth rewards values between two surfaces where the edge's place is not
    known; to a user they are flying pixels. A map that was resampled with bicubic is left as it is:
    somebody has treated it as an image, and soft edges may be those of the scene.
    """
    finer = around.grows(FINER)
    if finer is False:
        return depth
    steep = STEEP * around.contrast + 1e-6
    share = finer * 0.5 * (1 - around.shrinking[:, 1, None, None, None])
    for _ in range(times):
        highest, lowest = F.max_pool2d(depth, 3, 1, 1), -F.max_pool2d(-depth, 3, 1, 1)
        span = highest - lowest
        gain = (span / steep).clamp(1e-3, 1) ** 2
        place = 2 * (depth - lowest) / span.clamp_min(1e-9) - 1  # -1 lowest, 1 highest
        raised = torch.tanh(gain * place) / torch.tanh(gain)
        depth = depth + share * span * (raised - place)
    return depth


def agreeing(depth: Tensor, around: Around, tolerance: Tensor, excess: Tensor) -> Tensor:
    """depth (B, 1, H, W), moved until the mean over each measurement's area (B, 1, h, w) is within
    the tolerance of what was measured.

    Smoothly at first, then cell by cell for the small rest, so that hardly any cell border shows.
    At ratio 1 no pixel is then farther from its measurement than that.

    excess (B, 1, h, w): what it lacks at first, see `beyond_tolerance`.
    """
    for grow in (linear_of, linear_of, nearest_of):
        depth = kept(local(partial(moved_by, excess, grow), depth, around, channels=1))
        if grow is not nearest_of:
            excess = beyond_tolerance(depth, around, tolerance)
    return depth


def beyond_tolerance(depth: Tensor, around: Around, tolerance: Tensor) -> Tensor:
    """What depth (B, 1, H, W), shrunk by area, lacks of each measurement beyond the tolerance,
    (B, 1, h, w)."""
    missing = missing_of(kept(depth), around)
    excess = missing - torch.minimum(torch.maximum(missing, -tolerance), tolerance)
    return excess if around.valid is None else excess * around.valid


def missing_of(depth: Tensor, around: Around) -> Tensor:
    """What depth (B, 1, H, W), shrunk as the map was, lacks of each measurement, (B, 1, h, w)."""
    low = around.low
    return low - shrunk_as(depth, (low.shape[-2], low.shape[-1]), around.shrinking)


def moved_by(
    excess: Tensor, grow: Callable[[Tensor, Window], Tensor], depth: Tensor, around: Around
) -> Tensor:
    """depth (B, 1, H, W) plus what its measurements still lack (B, 1, h, w)."""
    return depth + grow(excess, around.window)


def tolerated(around: Around, noise: Tensor | None) -> Tensor:
    """How far a faithful result, shrunk, may lie from each measurement, (B, 1, h, w).

    noise (B, 1, 1, 1) or (B, 1, h, w): one standard deviation; it may be taken away where the
    measurements differ by no more than noise does, not at edges. Sensors do not all take the mean
    over a pixel's area; what else they may do shows where depth changes, and not at ratio 1. Only a
    map that was resampled with bicubic is surely known: programs all do the same there.
    """
    low = around.low
    highest, lowest = F.max_pool2d(low, 3, 1, 1), -F.max_pool2d(-low, 3, 1, 1)
    grown = 1 - 1 / around.ratio.prod().clamp_min(1)
    spread = highest - lowest
    unsure = 1 - around.shrinking[:, 1, None, None, None]
    tolerance = OPERATOR * unsure * grown * spread
    if noise is None:
        return tolerance
    noise = noise.clamp_min(1e-9)
    return tolerance + SIGMAS * noise / (1 + (spread / (EDGE * noise)) ** 2)


def expected_error(spread: Tensor, contrast: Tensor, doubt: Tensor) -> Tensor:
    """One sigma, all (B, 1, H, W): spread is the variance of the mixed neighbours, and doubt
    scales it by up to e⁴ either way."""
    rough = spread.clamp_min(1e-10).sqrt() + 0.1 * contrast + 1e-3
    return rough * torch.exp(4 * torch.tanh(doubt / 4))


def folded(of: Callable[[Tensor, Tensor], Tensor], x: Tensor) -> Tensor:
    """All channels of x (B, 2ⁿ, H, W) as one, half by half: runtimes reduce an axis in the middle
    number by number, but take two maps at the speed of the memory."""
    while x.shape[1] > 1:
        x = of(*x.split(int(x.shape[1]) // 2, 1))
    return x


def softplus(x: Tensor) -> Tensor:
    """`F.softplus`; runtimes compute it number by number, but exponentials many at once."""
    return F.relu(x) + (1 + (-x.abs()).exp()).log() if exporting() else F.softplus(x)


class Proposal(NamedTuple):
    """The tail's result before corrections: depth (B, 1, H, W), the neighbours' weights
    (B, 16, H, W), trust in [0, 1], sigma and how far a prior is followed, all (B, 1, H, W)."""

    depth: Tensor
    weights: Tensor
    trust: Tensor
    sigma: Tensor
    leaned: Tensor


class MixingTail(nn.Module):
    """Body features at 1/stride -> depth at full size, from the measured values around each pixel.

    The body predicts per output pixel
      logits (16)  a preference for each neighbour,
      level (1)    how far the surface lies from the bicubic value, in local contrasts, and
      focus (1)    how strictly neighbours away from that surface are refused,
      detail (1)   a residual bounded by half the local contrast,
      trust (1)    how far the result is pulled to agree with the measurements when shrunk again,
      doubt (1)    by which factor the error to expect differs from the spread of the neighbours,
      lean (1)     for each guided depth: how far the surface goes from the bicubic value to it.
    """

    def __init__(
        self,
        channels: int,
        *,
        stride: int = 4,
        corrections: int = 4,
        steepenings: int = 4,
        guides: int = 0,
        rank: int | None = None,
    ):
        """
        Args:
            corrections: how often what the shrunk result misses is handed back.
            steepenings: how often edges are made steeper, away from training.
            rank: channels between a 3×3 convolution and a 1×1 one that together make the maps;
                None: one 3×3 convolution, three times the work for the same result to 2 %.
        """
        super().__init__()
        for name, times in (("corrections", corrections), ("steepenings", steepenings)):
            if times < 0:
                raise InputError(f"{name} must be 0 or more, got {times}")
        self.stride = stride
        self.corrections = corrections
        self.steepenings = steepenings
        self.maps = (*MAPS, guides)
        count = sum(self.maps) * stride**2
        last: nn.Conv2d
        if rank is None:
            last = nn.Conv2d(channels, count, 3, padding=1)
            self.predict: nn.Module = last
        else:
            last = nn.Conv2d(rank, count, 1)
            self.predict = nn.Sequential(nn.Conv2d(channels, rank, 3, padding=1), last)
        bias = torch.zeros(sum(self.maps))
        bias[TAPS**2 + 1] = -2.0  # focus: at first hardly any neighbour is refused
        bias[sum(MAPS) + 1 :] = -2.0  # lean: at first the first guided depth counts
        with torch.no_grad():
            last.weight.mul_(0.1)  # start near the plain spline mean
        last.bias = nn.Parameter(bias.repeat_interleave(stride**2))

    def forward(
        self,
        features: Tensor,
        around: Around,
        tolerance: Tensor | None = None,
        guess: Guess | None = None,
        lean: Tensor | None = None,
    ) -> Prediction:
        """features (B, C, ≥H/stride, ≥W/stride) -> depth and sigma (B, 1, H, W).

        tolerance (B, 1, h, w): how far the result, shrunk, may lie from each measurement; None: no
            matter.
        guess, lean: of a prior, if there is one; see `prior.PriorBranch.lean`.
        """
        H, W = around.size
        maps = from_cells(self.predict(features), self.stride)[..., :H, :W]
        leaning = () if guess is None else (guess, lean)
        depth, weights, trust, sigma, leaned = local(
            self.propose, maps, around, *leaning, channels=(1, TAPS**2, 1, 1, 1)
        )
        # Back-projection along the same weights: what the shrunk result misses of the measurement
        # is handed back to the pixels that the measurement was mixed into.
        for _ in range(self.corrections):
            missing = missing_of(depth, around)
            missing = missing if around.valid is None else missing * around.valid
            corrected = local(
                partial(hand_back, missing), depth, weights, trust, around, channels=1
            )
            depth = kept(corrected, over=depth)
        depth = local(within_reach, depth, around, channels=1)
        aux = {"sigma": sigma} if guess is None else {"sigma": sigma, "leaned": leaned}
        if self.steepenings and not self.training:  # taught through it, a network undoes it
            steeper = partial(steepened, self.steepenings)
            depth = kept(local(steeper, depth, around, channels=1, reach=self.steepenings))
        if tolerance is not None:
            aux["excess"] = beyond_tolerance(depth, around, tolerance)
            depth = agreeing(depth, around, tolerance, aux["excess"])
        return Prediction(depth, aux)

    def propose(
        self,
        maps: Tensor,
        around: Around,
        guess: Guess | None = None,
        prior_lean: Tensor | None = None,
    ) -> Proposal:
        """What the predicted maps (B, sum(self.maps), H, W) say, before corrections."""
        up, contrast, guided = around.up, around.contrast, around.guided
        H = up.shape[-2]
        logits, level, focus, detail, trust, doubt, lean = maps.split(self.maps, 1)
        surface = up + torch.tanh(level) * contrast
        if guided is not None:
            surface = surface + (torch.sigmoid(lean) * (guided - up)).sum(1, keepdim=True)
        leaned = torch.zeros_like(up)
        if guess is not None and prior_lean is not None:
            gates = torch.sigmoid(prior_lean) * guess.has
            surface = surface + (gates[:, :-1] * (guess.depths - up)).sum(1, keepdim=True)
            leaned = 1 - (1 - gates).prod(1, keepdim=True)
        strictness = 4 * softplus(focus) / (contrast + 1e-4)
        prior = spline_logits(around.window)
        neighbours, hole = around.neighbours, around.filled_in
        # Away from training, a few rows at a time stay in the processor's cache: twice as fast.
        in_one = torch.is_grad_enabled() or exporting()
        tops = () if in_one else range(0, H, CACHED_ROWS)
        strips = [slice(top, top + CACHED_ROWS) for top in tops] or [slice(None)]
        weights = torch.cat(
            [
                self.weigh(
                    logits[:, :, rows] + prior[:, :, rows],
                    (neighbours[:, :, rows] - surface[:, :, rows]).abs() * strictness[:, :, rows],
                    None if hole is None else hole[:, :, rows],
                )
                for rows in strips
            ],
            2,
        )
        mean = mix(weights, around.low - 0.5, around.window) + 0.5
        spread = mix(weights.detach(), around.low, around.window, mean.detach())
        depth = mean + 0.5 * torch.tanh(detail) * contrast
        if guess is not None and prior_lean is not None:
            depth = depth + gates[:, -1:] * (guess.depths[:, :1] - depth)
        sigma = expected_error(spread, contrast, doubt)
        return Proposal(depth, weights, torch.sigmoid(trust), sigma, leaned)

    @staticmethod
    def weigh(logits: Tensor, penalty: Tensor, hole: Tensor | None) -> Tensor:
        """Softmax over the neighbours, all (B, 16, H, W); a filled-in value weighs little beside a
        measurement as near."""
        logits = logits - penalty
        if hole is not None:
            logits = logits - FILLED_IN * hole
        if exporting():  # runtimes turn the map around for a softmax that is not of the last axis
            shares = (logits - folded(torch.maximum, logits)).exp()
            return shares * (1 / folded(torch.add, shares))
        return logits.softmax(1)
