"""A network runs on metres: normalised by the low-resolution map alone, holes filled, undone."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ducos.hints import mode_of
from ducos.kernels import FARTHER
from ducos.models import Prediction, as_model, needs_strips, predict_in_strips
from ducos.normalise import range_of
from ducos.resize import bilinear, fill_holes, masked_bicubic


def predict(
    model: nn.Module,
    rgb: Tensor,
    low: Tensor,
    valid: Tensor,
    *,
    confidence: Tensor | None = None,
    mode: str = "auto",
    sensor: str = "unknown",
    noise: float | None = None,
    prior: Tensor | None = None,
    metric: bool = True,
    memory: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Prediction:
    """Run a model on metres: normalise by the low-resolution map alone, fill holes, undo.

    Args:
        rgb: (B, 3, H, W) in [0, 1]; low: (B, 1, h, w) metres; valid: (B, 1, h, w) bool.
        confidence: (B, 1, h, w) in [0, 1], how far each measurement is trusted; None: all alike.
        mode: auto or one of MODES, sensor: one of SENSORS; for networks that can be told.
        noise: one standard deviation of low in metres, for networks that take it; None: none.
        prior: (B, 1, H, W), any relative depth of the image, for networks that take one.
        metric: whether low grows with distance; of relative maps nobody knows.
        memory: bytes the pass may take; beyond them one image goes strip by strip, if it can.
    """
    size = (min(low.shape[-2], rgb.shape[-2]), min(low.shape[-1], rgb.shape[-1]))
    if size != tuple(low.shape[-2:]):  # a depth map finer than its image: shrink it first
        confidence = None if confidence is None else bilinear(confidence, size)
        low, valid = masked_bicubic(low, valid, size)
    limits = range_of(low, valid)
    trust = valid if confidence is None else valid * confidence
    far = FARTHER if metric else 0.0
    if confidence is None:
        filled = fill_holes(low, valid, rgb, far)
    else:
        filled = doubted(low, trust, rgb, far)
    normalised = limits.apply(filled)
    full = (rgb.shape[-2], rgb.shape[-1])
    network, told = as_model(model), {"mode": mode_of(mode, sensor), "sensor": sensor}
    known: dict[str, Tensor] = {}
    if network.takes_noise and noise is not None:
        known["noise"] = noise / limits.span
    if network.takes_prior and prior is not None:
        known["prior"] = prior
    if network.takes_confidence:
        valid = trust
    prediction: Prediction
    if memory is not None and rgb.shape[0] == 1 and needs_strips(network, full, memory):
        prediction = predict_in_strips(
            network, rgb, normalised, valid, told, **known, memory=memory, progress=progress
        )
    else:
        prediction = network(rgb, normalised, valid, told, **known)
    depth = limits.undo(prediction.depth)
    aux = dict(prediction.aux)
    if "sigma" in aux:
        aux["sigma"] = aux["sigma"] * limits.span
    return Prediction(depth, aux)


def doubted(low: Tensor, trust: Tensor, rgb: Tensor, far: Tensor | float) -> Tensor:
    """low (B, 1, h, w) without holes, by its trust (B, 1, h, w) in [0, 1].

    Holes are filled from what is trusted. A measurement that is trusted less than half as much as
    the best is drawn towards what would be there if it were a hole: all the way at 0, so that
    nothing jumps when a confidence fades out. The rest keep their values; the network weighs them.
    """
    half = 0.5 * trust.amax((2, 3), keepdim=True)
    firm = trust >= half
    filled = fill_holes(low, torch.where(firm, trust, torch.zeros_like(trust)), rgb, far)
    share = trust / half.clamp_min(1e-12)
    return torch.where(firm, low, filled + share * torch.where(trust > 0, low - filled, 0))
