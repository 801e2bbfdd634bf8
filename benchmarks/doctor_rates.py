"""How often `ducos doctor` is right: quiet on sound pairs, loud on injected faults.

Six tables, on every set of a bench folder (see `ducos.data.bench`) and on generated shapes:

1. sound pairs, as they are and shrunk: which warnings or errors appear;
2. units: the map stored in several ways; right, asked (a warning with the true scale among the
   candidates) or wrong;
3. misregistration: the depth moved by known amounts; how many are named, error in pixels, also
   against what was found for the unmoved pair, since real pairs may be off by themselves;
4. other faults: how many are named;
5. misregistration of maps as sensors make them (`ducos.degrade`, ratio 4, metric sets);
6. the same, each metric set taken for a recording whose frames share one shift, as
   `ducos batch --shift auto` does: the shift of all frames together.

    python benchmarks/doctor_rates.py BENCH [--most 8] [--sets NAME,NAME] [--tables 1,2,3,4,5,6]
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from ducos.data.bench import Bench
from ducos.data.pair import Dataset, Pair
from ducos.data.shapes import Shapes
from ducos.degrade import DEGRADATIONS
from ducos.degrade.resampling import area, nearest
from ducos.doctor import Report, examine
from ducos.doctor.colour import is_misaligned
from ducos.doctor.refinement import View
from ducos.doctor.registration import common_misalignment
from ducos.errors import InputError
from ducos.files import DepthMap

MARGIN = 12  # pixels cut off, so that a moved map still covers the picture
SHIFTS = ((0, 0), (5, -3), (-8, 2), (2, 2), (0, 10))


def low_map(pair: Pair, scale: int, unit: str, shift: tuple[int, int] = (0, 0), how=area) -> tuple:
    """Colour image, and the depth moved right and down by `shift` and shrunk by `scale`."""
    (H, W), (x, y), m = pair.target.shape, shift, MARGIN
    window = np.s_[m - y : H - m - y, m - x : W - m - x]
    target, valid = (torch.tensor(plane[window])[None, None] for plane in (pair.target, pair.valid))
    size = ((H - 2 * m) // scale, (W - 2 * m) // scale)
    low, low_valid = how(target, valid, None, size)
    name = "m" if unit == "m" else "relative"
    depth = DepthMap(low[0, 0].numpy(), low_valid[0, 0].numpy(), name, 1.0, "given")
    return np.ascontiguousarray(pair.rgb[m : H - m, m : W - m]), depth


def alarms(report: Report) -> list[str]:
    return [finding.code for finding in report.findings if finding.severity != "note"]


def chosen(dataset: Dataset, most: int) -> Iterator[Pair]:
    count = min(most, len(dataset))
    for index in np.linspace(0, len(dataset) - 1, count).round().astype(int):
        yield dataset[int(index)]


def clean_table(sets: list[Dataset], most: int) -> None:
    print("\n| sound pairs | scale | pairs | without alarm | alarms |\n|---|---|---|---|---|")
    for dataset in sets:
        for scale in (1, 4, 8):
            found: Counter[str] = Counter()
            quiet = pairs = 0
            for pair in chosen(dataset, most):
                report = examine(*low_map(pair, scale, dataset.unit))
                found.update(alarms(report))
                quiet += report.sound
                pairs += 1
            words = ", ".join(f"{code} {count}" for code, count in found.most_common()) or "–"
            print(f"| {dataset.name} | ×{scale} | {pairs} | {quiet} | {words} |", flush=True)


WAYS: dict[str, tuple[Callable, float]] = {
    "float metres": (lambda z: z.astype(np.float32), 1.0),
    "float millimetres": (lambda z: (1000 * z).astype(np.float32), 0.001),
    "16-bit millimetres": (lambda z: np.rint(1000 * z).astype(np.uint16), 0.001),
    "16 bit, 5000 per metre": (lambda z: np.rint(5000 * z).clip(0, 65534).astype(np.uint16), 2e-4),
    "16 bit, 10000 per metre": (lambda z: np.rint(1e4 * z).clip(0, 65534).astype(np.uint16), 1e-4),
}


def unit_table(sets: list[Dataset], most: int) -> None:
    print(
        "\n| unit: stored as | pairs | right | asked, truth among the candidates | asked | wrong |"
    )
    print("|---|---|---|---|---|---|")
    rgb = np.random.default_rng(0).random((48, 64, 3)).astype(np.float32)
    for words, (store, scale) in WAYS.items():
        counts: Counter[str] = Counter()
        for dataset in (dataset for dataset in sets if dataset.unit == "m"):
            for pair in chosen(dataset, 10 * most):
                stored = store(np.where(pair.valid, pair.target, 0)[::4, ::4])
                counts[unit_verdict(rgb, stored, scale)] += 1
        print_unit_row(words, counts)
    counts = Counter()
    for dataset in (dataset for dataset in sets if dataset.unit != "m"):
        for pair in chosen(dataset, 10 * most):
            stored = np.rint(pair.target[::4, ::4]).astype(np.uint16)
            report = examine(rgb, stored)
            counts["listed" if report.find("unit-levels") else "wrong"] += 1
    print_unit_row("8-bit levels in 16 bits", counts)


def unit_verdict(rgb: np.ndarray, stored: np.ndarray, scale: float) -> str:
    report = examine(rgb, stored)
    found = (report.find(code) for code in ("unit", "unit-levels", "unit-unsure"))
    finding = next((finding for finding in found if finding), None)
    if finding is None:
        return "right" if report.low is not None and report.low.scale == scale else "wrong"
    if report.low is not None and report.low.scale == scale:
        return "right" if finding.severity == "note" else "asked"
    listed = any(np.isclose(scale, other) for other in finding.numbers.get("candidates", []))
    return "listed" if listed else "asked"


def print_unit_row(words: str, counts: Counter) -> None:
    cells = " | ".join(str(counts[name]) for name in ("right", "listed", "asked", "wrong"))
    print(f"| {words} | {sum(counts.values())} | {cells} |", flush=True)


def shift_table(sets: list[Dataset], most: int) -> None:
    print(
        "\n| moved pairs | scale | cases | can tell | error px: median, 90 % | against unmoved | "
        "named | unmoved |\n|---|---|---|---|---|---|---|---|"
    )
    for dataset in sets:
        for scale in (1, 4, 8):
            errors, changes, cases, moved, named, false, still = [], [], 0, 0, 0, 0, 0
            for pair in chosen(dataset, most):
                own: np.ndarray | None = None  # what is found for the unmoved pair
                for shift in SHIFTS:
                    report = examine(*low_map(pair, scale, dataset.unit, shift))
                    cases += 1
                    told = report.find("misaligned") is not None
                    if shift == (0, 0):
                        still += 1
                        false += told
                    elif report.shift is not None and report.shift.certain:
                        moved += 1
                        named += told
                    if report.shift is not None and report.shift.certain:
                        found = np.array([report.shift.x, report.shift.y])
                        errors.append(float(np.hypot(*(found - shift))))
                        if shift == (0, 0):
                            own = found
                        elif own is not None:
                            changes.append(float(np.hypot(*(found - own - shift))))
            figures, against = (
                ", ".join(f"{x:.2f}" for x in np.quantile(each, (0.5, 0.9))) if each else "–"
                for each in (errors, changes)
            )
            print(
                f"| {dataset.name} | ×{scale} | {cases} | {len(errors)} | {figures} | {against} | "
                f"{named} of {moved} | {false} of {still} named |",
                flush=True,
            )


SENSORS = ("area", "tof", "lidar", "stereo", "noisy")
SENSOR_HEAD = (
    "| sensor | cases | can tell | error px: median, largest | moved and named | "
    "unmoved, but named |\n|---|---|---|---|---|---|"
)


def seen_by(name: str, seed: int) -> Callable:
    """The sensor model of that name, always with the same noise."""

    def sensor(target, valid, rgb, size) -> tuple:
        generator = torch.Generator().manual_seed(seed)
        return DEGRADATIONS[name](target, valid, rgb, size, generator)

    return sensor


def sensor_table(sets: list[Dataset], most: int) -> None:
    print(f"\n{SENSOR_HEAD}")
    pairs = [pair for dataset in sets if dataset.unit == "m" for pair in chosen(dataset, most)]
    for name in SENSORS:
        verdicts = []
        for seed, pair in enumerate(pairs):
            for shift in SHIFTS[:3]:
                report = examine(*low_map(pair, 4, "m", shift, seen_by(name, seed)))
                named = report.find("misaligned") is not None
                verdicts.append((shift, report.shift, named))
        print_sensor_row(name, verdicts)


def recording_table(sets: list[Dataset], most: int) -> None:
    print(f"\nframes together, at most {most}\n\n{SENSOR_HEAD}")
    for name in SENSORS:
        verdicts = []
        for dataset in (each for each in sets if each.unit == "m"):
            for shift in SHIFTS[:3]:
                views = []
                for seed, pair in enumerate(chosen(dataset, most)):
                    rgb, low = low_map(pair, 4, "m", shift, seen_by(name, seed))
                    views.append(View(rgb, low.depth, low.valid))
                found = common_misalignment(views)
                verdicts.append((shift, found, is_misaligned(found, 4)))
        print_sensor_row(name, verdicts)


def print_sensor_row(name: str, verdicts: list[tuple]) -> None:
    """verdicts: (true shift, found or None, whether the doctor warned) of each case."""
    away = [
        float(np.hypot(found.x - true[0], found.y - true[1]))
        for true, found, _ in verdicts
        if found is not None and found.certain
    ]
    figures = f"{np.median(away):.2f}, {max(away):.2f}" if away else "–"
    moved = [named for true, _, named in verdicts if true != (0, 0)]
    still = [named for true, _, named in verdicts if true == (0, 0)]
    print(
        f"| {name} | {len(verdicts)} | {len(away)} | {figures} | {sum(moved)} of {len(moved)} | "
        f"{sum(still)} of {len(still)} |",
        flush=True,
    )


def faulty(pair: Pair, unit: str) -> Iterator[tuple[str, str, np.ndarray, DepthMap]]:
    """(fault with its strength, code it must get, rgb, depth)."""
    rng = np.random.default_rng(0)

    def changed(depth: np.ndarray, valid: np.ndarray | None = None) -> DepthMap:
        mask = low.valid if valid is None else valid
        plane = np.where(mask, depth, 0).astype(np.float32)
        return DepthMap(np.ascontiguousarray(plane), np.ascontiguousarray(mask), "m", 1.0, "given")

    rgb, low = low_map(pair, 4, unit)
    z, median = low.depth, float(np.median(low.depth[low.valid]))
    far = float(np.percentile(z[low.valid], 85))
    near = float(np.percentile(z[low.valid], 10))
    yield "noise 3 %", "noise", rgb, changed(z * (1 + 0.03 * rng.normal(size=z.shape)))
    step = 0.02 * median
    yield "steps of 2 %", "coarse-steps", rgb, changed(np.rint(z / step) * step)
    yield "clipped far, 15 %", "saturated-far", rgb, changed(np.minimum(z, far))
    yield "clipped near, 10 %", "saturated-near", rgb, changed(np.maximum(z, near))
    yield "holes 60 %", "holes", rgb, changed(z, low.valid & (rng.random(z.shape) > 0.6))
    yield "constant", "constant", rgb, changed(np.full_like(z, median))
    yield "flattened to 0.5 %", "flat", rgb, changed(median * (1 + 0.001 * (z / median - 1)))
    yield "100 times too far", "range", rgb, changed(100 * z)
    yield "mirrored", "mirrored", rgb, changed(z[:, ::-1], low.valid[:, ::-1])
    yield "upside down", "mirrored", rgb, changed(z[::-1], low.valid[::-1])
    yield "transposed", "turned", rgb, changed(z.T, low.valid.T)
    yield (
        "aspect 4:3 as 2:1",
        "aspect",
        rgb,
        changed(z[: z.shape[0] * 2 // 3], low.valid[: z.shape[0] * 2 // 3]),
    )
    yield "flying pixels (area)", "flying-pixels", rgb, low
    yield "none (nearest)", "flying-pixels", *low_map(pair, 4, unit, how=nearest)


def fault_table(sets: list[Dataset], most: int) -> None:
    print("\n| injected fault | must be called | named | of |\n|---|---|---|---|")
    named: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    codes: dict[str, str] = {}
    for dataset in (dataset for dataset in sets if dataset.unit == "m"):
        for pair in chosen(dataset, most):
            for fault, code, rgb, low in faulty(pair, dataset.unit):
                codes[fault] = code
                cases[fault] += 1
                named[fault] += examine(rgb, low).find(code) is not None
    for fault, code in codes.items():
        print(f"| {fault} | {code} | {named[fault]} | {cases[fault]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--most", type=int, default=8, help="pairs per set")
    parser.add_argument("--sets", default="", help="names of the sets; default: all")
    parser.add_argument("--tables", default="1,2,3,4,5,6")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = [name for name in options.sets.split(",") if name]
    sets: list[Dataset] = [Shapes(8, 240, 320)] if not wanted or "shapes" in wanted else []
    for folder in sorted(options.bench.iterdir()):
        if folder.is_dir() and (not wanted or folder.name in wanted):
            sets.append(Bench(folder))
    if not sets:
        raise InputError(f"{options.bench} holds no set named {options.sets}")
    tables = (
        clean_table,
        unit_table,
        shift_table,
        fault_table,
        sensor_table,
        recording_table,
    )
    for number, table in enumerate(tables, 1):
        if str(number) in options.tables.split(","):
            table(sets, options.most)


if __name__ == "__main__":
    main()
