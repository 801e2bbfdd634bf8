"""Turned things: vases, bowls, cups, bottles, cans, pots."""

import numpy as np

from ducos.synth import prints
from ducos.synth.materials import Random, lacquer, metal, picture
from ducos.synth.mesh import Mesh, join
from ducos.synth.palette import Palette
from ducos.synth.shapes import cylinder, ellipsoid, lathe, tube


def hollow(radii: list[float], heights: list[float], wall: float) -> list[tuple[float, float]]:
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
    return lathe(hollow(radii, list(np.linspace(0, height, 4)), 0.004), palette.small())


def bowl(rng: Random, palette: Palette) -> Mesh:
    radius, height = rng.uniform(0.06, 0.16), rng.uniform(0.04, 0.1)
    radii = [radius * 0.45, radius * 0.85, radius]
    shell = lathe(hollow(radii, [0.0, height * 0.45, height], 0.005), palette.small(), 40)
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
    body = lathe(hollow([radius * taper, radius], [0.0, height], 0.004), glaze)
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


def jar_of_sticks(rng: Random, palette: Palette) -> Mesh:
    """Brushes, pencils or knitting needles in a pot: thin things at many angles."""
    radius, height = rng.uniform(0.03, 0.06), rng.uniform(0.08, 0.16)
    parts = [lathe(hollow([radius, radius * 1.05], [0.0, height], 0.004), palette.small())]
    for _ in range(int(rng.integers(4, 13))):
        angle, lean, long = rng.uniform(0, 6.28), rng.uniform(0.05, 0.3), rng.uniform(0.15, 0.36)
        direction = np.array([np.cos(angle) * lean, np.sin(angle) * lean, 1.0])
        direction /= np.linalg.norm(direction)
        foot = np.array([-np.cos(angle), -np.sin(angle), 0]) * radius * 0.4 + [0, 0, 0.006]
        path = foot + direction * np.linspace(0, long, 4)[:, None]
        parts.append(tube(path, rng.uniform(0.0015, 0.005), lacquer(rng)))
    return join(parts)
