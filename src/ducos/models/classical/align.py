"""A prompt's depth fitted robustly to the measurements: classical, but for the prompt itself.

`prompt_alone` fits a line by plain least squares, for training; this one shrugs off outliers and
bends inverse depth, for use.
"""

import math

import torch
from torch import Tensor

from ducos.errors import InputError
from ducos.models.classical.measurements import trust
from ducos.models.classical.window_filters import weighted_median
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.normalise import range_of
from ducos.prompts import PromptModel, run_prompt
from ducos.resize import bilinear

# Largest γ of `Align`: the farthest point is then a thousand times as far as the nearest one.
MOST_BEND = 1e3


class Align(Model):
    """A foundation model's relative depth, fitted to the measurements: no super-resolution at all.

    One scale and one shift per image, robust to outliers. An inverse prompt p (it grows towards the
    camera) is bent to depth first: metric depth is 1 / (a p + b), and our [0, 1] depth is metric
    depth scaled and shifted, so it equals scale · p / (1 + γ p) + shift for some γ ≥ 0, which is
    searched for.

    Args:
        prompt: any prompt with a depth head.
    """

    def __init__(self, prompt: PromptModel):
        super().__init__()
        self.prompt = prompt

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        prompt_depth = run_prompt(self.prompt, rgb).depth
        if prompt_depth is None:
            raise InputError(
                "got a prompt without depth, expected one with a depth head; "
                "choose a prompt such as depth-anything-v2-s"
            )
        relative = range_of(prompt_depth).apply(prompt_depth)
        h, w = low.shape[-2:]
        # ten thousand measurements are plenty for three numbers
        every = max(1, round((h * w / 10_000) ** 0.5))
        p, depth, weight = (
            x[..., ::every, ::every].double().flatten(1)
            for x in (bilinear(relative, (h, w)), low, trust(low, valid))
        )
        if self.prompt.inverse:
            bend, scale, shift = fit_hyperbola(p, depth, weight)
        else:
            scale, shift = fit_line(p, depth, weight)
            bend = torch.zeros_like(scale)
        bend, scale, shift = (x.to(low)[:, :, None, None] for x in (bend, scale, shift))
        aux = {"prompt_depth": prompt_depth, "prompt_inverse": self.prompt.inverse}
        return Prediction(scale * relative / (1 + bend * relative) + shift, aux)


def fit_line(x: Tensor, y: Tensor, weight: Tensor, iterations: int = 20) -> tuple[Tensor, Tensor]:
    """Slope and shift, each (B, 1), of y ≈ slope · x + shift; outliers hardly count.

    Args:
        x, y: (B, N); weight: (B, N), prior trust in each pair.
    """
    robust = weight
    for _ in range(iterations):
        share = robust / robust.sum(1, keepdim=True)
        mean_x, mean_y = (share * x).sum(1, keepdim=True), (share * y).sum(1, keepdim=True)
        variance = (share * (x - mean_x).square()).sum(1, keepdim=True)
        slope = (share * (x - mean_x) * (y - mean_y)).sum(1, keepdim=True) / (variance + 1e-12)
        shift = mean_y - slope * mean_x
        error = (slope * x + shift - y).abs()
        typical = weighted_median(error[:, :, None, None], weight[:, :, None, None])[:, :, 0, 0]
        # Cauchy's weights: an error many times the typical one hardly pulls
        robust = weight / (1 + (error / (2 * typical + 1e-9)).square())
    return slope, shift


def fit_hyperbola(p: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """γ, scale and shift, each (B, 1), of y ≈ scale · p / (1 + γ p) + shift, for p in [0, 1].

    For a given γ it is a line; γ is searched on a grid that narrows around the best mean error.
    """
    best, width = torch.full_like(p[:, :1], 0.5), 0.5  # on a logarithmic axis from 0 to 1
    steps = torch.linspace(-1, 1, 9, dtype=p.dtype, device=p.device)
    ys, weights = (x.repeat_interleave(len(steps), 0) for x in (y, weight))  # (9 B, N)
    for _ in range(8):
        places = (best + width * steps).clamp(0, 1)  # (B, 9), tried all at once
        bent = (p[:, None] / (1 + bend_at(places)[:, :, None] * p[:, None])).flatten(0, 1)
        scale, shift = fit_line(bent, ys, weights)
        errors = (weights * (scale * bent + shift - ys).abs()).sum(1).view_as(places)
        best, width = places.gather(1, errors.argmin(1, keepdim=True)), width / 3
    bend = bend_at(best)
    return bend, *fit_line(p / (1 + bend * p), y, weight)


def bend_at(place: Tensor) -> Tensor:
    """γ from 0 (place 0) to MOST_BEND (place 1), evenly in the logarithm of 1 + γ."""
    return torch.expm1(place * math.log1p(MOST_BEND))
