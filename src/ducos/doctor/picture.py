"""The doctor's picture: verdict, colour, depth, edges of one on the other, spread, findings."""

import textwrap

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ducos.arrays import Mask
from ducos.cameras import foretold
from ducos.doctor.findings import Finding, Report
from ducos.files import DepthMap
from ducos.filters import dilated, eroded, maximum, minimum
from ducos.pictures import Picture, colourise, side_by_side
from ducos.sampling import continued, moved

PANEL = 400  # width of each picture
PAPER, INK, FAINT = (250, 250, 248), (30, 30, 34), (120, 120, 126)
COLOURS = {"error": (196, 43, 43), "warning": (214, 134, 0), "note": (70, 110, 170)}
VERDICTS = {
    "error": "not usable as it is",
    "warning": "usable, with the warnings in mind",
    "note": "a sound pair",
    "none": "a sound pair",
}
SOUND = (40, 130, 60)
HOLE, MIXED = (230, 60, 200), (255, 255, 255)


def report_picture(report: Report) -> Picture:
    """(height, width, 3) uint8: verdict, three panels, the spread of depths, findings."""
    H, W = report.rgb.shape[:2]
    size = (PANEL, max(1, min(2 * PANEL, round(PANEL * H / W))))
    colour = _resized((report.rgb * 255).round().astype(np.uint8), size, smooth=True)
    panels = [(f"image {W} x {H}", colour)]
    if report.low is not None:
        h, w = report.low.depth.shape
        panels.append(
            (f"depth {w} x {h}; holes pink, mixed pixels white", _depth(report.low, size))
        )
        moved = "; green: where they belong" if report.find("misaligned") else ""
        panels.append((f"red: depth edges{moved}", _overlay(colour, report, size)))
    row = side_by_side(panels)
    parts = [_banner(report, row.shape[1]), row]
    if report.low is not None:
        parts.append(_histogram(report, row.shape[1]))
    return np.vstack([*parts, _text(report, row.shape[1])])


def _resized(picture: Picture, size: tuple[int, int], smooth: bool) -> Picture:
    how = Image.Resampling.BOX if smooth else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(picture).resize(size, how))


def _depth(low: DepthMap, size: tuple[int, int]) -> Picture:
    picture = colourise(low.depth, low.valid)
    picture[~low.valid] = HOLE
    if low.unit != "relative":
        picture[foretold(low.depth, low.valid)[0]] = MIXED
    return _resized(picture, size, smooth=False)


def _overlay(colour: Picture, report: Report, size: tuple[int, int]) -> Picture:
    """Grey colour image with the depth's strongest edges in red; in green where they belong."""
    assert report.low is not None
    edges = _resized(_edges(report.low).astype(np.uint8), size, smooth=False) > 0
    thin = edges & ~eroded(edges)
    grey = colour.mean(2, keepdims=True).repeat(3, 2)
    picture = (0.35 * 255 + 0.65 * grey).astype(np.uint8)
    picture[thin] = (220, 30, 30)
    if report.find("misaligned") is not None and report.shift is not None:
        H, W = report.rgb.shape[:2]
        back = round(-report.shift.x * size[0] / W), round(-report.shift.y * size[1] / H)
        picture[moved(thin, *back, beyond=False)] = (20, 150, 60)
    return picture


def _edges(low: DepthMap) -> Mask:
    """The twentieth of the map with the strongest jumps between measured pixels."""
    filled = continued(low.depth, low.valid)
    reach = maximum(filled, 2) - minimum(filled, 2)
    jump = reach / np.maximum(np.abs(filled), 0.05 * max(float(np.ptp(filled)), 1e-9))
    jump[dilated(~low.valid)] = 0
    return jump > max(float(np.quantile(jump, 0.95)), 0.02)


def _histogram(report: Report, width: int) -> Picture:
    """Bars of the depths from nearest to farthest, with the numbers that matter below."""
    assert report.low is not None
    height, margin = 90, 16
    values = report.low.depth[report.low.valid]
    first, last = float(values.min()), float(values.max())
    last = last if last > first else first + max(1.0, abs(first))  # 2**53 + 1 is 2**53
    bins = (width - 2 * margin) // 4
    # By shares of the range: NumPy's histogram refuses ranges of a few representable numbers.
    shares = (values.astype(np.float64) - first) / (last - first)
    counts = np.bincount(np.minimum((bins * shares).astype(int), bins - 1), minlength=bins)
    image = Image.new("RGB", (width, height + 24), PAPER)
    draw = ImageDraw.Draw(image)
    colours = colourise(np.linspace(first, last, bins, dtype=np.float32)[None])[0]
    tallest = max(int(counts.max()), 1)
    for index, count in enumerate(counts):
        left = margin + 4 * index
        top = height - round((height - 12) * (count / tallest) ** 0.5)  # so that few still show
        draw.rectangle((left, top, left + 2, height), fill=tuple(int(x) for x in colours[index]))
    facts = report.facts
    unit = "" if report.low.unit == "relative" else " m"
    words = [f"{first:.4g} to {last:.4g}{unit}, median {facts['median']:.4g}{unit}"]
    words.append(f"ratio {facts['ratio'][1]:.3g} across, {facts['ratio'][0]:.3g} down")
    words.append(f"holes {100 * facts['hole_share']:.1f} %")
    if facts.get("quantisation_step"):
        words.append(f"step {facts['quantisation_step']:.3g}{unit}")
    if "noise" in facts:
        words.append(f"noise {100 * facts['noise']:.2g} %")
    draw.text((margin, height + 4), "   ".join(words), fill=FAINT, font=_font(13))
    return np.asarray(image)


def _banner(report: Report, width: int) -> Picture:
    """The verdict on its colour, and how many findings of each severity there are."""
    image = Image.new("RGB", (width, 40), SOUND if report.sound else COLOURS[report.worst])
    counts = {
        name: sum(finding.severity == name for finding in report.findings) for name in COLOURS
    }
    words = ", ".join(f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items() if n)
    text = VERDICTS[report.worst] + (f": {words}" if words else "")
    ImageDraw.Draw(image).text((16, 8), text, fill=(255, 255, 255), font=_font(20))
    return np.asarray(image)


def _text(report: Report, width: int) -> Picture:
    """A dot, the sentence and the advice of each finding."""
    across = max(30, (width - 60) // 8)
    lines: list[tuple[str, Finding | None, bool]] = []
    for finding in report.findings:
        lines += [
            (text, finding if number == 0 else None, False)
            for number, text in enumerate(textwrap.wrap(_drawable(finding.sentence), across))
        ]
        lines += [(text, None, True) for text in textwrap.wrap(_drawable(finding.advice), across)
                  if finding.advice]  # fmt: skip
    image = Image.new("RGB", (width, 20 + 21 * len(lines)), PAPER)
    draw = ImageDraw.Draw(image)
    y = 10
    for text, begins, is_advice in lines:
        if begins is not None:
            draw.ellipse((18, y + 3, 29, y + 14), fill=COLOURS[begins.severity])
        draw.text((40, y), text, fill=FAINT if is_advice else INK, font=_font(15))
        y += 21
    return np.asarray(image)


def _drawable(text: str) -> str:
    """The built-in font lacks these."""
    for sign, instead in (("×", "x"), ("→", "->"), ("°", " degrees")):
        text = text.replace(sign, instead)
    return text


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)
