"""Flicker and error of `ducos video` on rendered sequences, as made and steadied.

    ducos synth -o path --scenes 1 --views 10 --seed 7 --path --size 256x192
    python benchmarks/sequence.py path [--ratio 4]

Method: the ground truth of each frame is shrunk by area, gets noise of 1 % of the depth and holes
(blobs and shadows, `training.changes.punch_holes` and `cast_shadows`, at the same places of the
picture, or with --anew at other ones in each frame), and is super-resolved. Flicker is the mean
change of the error against the ground truth from frame to frame, so that motion itself does not
count; in millimetres, in holes and where measured, for frames as made, steadied by flow, and by the
recording's poses. `output` is the mean change of the result itself from frame to frame, motion
included, as the command prints it.
"""

import argparse
from collections import defaultdict

import numpy as np
import torch

from ducos.captures import FrameRef, find_frames, read_frame
from ducos.degrade.resampling import area
from ducos.files import DepthMap, read_colour
from ducos.sequences import Steady, View
from ducos.training.changes import cast_shadows, punch_holes
from ducos.upscaling import Upscaler


def measured(truth: DepthMap, ratio: int, number: int, anew: bool) -> DepthMap:
    """What a sensor of a lower resolution would have given."""
    rng, holes = np.random.default_rng(number), np.random.default_rng(number if anew else 0)
    planes = [torch.from_numpy(x)[None, None] for x in (truth.depth, truth.valid)]
    H, W = truth.depth.shape
    low, valid = (x[0, 0] for x in area(*planes, None, (H // ratio, W // ratio))[:2])
    noisy = low.numpy() * (1 + 0.01 * rng.normal(size=low.shape))
    left = cast_shadows(noisy, valid.numpy(), False, holes)
    left = punch_holes(torch.from_numpy(left)[None, None], 1.0, holes)[0, 0].numpy() & left
    return DepthMap(np.where(left, noisy, 0).astype(np.float32), left, "m", 1.0, "given")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--ratio", type=int, default=4)
    parser.add_argument("--anew", action="store_true", help="other holes in each frame")
    given = parser.parse_args()
    torch.set_num_threads(1)
    upscaler = Upscaler(threads=1, shift="off")
    scenes: defaultdict[str, list[FrameRef]] = defaultdict(list)
    for pair in find_frames(given.folder).pairs:
        assert isinstance(pair, FrameRef)
        scenes[pair.out.split("_")[0]].append(pair)
    figures: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for pairs in scenes.values():
        filters = {"as made": None, "flow": Steady(), "poses": Steady()}
        before: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        for number, pair in enumerate(pairs):
            frame = read_frame(pair)
            assert frame.camera is not None
            assert frame.pose is not None
            image, truth = read_colour(frame.image), frame.low
            result = upscaler(image, measured(truth, given.ratio, number, given.anew))
            known = result.source == 1
            for name, steady in filters.items():
                depth = result.depth
                if steady is not None:
                    view = View(frame.camera, frame.pose) if name == "poses" else None
                    depth = steady(image, depth, np.asarray(result.valid), known, view)
                error = 1000 * (depth - truth.depth)
                if name in before:
                    last, shown, knew = before[name]
                    row = []
                    for where in (~known & truth.valid, known & knew & truth.valid):
                        row += [np.abs(error - last)[where].mean(), np.abs(error[where]).mean(),
                                1000 * np.abs(depth - shown)[where].mean()]  # fmt: skip
                    figures[name].append(tuple(row))
                before[name] = (error, depth, known)
    print("| frames | holes: flicker, error, output | measured: flicker, error, output |")
    for name, rows in figures.items():
        cells = [f"{x:.1f}" for x in np.mean(rows, 0)]
        print(f"| {name} | {', '.join(cells[:3])} | {', '.join(cells[3:])} |")
