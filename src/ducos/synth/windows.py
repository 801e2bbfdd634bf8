"""Windows: frame, daylight, blinds or curtains, and what is outside."""

from dataclasses import replace

import numpy as np

from ducos.synth import plants
from ducos.synth.lighting import kelvin, shining
from ducos.synth.materials import Material, Random, bricks, lacquer, paint, plaster
from ducos.synth.mesh import join
from ducos.synth.scene import Light, Scene
from ducos.synth.shapes import box, grid, tube
from ducos.synth.supply import Supply
from ducos.synth.walls import Opening, Wall, upright


def build_window(
    scene: Scene, rng: Random, supply: Supply, wall: Wall, height: float, trim: Material
) -> Opening:
    """Cut a window into the wall; returns the hole."""
    w = rng.uniform(0.8, min(2.2, wall.length - 0.8))
    low = rng.uniform(0.5, 1.0) if rng.random() < 0.85 else 0.12
    h = min(rng.uniform(0.9, 1.5) if low > 0.4 else 2.0, height - low - 0.2)
    left = rng.uniform(0.3, wall.length - w - 0.3)
    hole = Opening(left, left + w, low, low + h)
    wall.taken.append(hole)
    cx, cy, deep = left + w / 2, low + h / 2, rng.uniform(0.1, 0.25)
    parts = []
    for s in (-1, 1):  # reveal, then frame
        parts.append(upright((0.01, h, deep), trim, (cx + s * (w / 2 + 0.005), cy, -deep / 2)))
        parts.append(
            upright((w + 0.02, 0.01, deep), trim, (cx, cy + s * (h / 2 + 0.005), -deep / 2))
        )
    for offset in np.linspace(-w / 2, w / 2, int(rng.integers(2, 5))):
        parts.append(upright((0.05, h, 0.06), trim, (cx + offset, cy, -deep), 0.006))
    for offset in np.linspace(-h / 2, h / 2, int(rng.integers(2, 4))):
        parts.append(upright((w, 0.05, 0.06), trim, (cx, cy + offset, -deep), 0.006))
    parts.append(upright((w + 0.12, 0.03, 0.16), trim, (cx, low - 0.015, 0.06), 0.006))
    scene.add("window", join(parts), wall.pose)
    daylight = shining((*wall.normal, 0.0), tuple((wall.pose @ [cx, cy, -0.12, 1])[:3]))
    power = rng.uniform(20, 140) * w * h
    scene.lights.append(Light("AREA", daylight, power, kelvin(rng.uniform(5000, 9000)), (w, h)))
    draw = rng.random()
    if draw < 0.3:
        _blinds(scene, rng, wall, hole, trim)
    elif draw < 0.65:
        _curtains(scene, rng, supply, wall, hole, height)
    _outside(scene, rng, wall, hole, supply)
    return hole


def _blinds(scene: Scene, rng: Random, wall: Wall, hole: Opening, trim: Material) -> None:
    slat = trim if rng.random() < 0.6 else lacquer(rng)
    w, h = hole.right - hole.left, hole.high - hole.low
    middle, tilt = (hole.left + hole.right) / 2, rng.uniform(0.2, 0.9)
    one = box((w - 0.01, 0.002, 0.035), slat, (0, 0, -0.0175)).turned(tilt, "x")
    count = int(h / 0.05 * rng.uniform(0.3, 1))
    slats = [one.moved(middle, hole.high - 0.03 - 0.05 * k, 0.03) for k in range(max(count, 1))]
    cords = []
    for x in (middle - 0.4 * w, middle + 0.4 * w):
        ends = [(x, hole.high, 0.03), (x, hole.high - 0.05 * count, 0.03)]
        cords.append(tube(ends, 0.0015, slat))
    rail = upright((w, 0.04, 0.05), slat, (middle, hole.high - 0.01, 0.03))
    scene.add("blinds", join([rail, *slats, *cords]), wall.pose)


