"""What a real foundation model's depth is worth, and how like it the simulated ones are.

    python benchmarks/priors.py FOLDER [--model ducos-small] [--data data/heldout] [--json FILE]

FOLDER: one subfolder per image with rgb.png, depth.png, mono.png (the model's output) and
meta.json (kind, scale_to_unit). The low-resolution map is the mean over blocks; borders
of rectified frames (`exc_*`) are cut. Figures are RMSE relative to bicubic's on the same input,
geometric means over images: without a prior, with it, with the prior of another image, and the
prior fitted to the measurements alone. With --data, the same on held-out rendered scenes with
simulated priors, and statistics of both kinds of priors. --likeness tells how well a threshold can
keep priors of other images away.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

from ducos.data import open_dataset
from ducos.degrade import monocular
from ducos.evaluation.reproduction.priors import RealPair, compared, real_pairs, rmse
from ducos.files import DepthMap
from ducos.models.ducos.around import Around
from ducos.models.ducos.guide import shrunk
from ducos.models.ducos.prior import Guess, curve_of, likeness, polynomial
from ducos.normalise import range_of
from ducos.resize import fill_holes
from ducos.upscaling import Upscaler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="ducos-small")
    parser.add_argument("--without", default="ducos-tiny", help="model that has no prior")
    parser.add_argument("--data", help="folder of held-out rendered pairs, or bench:FOLDER")
    parser.add_argument("--likeness", action="store_true", help="only how alike priors are")
    parser.add_argument("--images", type=int, default=8, help="of the rendered pairs")
    parser.add_argument("--ratios", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    images = real_pairs(asked.folder)
    if asked.data:
        images["rendered"] = rendered(asked.data, asked.images)
    results: dict[str, dict[str, float]] = {}
    if asked.likeness:
        for name, pairs in images.items():
            for ratio in asked.ratios:
                print(f"{name} ×{ratio}: {likenesses(pairs, ratio)}", flush=True)
        return
    tiny, small = Upscaler(asked.without, shift="off"), Upscaler(asked.model, shift="off")
    for name, pairs in images.items():
        for ratio in asked.ratios:
            results[f"{name} ×{ratio}"] = score(pairs, ratio, tiny, small)
            shown = "  ".join(f"{k} {v:.3f}" for k, v in results[f"{name} ×{ratio}"].items())
            print(f"{name} ×{ratio}: {shown}", flush=True)
        results[f"{name}: statistics"] = statistics(pairs)
        print(f"{name}: {results[f'{name}: statistics']}", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def rendered(data: str, count: int) -> list[RealPair]:
    """Held-out scenes with simulated priors, one each."""
    pairs = open_dataset(data if ":" in data else f"synth:{data}")
    chosen = np.linspace(0, len(pairs) - 1, count).round().astype(int)
    rows = []
    for index in chosen:
        pair = pairs[int(index)]
        rng = np.random.default_rng(int(index))
        prior = monocular(pair.target, pair.valid, pair.rgb, rng)
        maps = pair.rgb, pair.target, pair.valid, prior
        rows.append(RealPair("rendered", False, *maps, told_by="simulated"))
    return rows


def score(pairs: list[RealPair], ratio: int, tiny: Upscaler, small: Upscaler) -> dict[str, float]:
    """RMSE relative to bicubic's, geometric means."""
    bicubic = Upscaler("bicubic", shift="off")
    ratios = defaultdict(list)
    for number, whole in enumerate(pairs):
        pair, low = compared(whole, ratio)
        rgb, prior, (H, W) = pair.rgb, pair.prior, pair.depth.shape
        other = np.resize(pairs[(number + 1) % len(pairs)].prior[:H, :W], (H, W))
        given = {
            "without": tiny(rgb, low).depth,
            "flat": small(rgb, low).depth,
            "with": small(rgb, low, prior=prior).depth,
            "wrong": small(rgb, low, prior=other).depth,
            "fitted": fitted(rgb, low, prior),
        }
        base = rmse(bicubic(rgb, low).depth, pair.depth, pair.valid)
        for name, result in given.items():
            ratios[name].append(rmse(result, pair.depth, pair.valid) / base)
    return {name: float(np.exp(np.mean(np.log(each)))) for name, each in ratios.items()}


def likenesses(pairs: list[RealPair], ratio: int) -> str:
    """Correlation of the details of measurements and prior (`prior.trust`): of their own prior,
    least and median; of the prior of the next image and of their own mirrored, the largest."""
    found = defaultdict(list)
    for number, whole in enumerate(pairs):
        pair, low = compared(whole, ratio)
        other = np.resize(pairs[(number + 1) % len(pairs)].prior, pair.depth.shape)
        for kind, prior in {
            "own": pair.prior,
            "other": other,
            "mirrored": pair.prior[:, ::-1],
        }.items():
            found[kind].append(likeness_of(low, prior))
    own = found["own"]
    rest = "  ".join(f"{kind} {max(found[kind]):.2f}" for kind in ("other", "mirrored"))
    return f"own {min(own):.2f}, median {np.median(own):.2f}  {rest}"


