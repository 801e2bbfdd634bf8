"""Real time-of-flight maps with ground truth: is the result better than bicubic interpolation?

Method: every pair of a bench set that has a sensor's own low-resolution map; errors over pixels
with truth, 8 pixels from the border left out. Flying: share of the pixels near depth edges that
hang between the surfaces around, more than 5 % from each (`evaluation.metrics`); off both surfaces:
share of the points of the cloud at depth edges farther than 2 % of the depth from the near and the
far surface (`cameras.cloud.flying_share`), of the whole map and of the cloud as `ducos upscale
--cloud` writes it, without what `cameras.cloud.flying_pixels` finds (field of view 60°). A map that
is wrong by the same few centimetres everywhere is off by that alone (TOFDSR's by 2.8 cm, more than
2 % of its depths), which says nothing of what hangs between surfaces; so these two and the RMSE
are also given without the map's offset, the median of bicubic's error, taken from both results
alike. The truth of such sets was measured by another device and may lie beside the picture, which
makes a sharp edge in the right place worse than a blurred one. Therefore the RMSE is also given
with the truth's place in doubt: every value against that truth within PLACE pixels which is nearest
to it. And the doctor measures by how much it lies beside, from truth and picture alone, the truth
shrunk by 4 (at the size of the sensor's map it cannot tell for TOFDSR). The second row of a pair,
if the doctor can tell, has the truth moved back by that, so that it lies on the picture; the
sensor's map stays.

    python benchmarks/real_tof.py bench:DIR/tofmark,sensor=tof bench:DIR/tofdsr_sample,sensor=tof
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ducos.cameras import flying_pixels, flying_share
from ducos.cameras.intrinsics import Camera
from ducos.data import open_dataset
from ducos.data.pair import Pair
from ducos.degrade.resampling import area
from ducos.doctor.registration import misalignment
from ducos.evaluation.metrics import delta, flying, mae, rmse
from ducos.files import DepthMap
from ducos.resize import low_size, moved
from ducos.upscaling import Result, load, super_resolve

BORDER = 8
FIELD_OF_VIEW = 60.0
PLACE = 3  # pixels: by that much the truth of the TOFDSR sample lies too low


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+", help="as in `ducos eval --dataset`")
    parser.add_argument("--model", default="ducos-tiny")
    options = parser.parse_args()
    model = load(Path(options.model) if options.model.endswith(".safetensors") else options.model)
    print(f"{options.model}; bicubic → ours\n")
    print(
        f"| pair | truth | RMSE cm | its place ± {PLACE} px | MAE cm | within 5 % | flying % "
        "| off both surfaces % | the same in the cloud as written "
        "| without the map's offset: RMSE cm | off both surfaces % | in the cloud as written |"
        "\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for spec in options.datasets:
        dataset = open_dataset(spec)
        for index in range(len(dataset)):
            for words, cells in compared(dataset[index], model):
                print(f"| {dataset.name} {index} | {words} | {cells} |")


def compared(pair: Pair, model: nn.Module) -> Iterator[tuple[str, str]]:
    """Where the truth lies, and the figures of bicubic and ours against it there."""
    assert pair.low is not None
    assert pair.low_valid is not None
    low = DepthMap(pair.low, pair.low_valid, "m", 1.0, "given")
    results = [
        super_resolve(pair.rgb, low, model=each, sensor=pair.sensor) for each in ("bicubic", model)
    ]
    planes = [torch.from_numpy(x)[None, None] for x in (pair.target, pair.valid)]
    size = low_size((pair.target.shape[0], pair.target.shape[1]), 4)
    small = [x[0, 0].numpy() for x in area(*planes, None, size)]
    shift = misalignment(pair.rgb, *small)
    offset = float(np.median((results[0].depth - pair.target)[pair.valid]))
    places = {"as given": (0, 0)}
    if shift.certain:
        by = (-round(shift.x), -round(shift.y))
        places[f"moved by {by[0]}, {by[1]} px"] = by
    for words, by in places.items():
        truth = moved(planes[0], *by)[0, 0].numpy()
        known = moved(planes[1], *by, beyond=False)[0, 0].numpy()
        rows = [scores(x, truth, known, offset) for x in results]
        yield words, " | ".join(f"{a:.2f} → {b:.2f}" for a, b in zip(*rows, strict=True))


def scores(result: Result, truth: np.ndarray, valid: np.ndarray, offset: float) -> list[float]:
    """RMSE, the same with the truth's place in doubt, MAE, all in cm; in per cent: within 5 % of
    the truth, flying, off both surfaces, the same in the cloud as written; without an offset
    (metres) of the whole map: RMSE and these two."""
    depth = result.depth
    camera = Camera.from_field_of_view(depth.shape[1], depth.shape[0], FIELD_OF_VIEW)
    kept = valid & ~flying_pixels(depth, result.valid, camera, **result.doubts)
    inside = np.s_[BORDER:-BORDER, BORDER:-BORDER]
    doubtful = 100 * nearest_truth(depth, truth, valid)[inside]
    planes = (100 * depth[inside], 100 * truth[inside], valid[inside])
    surface = np.where(planes[2], planes[1], 0)
    level = planes[0] - 100 * offset
    hanging, still_hanging = (
        [100 * flying_share(depths, mask, surface) for mask in (planes[2], kept[inside])]
        for depths in (planes[0], level)
    )
    figures = [metric(*planes) for metric in (rmse, mae, delta, flying)]
    figures.insert(1, rmse(planes[0], doubtful, planes[2]))
    return [*figures, *hanging, rmse(level, *planes[1:]), *still_hanging]


def nearest_truth(result: np.ndarray, truth: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Of each pixel: the truth within PLACE pixels whose value is nearest to the result's."""
    best = np.where(valid, truth, np.inf)
    for down in range(-PLACE, PLACE + 1):
        for right in range(-PLACE, PLACE + 1):
            other, known = (np.roll(plane, (down, right), (0, 1)) for plane in (truth, valid))
            nearer = known & (np.abs(other - result) < np.abs(best - result))
            best = np.where(nearer, other, best)
    return best


if __name__ == "__main__":
    main()
