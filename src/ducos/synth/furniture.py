"""Tables, cases, shelves and lamps from boards, rods and profiles.

Fronts face -y, backs go to the wall.
"""

import numpy as np

from ducos.synth import prints
from ducos.synth.materials import Random, lacquer, metal, paint, picture, vary
from ducos.synth.mesh import Mesh, join
from ducos.synth.objects import small_object
from ducos.synth.palette import Palette
from ducos.synth.shapes import box, cylinder, grid, lathe, tube


def legs(rng: Random, palette: Palette, w: float, d: float, h: float) -> list[Mesh]:
    """Four square, round or splayed legs under a w x d top."""
    style = int(rng.integers(3))
    stuff = palette.metal() if rng.random() < 0.3 else palette.furniture()
    thick = rng.uniform(0.025, 0.07)
    inset = thick / 2 + rng.uniform(0.0, 0.06)
    parts = []
    for sx in (-1, 1):
        for sy in (-1, 1):
            x, y = sx * (w / 2 - inset), sy * (d / 2 - inset)
            if style == 0:
                parts.append(box((thick, thick, h), stuff, (x, y, 0), 0.003))
            elif style == 1:
                parts.append(cylinder(thick * 0.45, h, stuff, (x, y, 0)))
            else:
                path = np.array([(x * 0.88, y * 0.85, h), (x, y, 0.0)])
                parts.append(tube(path, [thick * 0.5, thick * 0.28], stuff, 12))
    return parts


def table(
    rng: Random,
    palette: Palette,
    width: tuple[float, float] = (0.8, 1.8),
    depth: tuple[float, float] = (0.6, 1.0),
    height: tuple[float, float] = (0.68, 0.8),
) -> Mesh:
    """A rectangular or round table; ranges in metres."""
    w, d, h = rng.uniform(*width), rng.uniform(*depth), rng.uniform(*height)
    top, thick = palette.furniture(), rng.uniform(0.018, 0.05)
    if rng.random() < 0.15:
        plate = cylinder(d / 2, thick, top, (0, 0, h - thick))
        post = cylinder(0.04, h - thick, palette.metal())
        foot = lathe([(0, 0), (d * 0.3, 0), (d * 0.28, 0.02), (0.04, 0.05)], palette.metal())
        return join([plate, post, foot])
    parts = [box((w, d, thick), top, (0, 0, h - thick), 0.004)]
    parts += legs(rng, palette, w, d, h - thick)
    if rng.random() < 0.6:  # apron
        rail, drop = palette.wood(), rng.uniform(0.05, 0.1)
        parts += [
            box((w - 0.14, 0.02, drop), rail, (0, s * (d / 2 - 0.06), h - thick - drop))
            for s in (-1, 1)
        ]
        parts += [
            box((0.02, d - 0.14, drop), rail, (s * (w / 2 - 0.06), 0, h - thick - drop))
            for s in (-1, 1)
        ]
    return join(parts)


def coffee_table(rng: Random, palette: Palette) -> Mesh:
    return table(rng, palette, (0.6, 1.2), (0.4, 0.7), (0.35, 0.48))


def desk(rng: Random, palette: Palette) -> Mesh:
    """A table with a drawer unit under one end."""
    w, d, h = rng.uniform(1.0, 1.6), rng.uniform(0.55, 0.75), rng.uniform(0.7, 0.77)
    body, side = palette.furniture(), float(rng.choice([-1, 1]))
    top = box((w, d, 0.03), body, (0, 0, h - 0.03), 0.003)
    unit = _drawers(rng, palette, 0.4, d - 0.06, h - 0.03, 1, 3)
    panel = box((0.03, d - 0.04, h - 0.03), body, (-side * (w / 2 - 0.03), 0, 0))
    return join([top, unit.moved(side * (w / 2 - 0.21)), panel])


