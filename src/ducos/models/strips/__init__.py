"""A pass in strips: images of any size in bounded memory.

Cutting an image into tiles and joining the results leaves seams, and changes every statistic that a
network takes over the whole image. Here the *steps* of the network run strip by strip instead, each
over the whole image before the next, so that statistics are those of the whole image and the result
is that of the whole pass, but for rounding. The steps are those of the network's own `forward`: it
is called with deferred maps in place of tensors.
"""

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models.prediction import Prediction
from ducos.models.protocol import Told, as_model
from ducos.models.strips.workspace import Workspace
from ducos.resize import Size


def needs_strips(model: nn.Module, size: Size, memory: int) -> bool:
    """Whether the whole pass over an image of this size (H, W) would take more than `memory`
    bytes, and strips can help."""
    model = as_model(model)
    pixel = model.bytes_per_pixel()
    return model.in_strips and pixel is not None and size[0] * size[1] * pixel > memory


@torch.inference_mode()
def predict_in_strips(
    model: nn.Module,
    rgb: Tensor,
    low: Tensor,
    valid: Tensor | None = None,
    told: Told | None = None,
    *,
    noise: Tensor | None = None,
    prior: Tensor | None = None,
    memory: int,
    progress: Callable[[float], None] | None = None,
) -> Prediction:
    """`model(rgb, low, valid, told)` for one image, in bounded memory; depth, sigma and
    `leaned` only, on the CPU.

    Args:
        model: one that says `in_strips`, in eval mode.
        rgb: (1, 3, H, W) in [0, 1]; low: (1, 1, h, w) normalised; valid: (1, 1, h, w) bool.
        noise, prior: for models that take them, see `Model`.
        memory: bytes for everything but input, output, the network itself and a prompt that runs at
            a working size of its own. What does not fit goes to temporary files.
        progress: called with the share of the work that is done, rising to 1.
    """
    model = as_model(model)
    if not model.in_strips:
        raise InputError(
            f"{type(model).__name__} cannot be run in strips exactly; ducos, ducos-compact, "
            "ducos-tiny and ducos-released can: choose one of them, or shrink the image"
        )
    if rgb.shape[0] != 1:
        raise InputError(f"strips are of one image at a time, got a batch of {rgb.shape[0]}")
    if memory < 1:
        raise InputError(f"memory must be a positive number of bytes, got {memory}")
    device = next(model.parameters()).device
    valid = None if valid is None else valid.to(device)
    known: dict[str, Any] = {} if noise is None else {"noise": noise.to(device)}

    def run(work: Workspace) -> Prediction:
        if prior is not None:
            known["prior"] = work.given(prior)
        whole = model(work.given(rgb), work.given(low), valid, told, **known)
        maps = {n: whole.aux[n] for n in ("sigma", "leaned") if n in whole.aux}
        depth = work.tensor(whole.depth)
        return Prediction(depth, {name: work.tensor(m) for name, m in maps.items()})

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
    with Workspace(memory, device, rgb.dtype, planned=plan, progress=progress) as work:
        return run(work)
