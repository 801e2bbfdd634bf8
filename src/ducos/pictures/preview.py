"""The image a person looks at first, on one depth scale: panels, zoomed crops, an edge profile.

    colour | input | result | truth, if known        one colour scale, holes hatched
    the scale, in metres
    crops where depth edges are: colour | input | bicubic | result | truth        and a profile

Drawn with Pillow and numpy alone: this runs once per frame in batches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ducos.arrays import Floats, Mask
from ducos.pictures.crops import RANGE, Line, Window, clearest_edge, windows
from ducos.pictures.palette import colourise
from ducos.sampling import bicubic, continued

Picture = NDArray[np.uint8]
Colour = tuple[int, int, int]

BAR = 22  # height of the caption in pixels
NARROWEST, WIDEST, HIGHEST = 320, 640, 960  # of a panel, in pixels
INK, PAPER, FAINT, TEXT = (24, 24, 28), (255, 255, 255), (222, 222, 226), (235, 235, 235)
HATCH = ((40, 40, 40), (170, 170, 170))  # no palette has greys, so holes stand out
CURVES: dict[str, tuple[Colour, int]] = {  # in the order in which they are drawn
    "ground truth": ((175, 175, 180), 7),
    "bicubic": ((224, 120, 30), 2),
    "result": ((20, 90, 190), 3),
}
FRAMES = ((255, 255, 255), (255, 214, 0), (255, 120, 220))  # one colour per crop


@dataclass
class Scale:
    """Values -> colours, the same in every panel. What lies beyond an end takes its colour."""

    lowest: float
    highest: float
    logarithmic: bool = False
    unit: str = "m"

    @classmethod
    def of(cls, values: Floats, valid: Mask, unit: str = "m") -> "Scale":
        """From the 2nd to the 95th percentile of the valid values; logarithmic if that is far."""
        known = values[valid]
        if not known.size:
            return cls(0.0, 1.0, unit=unit)
        lowest, highest = (float(x) for x in np.percentile(known, RANGE))
        # Ratios are what the eye compares in depth: a far window must not flatten a near table.
        return cls(lowest, highest, lowest > 0 and highest > 2 * lowest, unit)

    def paint(self, values: Floats, valid: Mask) -> Picture:
        """Colours (H, W, 3) of a map (H, W), with holes hatched."""
        lowest, highest = self.lowest, self.highest
        if self.logarithmic:
            values = np.log(np.maximum(np.where(valid, values, 1), 1e-3 * lowest))
            lowest, highest = math.log(lowest), math.log(highest)
        picture = colourise(values, valid, lowest=lowest, highest=highest)
        return hatched(picture, ~valid)

    def bar(self, width: int) -> Picture:
        """The scale itself, with numbers below it and the key of holes at its right."""
        key = 76  # the word and swatch for holes
        ramp_width = max(1, width - key - 48)
        share = np.linspace(0, 1, ramp_width, dtype=np.float32)
        ramp = self._value(np.broadcast_to(share, (14, ramp_width)))
        image = Image.new("RGB", (width, 44), INK)
        image.paste(Image.fromarray(self.paint(ramp, np.ones_like(ramp, np.bool_))), (24, 6))
        draw = ImageDraw.Draw(image)
        font = ImageFont.load_default(size=13)
        free_from = 0.0
        for tick in ticks(self.lowest, self.highest, self.logarithmic):
            x = 24 + self._share(tick) * (ramp_width - 1)
            text = f"{tick:g} {self.unit}".strip()
            half = draw.textlength(text, font) / 2
            if x - half >= free_from and x + half < width - key:
                draw.line((x, 20, x, 24), fill=TEXT)
                draw.text((x - half, 25), text, fill=TEXT, font=font)
                free_from = x + half + 10
        swatch = np.ones((14, 24), np.bool_)
        blank = np.zeros((14, 24, 3), np.uint8)
        image.paste(Image.fromarray(hatched(blank, swatch)), (width - key, 6))
        draw.text((width - key + 30, 4), "hole", fill=TEXT, font=font)
        return np.asarray(image)

    def _value(self, share: Floats) -> Floats:
        if self.logarithmic:
            return (self.lowest * (self.highest / self.lowest) ** share).astype(np.float32)
        return (self.lowest + (self.highest - self.lowest) * share).astype(np.float32)

    def _share(self, value: float) -> float:
        if self.highest <= self.lowest:
            return 0.5
        if self.logarithmic:
            return math.log(value / self.lowest) / math.log(self.highest / self.lowest)
        return (value - self.lowest) / (self.highest - self.lowest)


@dataclass
class Maps:
    """What is shown: one pair and its result.

    rgb: (H, W, 3) in [0, 1]; low, low_valid: (h, w); depth, valid: (H, W); truth: (H, W), 0 where
    unknown. unit: of the depth values, for the labels; "" for relative maps.
    """

    rgb: Floats
    low: Floats
    low_valid: Mask
    depth: Floats
    valid: Mask
    truth: Floats | None = None
    unit: str = "m"

    @property
    def size(self) -> tuple[int, int]:
        return self.depth.shape[0], self.depth.shape[1]

    @cached_property
    def scale(self) -> Scale:
        return Scale.of(self.low, self.low_valid, self.unit)

    @cached_property
    def colour(self) -> Picture:
        return (np.clip(self.rgb, 0, 1) * 255).round().astype(np.uint8)

    @cached_property
    def smooth(self) -> Floats:
        """Mask-aware bicubic of the input (H, W): what the result is compared with."""
        return bicubic(continued(self.low, self.low_valid), self.size)

    @property
    def curves(self) -> dict[str, tuple[Floats, Mask]]:
        """The full-size maps by name, each with its mask."""
        named = {
            "bicubic": (self.smooth, np.ones(self.size, np.bool_)),
            "result": (self.depth, self.valid),
        }
        if self.truth is not None:
            named["ground truth"] = (self.truth, self.truth != 0)
        return named


def comparison(
    rgb: Floats,
    low: Floats,
    low_valid: Mask,
    depth: Floats,
    valid: Mask,
    truth: Floats | None = None,
    unit: str = "m",
) -> Picture:
    """Image, input as its pixels are, result, ground truth if known; crops; an edge in profile.

    Args: see `Maps`.

    Returns:
        uint8, 3 or 4 panels wide; the crops and the profile are missing on maps without edges.
    """
    maps = Maps(rgb, low, low_valid, depth, valid, truth, unit)
    places = windows(low, low_valid, maps.size)
    line = clearest_edge(low, low_valid, maps.size)
    sheet = overview(maps, places, line)
    if not places:
        return sheet
    width = sheet.shape[1]
    columns = 4 if truth is None else 5
    strips = crop_strips(maps, places, side=max(48, width // 2 // columns))
    area = (width - strips.shape[1], strips.shape[0])
    rest = np.full((area[1], area[0], 3), INK, np.uint8)
    if line is not None:
        rest = profile(maps, line, area)
    return np.vstack([sheet, np.hstack([strips, rest])])


def overview(maps: Maps, places: Sequence[Window] = (), line: Line | None = None) -> Picture:
    """The row of whole maps with their scale; frames and a line show where the details are from."""
    H, W = maps.size
    h, w = maps.low.shape
    size = panel_size(H, W)
    panels = [
        (f"image {W} x {H}", _marked(maps.colour, size, places, line)),
        (f"input {w} x {h}", _panel(maps.scale, maps.low, maps.low_valid, size)),
        (f"result {W} x {H}", _panel(maps.scale, maps.depth, maps.valid, size)),
    ]
    if maps.truth is not None:
        panels.append(("ground truth", _panel(maps.scale, maps.truth, maps.truth != 0, size)))
    row = side_by_side([(text, _widened(picture)) for text, picture in panels])
    return np.vstack([row, maps.scale.bar(row.shape[1])])


def crop_strips(maps: Maps, places: Sequence[Window], side: int = 240) -> Picture:
    """Before and after, enlarged: one line per window, on the scale of the whole map.

    Args:
        side: of each tile, in pixels.
    """
    known = nearest(maps.low_valid, maps.size)
    named = {"input": (nearest(maps.low, maps.size), known), **maps.curves}
    tile_size = (side, side)
    lines = []
    for number, place in enumerate(places):
        tiles = [nearest(place.cut(maps.colour), tile_size)]
        for values, mask in named.values():
            tiles.append(_panel(maps.scale, place.cut(values), place.cut(mask), tile_size))
        frame = FRAMES[number % len(FRAMES)]
        for tile, rim in zip(tiles, [frame] + [INK] * len(named), strict=True):
            tile[:2], tile[-2:], tile[:, :2], tile[:, -2:] = rim, rim, rim, rim
        lines.append(tiles)
    names = ["image", *named]
    first = [captioned(name, tile) for name, tile in zip(names, lines[0], strict=True)]
    return np.vstack([np.hstack(first), *(np.hstack(tiles) for tiles in lines[1:])])


def profile(maps: Maps, line: Line, area: tuple[int, int] = (760, 480)) -> Picture:
    """Depth along a line across an edge: the input as dots, the maps as curves.

    Args:
        area: width and height of the picture.
    """
    cut = {name: (line.cut(values), line.cut(mask)) for name, (values, mask) in maps.curves.items()}
    shown = np.concatenate([line.samples, *(values[mask] for values, mask in cut.values())])
    lowest, highest = float(shown.min()), float(shown.max())
    margin = 0.06 * (highest - lowest) or 0.1
    lowest, highest = lowest - margin, highest + margin

    width, height = area
    image = Image.new("RGB", area, PAPER)
    draw = ImageDraw.Draw(image)
    font, small = ImageFont.load_default(size=14), ImageFont.load_default(size=12)
    left, top, right, bottom = 56, 64, max(57, width - 16), max(65, height - 40)
    span = max(1, line.stop - 1 - line.start)

    def point(place: float, value: float) -> tuple[float, float]:
        share = (value - lowest) / (highest - lowest)
        return left + (place - line.start) / span * (right - left), bottom - share * (bottom - top)

    for tick in ticks(lowest, highest):
        y = point(line.start, tick)[1]
        draw.line((left, y, right, y), fill=FAINT)
        text = f"{tick:g}"
        draw.text((left - 6 - draw.textlength(text, small), y - 8), text, fill=INK, font=small)
    for tick in ticks(line.start, line.stop - 1):
        x = point(tick, lowest)[0]
        draw.line((x, bottom, x, bottom + 4), fill=INK)
        draw.text((x - draw.textlength(f"{tick:g}", small) / 2, bottom + 6), f"{tick:g}",
                  fill=INK, font=small)  # fmt: skip
    draw.rectangle((left, top, right, bottom), outline=(120, 120, 126))
    for name, (colour, thick) in CURVES.items():
        values, mask = cut.get(name, (shown, np.zeros(0, np.bool_)))
        for run in _runs(mask):
            points = [point(line.start + i, float(values[i])) for i in run]
            draw.line(points, fill=colour, width=thick, joint="curve")
    for place, value in zip(line.places, line.samples, strict=True):
        x, y = point(float(place), float(value))
        draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=INK)

    way, other = ("row", "columns") if line.across else ("column", "rows")
    title = f"depth in {maps.unit}" if maps.unit else "depth, relative"
    title += f" along {way} {line.at}, {other} {line.start} to {line.stop - 1}"
    draw.text((14, 8), title, fill=INK, font=font)
    x = 14.0
    draw.ellipse((x + 8, 37, x + 16, 45), fill=INK)
    draw.text((x + 32, 33), "input", fill=INK, font=font)
    x += 32 + draw.textlength("input", font) + 22
    for name in ("bicubic", "result", "ground truth"):
        if name in cut:
            colour, thick = CURVES[name]
            draw.line((x, 41, x + 26, 41), fill=colour, width=thick)
            draw.text((x + 32, 33), name, fill=INK, font=font)
            x += 32 + draw.textlength(name, font) + 22
    return np.asarray(image)


def side_by_side(panels: list[tuple[str, Picture]]) -> Picture:
    """Pictures of one size in a row, each under its caption."""
    return np.hstack([captioned(text, picture) for text, picture in panels])


def captioned(text: str, picture: Picture) -> Picture:
    """A picture under a dark bar that names it."""
    bar = Image.new("RGB", (picture.shape[1], BAR), INK)
    font = ImageFont.load_default(size=14)
    ImageDraw.Draw(bar).text((6, 2), text, fill=TEXT, font=font)
    return np.vstack([np.asarray(bar), picture])


def hatched(picture: Picture, holes: Mask) -> Picture:
    """A copy of the picture (H, W, 3) with diagonal stripes over the holes (H, W)."""
    diagonal = np.add.outer(np.arange(holes.shape[0]), np.arange(holes.shape[1]))
    stripe = np.asarray(HATCH, np.uint8)[diagonal // 3 % 2]
    return np.where(holes[..., None], stripe, picture)


def nearest(picture: NDArray, size: tuple[int, int]) -> NDArray:
    """A map or picture (h, w, ...) at another (height, width), by the pixels' centres."""
    rows = ((np.arange(size[0]) + 0.5) * picture.shape[0] / size[0]).astype(int)
    columns = ((np.arange(size[1]) + 0.5) * picture.shape[1] / size[1]).astype(int)
    return picture[rows[:, None], columns]


