"""Flicker and error of `ducos video` on sequences with known depth, as made and steadied.

    ducos synth -o path --scenes 3 --views 16 --seed 20 --path --size 256x192
    python benchmarks/sequence.py path RECORDING... [--holes same|anew|surfaces] [--frames 16]

Method: the depth of each frame counts as ground truth (of a recording with poses: its own map). It
is shrunk by area, gets noise of 1 % of the depth and holes, and is super-resolved. Holes are blobs
and shadows (`training.changes.punch_holes` and `cast_shadows`) at the same places of the picture,
or at other ones in each frame ("anew"), or they stick to things: cubes of space of 35 cm, 15 % of
them, that are never measured ("surfaces").

Flicker is measured along the true motion: by how much the error of a surface point changes from one
frame to the next, mean in millimetres, over points that both frames see (the true depths and poses
say which; within 1 %). "At one place" is the same for a pixel of the picture instead of a point: it
counts each silhouette that moves on over a wrong guess as flicker, though nothing flickers. Both
are given in holes and where measured, for frames as made, steadied by flow, and by the poses.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from ducos.captures import Frame, FrameRef, find_frames, read_frame
from ducos.degrade.resampling import area
from ducos.files import DepthMap, read_colour
from ducos.sequences import Steady, View
from ducos.training.changes import cast_shadows, punch_holes
from ducos.upscaling import Upscaler

CUBE, SHARE = 0.35, 0.15  # metres; of the cubes that are never measured
LARGEST_SIDE = 320  # of the pictures: larger ones are shrunk by a whole number
SAME_POINT = 0.01  # of the depth


class Known:
    """A frame with ground truth. image (H, W, 3), depth and valid (H, W), camera, pose."""

    def __init__(self, frame: Frame):
        assert frame.camera is not None
        assert frame.pose is not None
        image, depth, valid = read_colour(frame.image), frame.low.depth, frame.low.valid
        assert depth.shape == image.shape[:2], "the map must be as large as the picture"
        by = -(-max(depth.shape) // LARGEST_SIDE)
        H, W = (side // by for side in depth.shape)
        small = Image.fromarray(np.rint(255 * image).astype(np.uint8)).resize((W, H), Image.BOX)
        self.image = np.asarray(small).astype(np.float32) / 255
        self.depth, self.valid = (
            np.ascontiguousarray(x[::by, ::by][:H, :W]) for x in (depth, valid)
        )
        self.camera, self.pose = frame.camera.scaled(W, H), frame.pose

    def points(self) -> np.ndarray:
        """(H W, 3) in the camera's frame."""
        v, u = np.mgrid[: self.depth.shape[0], : self.depth.shape[1]]
        return self.camera.directions(u.ravel(), v.ravel()) * self.depth.ravel()[:, None]

    def in_cubes(self) -> np.ndarray:
        """(H, W): what lies in a cube of space that is never measured."""
        world = self.points() @ self.pose[:3, :3].T + self.pose[:3, 3]
        x, y, z = np.floor(world / CUBE).astype(np.int64).T
        number = (x * 73856093 ^ y * 19349663 ^ z * 83492791) % 1000
        return (number < 1000 * SHARE).reshape(self.depth.shape)


