"""Whatever people hand over as a pair: paths, PIL images, arrays or tensors."""

from pathlib import Path
from typing import Any

import numpy as np

from ducos.errors import InputError
from ducos.files.depth import DepthMap, as_depth, read_depth
from ducos.files.images import (
    as_confidence,
    as_prior,
    as_rgb,
    read_confidence,
    read_mask,
    read_prior,
    read_rgb,
)

LARGEST_ASPECT_MISMATCH = 1.25


def is_tensor(value: Any) -> bool:
    """Whether it is one of torch's, asked without importing torch."""
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def read_colour(rgb: Any) -> np.ndarray:
    """(H, W, 3) float32 in [0, 1] from a path, PIL image, array or (3, H, W) tensor."""
    if isinstance(rgb, str | Path):
        return read_rgb(rgb)
    if is_tensor(rgb):
        if rgb.ndim != 3 or rgb.shape[0] != 3:
            raise InputError(f"a colour tensor must be (3, H, W), got {tuple(rgb.shape)}")
        rgb = rgb.detach().cpu().permute(1, 2, 0).numpy()
    return as_rgb(rgb)


def read_relative(prior: Any) -> np.ndarray:
    """(h, w) relative depth from a path, PIL image, array or tensor; NaN where there is none."""
    if isinstance(prior, str | Path):
        return read_prior(prior)
    if is_tensor(prior):
        prior = prior.detach().cpu().squeeze().numpy()
    return as_prior(prior)


def read_low(
    depth: Any, unit: str, scale: float | None, mask: Any, confidence: Any = None
) -> DepthMap:
    """The low-resolution map in metres with its mask, and confidence if there is one; each from a
    path, array or tensor."""
    low = _read_low(depth, unit, scale, mask)
    if confidence is None:
        return low
    if isinstance(confidence, str | Path):
        return low.trusted(read_confidence(confidence))
    if is_tensor(confidence):
        confidence = confidence.detach().cpu().numpy()
    return low.trusted(as_confidence(confidence))


def _read_low(depth: Any, unit: str, scale: float | None, mask: Any) -> DepthMap:
    if isinstance(depth, DepthMap):
        if unit != "auto" or scale is not None or mask is not None:
            raise InputError("a DepthMap knows its unit and mask; leave unit, scale and mask out")
        return depth
    if isinstance(mask, str | Path):
        mask = read_mask(mask)
    if is_tensor(mask):
        mask = mask.detach().cpu().numpy()
    if isinstance(depth, str | Path):
        return read_depth(depth, unit=unit, scale=scale, mask=mask)
    if is_tensor(depth):
        depth = depth.detach().cpu().numpy()
    return as_depth(depth, unit=unit, scale=scale, mask=mask)


def check_sizes(size: tuple[int, ...], low_size: tuple[int, ...], any_aspect: bool) -> None:
    """Refuse pairs that cannot show the same field of view."""
    (H, W), (h, w) = size, low_size
    ratio = (H / h) / (W / w)
    mismatch = max(ratio, 1 / ratio)
    if any_aspect or mismatch <= LARGEST_ASPECT_MISMATCH:
        return
    is_turned = (H > W and h < w) or (H < W and h > w)
    turned = " (is one of them turned by 90°?)" if is_turned else ""
    raise InputError(
        f"the colour image is {W}×{H} but the depth map {w}×{h}: their aspect ratios differ by "
        f"{mismatch:.2f}×{turned}; crop both to the same field of view, or pass any_aspect / "
        "--any-aspect if they do show the same"
    )