def _handle(rng: Random, style: int, palette: Palette, width: float) -> Mesh:
    """A pull for a front at y = 0, centred on z = 0."""
    stuff = palette.metals[0]
    if style == 0:
        return cylinder(0.012, 0.022, stuff).turned(np.pi / 2, "x")
    bar = width * 0.4 if style == 1 else 0.1
    path = [(-bar / 2, 0, 0), (-bar / 2, -0.028, 0), (bar / 2, -0.028, 0), (bar / 2, 0, 0)]
    return tube(path, 0.005, stuff)


def _drawers(
    rng: Random, palette: Palette, w: float, d: float, h: float, columns: int, rows: int
) -> Mesh:
    """A case whose front is divided into drawers or doors."""
    body = palette.furniture()
    front = body if rng.random() < 0.6 else palette.furniture()
    plinth = rng.uniform(0.0, 0.08)
    parts = [box((w, d - 0.02, h - plinth), body, (0, 0.01, plinth), 0.003)]
    if plinth > 0.02:
        parts.append(box((w - 0.04, d - 0.08, plinth), body, (0, 0.02, 0)))
    style, gap = int(rng.integers(3)), 0.004
    wide, tall = w / columns, (h - plinth - 0.02) / rows
    for column in range(columns):
        for row in range(rows):
            x, z = (column + 0.5) * wide - w / 2, plinth + 0.01 + row * tall
            size = (wide - 2 * gap, 0.02, tall - 2 * gap)
            parts.append(box(size, front, (x, -d / 2 + 0.008, z + gap), 0.003))
            pull = _handle(rng, style, palette, wide)
            upright = tall > wide * 1.3
            pull = pull.turned(np.pi / 2, "y") if upright else pull
            shift = (0.5 - column % 2) * (wide - 0.1) if upright else 0.0
            parts.append(pull.moved(x + shift, -d / 2 - 0.002, z + tall / 2))
    return join(parts)


def chest(rng: Random, palette: Palette) -> Mesh:
    columns, rows = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    w, h = rng.uniform(0.35, 0.5) * columns + 0.1, rng.uniform(0.45, 1.1)
    return _drawers(rng, palette, w, rng.uniform(0.35, 0.5), h, columns, rows)


def nightstand(rng: Random, palette: Palette) -> Mesh:
    size = rng.uniform(0.35, 0.5)
    return _drawers(
        rng, palette, size, size * 0.9, rng.uniform(0.4, 0.6), 1, int(rng.integers(1, 3))
    )


def wardrobe(rng: Random, palette: Palette) -> Mesh:
    columns = int(rng.integers(2, 5))
    w, h = columns * rng.uniform(0.38, 0.5), rng.uniform(1.7, 2.2)
    return _drawers(rng, palette, w, rng.uniform(0.5, 0.62), h, columns, 1)


def counter(rng: Random, palette: Palette) -> Mesh:
    """Kitchen base units under a worktop, wall units above."""
    columns = int(rng.integers(2, 5))
    w, d, h = columns * rng.uniform(0.4, 0.6), 0.6, rng.uniform(0.85, 0.92)
    parts = [_drawers(rng, palette, w, d - 0.03, h - 0.04, columns, 1)]
    parts.append(box((w + 0.02, d, 0.04), palette.furniture(), (0, 0, h - 0.04), 0.003))
    if rng.random() < 0.6:
        upper = _drawers(rng, palette, w, 0.34, rng.uniform(0.5, 0.75), columns, 1)
        parts.append(upper.moved(0, d / 2 - 0.17, 1.4))
    if rng.random() < 0.6:
        arc = np.linspace(0, np.pi, 10)
        path = np.stack([0 * arc, -0.09 + 0.09 * np.cos(arc), h + 0.22 + 0.09 * np.sin(arc)], 1)
        tap = np.concatenate([[(0, 0, h)], path, [(0, -0.18, h + 0.18)]])
        parts.append(
            tube(tap, 0.012, metal(rng), 12).moved(rng.uniform(-0.3, 0.3) * w, d * 0.35, 0)
        )
    return join(parts)