def measured(truth: Known, ratio: int, number: int, holes: str) -> DepthMap:
    """What a sensor of a lower resolution would have given."""
    rng = np.random.default_rng(number)
    planes = [torch.from_numpy(x)[None, None] for x in (truth.depth, truth.valid)]
    H, W = truth.depth.shape
    size = (H // ratio, W // ratio)
    low, valid = (x[0, 0].numpy() for x in area(*planes, None, size)[:2])
    noisy = low * (1 + 0.01 * rng.normal(size=low.shape))
    if holes == "surfaces":
        share = Image.fromarray(truth.in_cubes().astype(np.float32)).resize(size[::-1], Image.BOX)
        left = valid & (np.asarray(share) < 0.5)
    else:
        drawn = np.random.default_rng(number if holes == "anew" else 0)
        left = cast_shadows(noisy, valid, False, drawn)
        left = punch_holes(torch.from_numpy(left)[None, None], 1.0, drawn)[0, 0].numpy() & left
    return DepthMap(np.where(left, noisy, 0).astype(np.float32), left, "m", 1.0, "given")


def same_points(before: Known, now: Known) -> tuple[np.ndarray, np.ndarray]:
    """For each pixel (H, W): where its surface point was, as an index; and whether it was seen."""
    H, W = now.depth.shape
    step = np.linalg.inv(before.pose) @ now.pose
    points = now.points() @ step[:3, :3].T + step[:3, 3]
    ahead = now.valid.ravel() & (points[:, 2] > 1e-3)
    u, v = (
        np.rint(x).astype(int) for x in before.camera.pixels(np.where(ahead[:, None], points, 1))
    )
    seen = ahead & (u >= 0) & (u < W) & (v >= 0) & (v < H)
    u, v = np.where(seen, u, 0), np.where(seen, v, 0)
    there = before.depth[v, u]
    seen &= before.valid[v, u] & (np.abs(points[:, 2] - there) < SAME_POINT * there)
    return (v * W + u).reshape(H, W), seen.reshape(H, W)


def sequence_figures(pairs: list[FrameRef], ratio: int, holes: str) -> dict[str, np.ndarray]:
    """By way of steadying: the table's columns in holes and where measured, means of frames."""
    upscaler = Upscaler(threads=1, shift="off")
    filters = {"as made": None, "flow": Steady(), "poses": Steady()}
    rows: defaultdict[str, list[list[float]]] = defaultdict(list)
    before: tuple[Known, np.ndarray, dict[str, np.ndarray]] | None = None
    for number, pair in enumerate(pairs):
        truth = Known(read_frame(pair))
        result = upscaler(truth.image, measured(truth, ratio, number, holes))
        known, errors = np.asarray(result.source == 1), {}
        for name, steady in filters.items():
            depth: Any = result.depth
            if steady is not None:
                view = View(truth.camera, truth.pose) if name == "poses" else None
                depth = steady(truth.image, depth, np.asarray(result.valid), known, view)
            errors[name] = 1000 * (depth - truth.depth)
        if before is not None:
            last, knew, wrong = before
            place, seen = same_points(last, truth)
            for name, error in errors.items():
                along = np.abs(error - wrong[name].ravel()[place])
                here = np.abs(error - wrong[name])
                row: list[float] = []
                for where in (~known & truth.valid, known & knew & truth.valid):
                    row += [
                        along[where & seen].mean(),
                        here[where].mean(),
                        np.abs(error)[where].mean(),
                    ]
                rows[name].append(row)
        before = (truth, known, errors)
    return {name: np.nanmean(of, 0) for name, of in rows.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--ratio", type=int, default=4)
    parser.add_argument("--holes", choices=("same", "anew", "surfaces"), default="same")
    parser.add_argument("--frames", type=int, default=16, help="of each sequence, from --first on")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| sequence | frames | in holes: flicker / at one place / error | where measured |")
    print("|---|---|---|---|")
    together: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    for folder in given.folders:
        scenes: defaultdict[str, list[FrameRef]] = defaultdict(list)
        for pair in find_frames(folder).pairs:
            assert isinstance(pair, FrameRef)
            rendered = pair.layout == "rendered"
            scenes[pair.out.split("_")[0] if rendered else folder.name].append(pair)
        for scene, pairs in scenes.items():
            chosen = pairs[given.first : given.first + given.frames]
            for name, of in sequence_figures(chosen, given.ratio, given.holes).items():
                together[name].append(of)
                cells = [" / ".join(f"{x:.1f}" for x in part) for part in (of[:3], of[3:])]
                print(f"| {scene} | {name} | {' | '.join(cells)} |", flush=True)
    for name, of_all in together.items():
        of = np.mean(of_all, 0)
        cells = [" / ".join(f"{x:.1f}" for x in part) for part in (of[:3], of[3:])]
        print(f"| mean of {len(of_all)} | {name} | {' | '.join(cells)} |")
