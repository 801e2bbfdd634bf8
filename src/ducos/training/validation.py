"""Held-out error during training: RMSE against bicubic's, at every ratio and of the sensor."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ducos.data import Dataset, Pair
from ducos.degrade import DEGRADATIONS
from ducos.errors import InputError
from ducos.resize import bicubic, fill_holes, low_size
from ducos.training.config import SENSOR, Config
from ducos.training.run import Run
from ducos.upscaling import predict


def validate(run: Run, config: Config, dataset: Dataset) -> dict[str, float]:
    """RMSE against bicubic's on held-out images, per scale and on average; RNG is left alone."""
    model = run.model
    kept = None
    if run.average:
        kept = {n: v.clone() for n, v in model.state_dict().items() if n in run.average}
        model.load_state_dict({**model.state_dict(), **run.average})
    model.eval()
    device = next(model.parameters()).device
    result: dict[str, float] = {}
    cases = validation_cases(config)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for case, low_map in cases.items():
            ratios, errors = [], []
            for index in range(min(len(dataset), config.data.validation_images)):
                pair = dataset[index]
                rgb = torch.from_numpy(pair.rgb).permute(2, 0, 1)[None]
                target = torch.from_numpy(pair.target)[None, None]
                valid = torch.from_numpy(pair.valid)[None, None]
                low, low_valid = low_map(pair)
                inputs = (x.to(device) for x in (rgb, low, low_valid))
                sensor = pair.sensor if case == SENSOR else "unknown"
                ours = predict(model, *inputs, sensor=sensor).depth.cpu()
                H, W = pair.target.shape
                base = bicubic(fill_holes(low, low_valid), (H, W))
                rmse = [float(((x - target)[valid] ** 2).mean().sqrt()) for x in (ours, base)]
                errors.append(rmse[0])
                ratios.append(rmse[0] / max(rmse[1], 1e-9))
            result[f"rmse_{case}"] = float(np.mean(errors))
            result[f"relative_{case}"] = float(np.mean(ratios))
    result["relative_rmse"] = float(np.mean([result[f"relative_{case}"] for case in cases]))
    if kept is not None:
        model.load_state_dict({**model.state_dict(), **kept})
    model.train()
    return result


def validation_cases(config: Config) -> dict[str, Callable[[Pair], tuple[Tensor, Tensor]]]:
    """Name -> how a pair's low-resolution map (1, 1, h, w) and mask come about."""

    def shrunk(pair: Pair, scale: float) -> tuple[Tensor, Tensor]:
        H, W = pair.target.shape
        target, valid = (torch.from_numpy(m)[None, None] for m in (pair.target, pair.valid))
        return DEGRADATIONS["bicubic"](target, valid, None, low_size((H, W), scale))

    def measured(pair: Pair) -> tuple[Tensor, Tensor]:
        if pair.low is None:
            raise InputError(f"{pair.name} of the validation set has no map of a sensor")
        mask = np.ones(pair.low.shape, bool) if pair.low_valid is None else pair.low_valid
        return torch.from_numpy(pair.low)[None, None], torch.from_numpy(mask)[None, None]

    cases: dict[str, Callable[[Pair], tuple[Tensor, Tensor]]] = {}
    if set(config.data.degradations) != {SENSOR}:
        for scale in config.train.validation_scales:
            cases[f"x{scale:g}"] = partial(shrunk, scale=scale)
    if SENSOR in config.data.degradations:
        cases[SENSOR] = measured
    return cases
