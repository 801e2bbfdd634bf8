"""Small things that stand on tables, shelves and floors, each built from a few forms."""

from collections.abc import Callable

import numpy as np

from ducos.synth import prints
from ducos.synth.materials import (
    Material,
    Palette,
    Random,
    lacquer,
    metal,
    paint,
    picture,
    vary,
    weave,
    wood,
)
from ducos.synth.shapes import (
    Floats,
    Mesh,
    box,
    cushion,
    cylinder,
    ellipsoid,
    grid,
    join,
    lathe,
    polygons,
    rotation,
    tube,
)

Maker = Callable[[Random, Palette], Mesh]


def smooth_path(rng: Random, start: Floats, end: Floats, sway: float, count: int = 24) -> Floats:
    """(count, 3) points from start to end, swaying sideways by about `sway` metres."""
    share = np.linspace(0, 1, count)[:, None]
    path = start * (1 - share) + end * share
    for wave in (1, 2, 3):
        path = path + np.sin(np.pi * wave * share) * rng.normal(0, sway / wave, 3)
    return path.astype(np.float32)


def _hollow(radii: list[float], heights: list[float], wall: float) -> list[tuple[float, float]]:
    """A closed vessel profile: foot, smooth outside through the given points, rim, inside."""
    knots = np.linspace(0, 1, len(radii))
    fine = np.linspace(0, 1, 20)
    smooth = np.polynomial.polynomial.Polynomial.fit(knots, radii, len(radii) - 1)
    outer = np.clip(smooth(fine), min(radii), max(radii))
    height = np.interp(fine, knots, heights)
    inner = np.maximum(outer - wall, 0.001)
    inside = [(r, max(z, wall)) for r, z in zip(inner[::-1], height[::-1])]
    return [(0.0, 0.0), *zip(outer, height), *inside, (0.0, wall)]


def vase(rng: Random, palette: Palette) -> Mesh:
    height, radius = rng.uniform(0.1, 0.35), rng.uniform(0.03, 0.08)
    radii = [radius * rng.uniform(0.5, 1), radius * rng.uniform(0.9, 1.4)]
    radii += [radius * rng.uniform(0.6, 1.2), radius * rng.uniform(0.35, 0.9)]
    return lathe(_hollow(radii, list(np.linspace(0, height, 4)), 0.004), palette.small())


def bowl(rng: Random, palette: Palette) -> Mesh:
    radius, height = rng.uniform(0.06, 0.16), rng.uniform(0.04, 0.1)
    radii = [radius * 0.45, radius * 0.85, radius]
    shell = lathe(_hollow(radii, [0.0, height * 0.45, height], 0.005), palette.small(), 40)
    if rng.random() < 0.5:
        return shell
    skin = lacquer(rng)
    parts = [shell]
    for _ in range(int(rng.integers(2, 6))):
        size = radius * rng.uniform(0.55, 0.75)
        angle, out = rng.uniform(0, 6.28), radius * rng.uniform(0, 0.4)
        at = (out * np.cos(angle), out * np.sin(angle), height * rng.uniform(0.35, 0.75))
        parts.append(ellipsoid((size, size, size * rng.uniform(0.85, 1.1)), skin, at))
    return join(parts)


def plate(rng: Random, palette: Palette) -> Mesh:
    radius = rng.uniform(0.08, 0.15)
    profile = [(0, 0), (radius * 0.6, 0), (radius, 0.02), (radius, 0.024), (radius * 0.6, 0.006)]
    count = int(rng.choice([1, 1, 3, 5]))
    glaze = palette.small()
    return join([lathe([*profile, (0, 0.006)], glaze, 40).moved(z=0.007 * k) for k in range(count)])


def mug(rng: Random, palette: Palette) -> Mesh:
    radius, height = rng.uniform(0.032, 0.045), rng.uniform(0.07, 0.12)
    glaze = palette.small()
    taper = rng.uniform(0.8, 1.1)
    body = lathe(_hollow([radius * taper, radius], [0.0, height], 0.004), glaze)
    angle = np.linspace(-1.4, 1.4, 12)
    bow = height * 0.32
    path = np.stack(
        [radius * 0.9 + bow * np.cos(angle), 0 * angle, height / 2 + bow * np.sin(angle)]
    )
    return join([body, tube(path.T, 0.006, glaze)])


