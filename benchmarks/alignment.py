"""What undoing a shift between depth and colours is worth: none, measured (`--shift auto`), known.

Method: pairs of held-out scenes; the depth moved against the colours by a whole number of pixels
per axis, seeded, up to the largest given, then shrunk by bicubic. RMSE in centimetres over pixels
with truth, mean over the images. Bicubic is moved back by the known shift in its second column.
`moved`: pairs in which auto acted; `wrong`: those of them moved by more than two pixels, or half a
depth pixel, from the truth.

    python benchmarks/alignment.py synth:data/heldout --images 12
"""

import argparse

import numpy as np
import torch

from ducos import super_resolve
from ducos.data import open_dataset
from ducos.data.pair import Pair
from ducos.degrade.resampling import bicubic as shrink
from ducos.doctor.correction import shift_to_undo
from ducos.files import DepthMap
from ducos.resize import bicubic, fill_holes, low_size, moved

CASES = [(largest, ratio) for ratio in (4, 8) for largest in (0, 4, 12)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", help="as in `ducos eval --dataset`")
    parser.add_argument("--images", type=int, default=12, help="spread evenly over the set")
    options = parser.parse_args()
    dataset = open_dataset(options.dataset)
    chosen = np.linspace(0, len(dataset) - 1, min(options.images, len(dataset))).astype(int)
    print(f"ducos-tiny on {len(chosen)} images of {dataset.name}, RMSE in cm\n")
    print("| moved by up to | ratio | bicubic | moved back | ours | auto | known | moved | wrong |")
    print("|---|---|---|---|---|---|---|---|---|")
    for largest, ratio in CASES:
        rows = np.array([measured(dataset[int(i)], largest, ratio, seed=int(i)) for i in chosen])
        errors = " | ".join(f"{100 * error:.2f}" for error in rows[:, :5].mean(0))
        acted, wrong = (f"{int(count)} of {len(rows)}" for count in rows[:, 5:].sum(0))
        print(f"| {largest} px | ×{ratio} | {errors} | {acted} | {wrong} |", flush=True)


def measured(pair: Pair, largest: int, ratio: int, seed: int) -> list[float]:
    """RMSE in metres of bicubic, bicubic moved back, ours, ours auto, ours known; moved, wrong."""
    right, down = (int(n) for n in np.random.default_rng(seed).integers(-largest, largest + 1, 2))
    truth, valid = (torch.from_numpy(plane)[None, None] for plane in (pair.target, pair.valid))
    size = (truth.shape[-2], truth.shape[-1])
    beside, known = moved(truth, right, down), moved(valid, right, down, beyond=False)
    low, low_valid = shrink(beside, known, None, low_size(size, ratio))
    base = bicubic(fill_holes(low, low_valid), size)
    results = [base[0, 0].numpy(), moved(base, -right, -down)[0, 0].numpy()]
    as_read = DepthMap(low[0, 0].numpy(), low_valid[0, 0].numpy(), "m", 1.0, "rendered")
    found = shift_to_undo("auto", pair.rgb, as_read)
    for shift in ((0, 0), (found.x, found.y), (right, down)):
        results.append(super_resolve(pair.rgb, as_read, shift=shift).depth)
    errors = [float(np.sqrt(np.square(x - pair.target)[pair.valid].mean())) for x in results]
    acted = (found.x, found.y) != (0.0, 0.0)
    away = np.hypot(found.x - right, found.y - down)
    return [*errors, acted, acted and away > max(2, ratio / 2)]


if __name__ == "__main__":
    main()
