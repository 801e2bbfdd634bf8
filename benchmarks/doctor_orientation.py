"""How often `ducos doctor` is right about mirrored and turned maps, and by which lead.

For each pair of the sets, as it is, shrunk by 4, and as a stereo, ToF and LiDAR camera would
measure it, the map is looked at as it is, mirrored both ways and turned by 180°. Printed are false
alarms on upright maps and how many of the three flipped ones are named, and named rightly, if a
lead over "as it is" is asked for; the first column is what the doctor asks for of a single pair.
With --flip-every N only every Nth pair is also looked at flipped.

    python benchmarks/doctor_orientation.py bench:FOLDER captures:FOLDER synth:FOLDER [--most 40]
"""

import argparse

import numpy as np
import torch

from ducos.data import open_dataset
from ducos.degrade import DEGRADATIONS
from ducos.doctor.colour import LEAD, LEAST_SHARE, SURE_LEAD
from ducos.doctor.orientation import FLIPS, UPRIGHT, orientation_shares

KINDS = (("as it is", None, 1), ("area", "area", 4), ("stereo", "stereo", 4), ("tof", "tof", 4),
         ("lidar", "lidar", 4))  # fmt: skip


def verdict(shares: dict[str, float], lead: float) -> str | None:
    """What a map with these shares is called, None for nothing."""
    best = max(shares, key=lambda way: shares[way], default=UPRIGHT)
    sure = best != UPRIGHT and shares[best] - shares[UPRIGHT] > lead and shares[best] > LEAST_SHARE
    return best if sure else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--most", type=int, default=1000, help="pairs of each dataset")
    parser.add_argument("--kinds", default="as it is,area,stereo,tof,lidar")
    parser.add_argument("--flip-every", type=int, default=1, help="pairs that are flipped, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[tuple[str, str, dict[str, float]]] = []  # kind, flip, shares
    for name in options.datasets:
        dataset = open_dataset(name)
        chosen = np.linspace(0, len(dataset) - 1, min(options.most, len(dataset))).astype(int)
        for number, index in enumerate(chosen):
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
                for flip, do in FLIPS.items():
                    if flip != UPRIGHT and number % options.flip_every:
                        continue
                    flipped = (do(plane).copy() for plane in (depth, valid))
                    if valid.any():
                        rows.append((kind, flip, orientation_shares(pair.rgb, *flipped)))
                        if flip == UPRIGHT and verdict(rows[-1][2], SURE_LEAD):
                            print(f"false: {name} {index} {kind}: {rows[-1][2]}", flush=True)
    leads = (SURE_LEAD, LEAD, 0.0, 0.03, 0.09, 0.15, 0.2)
    print("| kind | pairs | " + " | ".join(f"lead {m}: false, named" for m in leads) + " |")
    print("|---|---|" + "---|" * len(leads))
    for kind in (*options.kinds.split(","), "all"):
        cells = []
        chosen = [(flip, shares) for k, flip, shares in rows if kind in (k, "all")]
        upright = [shares for flip, shares in chosen if flip == UPRIGHT]
        for lead in leads:
            false = sum(verdict(shares, lead) is not None for shares in upright)
            named = sum(flip != UPRIGHT and verdict(s, lead) == flip for flip, s in chosen)
            cells.append(f"{false}, {named} of {len(chosen) - len(upright)}")
        print(f"| {kind} | {len(upright)} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
