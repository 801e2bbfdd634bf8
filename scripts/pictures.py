"""Remake every picture of the docs from the bundled example (CC0), in about a minute.

python scripts/pictures.py              all of them, into docs/pictures
python scripts/pictures.py demo holes   some
"""

import argparse
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from ducos import files
from ducos.cameras import orbit, point_cloud, render
from ducos.cameras.intrinsics import Camera
from ducos.degrade import DEGRADATIONS
from ducos.doctor import examine
from ducos.doctor.correction import shift_to_undo
from ducos.doctor.picture import report_picture
from ducos.example import LOW, RGB, TRUTH
from ducos.models.ducos.guide import follow
from ducos.normalise import range_of
from ducos.pictures.crops import clearest_edge, windows
from ducos.pictures.palette import colourise
from ducos.pictures.preview import (
    Maps,
    Picture,
    captioned,
    comparison,
    crop_strips,
    nearest,
    overview,
    profile,
    side_by_side,
)
from ducos.prompts.prompt import run_prompt
from ducos.resize import bicubic, fill_holes, pad_to_multiple
from ducos.upscaling import Result, cloud_picture, load, super_resolve

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
LARGEST = 250_000  # bytes of a JPEG
FIELD_OF_VIEW = 60  # degrees across the example, for clouds
SOURCE_COLOURS = ((40, 40, 40), (70, 130, 180), (240, 180, 60), (200, 60, 60))  # see SOURCES


class Example:
    """The bundled pair with its truth, and what the embedded model makes of it."""

    def __init__(self) -> None:
        self.rgb = files.read_rgb(RGB)
        low, truth = files.read_depth(LOW, unit="mm"), files.read_depth(TRUTH, unit="mm")
        self.low, self.low_valid = low.depth, low.valid
        self.truth, self.truth_valid = truth.depth, truth.valid
        self.size = (self.truth.shape[0], self.truth.shape[1])
        self.result: Result = super_resolve(self.rgb, low)
        result = self.result
        self.maps = Maps(self.rgb, self.low, self.low_valid, result.depth, result.valid, self.truth)
        self.scale = self.maps.scale


def demo(example: Example) -> Picture:
    """Colour, input, result, truth."""
    return shrunk(overview(example.maps), 1600)


def preview(example: Example) -> Picture:
    """What `--preview` writes."""
    result = example.result
    sheet = comparison(example.rgb, example.low, example.low_valid, result.depth, result.valid)
    return shrunk(sheet, 1500)


def crops(example: Example) -> Picture:
    """Zoomed: colour, input, bicubic, result, truth."""
    return crop_strips(example.maps, windows(example.low, example.low_valid, example.size))


def edge(example: Example) -> Picture:
    """Depth along a line across an edge."""
    line = clearest_edge(example.low, example.low_valid, example.size)
    assert line is not None
    return profile(example.maps, line)


def cloud(example: Example) -> Picture:
    """The result as a cloud from two places, as `--cloud-preview` draws it."""
    height, width = example.size
    camera = Camera.from_field_of_view(width, height, FIELD_OF_VIEW)
    result = example.result
    planes = (result.depth, result.valid, example.rgb)
    return cloud_picture(point_cloud(*planes, camera, **result.doubts), camera)


def flying(example: Example) -> Picture:
    """Clouds from one place: every pixel of bicubic and of the result, then what is written."""
    height, width = example.size
    camera = Camera.from_field_of_view(width, height, FIELD_OF_VIEW)
    view = camera.scaled(440, 330)
    depth = example.result.depth
    pose = orbit(point_cloud(example.truth, example.truth < 4, example.rgb, camera), -24, 12)
    panels = []
    for name, values, doubt, drop in (
        ("bicubic, every pixel", example.maps.smooth, {}, False),
        ("result, every pixel", depth, {}, False),
        ("result, as --cloud writes it", depth, example.result.doubts, True),
        ("ground truth", example.truth, {}, True),
    ):
        near = (values > 0.1) & (values < 4)
        points = point_cloud(values, near, example.rgb, camera, **doubt, drop_flying=drop)
        panels.append((name, render(points, view, pose)))
    return side_by_side(panels)