def bookcase(rng: Random, palette: Palette) -> Mesh:
    """Open shelves filled with books, boxes and ornaments."""
    w, h, d = rng.uniform(0.5, 1.4), rng.uniform(0.8, 2.2), rng.uniform(0.24, 0.36)
    board, t = palette.furniture(), rng.uniform(0.015, 0.03)
    parts = [box((t, d, h), board, (s * (w - t) / 2, 0, 0), 0.001) for s in (-1, 1)]
    if rng.random() < 0.7:
        parts.append(box((w, 0.008, h), board, (0, d / 2 - 0.004, 0)))
    levels = np.linspace(0.0, h - t, max(3, int(h / rng.uniform(0.28, 0.42)) + 1))
    for level, z in enumerate(levels):
        parts.append(box((w - 2 * t, d - 0.01, t), board, (0, 0, z), 0.001))
        if level + 1 < len(levels) and rng.random() < 0.92:
            space = float(levels[level + 1] - z) - t
            parts += _shelf_load(rng, palette, w - 2 * t, d, space, float(z) + t)
    return join(parts)


def _shelf_load(
    rng: Random, palette: Palette, w: float, d: float, space: float, z: float
) -> list[Mesh]:
    """What stands on one shelf board, from left to right."""
    parts: list[Mesh] = []
    x = -w / 2 + 0.005
    leaves = paint(rng, (0.72, 0.68, 0.58), 0.05)
    while x < w / 2 - 0.06:
        draw = rng.random()
        if draw < 0.8:  # a run of upright books
            series = rng.random() < 0.25
            spine, tall = palette.spine(), rng.uniform(0.6, 0.92) * space
            for _ in range(int(rng.integers(3, 14))):
                if not series:
                    spine, tall = palette.spine(), rng.uniform(0.5, 0.95) * space
                thick = rng.uniform(0.012, 0.045)
                tall, deep = min(tall, 0.33), rng.uniform(0.55, 0.85) * d
                if x + thick > w / 2:
                    break
                y = -d / 2 + deep / 2 + rng.uniform(0.01, 0.05)
                sides = {"top": leaves, "back": leaves}
                parts.append(box((thick, deep, tall), spine, (x + thick / 2, y, z), 0.001, sides))
                x += thick + 0.0008
            x += rng.uniform(0, 0.1) if rng.random() < 0.4 else 0.0
        elif draw < 0.9:  # an ornament, if it fits
            thing = small_object(rng, palette)
            size = thing.size
            if size[2] < space - 0.01 and size[1] < d and x + size[0] < w / 2:
                low = thing.bounds[0]
                parts.append(thing.moved(x - float(low[0]) + 0.01, 0.0, z - float(low[2])))
                x += float(size[0]) + 0.03
            else:
                x += 0.05
        else:
            x += rng.uniform(0.05, 0.25)
    return parts


def television(rng: Random, palette: Palette) -> Mesh:
    """A television on a low unit."""
    w, h = rng.uniform(1.0, 1.7), rng.uniform(0.35, 0.55)
    unit = _drawers(rng, palette, w, 0.4, h, int(rng.integers(2, 5)), 1)
    wide = w * rng.uniform(0.55, 0.85)
    dark = lacquer(rng, (0.015, 0.015, 0.017))
    face = picture(prints.screen(rng), rng, rng.uniform(0.4, 1.5)) if rng.random() < 0.4 else dark
    panel = box((wide, 0.04, wide * 0.56), dark, (0, 0.05, h + 0.05), 0.004, {"front": face})
    return join(
        [
            unit,
            panel,
            box((wide * 0.4, 0.2, 0.015), dark, (0, 0.05, h)),
            box((0.06, 0.03, 0.06), dark, (0, 0.05, h)),
        ]
    )


