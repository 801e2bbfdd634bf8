"""Chairs, sofas and beds: frames with padding."""

import numpy as np

from ducos.synth.furniture import legs
from ducos.synth.materials import Random, lacquer, paint, vary
from ducos.synth.mesh import Mesh, join
from ducos.synth.palette import Palette
from ducos.synth.shapes import box, cushion, cylinder, grid, tube


def chair(rng: Random, palette: Palette) -> Mesh:
    w, d, seat = rng.uniform(0.38, 0.48), rng.uniform(0.38, 0.46), rng.uniform(0.43, 0.48)
    back = rng.uniform(0.35, 0.55)
    stuff = palette.furniture()
    parts = legs(rng, palette, w, d, seat - 0.03)
    if rng.random() < 0.5:
        parts.append(cushion((w, d, 0.06), palette.textile(), (0, 0, seat - 0.03), 0.25))
    else:
        parts.append(box((w, d, 0.03), stuff, (0, 0, seat - 0.03), 0.008))
    posts = [
        tube(
            [(s * w * 0.43, d * 0.45, seat - 0.04), (s * w * 0.43, d * 0.58, seat + back)],
            0.014,
            stuff,
        )
        for s in (-1, 1)
    ]
    style = int(rng.integers(3))
    if style == 0:  # slats across
        for share in np.linspace(0.35, 0.97, int(rng.integers(2, 5))):
            at = (0, d * (0.45 + 0.13 * share), seat + back * share - 0.03)
            parts.append(box((w * 0.84, 0.014, 0.05), stuff, at, 0.003))
    elif style == 1:  # spindles
        for x in np.linspace(-0.3, 0.3, int(rng.integers(3, 7))):
            ends = [(x * w, d * 0.45, seat), (x * w, d * 0.57, seat + back * 0.94)]
            parts.append(tube(ends, 0.007, stuff))
        parts.append(box((w * 0.92, 0.022, 0.06), stuff, (0, d * 0.57, seat + back * 0.9), 0.005))
    else:
        pad = cushion((w * 0.9, 0.05, back * 0.7), palette.textile(), (0, 0, 0), 0.3)
        parts.append(pad.turned(-0.22, "x").moved(0, d * 0.48, seat + back * 0.3))
    return join([*parts, *posts])


def office_chair(rng: Random, palette: Palette) -> Mesh:
    fabric, dark = palette.textile(), lacquer(rng, vary(rng, (0.03, 0.03, 0.03), 0.5))
    parts = [
        cylinder(0.03, 0.35, dark, (0, 0, 0.08)),
        cushion((0.48, 0.46, 0.09), fabric, (0, 0, 0.43), 0.3),
    ]
    for k in range(5):
        spoke = box((0.28, 0.04, 0.03), dark, (0.15, 0, 0.07), 0.005)
        wheel = cylinder(0.028, 0.04, dark).turned(np.pi / 2, "x").moved(0.28, 0.02, 0.03)
        parts.append(join([spoke, wheel]).turned(k * 2 * np.pi / 5))
    parts.append(cushion((0.44, 0.07, rng.uniform(0.4, 0.6)), fabric, (0, 0.22, 0.56), 0.3))
    parts.append(box((0.05, 0.02, 0.2), dark, (0, 0.25, 0.45)))
    if rng.random() < 0.6:
        for s in (-1, 1):
            rest = [(s * 0.2, 0.1, 0.46), (s * 0.27, 0.08, 0.5), (s * 0.27, 0.05, 0.68)]
            parts += [
                tube(rest, 0.012, dark),
                cushion((0.06, 0.25, 0.03), dark, (s * 0.27, 0.0, 0.67)),
            ]
    return join(parts).turned(rng.normal(0, 0.5))


def stool(rng: Random, palette: Palette) -> Mesh:
    r, h = rng.uniform(0.14, 0.2), rng.uniform(0.42, 0.7)
    return join(
        [
            *legs(rng, palette, 1.6 * r, 1.6 * r, h - 0.03),
            cylinder(r, 0.03, palette.furniture(), (0, 0, h - 0.03)),
        ]
    )