def likeness_of(low: DepthMap, prior: np.ndarray) -> float:
    maps = [torch.from_numpy(np.ascontiguousarray(m))[None, None] for m in (low.depth, low.valid)]
    measured = range_of(*maps).apply(fill_holes(maps[0], maps[1]))
    whole = torch.from_numpy(np.ascontiguousarray(prior, np.float32))[None, None]
    small = shrunk(whole, (measured.shape[-2], measured.shape[-1]))
    curve, _ = curve_of(small, measured, maps[1])
    return float(likeness(polynomial(small, curve), measured, maps[1].float()))


def fitted(rgb: np.ndarray, low: DepthMap, prior: np.ndarray) -> np.ndarray:
    """The prior by the robust cubic, plus what it leaves of the measurements: no network."""
    maps = [torch.from_numpy(np.ascontiguousarray(m))[None, None] for m in (low.depth, low.valid)]
    image = torch.from_numpy(np.ascontiguousarray(rgb)).permute(2, 0, 1)[None]
    limits = range_of(*maps)
    measured = limits.apply(fill_holes(maps[0], maps[1]))
    around = Around.of(image, measured, maps[1])
    guess = Guess.of(torch.from_numpy(np.ascontiguousarray(prior, np.float32))[None, None], around)
    return limits.undo(guess.depths[:, :1])[0, 0].numpy()


def statistics(pairs: list[RealPair]) -> dict[str, float]:
    """Medians over images: rank correlation with inverse depth; 10–90 % width and displacement of
    the prior's steps where the reference is sharp, in pixels; share of the reference's edges that
    the prior lacks; share of the error's power in the lowest eighth of the frequencies."""
    rows = [statistics_of(p.is_disparity, p.depth, p.valid, p.prior) for p in pairs]
    return {key: round(float(np.nanmedian([r[key] for r in rows])), 3) for key in rows[0]}


def statistics_of(
    is_disparity: bool, depth: np.ndarray, valid: np.ndarray, prior: np.ndarray
) -> dict[str, float]:
    inverse = np.where(valid, depth if is_disparity else 1 / np.maximum(depth, 1e-6), np.nan)
    some = np.flatnonzero(valid.ravel())[:: max(1, valid.sum() // 20000)]
    rank = float(spearmanr(inverse.ravel()[some], prior.ravel()[some]).statistic)
    if rank < 0:
        prior = -prior
    widths, offs, missing, edges = [], [], 0, 0
    reach = 8
    jump = np.abs(np.diff(inverse, axis=1))
    strong = np.argwhere(jump > 0.15 * np.nanmedian(inverse))
    strong = strong[:: max(1, len(strong) // 1500)]
    spread = np.nanstd(prior[valid])
    slope = spread / max(np.nanstd(inverse[valid]), 1e-9)
    for y, x in strong:
        if not reach <= x < depth.shape[1] - reach - 1:
            continue
        truth, said = inverse[y, x - reach : x + reach + 2], prior[y, x - reach : x + reach + 2]
        sides = [np.nanmean(truth[:5]), np.nanmean(truth[-5:])]
        if np.isnan(truth).any() or abs(sides[1] - sides[0]) < 0.8 * jump[y, x]:
            continue  # not a step from one surface to another
        edges += 1
        step = np.mean(said[-4:]) - np.mean(said[:4])
        if step * (sides[1] - sides[0]) <= 0 or abs(step) < 0.25 * slope * abs(sides[1] - sides[0]):
            missing += 1
            continue
        share = np.clip((said - np.mean(said[:4])) / step, 0, 1)
        share = np.maximum.accumulate(share)
        place = np.arange(len(said)) - reach - 0.5
        at = np.interp([0.1, 0.5, 0.9], share + 1e-6 * np.arange(len(share)), place)
        widths.append(at[2] - at[0])
        offs.append(abs(at[1]))
    error = residual_of(inverse, prior, valid)
    power = np.abs(np.fft.fft2(error)) ** 2
    power[0, 0] = 0
    frequency = np.hypot(*np.meshgrid(*(np.fft.fftfreq(n) for n in error.shape), indexing="ij"))
    low = float(power[frequency < 1 / 16].sum() / max(power.sum(), 1e-12))
    return {
        "rank correlation": abs(rank),
        "step width": float(np.median(widths)) if widths else np.nan,
        "displacement": float(np.median(offs)) if offs else np.nan,
        "missing edges": missing / edges if edges else np.nan,
        "power below 1/16": low,
    }


def residual_of(inverse: np.ndarray, prior: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """What the best linear map from prior to inverse depth leaves; 0 where not valid."""
    a, b = np.polyfit(prior[valid], inverse[valid], 1)
    return np.where(valid, inverse - a * prior - b, 0)


if __name__ == "__main__":
    main()
