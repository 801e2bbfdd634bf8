"""A foundation model's look at an image, on torch; loaded once and kept."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from ducos.arrays import Floats, Size
from ducos.errors import InputError
from ducos.prompts import create_prompt, size_near
from ducos.upscaling.foundation import HUB, Foundation
from ducos.upscaling.loading import device_of
from ducos.upscaling.on_torch import computing, plane
from ducos.upscaling.options import Options


def network(asked: Foundation, options: Options) -> Any:
    """The network with its weights, on the device of the options; says what to do without them."""
    path = asked.file
    changed = 0 if path is None else path.stat().st_mtime_ns
    return _network(asked, changed, device_of(options.device), options.accept_noncommercial)


@lru_cache(maxsize=1)
def _network(asked: Foundation, changed: int, device: torch.device, accepted: bool) -> Any:
    """Files are kept in memory until they change on disk."""
    settings: dict[str, Any] = {
        "weights": asked.source,
        "side": asked.side,
        "accept_noncommercial": accepted,
    }
    try:
        made = create_prompt(asked.name, **settings)
    except InputError as problem:
        if asked.source != HUB:
            raise
        raise InputError(f"{problem}, as {asked.name}=FOLDER") from problem
    return made.eval().to(device)


def depth_seen(asked: Foundation, image: Floats, options: Options) -> tuple[Floats, Size]:
    """Relative depth (H, W) of an image (H, W, 3) in [0, 1]; and the size at which it was seen."""
    model = network(asked, options)
    rgb = torch.from_numpy(np.ascontiguousarray(np.moveaxis(image, -1, 0)))[None]
    with computing(options.threads), torch.inference_mode():
        depth = model(rgb.to(device_of(options.device))).depth
    size = (image.shape[0], image.shape[1])
    return plane(depth), size_near(size, asked.side, model.multiple_of)