def inside(example: Example) -> Picture:
    """What the embedded model goes by: the prompt's depth, and the measurements fitted to colours;
    and what it makes of the same map under a grey picture."""
    model = load("ducos-tiny")
    rgb = torch.from_numpy(example.rgb.copy()).permute(2, 0, 1)[None]
    low, valid = (torch.from_numpy(m)[None, None] for m in (example.low, example.low_valid))
    limits = range_of(low, valid)
    measured = limits.apply(fill_holes(low, valid, rgb))
    with torch.inference_mode():
        relative = run_prompt(model.prompt, pad_to_multiple(rgb, model.multiple)).depth
        up = bicubic(measured, example.size)
        fit = limits.undo(follow(rgb, measured, valid, up, torch.full_like(up, torch.inf)))
    grey = super_resolve(np.full_like(example.rgb, 0.5), files.read_depth(LOW, unit="mm"))
    H, W = example.size
    nearness = relative[0, 0, :H, :W].numpy()
    everywhere = np.ones(example.size, bool)
    panels = [
        ("image", np.rint(255 * example.rgb).astype(np.uint8)),
        (
            "input",
            example.scale.paint(
                nearest(example.low, example.size), nearest(example.low_valid, example.size)
            ),
        ),
        ("prompt: relative nearness from colour alone", colourise(nearness, everywhere)),
        ("measurements fitted to the colours", example.scale.paint(fit[0, 0].numpy(), everywhere)),
        ("result", example.scale.paint(example.result.depth, example.result.valid)),
        ("result under a grey picture", example.scale.paint(grey.depth, grey.valid)),
    ]
    return np.vstack([grid(panels, columns=3, width=480), example.scale.bar(1440)])


def protocols(example: Example) -> Picture:
    """Resamplings and the field's protocols, with what they do to the truth."""
    names = [name for name in DEGRADATIONS if name not in SENSORS]
    panels = [("ground truth", example.scale.paint(example.truth, example.truth_valid))]
    panels += [(name, degraded(example, name)) for name in names]
    return np.vstack([grid(panels, columns=4, width=300), example.scale.bar(1200)])


SENSORS = ("tof", "lidar", "stereo", "misregister")


def sensors(example: Example) -> Picture:
    """Each sensor model: what it measures, how far that is off, what the embedded model makes."""
    largest = 0.1
    lines = []
    for name in SENSORS:
        low, known = simulate(example, name)
        result = super_resolve(example.rgb, np.where(known, low, 0), unit="m")
        error = np.abs(nearest(low, example.size) - example.truth)
        error_known = nearest(known, example.size) & example.truth_valid
        painted = colourise(error, error_known, lowest=0, highest=largest, palette="inferno")
        panels = [
            (f"{name} {low.shape[1]} x {low.shape[0]}", degraded(example, name)),
            (f"off the truth: black 0, yellow {100 * largest:g} cm and more", painted),
            ("ducos upscale", example.scale.paint(result.depth, result.valid)),
        ]
        lines.append(grid(panels, columns=3, width=360))
    return np.vstack([*lines, example.scale.bar(1080)])


def holes(example: Example) -> Picture:
    """What happens to holes: filled, kept, and where each value comes from."""
    result = example.result
    kept = super_resolve(RGB, LOW, unit="mm", keep_holes=True)
    colours = np.asarray(SOURCE_COLOURS, np.uint8)
    assert result.sigma is not None
    sigma = colourise(result.sigma, lowest=0, highest=0.1, palette="magma")
    whole = np.ones(example.size, np.bool_)
    large = nearest(example.low, example.size), nearest(example.low_valid, example.size)
    panels = [
        ("input: 0 is a hole", example.scale.paint(*large)),
        ("result: filled", example.scale.paint(result.depth, whole)),
        ("--keep-holes", example.scale.paint(kept.depth, kept.valid)),
        ("source: measured blue, interpolated yellow, inferred red", colours[result.source]),
        ("--keep-holes, source: none dark", colours[kept.source]),
        ("sigma: black 0, pale 10 cm and more", sigma),
    ]
    return np.vstack([grid(panels, columns=3, width=480), example.scale.bar(1440)])


def doctor_sound(example: Example) -> Picture:
    """The doctor's report on the bundled pair."""
    return report_picture(examine(RGB, LOW))


def doctor_faults(example: Example) -> Picture:
    """The same pair moved by 2 and 1 of its pixels and clipped at 2.7 m."""
    spoilt = np.minimum(np.roll(example.low, (1, 2), (0, 1)), 2.7)
    with tempfile.TemporaryDirectory() as folder:
        files.write_depth(Path(folder) / "spoilt.png", spoilt)
        return report_picture(examine(RGB, Path(folder) / "spoilt.png"))


def shift(example: Example) -> Picture:
    """The pair moved by 2 and 1 of its pixels: upscaled as it is, and moved back as measured."""
    beside = files.as_depth(np.roll(example.low, (1, 2), (0, 1)), unit="m")
    found = shift_to_undo("auto", example.rgb, beside)
    panels = [("image", np.rint(255 * example.rgb).astype(np.uint8))]
    for words, by in (("off", (0, 0)), (f"auto: {found.x:.0f},{found.y:.0f}", (found.x, found.y))):
        result = super_resolve(example.rgb, beside, shift=by)
        error = np.abs(result.depth - example.truth)[example.truth_valid]
        caption = f"--shift {words}; off by {100 * error.mean():.1f} cm on average"
        panels.append((caption, example.scale.paint(result.depth, result.valid)))
    return np.vstack([grid(panels, columns=3, width=480), example.scale.bar(1440)])


