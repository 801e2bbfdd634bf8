"""How a map was shrunk: how often its edges tell, and what knowing it is worth.

    python benchmarks/shrinking.py synth:data/heldout [--captures captures:DIR] [--images 6]

Method: ground truth of rendered scenes (and maps of cameras, by the mean over blocks) is shrunk in
the three ways that `models.ducos.shrinking` knows.
  1. Mean of the shares that are found, over all images, per way and ratio.
  2. RMSE of `ducos-tiny` relative to bicubic's on the same input, geometric mean over images and
     ratios 2, 4, 8 (16 for rendered ones, too), one thread, onnxruntime off. Always the mean over
     the area, or as found; each with tolerances of 0, 2 and 5 % of the range of the measurements
     around.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import torch

from ducos.data import open_dataset
from ducos.evaluation.suite_inputs import SuiteInput, suite_input
from ducos.evaluation.suites import BLOCKS, SuiteCase
from ducos.models.ducos import mixing
from ducos.models.ducos.around import Around
from ducos.models.ducos.shrinking import shares
from ducos.normalise import range_of
from ducos.upscaling import Upscaler, super_resolve

WAYS = ("area", "bicubic", "nearest")
TOLERANCES = (0.0, 0.02, 0.05)
ALWAYS = property(lambda around: torch.tensor([[1.0, 0, 0]]).expand(around.low.shape[0], 3))


def cases(data: str, images: int, ways: tuple[str, ...], ratios: tuple[int, ...]) -> Iterator:
    dataset = open_dataset(data)
    step = max(1, len(dataset) // images) if images else 1
    for way in ways:
        for ratio in ratios:
            for number in range(0, len(dataset), step):
                yield way, ratio, suite_input(dataset[number], SuiteCase(way, ratio, low=way))


def found(given: SuiteInput, ratio: int) -> np.ndarray:
    low = torch.from_numpy(given.low)[None, None]
    valid = torch.from_numpy(given.low_valid)[None, None]
    limits = range_of(low, valid)
    return shares(limits.apply(low), valid, torch.tensor([ratio, ratio]))[0].numpy()


def error(depth: np.ndarray, given: SuiteInput) -> float:
    return float(np.sqrt(np.mean((depth - given.truth)[given.valid] ** 2)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset", help="such as synth:data/heldout")
    parser.add_argument("--captures", help="such as captures:DIR")
    parser.add_argument("--images", type=int, default=6, help="rendered ones of the second part")
    options = parser.parse_args()
    print(__doc__.split("Method: ")[1].strip(), flush=True)

    told = defaultdict(list)
    for way, ratio, given in cases(options.dataset, 0, WAYS, (2, 4, 8, 16)):
        told[way, ratio].append(found(given, ratio))
    if options.captures:
        for way, ratio, given in cases(options.captures, 0, (BLOCKS, "nearest"), (2, 4, 8)):
            told[f"captures, {way}", ratio].append(found(given, ratio))
    print(f"\n{'shrunk by':20} {'ratio':>5}  mean over area, bicubic, points")
    for (way, ratio), each in told.items():
        print(f"{way:20} {ratio:5}  " + "  ".join(f"{share:.2f}" for share in np.mean(each, 0)))

    torch.set_num_threads(1)
    work = [
        ("rendered, " + w, g)
        for w, _, g in cases(options.dataset, options.images, WAYS, (2, 4, 8, 16))
    ]
    if options.captures:
        work += [("captures", g) for _, _, g in cases(options.captures, 0, (BLOCKS,), (2, 4, 8))]
    upscaler = Upscaler("ducos-tiny", runtime="torch")
    base = [
        error(super_resolve(g.rgb, g.low, unit="m", model="bicubic", shift="off").depth, g)
        for _, g in work
    ]
    names = list(dict.fromkeys(name for name, _ in work))
    print(f"\n{'operator':10} {'tolerance':>9}  " + "  ".join(names))
    for operator in ("area", "found"):
        for tolerance in TOLERANCES:
            how = Around.shrinking if operator == "found" else ALWAYS
            with (
                patch.object(mixing, "OPERATOR", tolerance),
                patch.object(Around, "shrinking", how),
            ):
                ratios = defaultdict(list)
                for (name, g), other in zip(work, base, strict=True):
                    ours = upscaler(g.rgb, g.low, unit="m", shift="off").depth
                    ratios[name].append(error(ours, g) / other)
            means = (float(np.exp(np.mean(np.log(ratios[name])))) for name in names)
            print(
                f"{operator:10} {tolerance:9}  " + "  ".join(f"{m:.3f}" for m in means), flush=True
            )
