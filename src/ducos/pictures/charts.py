"""Small charts drawn with Pillow: bars, curves and a scatter plot, as (H, W, 3) uint8 pictures."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ducos.pictures.preview import Picture

INK, GREY, FAINT, PAPER = (30, 30, 34), (120, 120, 126), (222, 222, 226), (255, 255, 255)
PALETTE = (
    (31, 119, 180), (214, 90, 30), (44, 140, 60), (148, 80, 180), (190, 40, 60),
    (130, 95, 70), (215, 110, 180), (90, 90, 95), (150, 150, 30), (20, 160, 175),
)  # fmt: skip
FONT = ImageFont.load_default(size=13)
SMALL = ImageFont.load_default(size=11)


@dataclass
class Bar:
    """One line of a bar chart: a filled bar (measured), an outline and a tick (published).

    None where there is no such figure.
    """

    label: str
    filled: float | None = None
    outline: float | None = None
    tick: float | None = None


@dataclass
class Panel:
    """Bars that share an axis, under one title."""

    title: str
    bars: list[Bar] = field(default_factory=list)


@dataclass
class Curve:
    """points: (x, y) in order of x. dashed: drawn thin, with hollow marks."""

    label: str
    points: list[tuple[float, float]]
    dashed: bool = False


@dataclass
class Point:
    """One labelled mark of a scatter plot."""

    label: str
    x: float
    y: float


# ---------------------------------------------------------------------------------------- bars


def bar_panels(title: str, panels: Sequence[Panel], key: str, columns: int = 4) -> Picture:
    """Horizontal bars, one panel per dataset and scale; shorter is better. key: explains them."""
    line, width, head = 20, 380, 34
    columns = min(columns, len(panels))
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    heights = [head + line * max(len(panel.bars) for panel in row) + 12 for row in rows]
    image = Image.new("RGB", (max(width * columns, 640) + 20, sum(heights) + 60), PAPER)
    draw = ImageDraw.Draw(image)
    _write(draw, (10, 8), title, INK, FONT)
    _write(draw, (10, 28), key, GREY, SMALL)
    top = 52
    for row, height in zip(rows, heights, strict=True):
        for column, panel in enumerate(row):
            _bars(draw, panel, 10 + column * width, top, width - 20, line, head)
        top += height
    return np.asarray(image)


def _bars(
    draw: ImageDraw.ImageDraw, panel: Panel, left: int, top: int, width: int, line: int, head: int
) -> None:
    _write(draw, (left, top + 8), panel.title, INK, FONT)
    start, room = left + 118, width - 118 - 104
    values = [v for bar in panel.bars for v in (bar.filled, bar.outline, bar.tick) if v is not None]
    largest = max(values, default=1.0) or 1.0
    for number, bar in enumerate(panel.bars):
        y = top + head + number * line
        _write(draw, (left, y), _cut(bar.label, 17), INK, SMALL)
        if bar.filled is not None:
            draw.rectangle((start, y + 1, start + room * bar.filled / largest, y + 8), PALETTE[0])
        if bar.outline is not None:
            end = start + room * bar.outline / largest
            draw.rectangle((start, y + 9, end, y + 15), outline=GREY)
        if bar.tick is not None:
            x = start + room * bar.tick / largest
            draw.line((x, y, x, y + 16), fill=PALETTE[1], width=3)
        figures = (bar.filled, bar.outline, bar.tick)
        shown = " | ".join("-" if v is None else f"{v:.2f}" for v in figures)
        _write(draw, (start + room + 8, y + 1), shown, GREY, SMALL)


# ------------------------------------------------------------------------------ curves, scatter


class Axes:
    """A frame with ticks; maps values to pixels. log: which axes are logarithmic."""

    def __init__(
        self,
        draw: ImageDraw.ImageDraw,
        box: tuple[int, int, int, int],
        xs: Sequence[float],
        ys: Sequence[float],
        log: str,
        x_ticks: Sequence[float] | None = None,
    ):
        self.draw, self.box = draw, box
        left, top, right, bottom = box
        self.x = _mapping(xs, left + 14, right - 14, log="x" in log)
        self.y = _mapping(ys, bottom - 10, top + 10, log="y" in log)
        for tick in x_ticks or _ticks(xs, log="x" in log):
            x = self.x(tick)
            draw.line((x, top, x, bottom), fill=FAINT)
            _write(draw, (x - 3 * len(f"{tick:g}"), bottom + 4), f"{tick:g}", GREY, SMALL)
        for tick in _ticks(ys, log="y" in log):
            y = self.y(tick)
            draw.line((left, y, right, y), fill=FAINT)
            _write(draw, (left - 8 - 6 * len(f"{tick:g}"), y - 7), f"{tick:g}", GREY, SMALL)
        draw.rectangle(box, outline=GREY)

    def mark(self, x: float, y: float, colour: tuple[int, int, int], hollow: bool) -> None:
        px, py = self.x(x), self.y(y)
        fill = PAPER if hollow else colour
        self.draw.ellipse((px - 4, py - 4, px + 4, py + 4), fill=fill, outline=colour, width=2)


def curve_panels(
    title: str,
    panels: Sequence[tuple[str, Sequence[Curve]]],
    x_title: str,
    *,
    log: str = "xy",
    marks: bool = True,
) -> Picture:
    """One frame per panel; a label has one colour in all of them.

    Args:
        log: which axes are logarithmic.
        marks: mark every point and write its x below; without, curves may have any number.
    """
    width, height = 420, 330
    labels = list(dict.fromkeys(curve.label for _, curves in panels for curve in curves))
    colours = {label: PALETTE[i % len(PALETTE)] for i, label in enumerate(labels)}
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    below = 60 + rows * height
    image = Image.new("RGB", (max(width * columns, 640), below + 18 * len(labels) + 12), PAPER)
    draw = ImageDraw.Draw(image)
    _write(draw, (10, 8), title, INK, FONT)
    _write(draw, (10, 28), x_title, GREY, SMALL)
    for number, (name, curves) in enumerate(panels):
        left, top = number % columns * width, 54 + number // columns * height
        _write(draw, (left + 60, top), name, INK, FONT)
        xs = sorted({x for curve in curves for x, _ in curve.points})
        ys = [y for curve in curves for _, y in curve.points]
        box = (left + 60, top + 22, left + width - 14, top + height - 36)
        axes = Axes(draw, box, xs, ys, log=log, x_ticks=xs if marks else None)
        for curve in curves:
            colour = colours[curve.label]
            path = [(axes.x(x), axes.y(y)) for x, y in curve.points]
            draw.line(path, fill=colour, width=1 if curve.dashed else 2)
            for x, y in curve.points if marks else ():
                axes.mark(x, y, colour, hollow=curve.dashed)
    for number, label in enumerate(labels):
        y = below + 18 * number
        draw.line((20, y + 8, 50, y + 8), fill=colours[label], width=3)
        _write(draw, (58, y), label, INK, SMALL)
    return np.asarray(image)


def scatter(title: str, points: Sequence[Point], x_title: str, y_title: str) -> Picture:
    """Labelled points; x is logarithmic."""
    width, height = 860, 520
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    _write(draw, (10, 8), title, INK, FONT)
    _write(draw, (10, 28), y_title, GREY, SMALL)
    xs, ys = [p.x for p in points], [p.y for p in points]
    axes = Axes(draw, (70, 50, width - 130, height - 50), xs, ys, log="x")
    _write(draw, (70, height - 24), x_title, GREY, SMALL)
    for number, point in enumerate(points):
        colour = PALETTE[number % len(PALETTE)]
        axes.mark(point.x, point.y, colour, hollow=False)
        _write(draw, (axes.x(point.x) + 8, axes.y(point.y) - 8), point.label, colour, SMALL)
    return np.asarray(image)


def _mapping(
    values: Sequence[float], start: float, end: float, *, log: bool
) -> Callable[[float], float]:
    """Value -> pixel, so that the smallest and largest value lie at the two ends."""
    scale = math.log if log else float
    lowest, highest = scale(min(values)), scale(max(values))
    span = (highest - lowest) or 1.0
    return lambda value: start + (end - start) * (scale(value) - lowest) / span


def _ticks(values: Sequence[float], *, log: bool) -> list[float]:
    """Round numbers within the range of the values; its ends if there are none."""
    lowest, highest = min(values), max(values)
    if log:
        powers = range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
        steps = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    else:
        raw = (highest - lowest or 1.0) / 5
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= raw)
        first = math.ceil(lowest / step)
        steps = [round(step * n, 10) for n in range(first, math.floor(highest / step) + 1)]
    inside = [step for step in steps if lowest <= step <= highest]
    return inside or [lowest, highest]


def _write(
    draw: ImageDraw.ImageDraw,
    place: tuple[float, float],
    text: str,
    colour: tuple[int, int, int],
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
) -> None:
    for missing, spelled in (("×", "x"), ("–", "-"), ("δ", "delta ")):  # not in Pillow's font
        text = text.replace(missing, spelled)
    draw.text(place, text, fill=colour, font=font)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "."
