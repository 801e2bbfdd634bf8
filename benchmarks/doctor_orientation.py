"""How often `ducos doctor` is right about mirrored and turned maps, and by which margin.

For each pair of the sets, as it is, shrunk by 4, and as a stereo, ToF and LiDAR camera would
measure it, the agreement of edges is taken for the map as it is, mirrored both ways and turned;
then each of the four is taken for what the user handed over. Printed are false alarms
on upright maps and how many really flipped ones are named.

    python benchmarks/doctor_orientation.py bench:FOLDER captures:FOLDER synth:FOLDER [--most 40]
"""

import argparse

import numpy as np
import torch

from ducos.data import open_dataset
from ducos.degrade import DEGRADATIONS
from ducos.doctor.colour import MIRROR_MARGIN, MIRROR_STRENGTH
from ducos.doctor.edges import agreement, colour_edges, depth_edges, working_size
from ducos.doctor.shifts import strength

WAYS = {
    "upright": lambda plane: plane,
    "left to right": lambda plane: plane[:, ::-1],
    "top to bottom": lambda plane: plane[::-1],
    "by 180°": lambda plane: plane[::-1, ::-1],
}
KINDS = (("as it is", None, 1), ("area", "area", 4), ("stereo", "stereo", 4), ("tof", "tof", 4),
         ("lidar", "lidar", 4))  # fmt: skip


def strengths(rgb: np.ndarray, depth: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(4, 2): of each way, at any shift and near no shift."""
    size, reach = working_size(*rgb.shape[:2])
    colour = colour_edges(rgb, size)
    found = []
    for undo in WAYS.values():
        planes = [undo(plane).copy() for plane in (depth, valid)]
        surface = agreement(colour, depth_edges(*planes, size), reach, blocks=1).sum(0)
        found.append((strength(surface), strength(surface, reach // 3)))
    return np.array(found)


def judged(table: np.ndarray, flip: int, margin: float, least: float) -> bool:
    """Whether a map handed over flipped so is called mirrored or turned."""
    # Undoing the flip that was made is the way that leads back; flips commute.
    as_it_is = table[flip, 0]
    others = max(table[way, 1] for way in range(4) if way != flip)
    return others - as_it_is > margin and others > least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--most", type=int, default=1000, help="pairs of each dataset")
    parser.add_argument("--kinds", default="as it is,area,stereo,tof,lidar")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[tuple[str, str, np.ndarray]] = []
    for name in options.datasets:
        dataset = open_dataset(name)
        for index in np.linspace(0, len(dataset) - 1, min(options.most, len(dataset))).astype(int):
            pair = dataset[int(index)]
            for kind, model, scale in KINDS:
                if kind not in options.kinds.split(","):
                    continue
                depth, valid = pair.target, pair.valid
                if model:
                    maps = [
                        torch.tensor(np.ascontiguousarray(p))[None, None] for p in (depth, valid)
                    ]
                    size = (depth.shape[0] // scale, depth.shape[1] // scale)
                    rgb = torch.tensor(pair.rgb).permute(2, 0, 1)[None]
                    low = DEGRADATIONS[model](*maps, rgb, size)
                    depth, valid = (plane[0, 0].numpy() for plane in low[:2])
                if valid.any():
                    rows.append((name, kind, strengths(pair.rgb, depth, valid)))
    margins = sorted({MIRROR_MARGIN, 0.7, 1.0, 1.3, 1.6, 2.0})
    print("| kind | pairs | " + " | ".join(f"margin {m}: false, named" for m in margins) + " |")
    print("|---|---|" + "---|" * len(margins))
    for kind in (*options.kinds.split(","), "all"):
        tables = [table for _, k, table in rows if kind in (k, "all")]
        cells = []
        for margin in margins:
            false = sum(judged(t, 0, margin, MIRROR_STRENGTH) for t in tables)
            named = sum(judged(t, f, margin, MIRROR_STRENGTH) for t in tables for f in (1, 2, 3))
            cells.append(f"{false}, {named} of {3 * len(tables)}")
        print(f"| {kind} | {len(tables)} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