def panel_size(H: int, W: int) -> tuple[int, int]:
    """(height, width) at which a map (H, W) is shown: small ones grow by a whole factor."""
    factor = min(1.0, WIDEST / W, HIGHEST / H)
    if W * factor < NARROWEST:
        factor = max(factor, min(math.ceil(NARROWEST / W), HIGHEST // H))
    return max(1, round(H * factor)), max(1, round(W * factor))


def ticks(lowest: float, highest: float, logarithmic: bool = False) -> list[float]:
    """Up to about ten round numbers in a range; its middle if there are none."""
    if not highest > lowest:
        return [float(f"{lowest:.4g}")]
    if logarithmic:
        powers = range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
        digits = (1, 2, 5) if highest > 20 * lowest else (1, 1.5, 2, 3, 4, 5, 7)
        inside = [float(f"{d}e{p}") for p in powers for d in digits]
        inside = [tick for tick in inside if lowest <= tick <= highest]
    else:
        raw = (highest - lowest) / 6
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= 0.999 * raw)
        first, last = math.ceil(lowest / step), math.floor(highest / step)
        inside = [float(f"{step * n:.10g}") for n in range(first, last + 1)]
    return inside or [float(f"{(lowest + highest) / 2:.3g}")]


def _panel(scale: Scale, values: Floats, valid: Mask, size: tuple[int, int]) -> Picture:
    """A painted map at the size of the panels; resampled first, so that hatching stays fine."""
    return scale.paint(nearest(values, size), nearest(valid, size))


def _marked(
    colour: Picture, size: tuple[int, int], places: Sequence[Window], line: Line | None
) -> Picture:
    """The colour image at the size of the panels, with frames around windows, and the line."""
    (H, W), (height, width) = colour.shape[:2], size
    how = Image.Resampling.BOX if width < W else Image.Resampling.NEAREST
    image = Image.fromarray(colour).resize((width, height), how)
    draw = ImageDraw.Draw(image)
    across, down = width / W, height / H
    for number, place in enumerate(places):
        left, top = place.left * across, place.top * down
        right, bottom = left + place.side * across - 1, top + place.side * down - 1
        frame = (left, top, max(left, right), max(top, bottom))
        draw.rectangle(frame, outline=FRAMES[number % len(FRAMES)], width=2)
    if line is not None:
        ends = [(along + 0.5, line.at + 0.5) for along in (line.start, line.stop - 1)]
        if not line.across:
            ends = [(x, y) for y, x in ends]
        points = [(x * across, y * down) for x, y in ends]
        draw.line(points, fill=CURVES["result"][0], width=5)
        draw.line(points, fill=PAPER, width=1)
    return np.asarray(image)


def _widened(picture: Picture) -> Picture:
    """Tall, thin pictures get margins, so that their caption fits."""
    missing = NARROWEST // 2 - picture.shape[1]
    if missing <= 0:
        return picture
    margins = ((0, 0), (missing // 2, missing - missing // 2), (0, 0))
    return np.pad(picture, margins, constant_values=INK[0])


def _runs(mask: Mask) -> list[range]:
    """Stretches of at least two True in a row."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [range(a, b) for a, b in edges.reshape(-1, 2) if b - a > 1]