def bottle(rng: Random, palette: Palette) -> Mesh:
    radius, height = rng.uniform(0.025, 0.05), rng.uniform(0.15, 0.34)
    neck, shoulder = radius * rng.uniform(0.3, 0.5), height * rng.uniform(0.5, 0.7)
    outline = [(0, 0), (radius * 0.9, 0), (radius, 0.01), (radius, shoulder)]
    outline += [(radius * 0.8, shoulder + 0.02), (neck, shoulder + 0.06), (neck, height)]
    body = lathe([*outline, (0, height)], lacquer(rng))
    cap = cylinder(neck * 1.2, 0.02, lacquer(rng), (0, 0, height - 0.008))
    band = np.array([(radius + 0.0005, shoulder * 0.2), (radius + 0.0005, shoulder * 0.85)])
    label = lathe(band, picture(prints.cover(rng, 128, 320), rng))
    return join([body, cap, label])


def can(rng: Random, palette: Palette) -> Mesh:
    radius, height = rng.uniform(0.03, 0.08), rng.uniform(0.08, 0.2)
    shiny = metal(rng)
    wall = lathe(
        [(radius, 0.004), (radius, height - 0.004)], picture(prints.cover(rng, 160, 384), rng)
    )
    ends = lathe([(0, 0), (radius - 0.002, 0), (radius, 0.004)], shiny)
    lid = [(radius, height - 0.004), (radius - 0.002, height), (radius - 0.006, height - 0.004)]
    return join([wall, ends, lathe([*lid, (0, height - 0.004)], shiny)])


def carton(rng: Random, palette: Palette) -> Mesh:
    size = rng.uniform(0.04, 0.22, 3)
    if rng.random() < 0.3:
        return box(size, palette.small(), bevel=0.002)
    front = palette.cover()
    plain = paint(rng)
    return box(size, front, bevel=0.001, sides={"left": plain, "right": plain, "bottom": plain})


def crate(rng: Random, palette: Palette) -> Mesh:
    """An open box of boards."""
    w, d, h = rng.uniform(0.2, 0.45), rng.uniform(0.15, 0.35), rng.uniform(0.1, 0.28)
    board, t = palette.wood(), 0.012
    parts = [box((w, d, t), board)]
    for z in np.linspace(t, h - 0.06, int(rng.integers(1, 4))):
        tall = min(0.06, h - t)
        parts += [box((w, t, tall), board, (0, s * (d - t) / 2, z), 0.001) for s in (-1, 1)]
        parts += [box((t, d - 2 * t, tall), board, (s * (w - t) / 2, 0, z), 0.001) for s in (-1, 1)]
    return join(parts)


def book(rng: Random, palette: Palette) -> Mesh:
    """A closed book lying on its back cover, spine to the left."""
    width, height, thick = (
        rng.uniform(0.11, 0.22),
        rng.uniform(0.16, 0.3),
        rng.uniform(0.008, 0.045),
    )
    front, back, leaves = palette.cover(), palette.spine(), paint(rng, (0.72, 0.68, 0.58), 0.05)
    board = 0.002
    block = box((width - 0.008, height - 0.008, thick - 2 * board), leaves, (0, 0, board))
    covers = [box((width, height, board), front, (0, 0, z)) for z in (0, thick - board)]
    spine = box((board, height, thick), back, (-width / 2, 0, 0), sides={"left": back})
    return join([block, *covers, spine])


def book_pile(rng: Random, palette: Palette) -> Mesh:
    parts, z = [], 0.0
    for _ in range(int(rng.integers(2, 7))):
        volume = book(rng, palette).turned(rng.normal(0, 0.25))
        parts.append(volume.moved(rng.normal(0, 0.01), rng.normal(0, 0.01), z))
        z += float(volume.size[2])
    return join(parts)


def papers(rng: Random, palette: Palette) -> Mesh:
    sheets = []
    for k in range(int(rng.integers(1, 5))):
        printed = picture(prints.page(rng), rng)
        sheet = box((0.21, 0.297, 0.0006), printed).turned(rng.normal(0, 0.3))
        sheets.append(sheet.moved(rng.normal(0, 0.03), rng.normal(0, 0.03), 0.0007 * k))
    return join(sheets)


