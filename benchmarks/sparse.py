"""How far from the ground truth: depth from scattered points and an image.

    python benchmarks/sparse.py synth:FOLDER bench:FOLDER [--most 12] [--points 500,2000,20000]

Method: so many pixels of the ground truth, drawn at random (seeded by the image), are the points.
RMSE and mean absolute error over all valid pixels in centimetres (levels, if the set has no
metres), means over the images, for
  nearest    the value of the nearest point,
  bicubic    points averaged in cells as large as the points lie apart, empty cells filled smoothly
             (`resize.continued`), bicubic to full size,
  inpainted  OpenCV's fast marching (Telea) over everything between the points,
  raw        the network on the mostly empty map,
  membrane   the points spread over a grid (`densify.densified`), bicubic to full size,
  network    `super_resolve` with the network named: it goes on from that grid,
  ducos      `super_resolve`: the same grid, then from pixel to pixel of the image.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
from scipy.ndimage import distance_transform_edt

from ducos.data import open_dataset
from ducos.files import DepthMap
from ducos.resize import bicubic, continued
from ducos.upscaling import Upscaler
from ducos.upscaling.densify import densified, gathered


def points_of(pair: Any, count: int, seed: int, unit: str) -> DepthMap:
    """The map (H, W) of so many random pixels."""
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(pair.valid)
    chosen = np.zeros(pair.target.size, bool)
    chosen[rng.choice(known, min(count, len(known)), replace=False)] = True
    valid = chosen.reshape(pair.target.shape)
    depth = np.where(valid, pair.target, 0).astype(np.float32)
    return DepthMap(depth, valid, unit, 1.0, "given")


def enlarged(plane: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    return bicubic(torch.from_numpy(plane)[None, None], (size[0], size[1]))[0, 0].numpy()


def bicubic_of(low: DepthMap) -> np.ndarray:
    """Cells as large as the points lie apart."""
    apart = max(1.0, low.valid.mean() ** -0.5)
    size = tuple(max(1, round(side / apart)) for side in low.depth.shape)
    depth, known = (torch.from_numpy(x)[None, None] for x in gathered(low.depth, low.valid, size))
    return enlarged(continued(depth, known)[0, 0].numpy(), low.depth.shape)


def estimates(low: DepthMap, rgb: np.ndarray, upscaler: Upscaler) -> dict[str, np.ndarray]:
    """Name -> (H, W)."""
    rows, columns = distance_transform_edt(~low.valid, return_distances=False, return_indices=True)
    # What the network did before: a map that does not say that it is points.
    raw = type("AsItWas", (DepthMap,), {"is_scattered": False})(**vars(low))
    named = str(upscaler.options.chosen_model)
    return {
        "nearest": low.depth[rows, columns],
        "bicubic": bicubic_of(low),
        "inpainted": cv2.inpaint(low.depth, (~low.valid).astype(np.uint8), 3, cv2.INPAINT_TELEA),
        "raw": upscaler(rgb, raw).depth,
        "membrane": enlarged(densified(low, rgb).depth, low.depth.shape),
        "network": Upscaler(named, threads=1, shift="off")(rgb, replace(low)).depth,
        "ducos": upscaler(rgb, replace(low)).depth,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--most", type=int, default=12, help="pairs of each dataset")
    parser.add_argument("--points", default="500,2000,20000")
    given = parser.parse_args()
    torch.set_num_threads(1)
    upscaler = Upscaler(threads=1, shift="off")
    for name in given.datasets:
        dataset = open_dataset(name)
        factor, unit = (100, "m") if dataset.unit == "m" else (1, "relative")
        chosen = np.linspace(0, len(dataset) - 1, min(given.most, len(dataset))).astype(int)
        for count in (int(words) for words in given.points.split(",")):
            errors: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
            for index in chosen:
                pair = dataset[int(index)]
                low = points_of(pair, count, int(index), unit)
                for method, depth in estimates(low, pair.rgb, upscaler).items():
                    away = factor * np.abs(depth - pair.target)[pair.valid]
                    errors[method].append((float(np.sqrt(np.square(away).mean())), away.mean()))
            cells = (
                f"{m} {np.mean(e, 0)[0]:.2f}/{np.mean(e, 0)[1]:.2f}" for m, e in errors.items()
            )
            print(f"{name} {count} points, {len(chosen)} pairs, RMSE/MAE: " + ", ".join(cells))