def floor_lamp(rng: Random, palette: Palette) -> Mesh:
    h, r = rng.uniform(1.3, 1.75), rng.uniform(0.12, 0.24)
    stand = palette.metal()
    foot = lathe([(0, 0), (0.15, 0), (0.14, 0.02), (0.012, 0.03)], stand)
    shade = paint(rng, vary(rng, (0.8, 0.75, 0.62), 0.3), 0.0)
    top, low = r * rng.uniform(0.5, 1), h - rng.uniform(0.2, 0.35)
    cone = lathe([(r, low), (top, h), (top - 0.002, h), (r - 0.002, low)], shade)
    return join([foot, cylinder(0.012, h - 0.1, stand), cone])


def coat_stand(rng: Random, palette: Palette) -> Mesh:
    h = rng.uniform(1.6, 1.9)
    stuff = palette.furniture()
    parts = [cylinder(0.02, h, stuff)]
    for k in range(4):
        foot = tube([(0, 0, 0.25), (0.2, 0, 0.1), (0.28, 0, 0.015)], 0.014, stuff)
        hook = tube([(0, 0, h - 0.2), (0.1, 0, h - 0.16), (0.15, 0, h - 0.06)], 0.009, stuff)
        parts.append(join([foot, hook]).turned(k * np.pi / 2 + 0.3))
    if rng.random() < 0.7:  # a coat: a gathered sheet hanging around one hook
        angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        drop = np.linspace(0, 1, 14)[:, None]
        wide = 0.05 + 0.12 * drop * (1 + 0.25 * np.sin(7 * angle + 2 * drop))
        sheet = [
            0.16 + wide * np.cos(angle),
            0.8 * wide * np.sin(angle),
            h - 0.1 - 0.9 * drop + 0 * angle,
        ]
        parts.append(grid(np.stack(sheet, -1), palette.cloth(), wrap=True))
    return join(parts)


def open_rack(rng: Random, palette: Palette) -> Mesh:
    """A metal frame with boards and things in crates: much see-through structure."""
    w, d, h = rng.uniform(0.6, 1.1), rng.uniform(0.3, 0.45), rng.uniform(0.8, 1.8)
    rod, board = palette.metal(), palette.furniture()
    parts = [
        cylinder(0.012, h, rod, (sx * w / 2, sy * d / 2, 0)) for sx in (-1, 1) for sy in (-1, 1)
    ]
    for z in np.linspace(0.12, h - 0.05, int(rng.integers(3, 6))):
        parts.append(box((w, d, 0.02), board, (0, 0, z), 0.002))
        for x in np.arange(-w / 2 + 0.15, w / 2 - 0.1, rng.uniform(0.22, 0.4)):
            thing = small_object(rng, palette)
            if thing.size[2] < 0.28 and thing.size[:2].max() < 0.24:
                parts.append(thing.moved(float(x), 0, float(z) + 0.02 - float(thing.bounds[0][2])))
    braces = [[(s * w / 2, d / 2, 0.15), (-s * w / 2, d / 2, h - 0.1)] for s in (-1, 1)]
    return join([*parts, *[tube(brace, 0.004, rod) for brace in braces]])


def radiator(rng: Random, palette: Palette) -> Mesh:
    w, h = rng.uniform(0.5, 1.2), rng.uniform(0.45, 0.6)
    white = lacquer(rng, (0.75, 0.75, 0.73))
    ribs = [
        box((0.035, 0.07, h), white, (x, 0, 0.12), 0.012) for x in np.arange(-w / 2, w / 2, 0.05)
    ]
    pipes = [box((w, 0.03, 0.03), white, (0, 0, z)) for z in (0.15, h + 0.06)]
    return join([*ribs, *pipes])


def rug(rng: Random, palette: Palette, width: float, depth: float) -> Mesh:
    pile = palette.cloth() if rng.random() < 0.6 else picture(prints.motif(rng), rng)
    if rng.random() < 0.2:
        return cylinder(min(width, depth) / 2, 0.01, pile)
    return box((width, depth, 0.01), pile, bevel=0.003)