def jar_of_sticks(rng: Random, palette: Palette) -> Mesh:
    """Brushes, pencils or knitting needles in a pot: thin things at many angles."""
    radius, height = rng.uniform(0.03, 0.06), rng.uniform(0.08, 0.16)
    parts = [lathe(_hollow([radius, radius * 1.05], [0.0, height], 0.004), palette.small())]
    for _ in range(int(rng.integers(4, 13))):
        angle, lean, long = rng.uniform(0, 6.28), rng.uniform(0.05, 0.3), rng.uniform(0.15, 0.36)
        direction = np.array([np.cos(angle) * lean, np.sin(angle) * lean, 1.0])
        direction /= np.linalg.norm(direction)
        foot = np.array([-np.cos(angle), -np.sin(angle), 0]) * radius * 0.4 + [0, 0, 0.006]
        path = foot + direction * np.linspace(0, long, 4)[:, None]
        parts.append(tube(path, rng.uniform(0.0015, 0.005), lacquer(rng)))
    return join(parts)


def _leaves(rng: Random, stems: list[Floats], length: float, green: Material) -> Mesh:
    """Bent pointed leaves along the outer half of each stem."""
    rows = np.array([(0, 0), (0.35, 0.5), (0.7, 0.4), (1, 0)])  # (along, half width)
    points, faces = [], []
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
    pot = lathe(_hollow([radius * 0.75, radius], [0.0, depth], 0.008), palette.small())
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
    pot = lathe(_hollow([radius * 0.8, radius], [0.0, radius * 1.5], 0.006), palette.small())
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


def wire_rack(rng: Random, palette: Palette) -> Mesh:
    w, d, h = rng.uniform(0.2, 0.45), rng.uniform(0.12, 0.28), rng.uniform(0.1, 0.32)
    wire, thick = palette.metal(), rng.uniform(0.0015, 0.0035)
    parts = []
    for x in np.linspace(-w / 2, w / 2, int(rng.integers(5, 14))):
        hoop = [(x, -d / 2, h), (x, -d / 2, thick), (x, d / 2, thick), (x, d / 2, h)]
        parts.append(tube(hoop, thick, wire))
    for z in (0.02, h):
        corners = [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]
        ring = [(sx * w / 2, sy * d / 2, z) for sx, sy in corners]
        parts.append(tube(ring, thick * 1.3, wire))
    return join(parts)


def basket(rng: Random, palette: Palette) -> Mesh:
    """Wicker: rods wound around a ring of staves."""
    radius, height = rng.uniform(0.1, 0.2), rng.uniform(0.1, 0.25)
    cane = wood(rng)
    angle = np.linspace(0, 2 * np.pi, 49)
    parts = []
    for k, z in enumerate(np.arange(0.006, height, 0.012)):
        wobble = radius * (0.85 + 0.15 * z / height) + 0.004 * np.sin(12 * angle + np.pi * (k % 2))
        ring = np.stack([wobble * np.cos(angle), wobble * np.sin(angle), np.full(49, z)], 1)
        parts.append(tube(ring, 0.006, cane, 6))
    floor = cylinder(radius * 0.85, 0.006, cane)
    return join([floor, *parts])


def tower(rng: Random, palette: Palette) -> Mesh:
    """Toy blocks piled up."""
    parts, z = [], 0.0
    for _ in range(int(rng.integers(1, 5))):
        side = rng.uniform(0.03, 0.06)
        shape = int(rng.integers(3))
        colour = lacquer(rng)
        size = (side * rng.uniform(0.8, 2), side, side)
        block = box(size, colour, bevel=0.002) if shape else cylinder(side / 2, side, colour)
        parts.append(block.turned(rng.uniform(0, 3)).moved(rng.normal(0, 0.004), 0, z))
        z += side
    return join(parts)


def ball(rng: Random, palette: Palette) -> Mesh:
    size = rng.uniform(0.04, 0.2)
    return ellipsoid((size, size, size), palette.small())