def _curtains(
    scene: Scene, rng: Random, supply: Supply, wall: Wall, hole: Opening, height: float
) -> None:
    fabric = supply.palette.cloth()
    top = min(hole.high + rng.uniform(0.1, 0.25), height - 0.05)
    low = 0.03 if rng.random() < 0.4 else max(0.05, hole.low - rng.uniform(0.1, 0.3))
    for side, edge in ((-1, hole.left), (1, hole.right)):
        wide = rng.uniform(0.2, 0.5)
        share = np.linspace(0, 1, 90)
        folds = rng.uniform(4, 9)
        up = np.linspace(0, 1, 8)[:, None]
        x = edge - side * (share * wide - 0.08) * (1 - 0.15 * np.sin(np.pi * up))
        out = 0.09 + (0.035 + 0.01 * up) * np.sin(2 * np.pi * folds * share + 0.6 * up)
        sheet = np.stack([x, low + (top - low) * up + 0 * share, out], -1)
        scene.add("curtain", grid(sheet, fabric), wall.pose)
    rod = tube(
        [(hole.left - 0.25, top + 0.01, 0.09), (hole.right + 0.25, top + 0.01, 0.09)],
        0.012,
        supply.palette.metal(),
    )
    scene.add("rod", rod, wall.pose)


def _outside(scene: Scene, rng: Random, wall: Wall, hole: Opening, supply: Supply) -> None:
    """A house across the way, ground and a tree: real geometry, so that its depth is true.

    Outdoor materials glow by themselves, which stands for daylight at no cost in light paths.
    """
    glow = rng.uniform(0.8, 3.0)

    def lit(material: Material, share: float = 1.0) -> Material:
        return replace(material, emission=glow * share, bump=0.0)

    away, sink = rng.uniform(3.0, 8.0), rng.uniform(0.3, 5.0)
    middle, span = (hole.left + hole.right) / 2, 1.6 * away + 3.0
    facade = lit(bricks(rng) if rng.random() < 0.5 else plaster(rng))
    glass, border = lit(lacquer(rng, (0.03, 0.04, 0.06)), 0.5), lit(paint(rng))
    tall = sink + rng.uniform(1.5, 8.0)  # lower houses leave some sky, which has no depth
    front = upright((2 * span, tall, 0.2), facade, (middle, tall / 2 - sink, -away - 0.1))
    parts = [front]
    pitch = rng.uniform(1.6, 2.8)
    for x in np.arange(-span + 1, span - 1, pitch):
        for y in np.arange(1.0 - sink, tall - sink - 1.6, 2.8):
            at = (middle + float(x), float(y) + 0.7, -away + 0.02)
            parts.append(upright((1.0, 1.4, 0.04), glass, at))
            parts.append(upright((1.25, 0.1, 0.2), border, (at[0], at[1] - 0.75, -away + 0.1)))
            parts.append(upright((0.06, 1.4, 0.07), border, at))
    lawn = Material("carpet", ((0.05, 0.12, 0.02), (0.12, 0.2, 0.05)), 0.05, 1.0)
    ground = lit(lawn if rng.random() < 0.5 else paint(rng, (0.25, 0.25, 0.25)), 0.8)
    parts.append(upright((2 * span, 0.05, away + 0.5), ground, (middle, -sink, -away / 2 - 0.25)))
    scene.add("outside", join(parts), wall.pose, outdoor=True)
    if rng.random() < 0.7:
        tree = plants.plant(rng, supply.palette, rng.uniform(0.8, 1.3))
        size = rng.uniform(1.5, 3.0)
        shaded = replace(tree, materials=tuple(lit(m, 0.7) for m in tree.materials))
        pose = wall.stand(
            middle + rng.uniform(-1.5, 1.5), -rng.uniform(0.35, 0.7) * away, -sink * 0.6
        )
        scene.add("tree", shaded.transformed(np.diag([size] * 3)), pose, outdoor=True)
