"""What surfaces are made of: recipes drawn at random, still without Blender.

A `Material` names a pattern and its numbers; `shaders.py` turns it into a node tree. Colours are
linear RGB. A `Palette` keeps the few woods, textiles and paints of one room, so that its furniture
looks bought by the same person.
"""

import colorsys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.synth import prints

Random = np.random.Generator
Colour = tuple[float, float, float]
Image = NDArray[np.uint8] | Path


@dataclass(frozen=True, eq=False)
class Material:
    """One surface.

    pattern: a name in `shaders.PATTERNS`. colours: one to three, linear RGB. scale: size of the
    pattern's repeat in metres. bump: relief in metres. turn: angle of the pattern in radians.
    shift: where the pattern starts. image: pixels or file for the patterns "picture" (over uv) and
    "tiled" (repeated every `scale` metres). adjust: hue shift, saturation and value factors of the
    image. emission: light given off, relative to a white wall. cutout: the image's alpha cuts.
    """

    pattern: str
    colours: tuple[Colour, ...] = ((0.8, 0.8, 0.8),)
    scale: float = 1.0
    roughness: float = 0.6
    metallic: float = 0.0
    bump: float = 0.0
    turn: float = 0.0
    shift: tuple[float, float] = (0.0, 0.0)
    image: Image | None = None
    adjust: tuple[float, float, float] = (0.0, 1.0, 1.0)
    emission: float = 0.0
    cutout: bool = False


# Darkest and lightest tone of common woods, as sRGB bytes; linearised once below.
WOOD_BYTES = (
    ((152, 109, 66), (196, 156, 106)),  # oak
    ((187, 142, 89), (222, 186, 135)),  # pine
    ((62, 41, 28), (104, 72, 49)),  # walnut
    ((120, 70, 36), (163, 103, 59)),  # teak
    ((193, 165, 124), (226, 205, 170)),  # birch
    ((78, 30, 20), (125, 56, 38)),  # mahogany
    ((36, 27, 23), (60, 47, 41)),  # wenge
    ((148, 140, 130), (190, 183, 173)),  # weathered
    ((205, 198, 185), (233, 228, 218)),  # whitewashed
)


def linear(channels: ArrayLike) -> Colour:
    """sRGB in [0, 1] to linear RGB."""
    values = np.asarray(channels, np.float64)
    low, high = values / 12.92, ((values + 0.055) / 1.055) ** 2.4
    red, green, blue = np.where(values <= 0.04045, low, high)
    return float(red), float(green), float(blue)


WOODS = tuple(
    (linear(np.array(dark) / 255), linear(np.array(light) / 255)) for dark, light in WOOD_BYTES
)


def any_colour(rng: Random) -> Colour:
    """Mostly muted, sometimes loud, never black."""
    saturation = rng.beta(1.2, 2.0) if rng.random() < 0.45 else rng.beta(1.0, 5.0)
    hue, value = rng.random(), rng.uniform(0.25, 0.95)
    return linear(colorsys.hsv_to_rgb(hue, saturation, value))


def vary(rng: Random, colour: Colour, amount: float = 0.3) -> Colour:
    """A neighbour of this colour: brighter or darker, with a slight cast."""
    factor = rng.uniform(1 - amount, 1 + amount) * rng.uniform(1 - amount / 6, 1 + amount / 6, 3)
    red, green, blue = np.clip(np.asarray(colour) * factor, 0.005, 0.92)
    return float(red), float(green), float(blue)


def _shift(rng: Random) -> tuple[float, float]:
    return float(rng.uniform(0, 10)), float(rng.uniform(0, 10))


def paint(rng: Random, colour: Colour | None = None, gloss: float | None = None) -> Material:
    """One colour with faint stains, matt to satin."""
    base = colour or any_colour(rng)
    roughness = rng.uniform(0.3, 0.95) if gloss is None else 1 - gloss
    stain = vary(rng, base, 0.15)
    return Material("mottled", (base, stain), rng.uniform(0.05, 0.6), roughness, shift=_shift(rng))


def plaster(rng: Random) -> Material:
    """A painted wall: bright, slightly tinted, with a fine relief."""
    tint = np.array([1.0, rng.uniform(0.9, 1.0), rng.uniform(0.78, 1.03)])
    red, green, blue = np.clip(tint * rng.uniform(0.45, 0.85), 0, 0.9)
    base = (float(red), float(green), float(blue))
    if rng.random() < 0.25:
        base = vary(rng, any_colour(rng))
    relief = rng.choice([0.0, 0.0003, 0.002])
    return Material(
        "mottled", (base, vary(rng, base, 0.06)), rng.uniform(0.02, 0.5), 0.9, bump=relief
    )


def wood(rng: Random, tone: int | None = None) -> Material:
    dark, light = WOODS[int(rng.integers(len(WOODS))) if tone is None else tone]
    return Material(
        "wood",
        (vary(rng, dark, 0.15), vary(rng, light, 0.15)),
        scale=rng.uniform(0.04, 0.16),
        roughness=rng.uniform(0.3, 0.7),
        bump=rng.choice([0.0, 0.0002]),
        shift=_shift(rng),
    )


def planks(rng: Random) -> Material:
    dark, light = WOODS[int(rng.integers(len(WOODS)))]
    return Material(
        "planks",
        (vary(rng, dark, 0.1), vary(rng, light, 0.1), vary(rng, dark, 0.1)),
        scale=rng.uniform(0.07, 0.2),
        roughness=rng.uniform(0.25, 0.6),
        bump=0.0005,
        turn=float(rng.choice([0, np.pi / 2, np.pi / 4])),
        shift=_shift(rng),
    )


