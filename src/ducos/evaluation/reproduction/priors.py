"""Table 4 on real images whose foundation depth is at hand: stored, or computed here.

FOLDER/NAME/ holds rgb.png, depth.png (a reference), mono.png (what a foundation model said, any
scale) and meta.json (kind: "disparity" or "depth", scale_to_unit, mono: the model's name). The
low-resolution map is the mean over blocks of the reference. Figures are RMSE relative to bicubic's
on the same input, geometric means over the images of a source, which is what NAME starts with.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import Floats, Mask
from ducos.errors import InputError
from ducos.evaluation.reproduction.inputs import Contestant
from ducos.evaluation.reproduction.report import Plain
from ducos.evaluation.scoring import Progress
from ducos.files import DepthMap, read_depth, read_relative, read_rgb
from ducos.upscaling import Options, Upscaler

RATIOS = (8, 16)
WITHOUT_BORDERS = {"exc": (slice(100, 430), slice(80, 950))}
"""Source -> rows and columns of its rectified frames, whose borders are black."""


@dataclass(frozen=True)
class RealPair:
    """rgb (H, W, 3); depth (H, W), a reference, disparity in pixels or metres; valid (H, W); prior
    (H, W): what the foundation model `told_by` says."""

    source: str
    is_disparity: bool
    rgb: Floats
    depth: Floats
    valid: Mask
    prior: Floats
    told_by: str

    def cut(self, rows: slice, columns: slice) -> "RealPair":
        maps: dict[str, Any] = {
            name: np.ascontiguousarray(getattr(self, name)[rows, columns]) for name in MAPS
        }
        return replace(self, **maps)


MAPS = ("rgb", "depth", "valid", "prior")


def real_pairs(folder: Path) -> dict[str, list[RealPair]]:
    """By source."""
    places = [place for place in sorted(folder.glob("*/")) if (place / "mono.png").is_file()]
    if not places:
        raise InputError(
            f"{folder} holds no stored outputs; expected NAME/mono.png with rgb.png, depth.png and"
            " meta.json beside it"
        )
    found: dict[str, list[RealPair]] = {}
    for place in places:
        pair = real_pair(place)
        found.setdefault(pair.source, []).append(pair)
    return found


def real_pair(place: Path) -> RealPair:
    """One folder with its four files."""
    try:
        about = json.loads((place / "meta.json").read_text(encoding="utf-8"))
        kind, scale = about["kind"], float(about["scale_to_unit"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(
            f"{place / 'meta.json'} must state kind and scale_to_unit: {problem}"
        ) from None
    stored = read_depth(place / "depth.png", scale=scale)
    pair = RealPair(
        source=place.name.split("_")[0].rstrip("0123456789"),
        is_disparity=kind == "disparity",
        rgb=read_rgb(place / "rgb.png"),
        depth=stored.depth,
        valid=stored.valid,
        prior=read_relative(place / "mono.png"),
        told_by=str(about.get("mono", "unknown")).split(",")[0],
    )
    sizes = {getattr(pair, name).shape[:2] for name in MAPS}
    if len(sizes) > 1:
        raise InputError(f"the maps in {place} differ in size: {sorted(sizes)}")
    cut = WITHOUT_BORDERS.get(pair.source)
    return pair if cut is None else pair.cut(*cut)


def block_means(depth: Floats, valid: Mask, ratio: int, unit: str) -> DepthMap:
    """Mean of the valid pixels of each block; a hole if fewer than half are valid."""
    h, w = (n // ratio * ratio for n in depth.shape)
    shape = (h // ratio, ratio, w // ratio, ratio)
    count = valid[:h, :w].reshape(shape).sum((1, 3))
    total = np.where(valid, depth, 0)[:h, :w].astype(np.float64).reshape(shape).sum((1, 3))
    known = count >= ratio * ratio / 2
    low = np.where(known, total / np.maximum(count, 1), 0).astype(np.float32)
    return DepthMap(low, known, unit, 1.0, "")


def compared(pair: RealPair, ratio: int) -> tuple[RealPair, DepthMap]:
    """A pair, cut to whole blocks, and its low-resolution map."""
    H, W = (n // ratio * ratio for n in pair.depth.shape)
    pair = pair.cut(slice(H), slice(W))
    unit = "relative" if pair.is_disparity else "m"
    return pair, block_means(pair.depth, pair.valid, ratio, unit)


def rmse(result: Floats, depth: Floats, valid: Mask) -> float:
    return float(np.sqrt(np.mean((result - depth)[valid] ** 2)))


@dataclass(frozen=True)
class Entrant:
    """A network; stored: the model whose stored outputs are its prior, "" for none."""

    name: str
    network: Upscaler
    stored: str = ""

    def enters(self, pair: RealPair) -> bool:
        return self.stored in ("", pair.told_by)

    def run(self, pair: RealPair, low: DepthMap) -> Floats:
        prior = pair.prior if self.stored else None
        return np.asarray(self.network(pair.rgb, low, prior=prior).depth)


def upscalers_of(contestants: Sequence[Contestant], options: Options | None) -> dict[str, Upscaler]:
    """All but bicubic, which the others are compared with; weights of prompts are loaded, too."""
    said = options or Options()
    names = ("device", "threads", "tile", "accept_noncommercial")
    how = {name: getattr(said, name) for name in names}
    return {
        each.method: Upscaler(each.source, prompt=each.prompt, shift="off", **how)
        for each in contestants
        if each.source != "bicubic"
    }


def prior_table(
    found: Mapping[str, Sequence[RealPair]],
    networks: Mapping[str, Upscaler],
    progress: Progress | None = None,
    ratios: Sequence[int] = RATIOS,
) -> Plain:
    """Networks by name as they are, then ducos-small with each model's stored outputs.

    found: as of `real_pairs`.
    """
    small = Upscaler("ducos-small", shift="off")
    entrants = [Entrant(name, network) for name, network in networks.items()]
    stored = sorted({pair.told_by for pairs in found.values() for pair in pairs})
    entrants += [Entrant(f"stored: {name}", small, name) for name in stored]
    work = len(ratios) * sum(
        each.enters(pair) for each in entrants for pairs in found.values() for pair in pairs
    )
    shares: dict[tuple[str, str, int], list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for source, pairs in found.items():
        for ratio in ratios:
            for pair in pairs:
                for name, share, took in compete(entrants, pair, ratio):
                    shares.setdefault((name, source, ratio), []).append(share)
                    seconds.setdefault(name, []).append(took)
                    if progress is not None:
                        progress(f"{name} on {source} ×{ratio}", work)
    columns = [(source, ratio) for source in found for ratio in ratios]
    rows = []
    for entrant in entrants:
        scored = [shares.get((entrant.name, *column), []) for column in columns]
        cells = [f"{np.exp(np.mean(np.log(each))):.3f}" if each else "–" for each in scored]
        images = sum(map(len, scored)) // len(ratios)
        rows.append([entrant.name, f"{images}", *cells, f"{np.mean(seconds[entrant.name]):.2f}"])
    return Plain(
        "RMSE relative to bicubic's on real images; CPU s of one image, prompt included",
        ["prompt", "images", *(f"{source} ×{ratio}" for source, ratio in columns), "CPU s"],
        rows,
    )


def compete(
    entrants: Sequence[Entrant], pair: RealPair, ratio: int
) -> Iterator[tuple[str, float, float]]:
    """Name, RMSE relative to bicubic's and CPU seconds of each on one image."""
    pair, low = compared(pair, ratio)
    plain = np.asarray(Upscaler("bicubic", shift="off")(pair.rgb, low).depth)
    base = rmse(plain, pair.depth, pair.valid)
    for entrant in entrants:
        if entrant.enters(pair):
            started = time.process_time()
            result = entrant.run(pair, low)
            took = time.process_time() - started
            yield entrant.name, rmse(result, pair.depth, pair.valid) / base, took
