"""super_resolve: the one way in for people, command line, server and evaluation.

Units, masks, normalisation and their undoing happen here and nowhere else.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.files import check_sizes, read_colour, read_low
from ducos.hints import check_sensor
from ducos.models import (
    MODELS,
    Prediction,
    as_model,
    create,
    load_model,
    needs_strips,
    predict_in_strips,
)
from ducos.normalise import range_of
from ducos.resize import bilinear, fill_holes, masked_bicubic, moved, nearest

WEIGHTS = Path(__file__).parents[1] / "weights"
MEMORY: dict[str, int | None] = {"auto": 10**9, "off": None}
SOURCES = {0: "none", 1: "measured", 2: "interpolated", 3: "inferred"}
"""Of each pixel: the measurement over it is valid (1); it lies in a hole, but a measurement is in
reach of the 4×4 window around it (2); none is, so surroundings and colour decided (3)."""


@dataclass
class Result:
    """A super-resolved depth map, at the size of the colour image.

    depth: (H, W) float32, metres (or the unit of a relative input).
    valid: (H, W) bool; False only where holes were asked to stay.
    source: (H, W) uint8, where the value comes from: see SOURCES.
    sigma: (H, W) float32, one standard deviation in metres, or None if the model has none.
    note: how the unit of the input was decided. model: which model ran.
    residual: RMS difference between the shrunk result and the valid input, same unit as depth.
    """

    depth: Any
    valid: Any
    source: Any
    sigma: Any | None
    note: str
    model: str
    residual: float

    @property
    def doubts(self) -> dict[str, Any]:
        """What clouds and meshes judge by which pixels to leave out: options of `point_cloud`."""
        return {"sigma": self.sigma, "measured": self.source == 1}


def default_model() -> str:
    """The embedded trained model, or bicubic while there is none."""
    return "ducos-tiny" if (WEIGHTS / "ducos-tiny.safetensors").is_file() else "bicubic"


def resolve(
    model: str | Path | nn.Module | None, *, accept_noncommercial: bool = False
) -> tuple[nn.Module, str]:
    """The network and the name to report for it."""
    if isinstance(model, nn.Module):
        return model, type(model).__name__
    name = default_model() if model is None else str(model)
    return load(name, accept_noncommercial=accept_noncommercial), name


def load(name: str | Path, *, accept_noncommercial: bool = False) -> nn.Module:
    """A model ready for use: an embedded one, one without weights, or a weight file's path.

    accept_noncommercial: whether its prompt may need weights that forbid commercial use.
    """
    name = str(name)
    embedded = WEIGHTS / f"{name}.safetensors"
    path = embedded if embedded.is_file() else Path(name)
    if path.is_file():
        return _load_file(path, path.stat().st_mtime_ns, accept_noncommercial)
    if name in MODELS:
        if MODELS[name].prompt is None:
            model = create(name)
            if not any(True for _ in model.parameters()):
                return model.eval()
        raise InputError(
            f"{name} has no weights in this package; train it (`ducos train`) or convert the "
            "authors' (`ducos convert`), then give the .safetensors file as the model"
        )
    if path.suffix:
        raise InputError(f"no such weight file: {name}")
    raise InputError(
        f"unknown model {name!r}; give a .safetensors file or one of: {', '.join(MODELS)}"
    )


@lru_cache(maxsize=4)
def _load_file(path: Path, changed: int, accept_noncommercial: bool) -> nn.Module:
    """Weight files are kept in memory until they change on disk."""
    return load_model(path, accept_noncommercial=accept_noncommercial)[0]


def super_resolve(
    rgb: Any,
    depth: Any,
    *,
    model: str | Path | nn.Module | None = None,
    unit: str = "auto",
    scale: float | None = None,
    mask: Any = None,
    keep_holes: bool = False,
    consistent: bool = False,
    any_aspect: bool = False,
    shift: tuple[float, float] = (0, 0),
    sensor: str = "unknown",
    tile: str = "auto",
    accept_noncommercial: bool = False,
    progress: Callable[[float], None] | None = None,
    device: str | torch.device = "cpu",
) -> Result:
    """Bring a low-resolution depth map to the size of its colour image.

    Args:
        rgb: path, PIL image, (H, W, 3) array or (3, H, W) tensor.
        depth: path, (h, w) array or tensor, or an DepthMap; any ratio to rgb, the same view.
        model: a name from `ducos models`, a weight file, or a module; None takes the default.
        unit: of stored depth values: "m", "mm", "cm", "relative", or "auto" to guess and say so.
        scale: metres per stored value, instead of a unit.
        mask: (h, w), True or nonzero where depth is valid, beside what the values say themselves.
        keep_holes: leave pixels that no measurement covers invalid instead of filling them.
        consistent: correct the result until it agrees with every valid measurement when shrunk.
        any_aspect: accept maps whose aspect ratio differs from the image's.
        shift: pixels of the colour image by which the depth lies too far right and down, such as
            `ducos doctor` measures; the result lies where the colours are.
        sensor: what made the map, if known: "tof", "lidar" or "stereo" (see ducos.hints). Models
            that were not taught about sensors take no notice.
        accept_noncommercial: the model's prompt may need weights that forbid commercial use.
        tile: "auto" works strip by strip where the whole pass would take more than 1 GB, with the
            same result; "off" never does; a size such as "400MB" sets another limit.
        progress: called with the share of the work that is done, where strips are used.
        device: where a named model runs, such as "cuda"; a module runs where it is.

    Returns:
        Result; its maps are tensors if `depth` is one, else arrays.
    """
    as_tensor = isinstance(depth, Tensor)
    memory = memory_limit(tile)
    image = read_colour(rgb)
    low = read_low(depth, unit, scale, mask)
    check_sizes(image.shape[:2], low.depth.shape, any_aspect)
    steps = whole_steps(shift, image.shape[:2])
    check_sensor(sensor)
    network, name = resolve(model, accept_noncommercial=accept_noncommercial)
    if isinstance(model, str | Path) or model is None:
        network = network.to(device)  # a module that was handed in stays where its owner put it
    else:
        device = next((p.device for p in network.parameters()), torch.device(device))

    # The picture goes to the measurements, not they to it: no measurement is resampled.
    rgb_tensor = moved(torch.tensor(image).permute(2, 0, 1)[None], *steps).contiguous()
    low_tensor = torch.from_numpy(low.depth)[None, None]
    valid = torch.from_numpy(low.valid)[None, None]
    was_training = network.training
    try:
        network.eval()
        with torch.inference_mode():
            inputs = (x.to(device) for x in (rgb_tensor, low_tensor, valid))
            prediction = predict(network, *inputs, sensor=sensor, memory=memory, progress=progress)
    finally:
        network.train(was_training)

    # Nothing is nearer than half the nearest measurement; above all, no distance is negative.
    nearest_measured = float(low.depth[low.valid].min(initial=np.inf))
    full = prediction.depth.cpu()
    if 0 < nearest_measured < np.inf:
        full = full.clamp_min(0.5 * nearest_measured)
    if consistent:
        full = make_consistent(full, low_tensor, valid)
    residual = disagreement(full, low_tensor, valid)
    source = trace(valid, (image.shape[0], image.shape[1]))
    sigma = prediction.aux.get("sigma")
    # Back onto the picture; what comes in at a border was not in the depth camera's view.
    back = (-steps[0], -steps[1])
    full = moved(full, *back)[0, 0]
    source = moved(source, *back, beyond=3)
    sigma = None if sigma is None else moved(sigma.cpu(), *back)[0, 0].clone()
    covered = source == 1 if keep_holes else torch.ones_like(source, dtype=torch.bool)
    source = torch.where(covered, source, torch.zeros_like(source))
    out = torch.where(covered, full, torch.zeros_like(full))
    maps: dict[str, Any] = {"depth": out, "valid": covered, "source": source, "sigma": sigma}
    if not as_tensor:
        maps = {key: None if value is None else value.numpy() for key, value in maps.items()}
    return Result(**maps, note=low.note, model=name, residual=residual)


def whole_steps(shift: tuple[float, float], size: tuple[int, ...]) -> tuple[int, int]:
    """A shift (right, down) as whole pixels (right, down); refuses what leaves no overlap."""
    H, W = size
    if not (np.isfinite(shift).all() and abs(shift[0]) < W / 2 and abs(shift[1]) < H / 2):
        raise InputError(
            f"a shift is given in pixels of the colour image, right and down, and stays below half "
            f"of its {W}×{H}; got {shift[0]:g},{shift[1]:g}"
        )
    return round(shift[0]), round(shift[1])


def memory_limit(tile: str) -> int | None:
    """Bytes that the pass through a network may take; None for no limit."""
    if tile in MEMORY:
        return MEMORY[tile]
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(MB|GB)", tile.strip(), re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise InputError(f"tile is auto, off or a size such as 400MB or 2GB, got {tile!r}")
    return int(float(match[1]) * {"MB": 10**6, "GB": 10**9}[match[2].upper()])


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


def trace(valid: Tensor, size: tuple[int, int]) -> Tensor:
    """SOURCES of each output pixel, (H, W) uint8, from the input's mask (1, 1, h, w)."""
    measured = nearest(valid.float(), size)[0, 0] > 0.5
    in_reach = nearest(F.max_pool2d(valid.float(), 5, stride=1, padding=2), size)[0, 0] > 0.5
    inferred = torch.full(size, 3, dtype=torch.uint8)
    source = torch.where(in_reach, torch.full_like(inferred, 2), inferred)
    return torch.where(measured, torch.ones_like(inferred), source)