def tiles(rng: Random) -> Material:
    base = any_colour(rng) if rng.random() < 0.5 else vary(rng, (0.6, 0.57, 0.52))
    second = vary(rng, base, 0.5 if rng.random() < 0.3 else 0.08)
    joint = vary(rng, (0.35, 0.34, 0.32), 0.6)
    return Material(
        "tiles",
        (base, second, joint),
        scale=rng.uniform(0.1, 0.6),
        roughness=rng.uniform(0.12, 0.5),
        bump=0.001,
        turn=float(rng.choice([0, 0, np.pi / 4])),
        shift=_shift(rng),
    )


def bricks(rng: Random) -> Material:
    base = (
        vary(rng, (0.32, 0.12, 0.07), 0.5) if rng.random() < 0.6 else vary(rng, (0.7, 0.68, 0.64))
    )
    return Material(
        "bricks",
        (base, vary(rng, base, 0.4), vary(rng, (0.5, 0.48, 0.44), 0.5)),
        scale=rng.uniform(0.2, 0.3),
        roughness=0.9,
        bump=0.004,
        shift=_shift(rng),
    )


def weave(rng: Random, colour: Colour | None = None) -> Material:
    base = colour or any_colour(rng)
    return Material(
        "weave",
        (base, vary(rng, base, rng.uniform(0.2, 0.6))),
        scale=rng.uniform(0.003, 0.012),
        roughness=0.95,
        bump=0.0006,
        shift=_shift(rng),
    )


def stripes(rng: Random) -> Material:
    base = any_colour(rng)
    second = any_colour(rng) if rng.random() < 0.5 else vary(rng, base, 0.5)
    pattern = str(rng.choice(["stripes", "stripes", "gingham", "checks"]))
    return Material(
        pattern,
        (base, second),
        scale=rng.uniform(0.02, 0.15),
        roughness=0.9,
        turn=float(rng.choice([0, np.pi / 2, np.pi / 4])),
        shift=_shift(rng),
    )


def carpet(rng: Random) -> Material:
    base = any_colour(rng)
    return Material(
        "carpet", (base, vary(rng, base, 0.5)), rng.uniform(0.004, 0.03), 1.0, bump=0.004
    )


def marble(rng: Random) -> Material:
    base = (
        vary(rng, (0.75, 0.72, 0.68), 0.2) if rng.random() < 0.6 else vary(rng, (0.06, 0.07, 0.07))
    )
    vein = vary(rng, (0.25, 0.24, 0.23) if base[0] > 0.3 else (0.5, 0.48, 0.4), 0.4)
    return Material("marble", (base, vein), rng.uniform(0.3, 1.0), 0.2, shift=_shift(rng))


def terrazzo(rng: Random) -> Material:
    colours = (any_colour(rng), vary(rng, (0.5, 0.48, 0.45), 0.5), any_colour(rng))
    return Material("terrazzo", colours, rng.uniform(0.008, 0.05), 0.4, shift=_shift(rng))


def leather(rng: Random) -> Material:
    base = vary(rng, WOODS[int(rng.integers(len(WOODS)))][0], 0.5)
    if rng.random() < 0.4:
        base = any_colour(rng)
    return Material(
        "leather", (base, vary(rng, base, 0.2)), 0.006, rng.uniform(0.3, 0.55), bump=0.0005
    )


def metal(rng: Random) -> Material:
    base = vary(rng, (0.6, 0.6, 0.6), 0.4)
    if rng.random() < 0.25:
        base = (0.7, 0.5, 0.25)  # brass
    return Material("brushed", (base, vary(rng, base, 0.2)), 0.02, rng.uniform(0.15, 0.5), 1.0)


def lacquer(rng: Random, colour: Colour | None = None) -> Material:
    """Plastic, glazed ceramic, enamel: one colour, smooth."""
    return Material("plain", (colour or any_colour(rng),), roughness=rng.uniform(0.08, 0.5))


def picture(image: Image, rng: Random, emission: float = 0.0) -> Material:
    """A print over the whole of a face."""
    return Material("picture", image=image, roughness=rng.uniform(0.25, 0.8), emission=emission)


def printed_paper(rng: Random, scale: float) -> Material:
    """A repeated motif: wallpaper, gift wrap, printed cloth."""
    return printed(prints.motif(rng), rng, scale)


def printed(image: Image, rng: Random, scale: float) -> Material:
    """A drawn tile repeated every `scale` metres."""
    return Material(
        "tiled",
        image=image,
        scale=scale,
        roughness=rng.uniform(0.6, 0.95),
        turn=float(rng.choice([0, 0, np.pi / 4])),
        shift=_shift(rng),
    )


def tiled(image: Path, rng: Random, scale: float) -> Material:
    """A texture file repeated every `scale` metres, slightly recoloured."""
    adjust = (rng.uniform(-0.03, 0.03), rng.uniform(0.5, 1.2), rng.uniform(0.7, 1.25))
    if rng.random() < 0.1:
        adjust = (rng.uniform(-0.5, 0.5), *adjust[1:])
    return Material(
        "tiled",
        image=image,
        scale=scale,
        roughness=rng.uniform(0.3, 0.9),
        bump=rng.choice([0.0, 0.001]),
        turn=float(rng.choice([0, np.pi / 2])),
        shift=_shift(rng),
        adjust=adjust,
    )
