"""Printed matter drawn from nothing: book covers, posters, pages, screens, wallpaper motifs.

Flat prints are what teaches a guided network that a colour edge need not be a depth edge. All
functions return (H, W, 3) uint8 sRGB.
"""

import colorsys

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Random = np.random.Generator
Pixels = NDArray[np.uint8]
Ink = tuple[int, int, int]

SYLLABLES = ("ka", "lo", "mi", "ren", "tos", "va", "dul", "pe", "sar", "no", "bri", "ell", "um")


def _ink(rng: Random, dark: bool | None = None) -> Ink:
    value = rng.uniform(0.3, 1.0) if dark is None else rng.uniform(0.05, 0.35) if dark else 0.95
    red, green, blue = colorsys.hsv_to_rgb(rng.random(), rng.beta(1.5, 1.5), value)
    return int(red * 255), int(green * 255), int(blue * 255)


def _inks(rng: Random, count: int) -> list[Ink]:
    return [_ink(rng) for _ in range(count)]


def _word(rng: Random) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(int(rng.integers(1, 4))))


def _words(rng: Random, count: int) -> str:
    return " ".join(_word(rng) for _ in range(count))


def noise(rng: Random, height: int, width: int, slope: float = 2.0) -> NDArray[np.float64]:
    """(height, width) fractal noise in [0, 1] that wraps around; larger slope, smoother."""
    y, x = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    frequency = np.hypot(y, x)
    frequency[0, 0] = 1.0
    phase = rng.uniform(0, 2 * np.pi, frequency.shape)
    spectrum = rng.rayleigh(1.0, frequency.shape) * frequency**-slope * np.exp(1j * phase)
    spectrum[0, 0] = 0
    field = np.fft.irfft2(spectrum, (height, width))
    return (field - field.min()) / max(float(np.ptp(field)), 1e-12)


