"""Exact tiling: images of any size in bounded memory.

Cutting an image into tiles and joining the results leaves seams, and changes every statistic that a
network takes over the whole image. Here the *steps* of the network run strip by strip instead, each
over the whole image before the next, so that statistics are those of the whole image and the result
is that of the whole pass, but for rounding.
"""

import shutil
import tempfile
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models.ducos.mixing import TAPS
from ducos.models.ducos.paper import DuCos
from ducos.models.ducos.released import WIDTHS, DuCosReleased
from ducos.models.prediction import Prediction
from ducos.models.tiling.ducos import ducos, ducos_released
from ducos.models.tiling.prompts import features_at_once
from ducos.models.tiling.rows import Workspace
from ducos.resize import Size


def can_tile(model: nn.Module) -> bool:
    """Whether `predict_tiled` knows how to run this model."""
    return isinstance(model, DuCos | DuCosReleased)


def needs_tiles(model: nn.Module, size: Size, memory: int) -> bool:
    """Whether model(rgb, low) on an image of this size (H, W) would take more than `memory` bytes,
    and tiles can help."""
    return can_tile(model) and size[0] * size[1] * bytes_per_pixel(model) > memory


def bytes_per_pixel(model: nn.Module) -> float:
    """About what the whole pass holds at its worst moment, without the prompt's own needs: counted
    in float32 channels alive at once; within a tenth of measured peaks."""
    if isinstance(model, DuCosReleased):
        # Stages, prompt maps, and the last fusion: its maps and the copies that convolutions make.
        return 4 * (sum(WIDTHS) + 5 * 64 + 10 * WIDTHS[-1])
    assert isinstance(model, DuCos)
    alive = len(model.fusions) + 1 + len(model.prompt.channels) + 5
    body = alive * model.head.out_channels / model.stride**2
    tail = 2 * sum(model.tail.maps) + 6 * TAPS**2 if model.mixes else 0
    return 4 * (3 + max(body, model.head.out_channels * 2 / model.stride**2 + tail))


@torch.inference_mode()
def predict_tiled(
    model: nn.Module,
    rgb: Tensor,
    low: Tensor,
    valid: Tensor | None = None,
    *,
    sensor: Tensor | None = None,
    memory: int,
    progress: Callable[[float], None] | None = None,
) -> Prediction:
    """`model(rgb, low, valid)` for one image, in bounded memory; depth and sigma only, on the CPU.

    Args:
        model: one that `can_tile`, in eval mode.
        rgb: (1, 3, H, W) in [0, 1]; low: (1, 1, h, w) normalised; valid: (1, 1, h, w) bool;
        sensor: (1,) as `DuCos.forward` takes it.
        memory: bytes for everything but input, output, the network itself and a prompt that runs at
            a working size of its own. What does not fit goes to temporary files.
        progress: called with the share of the work that is done, rising to 1.
    """
    if not can_tile(model):
        raise InputError(
            f"{type(model).__name__} cannot be tiled exactly; ducos, ducos-compact, ducos-tiny and "
            "ducos-released can: choose one of them, or shrink the image"
        )
    if rgb.shape[0] != 1:
        raise InputError(f"tiling takes one image at a time, got a batch of {rgb.shape[0]}")
    if memory < 1:
        raise InputError(f"memory must be a positive number of bytes, got {memory}")
    device = next(model.parameters()).device
    low = low.to(device)
    valid = None if valid is None or bool(valid.all()) else valid.to(device)

    if isinstance(model, DuCos):
        at_once = features_at_once(model.prompt, rgb, model.multiple)
    else:
        assert isinstance(model, DuCosReleased)
        at_once = features_at_once(model.depth_anything, rgb)

    def run(work: Workspace) -> Prediction:
        if isinstance(model, DuCos):
            return ducos(work, model, rgb, low, valid, sensor, at_once)
        return ducos_released(work, model, rgb, low, at_once)

    with Workspace(memory, device, rgb.dtype, planning=True) as plan:
        run(plan)
    folder = tempfile.gettempdir()
    available = shutil.disk_usage(folder).free
    if plan.largest_files > available:
        raise InputError(
            f"this image needs {plan.largest_files / 1e9:.1f} GB of temporary files but {folder} "
            f"has {available / 1e9:.1f} GB free; allow more memory than {memory / 1e9:.1f} GB, or "
            "set the environment variable TMPDIR to a larger disk"
        )
    with Workspace(memory, device, rgb.dtype, progress=progress, total=plan.work) as work:
        return run(work)