def dark(example: Example) -> Picture:
    """The same map with its picture, with a black one and with one of something else."""
    low = files.read_depth(LOW, unit="mm")
    everywhere = np.ones(example.size, bool)
    pictures = {
        "its own picture": example.rgb,
        "a black picture": np.zeros_like(example.rgb),
        "a wrong picture": example.rgb[::-1, ::-1].copy(),
    }
    upper = [(name, np.rint(255 * each).astype(np.uint8)) for name, each in pictures.items()]
    coarse = [nearest(m, example.size) for m in (example.low, example.low_valid)]
    upper.append(("input", example.scale.paint(*coarse)))
    depths = [super_resolve(each, low).depth for each in pictures.values()]
    names = ["result", "result", "result", "bicubic"]
    lower = [
        (f"{name}, RMSE {error(example, depth):.1f} cm", example.scale.paint(depth, everywhere))
        for name, depth in zip(names, [*depths, example.maps.smooth], strict=True)
    ]
    return grid([*upper, *lower], columns=4, width=380)


def told(example: Example) -> Picture:
    """Maps of a simulated ToF camera: bicubic, the result without and with the sensor's name."""
    everywhere = np.ones(example.size, bool)
    panels = []
    for ratio in (2, 4):
        low, known = simulate(example, "tof", ratio)
        panels.append((f"map of tof, 1/{ratio} of the size", degraded(example, "tof", ratio)))
        for words, model, name in (
            ("bicubic", "bicubic", "unknown"),
            ("result", "ducos-tiny", "unknown"),
            ("--sensor tof", "ducos-tiny", "tof"),
        ):
            result = super_resolve(example.rgb, low, mask=known, unit="m", model=model, sensor=name)
            picture = example.scale.paint(result.depth, everywhere)
            panels.append((f"{words}, RMSE {error(example, result.depth):.1f} cm", picture))
    return grid(panels, columns=4, width=380)


def error(example: Example, depth: NDArray[np.float32]) -> float:
    """Root mean square against the truth in centimetres."""
    wrong = (depth - example.truth)[example.truth_valid]
    return float(100 * np.sqrt(np.mean(wrong**2)))


def simulate(
    example: Example, name: str, ratio: int = 4
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The example's truth through a degradation, `ratio` times smaller, seed 0."""
    target = torch.tensor(example.truth)[None, None]
    valid = torch.tensor(example.truth_valid)[None, None]
    rgb = torch.tensor(example.rgb).permute(2, 0, 1)[None]
    size = (example.size[0] // ratio, example.size[1] // ratio)
    low, known = DEGRADATIONS[name](target, valid, rgb, size, torch.Generator().manual_seed(0))
    return low[0, 0].numpy(), known[0, 0].numpy()


def degraded(example: Example, name: str, ratio: int = 4) -> Picture:
    low, known = simulate(example, name, ratio)
    return example.scale.paint(nearest(low, example.size), nearest(known, example.size))


def grid(panels: list[tuple[str, Picture]], columns: int, width: int) -> Picture:
    """Captioned panels in lines; the last line is filled up with dark."""
    cells = [captioned(text, shrunk(picture, width)) for text, picture in panels]
    while len(cells) % columns:
        cells.append(np.full_like(cells[0], cells[0][0, 0]))
    lines = [np.hstack(cells[i : i + columns]) for i in range(0, len(cells), columns)]
    return np.vstack(lines)


def shrunk(picture: Picture, width: int) -> Picture:
    """A picture at this width."""
    height = round(picture.shape[0] * width / picture.shape[1])
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))


def write(path: Path, picture: Picture) -> int:
    """As the best JPEG below the limit; its size in bytes."""
    for quality in (92, 88, 84, 80, 74, 68, 60, 50, 40):
        buffer = BytesIO()
        fine = 0 if quality > 70 else 2  # noise costs more than its colours are worth
        Image.fromarray(picture).save(
            buffer, "JPEG", quality=quality, subsampling=fine, optimize=True
        )
        if buffer.tell() < LARGEST:
            break
    path.write_bytes(buffer.getvalue())
    return buffer.tell()


PICTURES: dict[str, Callable[[Example], Picture]] = {
    "demo": demo,
    "preview": preview,
    "crops": crops,
    "edge": edge,
    "cloud": cloud,
    "flying": flying,
    "inside": inside,
    "protocols": protocols,
    "sensors": sensors,
    "holes": holes,
    "doctor-sound": doctor_sound,
    "doctor-faults": doctor_faults,
    "shift": shift,
    "dark": dark,
    "told": told,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(PICTURES)}; none means all")
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(PICTURES)
    if unknown:
        parser.error(f"no such picture: {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    example = Example()
    for name in arguments.names or PICTURES:
        path = arguments.out / f"{name}.jpg"
        print(f"{path}: {write(path, PICTURES[name](example)) // 1000} kB")


if __name__ == "__main__":
    main()