def make_consistent(depth: Tensor, low: Tensor, valid: Tensor, rounds: int = 24) -> Tensor:
    """Back-projection: stretch the pixels under each measurement until their mean is the measured.

    Smoothly at first, then cell by cell for the small rest, so that hardly any cell border shows.
    Factors keep distances positive; maps that are not, or as good as zero somewhere, get
    differences.
    """
    size = (depth.shape[-2], depth.shape[-1])
    values = torch.cat([depth.flatten(), low[valid]])
    positive = bool(values.min() > 1e-6 * values.max())
    for turn in range(rounds):
        grow = bilinear if turn < rounds // 2 else nearest
        shrunk = shrink(depth, low)
        if positive:
            depth = depth * grow(torch.where(valid, low / shrunk, torch.ones_like(low)), size)
        else:
            depth = depth + grow(torch.where(valid, low - shrunk, torch.zeros_like(low)), size)
    return depth


def shrink(depth: Tensor, low: Tensor) -> Tensor:
    """What an ideal sensor of the input's size would measure: the mean over each pixel's area."""
    return F.adaptive_avg_pool2d(depth, (low.shape[-2], low.shape[-1]))


def disagreement(depth: Tensor, low: Tensor, valid: Tensor) -> float:
    """RMS difference between the result, shrunk to the input's size, and the valid input."""
    return float((shrink(depth, low) - low)[valid].square().mean().sqrt())