def figure(rng: Random, palette: Palette) -> Mesh:
    """A toy animal: a padded body with limbs, head and ears."""
    size = rng.uniform(0.08, 0.22)
    fur = weave(rng) if rng.random() < 0.6 else lacquer(rng)
    parts = [ellipsoid((size * 0.6, size * 0.55, size * 0.7), fur, (0, 0, 0.0))]
    head = rng.uniform(0.35, 0.5) * size
    parts.append(ellipsoid((head, head, head), fur, (0, -0.05 * size, size * 0.55)))
    for side in (-1, 1):
        limb, ear = (size * 0.2, size * 0.45, size * 0.2), head * rng.uniform(0.25, 0.5)
        parts.append(ellipsoid(limb, fur, (side * size * 0.22, -size * 0.28, 0)))
        parts.append(
            ellipsoid((ear, ear * 0.4, ear), fur, (side * head * 0.4, 0, size * 0.52 + head))
        )
        arm = ellipsoid((size * 0.16, size * 0.16, size * 0.4), fur).turned(side * 0.7, "y")
        parts.append(arm.moved(side * size * 0.3, -0.05 * size, size * 0.25))
        eye = (side * head * 0.2, -0.05 * size - head * 0.45, size * 0.55 + head * 0.6)
        parts.append(ellipsoid((head * 0.1,) * 3, lacquer(rng, (0.01, 0.01, 0.01)), eye))
    return join(parts)


def roll(rng: Random, palette: Palette) -> Mesh:
    """Tape, ribbon or kitchen paper."""
    radius, height = rng.uniform(0.03, 0.07), rng.uniform(0.015, 0.24)
    hole = radius * rng.uniform(0.4, 0.75)
    ring = [(hole, 0), (radius, 0), (radius, height), (hole, height), (hole, 0)]
    return lathe(ring, palette.small(), 40)


def table_lamp(rng: Random, palette: Palette) -> Mesh:
    height, shade = rng.uniform(0.25, 0.5), rng.uniform(0.08, 0.17)
    stand = palette.metal()
    top = shade * rng.uniform(0.5, 0.95)
    foot = lathe([(0, 0), (shade * 0.6, 0), (shade * 0.55, 0.015), (0.008, 0.03)], stand)
    pole = cylinder(0.008, height * 0.75, stand)
    cloth = paint(rng, vary(rng, (0.8, 0.75, 0.6), 0.3), 0.0)
    cone = lathe(
        [
            (shade, height * 0.6),
            (top, height),
            (top - 0.002, height),
            (shade - 0.002, height * 0.6),
        ],
        cloth,
    )
    return join([foot, pole, cone])


def monitor(rng: Random, palette: Palette) -> Mesh:
    w = rng.uniform(0.4, 0.7)
    h, lift = w * 9 / 16, rng.uniform(0.08, 0.15)
    case = lacquer(rng, vary(rng, (0.03, 0.03, 0.035), 0.5))
    glow = picture(prints.screen(rng), rng, rng.uniform(0.3, 1.5) if rng.random() < 0.7 else 0.0)
    body = box((w, 0.03, h), case, (0, 0, lift), 0.004)
    panel = box((w - 0.02, 0.002, h - 0.02), case, (0, -0.016, lift + 0.01), sides={"front": glow})
    stand = box((0.05, 0.02, lift + 0.1), case, (0, 0.025, 0.0))
    return join([body, panel, stand, box((w * 0.4, 0.18, 0.012), case, (0, 0.02, 0), 0.003)])


def laptop(rng: Random, palette: Palette) -> Mesh:
    w, d = rng.uniform(0.28, 0.38), rng.uniform(0.2, 0.26)
    shell = metal(rng) if rng.random() < 0.5 else lacquer(rng)
    glow = picture(prints.screen(rng), rng, rng.uniform(0.3, 1.5))
    lid = box((w, 0.008, d), shell, sides={"front": glow}).turned(-rng.uniform(0.1, 0.5), "x")
    return join(
        [
            box((w, d, 0.016), shell, bevel=0.003),
            _keys(rng, w - 0.04, d * 0.5),
            lid.moved(0, d / 2, 0.014),
        ]
    )


def _keys(rng: Random, width: float, depth: float) -> Mesh:
    """Rows of keys, 16 mm above the base."""
    dark = lacquer(rng, vary(rng, (0.04, 0.04, 0.04), 0.6) if rng.random() < 0.7 else None)
    rows, columns = 5, 14
    keys = []
    for row in range(rows):
        for column in range(columns):
            at = ((column + 0.5) / columns * width - width / 2, depth * (row / rows - 0.35), 0.016)
            keys.append(box((width / columns * 0.85, depth / rows * 0.85, 0.003), dark, at))
    return join(keys)


