"""Make the depth maps of examples/own-sensor once more: python scripts/example_pairs.py

A model of a time-of-flight camera measures the ground truth of each pair at a quarter of the size.
"""

from pathlib import Path

import numpy as np
import torch

from ducos.degrade import DEGRADATIONS
from ducos.files import read_depth, read_rgb, write_depth

FOLDER = Path(__file__).parent.parent / "examples" / "own-sensor"
RATIO = 4


def main() -> None:
    for number, path in enumerate(sorted(FOLDER.glob("*/depth/*.png"))):
        truth = read_depth(path)
        image = read_rgb(path.parents[1] / "rgb" / f"{path.stem}.jpg")
        seed = torch.Generator().manual_seed(number)
        H, W = truth.depth.shape
        low, valid = DEGRADATIONS["tof"](
            torch.from_numpy(truth.depth)[None, None],
            torch.from_numpy(truth.valid)[None, None],
            torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None],
            (H // RATIO, W // RATIO),
            seed,
        )
        out = path.parents[1] / "low" / path.name
        out.parent.mkdir(exist_ok=True)
        write_depth(out, low[0, 0].numpy(), valid[0, 0].numpy())
        print(out.relative_to(FOLDER))


if __name__ == "__main__":
    main()