def _blend(low: Ink, high: Ink, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Colours between two inks; share of any shape, one axis is added."""
    return np.asarray(low) * (1 - share[..., None]) + np.asarray(high) * share[..., None]


def _text(
    draw: ImageDraw.ImageDraw, rng: Random, x: float, y: float, size: float, words: int, ink: Ink
) -> None:
    font = ImageFont.load_default(max(6, int(size)))
    draw.text((x, y), _words(rng, words), fill=ink, font=font)


def landscape(rng: Random, height: int = 256, width: int = 320) -> Pixels:
    """Sky, a few ridges fading into haze, a textured foreground."""
    rows = np.linspace(0, 1, height)[:, None].repeat(width, 1)
    sky, haze = _ink(rng), _ink(rng, False)
    canvas = _blend(sky, haze, np.clip(rows * 1.6, 0, 1))
    canvas += 50 * (noise(rng, height, width, 1.7)[..., None] - 0.5)
    ridges = int(rng.integers(2, 6))
    land = _ink(rng)
    for k in range(ridges):
        near = (k + 1) / ridges
        crest = 0.3 + 0.45 * near + 0.25 * (noise(rng, 4, width, 1.6)[0] - 0.5)
        colour = _blend(haze, land, np.full((height, width), near))
        colour *= 0.6 + 0.8 * noise(rng, height, width, 1.1)[..., None]
        canvas = np.where((rows > crest)[..., None], colour, canvas)
    return np.clip(canvas, 0, 255).astype(np.uint8)


def abstract(rng: Random, height: int = 256, width: int = 256) -> Pixels:
    """Flat shapes and strokes over a soft ground."""
    inks = _inks(rng, 5)
    ground = _blend(inks[0], inks[1], noise(rng, height, width, rng.uniform(1.2, 2.5)))
    image = Image.fromarray(np.clip(ground, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(3, 25))):
        ink = inks[int(rng.integers(len(inks)))]
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        w, h = rng.uniform(0.03, 0.5) * width, rng.uniform(0.03, 0.5) * height
        kind = rng.integers(4)
        if kind == 0:
            draw.ellipse((x - w / 2, y - w / 2, x + w / 2, y + w / 2), fill=ink)
        elif kind == 1:
            draw.rectangle((x - w / 2, y - h / 2, x + w / 2, y + h / 2), fill=ink)
        elif kind == 2:
            corners = [(x + rng.normal(0, w), y + rng.normal(0, h)) for _ in range(3)]
            draw.polygon(corners, fill=ink)
        else:
            line = [(x + rng.normal(0, w), y + rng.normal(0, h)) for _ in range(4)]
            draw.line(line, fill=ink, width=int(rng.integers(2, 12)))
    return np.asarray(image)


def poster(rng: Random) -> Pixels:
    """A picture for the wall, sometimes with a margin and a caption."""
    portrait = rng.random() < 0.5
    height, width = (320, 256) if portrait else (256, 320)
    art = landscape(rng, height, width) if rng.random() < 0.55 else abstract(rng, height, width)
    if rng.random() < 0.5:
        return art
    margin = int(rng.integers(10, 50))
    image = Image.new("RGB", (width, height), _ink(rng, False))
    inner = Image.fromarray(art).resize((width - 2 * margin, height - 2 * margin))
    image.paste(inner, (margin, margin))
    if rng.random() < 0.4:
        draw = ImageDraw.Draw(image)
        _text(draw, rng, margin, height - margin * 0.9, margin * 0.5, 3, _ink(rng, True))
    return np.asarray(image)


def cover(rng: Random, height: int = 256, width: int = 192) -> Pixels:
    """The front of a book or package: ground, picture, blocks, title and small print."""
    ground = _ink(rng)
    image = Image.new("RGB", (width, height), ground)
    draw = ImageDraw.Draw(image)
    if rng.random() < 0.65:
        top = int(rng.uniform(0, 0.4) * height)
        tall = int(rng.uniform(0.3, 0.7) * height)
        art = landscape(rng, tall, width) if rng.random() < 0.5 else abstract(rng, tall, width)
        image.paste(Image.fromarray(art), (0, top))
    for _ in range(int(rng.integers(0, 4))):
        y, band = rng.uniform(0, height), rng.uniform(0.01, 0.15) * height
        draw.rectangle((0, y, width, y + band), fill=_ink(rng))
    dark_ground = sum(ground) < 330
    for size in (0.13, 0.08, 0.045, 0.045, 0.045):
        if rng.random() < 0.8:
            x, y = rng.uniform(0.03, 0.3) * width, rng.uniform(0.02, 0.9) * height
            words = int(rng.integers(1, 5))
            _text(draw, rng, x, y, size * height, words, _ink(rng, not dark_ground))
    return np.asarray(image)


def spine(rng: Random) -> Pixels:
    """The back of a book, 32 x 256 upright: bands and a title running along it."""
    image = Image.new("RGB", (256, 32), _ink(rng))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(0, 4))):
        x = rng.uniform(0, 256)
        draw.rectangle((x, 0, x + rng.uniform(2, 30), 32), fill=_ink(rng))
    _text(draw, rng, rng.uniform(10, 80), 5, 20, 2, _ink(rng, bool(rng.random() < 0.5)))
    return np.asarray(image.rotate(90, expand=True))


def page(rng: Random, height: int = 320, width: int = 226) -> Pixels:
    """A sheet of print: headings, paragraphs, perhaps a figure."""
    image = Image.new("RGB", (width, height), (244, 242, 236))
    draw = ImageDraw.Draw(image)
    margin, y = 18.0, 18.0
    while y < height - 2 * margin:
        draw_kind = rng.random()
        if draw_kind < 0.15:
            _text(draw, rng, margin, y, 16, 3, (20, 20, 30))
            y += 24
        elif draw_kind < 0.3:
            tall = int(min(80, height - y - margin))
            figure = abstract(rng, max(tall, 8), int(width - 2 * margin))
            image.paste(Image.fromarray(figure), (int(margin), int(y)))
            y += tall + 8
        else:
            for _ in range(int(rng.integers(2, 9))):
                long = (width - 2 * margin) * rng.uniform(0.6, 1.0)
                draw.rectangle((margin, y, margin + long, y + 1.5), fill=(70, 70, 75))
                y += 5
            y += 5
    return np.asarray(image)


def screen(rng: Random, height: int = 216, width: int = 384) -> Pixels:
    """A computer desktop: wallpaper, windows with text, a bar."""
    image = Image.fromarray(landscape(rng, height, width))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(0, 4))):
        x, y = rng.uniform(0, 0.5) * width, rng.uniform(0, 0.5) * height
        w, h = rng.uniform(0.25, 0.6) * width, rng.uniform(0.25, 0.6) * height
        dark = bool(rng.random() < 0.5)
        draw.rectangle((x, y, x + w, y + h), fill=(30, 32, 38) if dark else (245, 245, 245))
        draw.rectangle((x, y, x + w, y + 9), fill=_ink(rng))
        for line in np.arange(y + 16, y + h - 6, 7):
            left = x + 8 + rng.choice([0, 0, 14, 28])
            draw.rectangle((left, line, left + rng.uniform(0.1, 0.5) * w, line + 2), fill=_ink(rng))
    draw.rectangle((0, height - 14, width, height), fill=_ink(rng, True))
    return np.asarray(image)


def motif(rng: Random, size: int = 192) -> Pixels:
    """A tile that repeats without a seam: wallpaper, printed cloth, wrapping paper."""
    ground, ink, third = _inks(rng, 3)
    if rng.random() < 0.6:  # mostly tone on tone, as wallpapers are
        ink = tuple(int(c * rng.uniform(0.6, 0.95)) for c in ground)  # type: ignore[assignment]
    kind = int(rng.integers(5))
    y, x = np.mgrid[0:size, 0:size] / size
    if kind == 0:  # damask: mirrored noise
        field = noise(rng, size, size, 2.0)
        field = np.minimum(field, field[:, ::-1])
        share = (field > np.quantile(field, rng.uniform(0.5, 0.8))).astype(float)
    elif kind == 1:  # dots on a lattice
        count = int(rng.integers(2, 6))
        row = np.floor(y * count)
        u, v = (x * count + 0.5 * (row % 2)) % 1 - 0.5, y * count % 1 - 0.5
        share = (np.hypot(u, v) < rng.uniform(0.12, 0.4)).astype(float)
        share = share if count % 2 == 0 else (np.hypot(x * count % 1 - 0.5, v) < 0.25).astype(float)
    elif kind == 2:  # woven lattice of waves
        count = int(rng.integers(2, 6))
        share = np.sin(2 * np.pi * count * x) * np.sin(2 * np.pi * count * y)
        share = (share > rng.uniform(-0.2, 0.5)).astype(float)
    elif kind == 3:  # soft marbling
        share = noise(rng, size, size, rng.uniform(1.0, 2.0))
    else:  # scattered leaves
        share = np.zeros((size, size))
        for _ in range(int(rng.integers(6, 20))):
            angle, long = rng.uniform(0, np.pi), rng.uniform(0.05, 0.16)
            dx = (x - rng.random() + 0.5) % 1 - 0.5
            dy = (y - rng.random() + 0.5) % 1 - 0.5
            u = (dx * np.cos(angle) + dy * np.sin(angle)) / long
            v = (dy * np.cos(angle) - dx * np.sin(angle)) / (long * 0.4)
            share = np.maximum(share, np.abs(v) < np.clip(1 - u**2, 0, 1))
    canvas = _blend(ground, ink, share)
    if rng.random() < 0.3:
        canvas = np.where((noise(rng, size, size, 2.0) > 0.62)[..., None], third, canvas)
    return np.clip(canvas, 0, 255).astype(np.uint8)


def lattice(rng: Random, size: int = 192) -> Pixels:
    """A tile of plain cloth with lines across it, both ways or one: tea towels, table cloths."""
    ground, ink = _inks(rng, 2)
    y, x = np.mgrid[0:size, 0:size] / size
    wide = rng.uniform(0.03, 0.25)
    lines = (x < wide) | ((y < wide * rng.uniform(0.5, 1.5)) & (rng.random() < 0.7))
    canvas = _blend(ground, ink, lines * rng.uniform(0.4, 1.0))
    canvas += 30 * (noise(rng, size, size, 0.3)[..., None] - 0.5)
    return np.clip(canvas, 0, 255).astype(np.uint8)