def keyboard(rng: Random, palette: Palette) -> Mesh:
    w, d = rng.uniform(0.3, 0.45), rng.uniform(0.12, 0.16)
    base = box((w, d, 0.016), lacquer(rng), bevel=0.004)
    return join([base, _keys(rng, w - 0.02, d * 0.9).moved(0, -d * 0.08, 0)])


def frame(rng: Random, palette: Palette) -> Mesh:
    """A photograph standing on its foot, leaning back."""
    w, h = rng.uniform(0.1, 0.25), rng.uniform(0.12, 0.3)
    edge = palette.furniture()
    parts = [box((w, 0.004, h), edge, sides={"front": palette.poster()})]
    parts += [
        box((w + 0.03, 0.014, 0.018), edge, (0, -0.003, z), 0.002) for z in (-0.006, h - 0.012)
    ]
    parts += [box((0.018, 0.014, h), edge, (s * w / 2, -0.003, 0), 0.002) for s in (-1, 1)]
    leaning = join(parts).turned(-0.22, "x").moved(z=0.008)
    foot = box((0.04, 0.004, h * 0.75), edge).turned(0.3, "x").moved(0, h * 0.33, 0.002)
    return join([leaning, foot])


def pillow(rng: Random, palette: Palette) -> Mesh:
    w = rng.uniform(0.3, 0.5)
    return cushion(
        (w, w * rng.uniform(0.7, 1), rng.uniform(0.1, 0.16)), palette.textile(), soft=0.55
    )


def cloth(rng: Random, palette: Palette, width: float = 0.5, depth: float = 0.4) -> Mesh:
    """A crumpled cloth lying flat."""
    x, y = np.meshgrid(
        np.linspace(-width / 2, width / 2, 48), np.linspace(-depth / 2, depth / 2, 48)
    )
    z = np.zeros_like(x)
    for _ in range(9):
        kx, ky = rng.normal(0, 10, 2) / max(width, depth)
        z += rng.normal(0, 0.003) * np.sin(x * kx + y * ky + rng.uniform(0, 6))
    return grid(np.stack([x, y, z - z.min() + 0.002], -1), palette.cloth())


def cable(rng: Random, path: Floats) -> Mesh:
    """A flexible lead along a path (K, 3)."""
    dark = rng.random() < 0.6
    skin = lacquer(rng, vary(rng, (0.03, 0.03, 0.03), 0.8) if dark else None)
    return tube(path, rng.uniform(0.0015, 0.005), skin)


def tilted(mesh: Mesh, angle: float, axis: str = "x") -> Mesh:
    """The mesh laid over by an angle and set back on its base."""
    laid = mesh.transformed(rotation(angle, axis))
    low, high = laid.bounds
    middle = (low + high) / 2
    return laid.moved(-float(middle[0]), -float(middle[1]), -float(low[2]))


# What clutter is made of: how often each is drawn, and whether it may also lie on its side.
SMALL_OBJECTS: tuple[tuple[float, Maker, bool], ...] = (
    (2.0, vase, True),
    (2.0, bowl, False),
    (1.5, plate, False),
    (2.5, mug, True),
    (2.5, bottle, True),
    (2.0, can, True),
    (4.0, carton, True),
    (1.0, crate, True),
    (2.5, book, True),
    (2.5, book_pile, False),
    (1.5, papers, False),
    (2.0, jar_of_sticks, False),
    (1.6, plant, False),
    (0.8, spiky_plant, False),
    (1.0, wire_rack, True),
    (1.0, basket, False),
    (1.5, tower, False),
    (1.5, ball, False),
    (2.0, figure, True),
    (1.5, roll, True),
    (1.2, table_lamp, False),
    (0.7, laptop, False),
    (0.7, keyboard, False),
    (1.3, frame, False),
    (0.7, pillow, False),
)
LYING_SHARE = 0.2


def small_object(rng: Random, palette: Palette) -> Mesh:
    weights = np.array([weight for weight, _, _ in SMALL_OBJECTS])
    index = int(rng.choice(len(weights), p=weights / weights.sum()))
    _, make, may_lie = SMALL_OBJECTS[index]
    mesh = make(rng, palette)
    if may_lie and rng.random() < LYING_SHARE:
        return tilted(mesh, float(rng.choice([-1, 1])) * np.pi / 2)
    return mesh
