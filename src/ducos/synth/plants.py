"""Potted plants: the thin, irregular silhouettes that depth sensors lose first."""

import numpy as np

from ducos.synth.materials import Material, Random, paint, vary
from ducos.synth.mesh import Floats, Mesh, join, polygons
from ducos.synth.palette import Palette
from ducos.synth.shapes import cylinder, grid, lathe, smooth_path, tube
from ducos.synth.vessels import hollow


def _leaves(rng: Random, stems: list[Floats], length: float, green: Material) -> Mesh:
    """Bent pointed leaves along the outer half of each stem."""
    rows = np.array([(0, 0), (0.35, 0.5), (0.7, 0.4), (1, 0)])  # (along, half width)
    points: list[Floats] = []
    faces: list[tuple[int, int, int, int]] = []
    for stem in stems:
        for anchor in stem[len(stem) // 3 :]:
            for _ in range(int(rng.integers(0, 3))):
                out = rng.normal(0, 1, 3)
                out[2] = abs(out[2]) * 0.4
                out /= np.linalg.norm(out)
                side = np.cross(out, [0, 0, 1.0]) + rng.normal(0, 0.3, 3)
                side /= np.linalg.norm(side) + 1e-9
                long = length * rng.uniform(0.5, 1.2)
                wide = long * rng.uniform(0.3, 0.7)
                droop = -np.array([0, 0, 1]) * long * rng.uniform(0, 0.4)
                start = len(points)
                for along, half in rows:
                    middle = anchor + out * along * long + droop * along**2
                    fold = np.array([0, 0, half * wide * 0.3])
                    points += [
                        middle + side * half * wide + fold,
                        middle,
                        middle - side * half * wide + fold,
                    ]
                for row in range(3):
                    first = start + 3 * row
                    faces += [(first, first + 1, first + 4, first + 3)]
                    faces += [(first + 1, first + 2, first + 5, first + 4)]
    return (
        polygons(points, faces, green) if faces else polygons(np.eye(3) * 1e-3, [(0, 1, 2)], green)
    )


def plant(rng: Random, palette: Palette, tall: float | None = None) -> Mesh:
    tall = tall or rng.uniform(0.15, 0.5)
    radius = rng.uniform(0.05, 0.12) * min(1.0, tall + 0.4)
    depth = radius * rng.uniform(1.1, 1.7)
    pot = lathe(hollow([radius * 0.75, radius], [0.0, depth], 0.008), palette.small())
    soil = cylinder(radius * 0.85, 0.01, paint(rng, (0.05, 0.03, 0.02), 0.0), (0, 0, depth * 0.8))
    hue = (rng.uniform(0.03, 0.15), rng.uniform(0.12, 0.3), rng.uniform(0.01, 0.07))
    bark = paint(rng, (rng.uniform(0.06, 0.2), rng.uniform(0.07, 0.18), 0.03), 0.2)
    base = np.array([0, 0, depth * 0.8])
    stems = []
    for _ in range(int(rng.integers(4, 14))):
        tip = np.array([*rng.normal(0, 0.3 * tall, 2), depth + tall * rng.uniform(0.4, 1)])
        stems.append(smooth_path(rng, base, tip, 0.05 * tall, 12))
    thin = np.linspace(rng.uniform(0.003, 0.007), 0.0012, 12).tolist()
    branches = [tube(stem, thin, bark, 6) for stem in stems]
    greens = Material("mottled", (hue, vary(rng, hue, 0.5)), 0.03, rng.uniform(0.3, 0.6))
    leaves = _leaves(rng, stems, rng.uniform(0.04, 0.12) * (0.6 + tall), greens)
    return join([pot, soil, *branches, leaves])


def spiky_plant(rng: Random, palette: Palette) -> Mesh:
    """Long arching blades from one point, as a spider plant or aloe."""
    radius, tall = rng.uniform(0.04, 0.08), rng.uniform(0.12, 0.4)
    pot = lathe(hollow([radius * 0.8, radius], [0.0, radius * 1.5], 0.006), palette.small())
    hue = (rng.uniform(0.04, 0.14), rng.uniform(0.14, 0.3), rng.uniform(0.03, 0.08))
    green = Material("stripes", (hue, vary(rng, hue, 0.6)), 0.012, 0.45, turn=np.pi / 2)
    parts = [pot]
    for _ in range(int(rng.integers(12, 30))):
        angle, reach = rng.uniform(0, 6.28), rng.uniform(0.3, 1.1)
        share = np.linspace(0, 1, 9)
        out = radius * 0.3 + reach * tall * share**1.4
        up = radius * 1.2 + tall * (1.4 * share - (0.4 + reach * 0.6) * share**2)
        half = rng.uniform(0.004, 0.012) * (1 - share**3) + 0.0005
        rows = np.stack([np.stack([out, s * half, up - abs(s) * -0.004], 1) for s in (-1, 0, 1)], 1)
        parts.append(grid(rows, green).turned(angle))
    return join(parts)
