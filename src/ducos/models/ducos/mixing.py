"""The mixing tail: the output is a weighted mean of nearby low-resolution pixels.

Instead of a depth value, the network predicts for each output pixel how to weigh the 4×4
low-resolution pixels around it. The result serves every ratio with the same code, stays within the
local range but for a bounded residual, keeps edges sharp, prefers what was measured to what was
filled in, and yields an uncertainty: the weighted spread of the neighbours, scaled by a learned
doubt.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.prediction import Prediction
from ducos.resize import bicubic

TAPS = 4
MAPS = (TAPS**2, 1, 1, 1, 1, 1)  # logits, level, focus, detail, trust, doubt
CACHED_ROWS = 16
FILLED_IN = 2.0  # logit that a filled-in value lacks beside a measurement: an eighth of its weight
BEYOND = 0.03  # of the range of the neighbours: more shows as a fringe along strong edges


class Window(NamedTuple):
    """Where the 4×4 neighbours of each output pixel lie in the low-resolution map.

    rows (H, 4), columns (W, 4): indices, clamped to the map.
    row_weights (H, 4), column_weights (W, 4): cubic B-spline at each neighbour's distance, summing
        to 1. It is zero where the window ends, so nothing jumps when the window moves on.
    phase (1, 2, H, W): fractional position between low-resolution pixel centres, in [0, 1).
    """

    rows: Tensor
    columns: Tensor
    row_weights: Tensor
    column_weights: Tensor
    phase: Tensor


def window_of(low_size: tuple[int, int], size: tuple[int, int], like: Tensor) -> Window:
    """The window for a low-resolution map of `low_size` under an image of `size`."""

    def axis(n: int, N: int) -> tuple[Tensor, Tensor, Tensor]:
        centre = (torch.arange(N, device=like.device, dtype=like.dtype) + 0.5) * (n / N) - 0.5
        first = centre.floor()
        offsets = torch.arange(TAPS, device=like.device) - 1
        index = first[:, None] + offsets  # (N, 4)
        distance = (index - centre[:, None]).abs()
        near = 2 / 3 - distance**2 + distance**3 / 2
        far = (2 - distance).clamp_min(0) ** 3 / 6
        weight = torch.where(distance < 1, near, far)
        return index.long().clamp(0, n - 1), weight, centre - first

    rows, weight_y, phase_y = axis(low_size[0], size[0])
    columns, weight_x, phase_x = axis(low_size[1], size[1])
    phase = torch.stack([phase_y[:, None].expand(size), phase_x[None, :].expand(size)])
    return Window(rows, columns, weight_y, weight_x, phase[None])


def gather(low: Tensor, window: Window) -> Tensor:
    """The neighbours of each output pixel: low (B, 1, h, w) -> (B, 16, H, W)."""
    # Columns first: picking single pixels is slow, and the map is still small then; picking rows of
    # the widened map copies whole rows.
    wide = [low.index_select(3, window.columns[:, b]) for b in range(TAPS)]  # (B, 1, h, W)
    taps = [w.index_select(2, window.rows[:, a]) for a in range(TAPS) for w in wide]
    return torch.cat(taps, 1)


def mix(weights: Tensor, low: Tensor, window: Window) -> Tensor:
    """Weighted sum of the neighbours: weights (B, 16, H, W), low (B, 1, h, w) -> (B, 1, H, W)."""
    total = torch.zeros_like(weights[:, :1])
    shares = weights.split(1, 1)  # at once: the gradient of 16 slices would be 16 full maps
    wide = [low.index_select(3, window.columns[:, b]) for b in range(TAPS)]  # (B, 1, h, W)
    for a in range(TAPS):
        for b in range(TAPS):
            tap = wide[b].index_select(2, window.rows[:, a])
            total = torch.addcmul(total, shares[TAPS * a + b], tap)
    return total


def spline_mean(low: Tensor, window: Window) -> Tensor:
    """Spline-weighted mean of the neighbours: low (B, 1, h, w) -> (B, 1, H, W), axis by axis."""
    wide = sum(
        low.index_select(3, window.columns[:, b]) * window.column_weights[:, b] for b in range(TAPS)
    )
    assert isinstance(wide, Tensor)  # (B, 1, h, W)
    tall = sum(
        wide.index_select(2, window.rows[:, a]) * window.row_weights[:, a, None]
        for a in range(TAPS)
    )
    assert isinstance(tall, Tensor)
    return tall


def local_contrast(low: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """Spline-weighted mean and twice the standard deviation of the neighbours, both (B, 1, H, W).

    Unlike the range of the neighbours they change smoothly as the window moves.
    """
    centred = low - 0.5  # of a map in [0, 1]: keeps the difference of squares exact
    mean = spline_mean(centred, window)
    variance = spline_mean(centred**2, window) - mean**2
    rounding = 1e-7  # of the difference above in float32: a flat map has no contrast
    return mean + 0.5, 2 * (variance - rounding).clamp_min(0).sqrt()


def spline_logits(window: Window) -> Tensor:
    """Log of the spline weight of each neighbour, (1, 16, H, W) in row-major order."""
    log_y = window.row_weights.clamp_min(1e-6).log().T[:, None, :, None]  # (4, 1, H, 1)
    log_x = window.column_weights.clamp_min(1e-6).log().T[None, :, None, :]  # (1, 4, 1, W)
    return (log_y + log_x).flatten(0, 1)[None]


def within_reach(depth: Tensor, neighbours: Tensor) -> Tensor:
    """depth (B, 1, H, W), kept to the range of its neighbours (B, 16, H, W) and hardly
    beyond.

    Corrections add up; where they fight noise or a wrong edge, they must not leave the scene.
    """
    lowest, highest = torch.aminmax(neighbours, dim=1, keepdim=True)
    beyond = BEYOND * (highest - lowest)
    return torch.minimum(torch.maximum(depth, lowest - beyond), highest + beyond)


def expected_error(spread: Tensor, contrast: Tensor, doubt: Tensor) -> Tensor:
    """One sigma, all (B, 1, H, W): spread is the variance of the mixed neighbours, and doubt
    scales it by up to e⁴ either way."""
    rough = spread.clamp_min(1e-10).sqrt() + 0.1 * contrast + 1e-3
    return rough * torch.exp(4 * torch.tanh(doubt / 4))


class Proposal(NamedTuple):
    """The tail's result before corrections: depth (B, 1, H, W), the neighbours' weights
    (B, 16, H, W), trust in [0, 1] and sigma, both (B, 1, H, W)."""

    depth: Tensor
    weights: Tensor
    trust: Tensor
    sigma: Tensor


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

    def __init__(self, channels: int, *, stride: int = 4, corrections: int = 4, guides: int = 0):
        super().__init__()
        self.stride = stride
        self.corrections = corrections
        self.maps = (*MAPS, guides)
        self.predict = nn.Conv2d(channels, sum(self.maps) * stride**2, 3, padding=1)
        bias = torch.zeros(sum(self.maps))
        bias[TAPS**2 + 1] = -2.0  # focus: at first hardly any neighbour is refused
        bias[sum(MAPS) + 1 :] = -2.0  # lean: at first the first guided depth counts
        with torch.no_grad():
            self.predict.weight.mul_(0.1)  # start near the plain spline mean
        self.predict.bias = nn.Parameter(bias.repeat_interleave(stride**2))

    def forward(
        self,
        features: Tensor,
        low: Tensor,
        valid: Tensor | None,
        up: Tensor,
        window: Window,
        neighbours: Tensor,
        contrast: Tensor,
        guided: Tensor | None = None,
    ) -> Prediction:
        """features (B, C, ≥H/stride, ≥W/stride); low (B, 1, h, w); valid (B, 1, h, w) bool or None;
        up (B, 1, H, W) = bicubic(low); neighbours (B, 16, H, W) = gather(low, window);
        contrast (B, 1, H, W) from local_contrast; guided (B, guides, H, W) from models.guide."""
        H, W = up.shape[-2:]
        maps = F.pixel_shuffle(self.predict(features), self.stride)[..., :H, :W]
        hole = None if valid is None else gather(~valid, window)
        proposal = self.propose(maps, low, hole, up, window, neighbours, contrast, guided)
        depth = proposal.depth
        # Back-projection along the same weights: what the shrunk result misses of the measurement
        # is handed back to the pixels that the measurement was mixed into.
        for _ in range(self.corrections):
            missing = low - bicubic(depth, (low.shape[-2], low.shape[-1]))
            if valid is not None:
                missing = missing * valid
            depth = depth + proposal.trust * mix(proposal.weights, missing, window)
        return Prediction(within_reach(depth, neighbours), {"sigma": proposal.sigma})

    def propose(
        self,
        maps: Tensor,
        low: Tensor,
        hole: Tensor | None,
        up: Tensor,
        window: Window,
        neighbours: Tensor,
        contrast: Tensor,
        guided: Tensor | None,
    ) -> Proposal:
        """What the predicted maps (B, sum(self.maps), H, W) say, before corrections; any rows of an
        image can be asked for alone. hole (B, 16, H, W): which neighbours are filled in."""
        H = up.shape[-2]
        logits, level, focus, detail, trust, doubt, lean = maps.split(self.maps, 1)
        surface = up + torch.tanh(level) * contrast
        if guided is not None:
            surface = surface + (torch.sigmoid(lean) * (guided - up)).sum(1, keepdim=True)
        strictness = 4 * F.softplus(focus) / (contrast + 1e-4)
        prior = spline_logits(window)
        # Away from training, a few rows at a time stay in the processor's cache: twice as fast.
        step = H if torch.is_grad_enabled() else CACHED_ROWS
        strips = [slice(top, top + step) for top in range(0, H, step)]
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
        centred = low - 0.5  # as in local_contrast
        mean = mix(weights, centred, window)
        spread = mix(weights, centred**2, window) - mean**2
        depth = mean + 0.5 + 0.5 * torch.tanh(detail) * contrast
        sigma = expected_error(spread.detach(), contrast, doubt)
        return Proposal(depth, weights, torch.sigmoid(trust), sigma)

    @staticmethod
    def weigh(logits: Tensor, penalty: Tensor, hole: Tensor | None) -> Tensor:
        """Softmax over the neighbours, all (B, 16, H, W); a filled-in value weighs little beside a
        measurement as near."""
        logits = logits - penalty
        if hole is not None:
            logits = logits - FILLED_IN * hole
        return logits.softmax(1)
