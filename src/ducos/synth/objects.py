"""Small things that stand on tables, shelves and floors, each built from a few forms."""

import numpy as np

from ducos.synth import plants, prints, vessels
from ducos.synth.materials import Random, lacquer, metal, paint, picture, vary, weave, wood
from ducos.synth.mesh import Floats, Mesh, join, rotation
from ducos.synth.palette import Maker, Palette
from ducos.synth.shapes import box, cushion, cylinder, ellipsoid, grid, lathe, tube


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
    width, height, thick = rng.uniform((0.11, 0.16, 0.008), (0.22, 0.3, 0.045))
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
    (2.0, vessels.vase, True),
    (2.0, vessels.bowl, False),
    (1.5, vessels.plate, False),
    (2.5, vessels.mug, True),
    (2.5, vessels.bottle, True),
    (2.0, vessels.can, True),
    (4.0, carton, True),
    (1.0, crate, True),
    (2.5, book, True),
    (2.5, book_pile, False),
    (1.5, papers, False),
    (2.0, vessels.jar_of_sticks, False),
    (1.6, plants.plant, False),
    (0.8, plants.spiky_plant, False),
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
