"""How much the low-resolution operator alone changes a figure: one model, one metric, same images.

Papers say "bicubic downsampling" and mean different programs. Here the ground truth is shrunk by
each of them, everything else is the protocol `synthetic` (images cut to multiples of the scale, 6
pixels of border dropped, RMSE per image, mean over images). Models see nothing but the result.

    python benchmarks/protocol_findings.py --dataset bench:DIR --model bicubic --scale 8
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from ducos.data import open_dataset
from ducos.degrade.resampling import last_pixel
from ducos.evaluation.cases import make_case, score
from ducos.evaluation.protocols import find
from ducos.evaluation.scoring import run_network
from ducos.upscaling import load

Floats = NDArray[np.float32]
Size = tuple[int, int]  # (width, height), as Pillow and OpenCV count


def pillow(target: Floats, size: Size) -> Floats:
    return np.asarray(Image.fromarray(target).resize(size, Image.Resampling.BICUBIC))


def pillow_rounded(target: Floats, size: Size) -> Floats:
    """On 8-bit images Pillow rounds: what some loaders of Middlebury and Lu do."""
    return pillow(target, size).round().clip(0, 255)


def opencv_cubic(target: Floats, size: Size) -> Floats:
    return np.asarray(cv2.resize(target, size, interpolation=cv2.INTER_CUBIC))


def block_mean(target: Floats, size: Size) -> Floats:
    return np.asarray(cv2.resize(target, size, interpolation=cv2.INTER_AREA))


def centre(target: Floats, size: Size) -> Floats:
    """The pixel just right of and below the middle of each block."""
    step = target.shape[0] // size[1]
    return np.ascontiguousarray(target[step // 2 :: step, step // 2 :: step])


def corner(target: Floats, size: Size) -> Floats:
    """The last pixel of each block, as the originals of DJF and DJFR do."""
    whole = torch.from_numpy(target)[None, None]
    low, _ = last_pixel(whole, torch.ones_like(whole, dtype=torch.bool), None, size[::-1])
    return low[0, 0].numpy()


OPERATORS: dict[str, Callable[[Floats, Size], Floats]] = {
    "Pillow BICUBIC": pillow,
    "Pillow, rounded": pillow_rounded,
    "block mean": block_mean,
    "OpenCV INTER_CUBIC": opencv_cubic,
    "nearest, centre": centre,
    "nearest, last": corner,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", required=True, help="such as bench:DIR")
    parser.add_argument("--model", action="append", help="name or weight file, repeatable")
    parser.add_argument("--scale", action="append", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    protocol = find("synthetic")
    dataset = open_dataset(options.dataset)
    names = options.model or ["bicubic"]
    networks = {name: load(name) for name in names}
    # Rounding to whole levels means something only where depth is stored in levels.
    operators = {n: o for n, o in OPERATORS.items() if dataset.unit == "level" or "round" not in n}
    print(f"{dataset.name}, {len(dataset)} images, RMSE")
    print(f"{'low-resolution operator':24}" + "".join(
        f"{name.rsplit('/', 1)[-1].removesuffix('.safetensors')[:12]:>13} x{scale:<3}"
        for name in names for scale in options.scale or [8]))  # fmt: skip
    for operator, shrink in operators.items():
        cells = []
        for name in names:
            for scale in options.scale or [8]:
                errors = []
                for index in range(len(dataset)):
                    case = make_case(dataset[index], protocol, scale, dataset.unit)
                    h, w = case.low.shape
                    low = shrink(case.target, (w, h)).astype(np.float32)
                    case = replace(case, low=low, low_valid=np.ones((h, w), np.bool_))
                    predicted = run_network(networks[name], protocol, case)
                    errors.append(score(predicted, case, protocol, dataset.unit)["rmse"])
                cells.append(f"{np.mean(errors):13.3f}     ")
        print(f"{operator:24}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
