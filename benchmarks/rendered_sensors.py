"""The embedded model on rendered pairs seen through each sensor model: better than bicubic, and
does its uncertainty mean what it says?

Method: pairs of held-out scenes, every low-resolution map made by a function of `ducos.degrade`
(seeded) at the ratio given; errors over pixels with truth, mean over the images: all of them, and
those under a valid measurement whose truth lies in the measured range or a quarter of it outside.
The first is ruled by what a sensor cannot see at all, such as all beyond 5 m of a LiDAR, where any
method guesses. In holes: the other pixels whose truth lies in that range; bicubic's holes are
filled without looking at the colours. Flying pixels: share of the pixels near depth edges that hang
between the surfaces around, more than 5 % from each (`evaluation.metrics`); off both: share of the
points of the cloud at depth edges farther than 2 % of the depth from the near and from the far
surface (`cameras.cloud.flying_share`); as written: the same in the cloud that `upscale --cloud`
writes, without the flying pixels it finds (field of view 60°), and the share of all points left in
it. Coverage: share of pixels whose error is within one and two sigma; of a normal distribution it
would be 68 and 95 %. `soft`, `blurred`, `wavering` and `grainy` are bicubic maps of truth that is
blurred by 0.3 to 1.3 pixels, by 3, whose edges drift about the image's, or that is noisy itself, as
measured truth is; for `picture moved` the colours lie up to three pixels beside depth and truth, as
after a poor calibration. `dark`: the picture is black; `framed`: it is grey and has a white frame
of seven pixels, as photographs of NYU have; `shaded`: it has shadows and spots where its edges are
lost (`training.changes.add_shadows`).
`beside`: the truth lies up to three pixels beside picture and map, as that of another device does;
`remeasured`: and its edges waver, and it is soft (`training.changes.measure_again`).
`told`: the network is told which sensor it is, as by `ducos upscale --sensor`; they have a mean of
their own. `misregister, auto` undoes the shift that `ducos doctor` measures, as `ducos
upscale --shift auto` does. Plain maps, maps with holes and useless pictures are cases of the suite
by which weights are chosen: `ducos eval --suite heldout`.

    python benchmarks/rendered_sensors.py synth:data/heldout --images 22
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ducos.cameras import flying_pixels, flying_share
from ducos.cameras.intrinsics import Camera
from ducos.data import open_dataset
from ducos.data.pair import Pair
from ducos.degrade import DEGRADATIONS
from ducos.doctor.correction import shift_to_undo
from ducos.evaluation.metrics import flying
from ducos.files import DepthMap
from ducos.normalise import range_of
from ducos.resize import bicubic, fill_holes, low_size, moved, nearest
from ducos.training.augment import COARSEST_GRAIN
from ducos.training.changes import (
    add_grain,
    add_shadows,
    blur_depth,
    jitter_edges,
    measure_again,
)
from ducos.training.patches import REACH
from ducos.upscaling import load, predict

CASES = [
    *(("tof", ratio) for ratio in (4, 8)),
    *((name, 4) for name in ("lidar", "stereo")),
    *((name, ratio) for name in ("misregister", "misregister, auto") for ratio in (2, 4)),
    *((name, ratio) for name in ("soft", "blurred", "wavering") for ratio in (2, 4)),
    *((name, ratio) for name in ("grainy", "picture moved") for ratio in (2, 4, 8, 16)),
    ("tof, dark", 4),
    *(("bicubic, framed", ratio) for ratio in (4, 16)),
    *(("bicubic, shaded", ratio) for ratio in (4, 8)),
    ("tof, shaded", 4),
    *((f"tof, {what}", ratio) for what in ("beside", "remeasured") for ratio in (2, 4)),
    *(("tof, told", ratio) for ratio in (2, 4, 8)),
    *((f"tof, {what}, told", ratio) for what in ("beside", "remeasured") for ratio in (2, 4)),
    *((f"{name}, told", 4) for name in ("lidar", "stereo")),
]
FRAME = 7
FIELD_OF_VIEW = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", help="as in `ducos eval --dataset`")
    parser.add_argument("--model", default="ducos-tiny")
    parser.add_argument("--images", type=int, default=22, help="spread evenly over the set")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    options = parser.parse_args()
    dataset = open_dataset(options.dataset)
    chosen = np.linspace(0, len(dataset) - 1, min(options.images, len(dataset))).astype(int)
    model = load(Path(options.model) if options.model.endswith(".safetensors") else options.model)
    print(f"{options.model} on {len(chosen)} images of {dataset.name}\n")
    print(
        "| sensor | RMSE cm, bicubic → ours | ratio | where measured | ratio "
        "| in holes | ratio | flying %, bicubic → ours | off both %, bicubic → ours "
        "| as written %, bicubic → ours | points left % | within σ / 2σ where measured |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    ratios, told = [], []
    for name, ratio in (case for case in CASES if options.only in case[0]):
        rows = [measured(dataset[int(i)], name, ratio, model, seed=int(i)) for i in chosen]
        with warnings.catch_warnings(action="ignore"):  # the mean over no hole is nan
            means = np.nanmean(np.array(rows), 0)
        base, ours, seen_base, seen, hole_base, hole, fly_base, fly, *clouds, one, two = means
        off, written, left = (
            f"{100 * a:.1f} → {100 * b:.1f}" for a, b in zip(clouds[::2], clouds[1::2], strict=True)
        )
        if name.endswith("told"):
            told.append(seen / seen_base)
        elif name != "blurred":  # bicubic is all but exact there: any ratio would rule the mean
            ratios.append(seen / seen_base)
        print(
            f"| {name} ×{ratio} | {100 * base:.2f} → {100 * ours:.2f} | {ours / base:.2f} "
            f"| {100 * seen_base:.2f} → {100 * seen:.2f} | {seen / seen_base:.2f} "
            f"| {100 * hole_base:.2f} → {100 * hole:.2f} | {hole / hole_base:.2f} "
            f"| {fly_base:.1f} → {fly:.1f} | {off} | {written} | {left} "
            f"| {100 * one:.0f} / {100 * two:.0f} % |",
            flush=True,
        )
    print()
    groups = {"not told, without blurred": ratios, "told": told, "all of these": ratios + told}
    for words, group in groups.items():
        if group:
            print(f"mean ratio where measured, {words}: {np.mean(group):.4f} of {len(group)} cases")


def measured(pair: Pair, name: str, ratio: int, model: nn.Module, seed: int) -> list[float]:
    """RMSE of bicubic and ours in metres, over all pixels, where measured and in holes (nan where
    there are none); flying pixels, points off both surfaces, the same in the cloud as written and
    the share of points left in it, of either; coverage of one and two sigma where measured."""
    rgb = torch.from_numpy(pair.rgb).permute(2, 0, 1)[None]
    truth, mask = pair.target, pair.valid
    rng = np.random.default_rng(seed)
    if name == "soft":
        truth = blur_depth(truth, mask, rng.uniform(0.3, 1.3))
    if name == "blurred":
        truth = blur_depth(truth, mask, 3)
    if name == "wavering":
        truth, mask = jitter_edges(truth, mask, rng)
    if name == "grainy":
        truth = add_grain(truth, mask, rng, COARSEST_GRAIN * ratio)
    if name == "picture moved":
        y, x = rng.integers(-3, 4, 2)
        rgb = rgb.roll((y, x), (2, 3))
    sensor, *twists = name.split(", ")
    target, valid = (torch.from_numpy(m)[None, None] for m in (truth, mask))
    size = (target.shape[-2], target.shape[-1])
    degrade: Callable[..., tuple[Tensor, Tensor]]
    degrade = DEGRADATIONS.get(sensor, DEGRADATIONS["bicubic"])
    generator = torch.Generator().manual_seed(seed)
    low, low_valid = degrade(target, valid, rgb, low_size(size, ratio), generator)
    if "remeasured" in twists:
        truth, mask = measure_again(truth, mask, rng)
        target, valid = (torch.from_numpy(m)[None, None] for m in (truth, mask))
    if "beside" in twists:
        right, down = rng.integers(-3, 4, 2).tolist()
        target, valid = moved(target, right, down), moved(valid, right, down, beyond=False)
        truth, mask = target[0, 0].numpy(), valid[0, 0].numpy()
    rgb = twisted(rgb, twists, rng)
    steps = (0, 0)
    if "auto" in twists:
        as_read = DepthMap(low[0, 0].numpy(), low_valid[0, 0].numpy(), "m", 1.0, "rendered")
        found = shift_to_undo("auto", pair.rgb, as_read)
        steps = (round(found.x), round(found.y))
    with torch.inference_mode():
        maker = sensor if "told" in twists else "unknown"
        prediction = predict(model, moved(rgb, *steps), low, low_valid, sensor=maker)
    depth, sigma = (
        moved(x, -steps[0], -steps[1]) for x in (prediction.depth, prediction.aux["sigma"])
    )
    base = bicubic(fill_holes(low, low_valid), size)
    limits = range_of(low, low_valid)
    share = limits.apply(target)
    knowable = (share > -REACH) & (share < 1 + REACH)
    under = nearest(low_valid.float(), size) > 0.5
    seen, unseen = valid & knowable & under, valid & knowable & ~under
    errors = [(x - target)[m] for m in (valid, seen, unseen) for x in (base, depth)]
    within = errors[3].abs() / sigma[seen]
    maps = [x[0, 0].numpy() for x in (base, depth)]
    hanging = [flying(x, truth, mask) for x in maps]
    camera = Camera.from_field_of_view(size[1], size[0], FIELD_OF_VIEW)
    doubts = ((None, None), (sigma[0, 0].numpy(), under[0, 0].numpy()))
    written = [
        mask & ~flying_pixels(x, mask, camera, *d) for x, d in zip(maps, doubts, strict=True)
    ]
    known = np.where(mask, truth, 0)
    hanging += [flying_share(x, mask, known) for x in maps]
    hanging += [flying_share(x, kept, known) for x, kept in zip(maps, written, strict=True)]
    hanging += [float(kept.sum() / mask.sum()) for kept in written]
    coverage = [float((within < k).float().mean()) for k in (1, 2)]
    return [*(float(e.square().mean().sqrt()) for e in errors), *hanging, *coverage]


def twisted(rgb: Tensor, twists: list[str], rng: np.random.Generator) -> Tensor:
    """The picture (1, 3, H, W) that comes with the map."""
    H, W = rgb.shape[-2:]
    if "dark" in twists:
        return torch.zeros_like(rgb)
    if "shaded" in twists:
        return add_shadows(rgb[0], rng)[None]
    if "framed" in twists:
        framed = torch.ones_like(rgb)
        inside = (..., slice(FRAME, H - FRAME), slice(FRAME, W - FRAME))
        framed[inside] = rgb.mean(1, keepdim=True)[inside]
        return framed
    return rgb


if __name__ == "__main__":
    main()
