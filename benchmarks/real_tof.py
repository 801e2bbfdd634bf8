"""Real time-of-flight maps with ground truth: is the result better than bicubic interpolation?

Method: every pair of a bench set that has a sensor's own low-resolution map; errors over pixels
with truth, 8 pixels from the border left out. Flying: share of the pixels at depth edges farther
than 2 % of the depth from both surfaces. The truth of such sets was measured by another device and
may lie beside the picture; the doctor measures by how much, from truth and picture alone, the
truth shrunk by 4 (at the size of the sensor's map it cannot tell for TOFDSR). The second row of a
pair has the truth moved back by that, so that it lies on the picture; the sensor's map stays.

    python benchmarks/real_tof.py bench:BENCH/tofmark bench:BENCH/tofdsr_sample
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from ducos.data import open_dataset
from ducos.degrade.resampling import area
from ducos.doctor.registration import misalignment
from ducos.infer import load, super_resolve
from ducos.io import DepthMap
from ducos.metrics import flying
from ducos.resize import low_size, moved

BORDER = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+", help="as in `ducos eval --dataset`")
    parser.add_argument("--model", default="ducos-tiny")
    options = parser.parse_args()
    model = load(Path(options.model) if options.model.endswith(".safetensors") else options.model)
    print(f"{options.model}; bicubic → ours\n")
    print("| pair | truth | RMSE cm | MAE cm | within 5 % | flying % |\n|---|---|---|---|---|---|")
    for spec in options.datasets:
        dataset = open_dataset(spec)
        for index in range(len(dataset)):
            pair = dataset[index]
            assert pair.low is not None, f"{spec} has no map of a sensor"
            low = DepthMap(pair.low, pair.low_valid, "m", 1.0, "given")
            results = [
                super_resolve(pair.rgb, low, model=each).depth for each in ("bicubic", model)
            ]
            planes = [torch.from_numpy(x)[None, None] for x in (pair.target, pair.valid)]
            size = low_size((pair.target.shape[0], pair.target.shape[1]), 4)
            small = [x[0, 0].numpy() for x in area(*planes, None, size)]
            shift = misalignment(pair.rgb, *small)
            places = [("as given", (0, 0))]
            if shift.certain:
                by = (round(shift.x), round(shift.y))
                places.append((f"moved by {-by[0]}, {-by[1]} px", by))
            else:
                print(f"cannot tell where the truth lies: {shift.reason}")
            for words, (right, down) in places:
                truth = moved(planes[0], -right, -down)[0, 0].numpy()
                known = moved(planes[1], -right, -down, beyond=False)[0, 0].numpy()
                rows = [scores(x, truth, known) for x in results]
                cells = " | ".join(f"{a:.2f} → {b:.2f}" for a, b in zip(*rows, strict=True))
                print(f"| {dataset.name} {index} | {words} | {cells} |")


def scores(result: np.ndarray, truth: np.ndarray, valid: np.ndarray) -> list[float]:
    """RMSE and MAE in cm, share within 5 % of the truth and flying share in per cent."""
    inside = np.s_[BORDER:-BORDER, BORDER:-BORDER]
    result, truth, valid = result[inside], truth[inside], valid[inside]
    error = (result - truth)[valid]
    near = np.maximum(result / np.maximum(truth, 1e-6), truth / np.maximum(result, 1e-6)) < 1.05
    return [
        100 * float(np.sqrt((error**2).mean())),
        100 * float(np.abs(error).mean()),
        100 * float(near[valid].mean()),
        flying(result, truth, valid),
    ]


if __name__ == "__main__":
    main()
