"""What stored prompt features save, and how far they are from recomputing on each patch.

Method: DINOv2-S at the images' own size. Cost is CPU time of one thread. Likeness is the
correlation per feature map (mean over the images) between features of the whole image, cut or
turned like the patch, and features computed from the patch, turned image or recoloured image
itself; 1 would mean that storing changes nothing.

    python benchmarks/prompt_cache.py --weights dinov2-s.safetensors IMAGE [IMAGE ...]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ducos.data.pair import Pair
from ducos.files import read_colour
from ducos.prompts import Prompt, create_prompt, run_prompt
from ducos.training.changes import recolour
from ducos.training.prompt_cache import FeatureCache, cut, patch_place


def likeness(a: Prompt, b: Prompt, undo: Callable[[Tensor], Tensor] = lambda m: m) -> list[float]:
    """Correlation of each pair of maps, channel means taken off; `undo` turns b's maps back."""
    found = []
    for x, y in zip(a.features, b.features, strict=True):
        x, y = (m - m.mean((2, 3), keepdim=True) for m in (x, undo(y)))
        found.append(float((x * y).sum() / (x.norm() * y.norm())))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", required=True)
    parser.add_argument("images", nargs="+", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    prompt = create_prompt("dinov2-s", weights=options.weights)

    def ask(image: np.ndarray) -> Prompt:
        return run_prompt(prompt, torch.from_numpy(image.copy()).permute(2, 0, 1)[None])

    rows: dict[str, list[list[float]]] = {}
    costs: dict[str, list[float]] = {"compute": [], "read": [], "cut": []}
    with tempfile.TemporaryDirectory() as folder:
        cache = FeatureCache(folder, prompt)
        for seed, path in enumerate(options.images):
            rgb = np.asarray(read_colour(path), np.float32)
            H, W = rgb.shape[:2]
            pair = Pair(path.parent.name, rgb, rgb[..., 0], rgb[..., 0] >= 0)
            times = [time.process_time()]
            cache.features(pair)
            times.append(time.process_time())
            whole = cache.features(pair)
            times.append(time.process_time())
            cut([whole], patch_place((H, W), 0, 0, 128)[None], (128, 128), [(H, W)])
            times.append(time.process_time())
            for name, spent in zip(costs, np.diff(times), strict=True):
                costs[name].append(float(spent))
            for side in (128, 256):
                top, left = (H - side) // 2, (W - side) // 2
                place = patch_place((H, W), top, left, side)
                part = cut([whole], place[None], (side, side), [(H, W)])
                patch = ask(rgb[top : top + side, left : left + side])
                rows.setdefault(f"cropped to {side}", []).append(likeness(part, patch))
            mirrored, turned = ask(rgb[:, ::-1]), ask(rgb.swapaxes(0, 1))
            recoloured = ask(recolour(rgb, 0.5, np.random.default_rng(seed)))
            rows.setdefault("mirrored", []).append(likeness(whole, mirrored, lambda m: m.flip(3)))
            rows.setdefault("transposed", []).append(likeness(whole, turned, lambda m: m.mT))
            rows.setdefault("recoloured", []).append(likeness(whole, recoloured))
        size = cache.path(pair).stat().st_size
    print(__doc__.split("\n\n")[1], "\n")
    for name, spent in costs.items():
        print(f"{name:8} {np.median(spent):.3f} CPU s per image")
    print(f"stored   {size / 1e6:.1f} MB per image\n")
    print(f"{'patch':16} {'F1':>6} {'F2':>6} {'F3':>6} {'F4':>6}")
    for name, values in rows.items():
        print(f"{name:16}", " ".join(f"{value:6.2f}" for value in np.mean(values, 0)))


if __name__ == "__main__":
    main()