def sofa(rng: Random, palette: Palette, seats: int | None = None) -> Mesh:
    seats = seats or int(rng.integers(2, 4))
    fabric = palette.textile()
    each, d, seat = rng.uniform(0.55, 0.7), rng.uniform(0.75, 0.95), rng.uniform(0.38, 0.45)
    arm, back = rng.uniform(0.1, 0.22), rng.uniform(0.72, 0.95)
    w = seats * each + 2 * arm
    parts = [box((w, d, 0.2), fabric, (0, 0, 0.08), 0.02)]
    parts += [
        cushion((arm, d, rng.uniform(0.5, 0.62)), fabric, (s * (w - arm) / 2, 0, 0.08), 0.2)
        for s in (-1, 1)
    ]
    parts.append(cushion((w - 2 * arm, 0.22, back - 0.08), fabric, (0, d / 2 - 0.11, 0.08), 0.2))
    for k in range(seats):
        x = (k - (seats - 1) / 2) * each
        parts.append(cushion((each, d - 0.22, 0.18), fabric, (x, -0.1, seat - 0.16), 0.25))
        rest = cushion((each * 0.96, 0.18, 0.42), fabric, (0, 0, 0), 0.4).turned(-0.2, "x")
        parts.append(rest.moved(x, d / 2 - 0.3, seat))
    for _ in range(int(rng.integers(0, 3))):
        side = rng.uniform(0.35, 0.45)
        pad = cushion((side, 0.14, side), palette.textile(), (0, 0, 0), 0.55).turned(-0.35, "x")
        x = rng.uniform(-0.4, 0.4) * (w - 2 * arm)
        parts.append(pad.turned(rng.normal(0, 0.3)).moved(x, d / 2 - 0.42, seat))
    parts += [
        cylinder(0.02, 0.08, palette.wood(), (sx * (w / 2 - 0.06), sy * (d / 2 - 0.06), 0))
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    return join(parts)


def armchair(rng: Random, palette: Palette) -> Mesh:
    return sofa(rng, palette, 1)


def bed(rng: Random, palette: Palette) -> Mesh:
    """Headboard at +y, blanket hanging over the sides, pillows."""
    w, long, h = (
        float(rng.choice([0.9, 1.2, 1.4, 1.6])),
        rng.uniform(1.95, 2.1),
        rng.uniform(0.4, 0.55),
    )
    stuff, linen = palette.furniture(), paint(rng, vary(rng, (0.75, 0.74, 0.7), 0.15), 0.0)
    parts = [box((w + 0.06, long + 0.04, h * 0.5), stuff, (0, 0, 0.06), 0.01)]
    parts.append(box((w + 0.06, 0.05, rng.uniform(0.8, 1.15)), stuff, (0, long / 2, 0), 0.01))
    parts.append(cushion((w, long, h * 0.55), linen, (0, -0.01, h * 0.5), 0.12))
    x = np.linspace(-1, 1, 41)[None] * (w / 2 + 0.03)
    y = np.linspace(-long / 2 - 0.02, long * 0.22, 40)[:, None]
    over = np.clip((np.abs(x) - w / 2 + 0.05) / 0.08, 0, 1) ** 2
    fold = 0.012 * np.sin(y * rng.uniform(4, 9) + 2 * np.sin(x * 4)) + 0.01 * np.sin(
        x * rng.uniform(5, 12)
    )
    z = h * 1.05 + 0.03 + fold - over * rng.uniform(0.1, 0.25)
    blanket = np.stack(
        [
            np.broadcast_to(x + 0.012 * np.sin(9 * y) * over, z.shape),
            np.broadcast_to(y, z.shape),
            z,
        ],
        -1,
    )
    parts.append(grid(blanket, palette.cloth()))
    for s in (-1, 1) if w > 1.3 else (0,):
        pad = cushion((0.6, 0.4, 0.16), linen, (0, 0, 0), 0.5).turned(0.25, "x")
        parts.append(pad.turned(rng.normal(0, 0.12)).moved(s * w / 4, long / 2 - 0.3, h * 1.05))
    return join(parts)
