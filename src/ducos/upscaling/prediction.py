"""A network runs on metres: normalised by the low-resolution map alone, holes filled, undone."""

from collections.abc import Callable

from torch import Tensor, nn

from ducos.models import Prediction, as_model, needs_strips, predict_in_strips
from ducos.normalise import range_of
from ducos.resize import fill_holes, masked_bicubic


def predict(
    model: nn.Module,
    rgb: Tensor,
    low: Tensor,
    valid: Tensor,
    *,
    sensor: str = "unknown",
    memory: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Prediction:
    """Run a model on metres: normalise by the low-resolution map alone, fill holes, undo.

    Args:
        rgb: (B, 3, H, W) in [0, 1]; low: (B, 1, h, w) metres; valid: (B, 1, h, w) bool.
        sensor: one of SENSORS, for networks that can be told.
        memory: bytes the pass may take; beyond them one image goes strip by strip, if it can.
    """
    size = (min(low.shape[-2], rgb.shape[-2]), min(low.shape[-1], rgb.shape[-1]))
    if size != tuple(low.shape[-2:]):  # a depth map finer than its image: shrink it first
        low, valid = masked_bicubic(low, valid, size)
    limits = range_of(low, valid)
    normalised = limits.apply(fill_holes(low, valid, rgb))
    full = (rgb.shape[-2], rgb.shape[-1])
    network, told = as_model(model), {"sensor": sensor}
    prediction: Prediction
    if memory is not None and rgb.shape[0] == 1 and needs_strips(network, full, memory):
        prediction = predict_in_strips(
            network, rgb, normalised, valid, told, memory=memory, progress=progress
        )
    else:
        prediction = network(rgb, normalised, valid, told)
    depth = limits.undo(prediction.depth)
    aux = dict(prediction.aux)
    if "sigma" in aux:
        aux["sigma"] = aux["sigma"] * limits.span
    return Prediction(depth, aux)
