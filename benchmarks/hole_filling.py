"""What holes are filled with before a network sees the map, against the ground truth.

    python benchmarks/hole_filling.py synth:data/heldout

Method: ground truth of rendered scenes, shrunk by area, gets holes as a second camera's shadow
leaves them (`training.changes.cast_shadows`) or as blobs (`punch_holes`), seeded by the image.
Mean absolute error in the holes in metres, mean over the images, for
  continued   a smooth continuation without the image,
  alike       `resize.fill_holes` with the image, no preference for what is far,
  farther     the same as it is used: of depth in metres the farther value counts more,
  left/right  the farther of the next measurements to the left and to the right, a common rule.
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.data import open_dataset
from ducos.kernels import FARTHER
from ducos.resize import continued, fill_holes
from ducos.training.changes import cast_shadows, punch_holes

RATIOS = (1, 2, 4, 8)


def left_or_right(low: Tensor, valid: Tensor) -> Tensor:
    """The farther of the two; (1, 1, h, w)."""
    known = torch.where(valid, low, 0)
    index = torch.arange(low.shape[3]).expand_as(low)
    before = torch.where(valid, index, 0).cummax(3).values
    behind = torch.where(valid, index, low.shape[3] - 1).flip(3).cummin(3).values.flip(3)
    sides = torch.maximum(known.gather(3, before), known.gather(3, behind))
    return torch.where(valid, low, sides)


def holes(kind: str, low: Tensor, seed: int) -> Tensor:
    """The mask (1, 1, h, w) of what is left."""
    rng = np.random.default_rng(seed)
    everything = torch.ones_like(low, dtype=torch.bool)
    if kind == "blobs":
        return punch_holes(everything, 1.0, rng)
    left = cast_shadows(low[0, 0].numpy(), everything[0, 0].numpy(), False, rng)
    return torch.from_numpy(left)[None, None]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset", help="such as synth:data/heldout")
    dataset = open_dataset(parser.parse_args().dataset)
    print(__doc__.split("Method: ")[1].strip())
    columns = ("continued", "alike", "farther", "left/right")
    print(f"{'holes':8} {'ratio':>5} " + " ".join(f"{column:>10}" for column in columns))
    for kind in ("shadows", "blobs"):
        for ratio in RATIOS:
            errors = []
            for number in range(len(dataset)):
                pair = dataset[number]
                rgb = torch.from_numpy(pair.rgb).permute(2, 0, 1)[None]
                truth = torch.from_numpy(pair.target)[None, None]
                size = (truth.shape[2] // ratio, truth.shape[3] // ratio)
                low = F.interpolate(truth, size=size, mode="area")
                valid = holes(kind, low, number)
                if valid.all():
                    continue
                filled = (
                    continued(low, valid),
                    fill_holes(low, valid, rgb),
                    fill_holes(low, valid, rgb, FARTHER),
                    left_or_right(low, valid),
                )
                errors.append([float((each - low).abs()[~valid].mean()) for each in filled])
            print(f"{kind:8} {ratio:5} " + " ".join(f"{e:10.4f}" for e in np.mean(errors, 0)))
