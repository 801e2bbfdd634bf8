"""Make docs/gallery.md and its pictures from the bundled scenes (CC0): python scripts/gallery.py

Four rendered scenes, ten simulated depth maps of them: image, input, bicubic, result, and both as
point clouds from the side. Maps of real cameras would be better; none is at hand whose licence
allows to pass it on.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch

from ducos import files
from ducos.cameras import Camera, orbit, point_cloud, render
from ducos.degrade import DEGRADATIONS
from ducos.pictures import Picture, captioned
from ducos.pictures.preview import Maps
from ducos.upscaling import Result, super_resolve, version_of
from pictures import nearest, shrunk, write

REPOSITORY = Path(__file__).parent.parent
SCENES = REPOSITORY / "examples" / "own-sensor"
FOLDER = REPOSITORY / "docs" / "pictures" / "gallery"
PAGE = REPOSITORY / "docs" / "gallery.md"
WIDTH = 420  # pixels of a panel
CASES = [
    ("table", "area", 8, "stereo"),
    ("table", "tof", 4, "tof"),
    ("table", "stereo", 4, "stereo"),
    ("shelf", "area", 8, "stereo"),
    ("shelf", "tof", 4, "tof"),
    ("room", "area", 4, "stereo"),
    ("room", "lidar", 4, "lidar"),
    ("corner", "area", 8, "stereo"),
    ("corner", "tof", 4, "tof"),
    ("corner", "bicubic", 16, "unknown"),
]
WHAT = {
    "area": "each pixel the mean of its area",
    "tof": "a time-of-flight camera's map, simulated",
    "stereo": "a stereo camera's map, simulated",
    "lidar": "a phone LiDAR's map, simulated",
    "bicubic": "resampled with bicubic",
}
HEAD = """# Gallery

Made by `python scripts/gallery.py` with `{version}`: ten simulated depth maps of four rendered
scenes, all CC0 (`examples/own-sensor`). From left to right: image, input, bicubic, result; below,
bicubic and result as point clouds from the side, as `--cloud` writes them (without flying points).
Colours run from near (blue) to far (red); hatched or grey is a hole.

Not here: pairs of real cameras. None was at hand whose licence allows to pass it on; figures on
such maps are on the [results page](results.md#maps-of-real-cameras). RMSE is over the whole image,
holes included.
"""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = [HEAD.format(version=f"ducos-tiny {version_of('ducos-tiny')}")]
    for number, (scene, kind, ratio, sensor) in enumerate(CASES):
        picture, errors = panels(scene, kind, ratio, sensor, number)
        name = f"{scene}-{kind}-x{ratio}"
        print(f"{name}: {write(FOLDER / f'{name}.jpg', picture) // 1000} kB, {errors}")
        hint = "" if sensor == "unknown" else f", `--sensor {sensor}`"
        text.append(
            f"## {scene.capitalize()}, ×{ratio}: {WHAT[kind]}\n\n"
            f"![{scene}: image, input, bicubic, result, clouds](pictures/gallery/{name}.jpg)\n\n"
            f"RMSE {errors[0]:.1f} cm by bicubic, {errors[1]:.1f} cm by `ducos`{hint}.\n"
        )
    PAGE.write_text("\n".join(text), encoding="utf-8")


def panels(
    scene: str, kind: str, ratio: int, sensor: str, seed: int
) -> tuple[Picture, tuple[float, float]]:
    """One sheet, and the errors of bicubic and of the result in centimetres."""
    image, truth, low, valid = measured(scene, kind, ratio, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "low.png"
        files.write_depth(path, low, valid)
        results = [
            super_resolve(image, path, model=model, sensor=sensor, shift="off")
            for model in ("bicubic", "ducos-tiny")
        ]
    maps = Maps(image, low, valid, results[1].depth, results[1].valid, truth)
    size = truth.shape[0], truth.shape[1]
    paint = maps.scale.paint
    every = np.ones(size, bool)
    top = [
        ("image", (image * 255).round().astype(np.uint8)),
        (f"input {low.shape[1]} x {low.shape[0]}", paint(nearest(low, size), nearest(valid, size))),
        ("bicubic", paint(results[0].depth, every)),
        ("result", paint(results[1].depth, every)),
    ]
    row = np.hstack([captioned(name, shrunk(each, WIDTH)) for name, each in top])
    names = ("bicubic, from the side", "result, from the side")
    clouds = [captioned(n, cloud(r, image, truth)) for n, r in zip(names, results)]
    below = shrunk(np.hstack(clouds), row.shape[1])
    errors = [float(np.sqrt(np.mean((r.depth - truth) ** 2)) * 100) for r in results]
    return np.vstack([row, below]), (errors[0], errors[1])


def measured(
    scene: str, kind: str, ratio: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Image (H, W, 3), ground truth (H, W), the simulated map and its mask."""
    path = next(SCENES.glob(f"*/rgb/{scene}.jpg"))
    image = files.read_rgb(path)
    truth = files.read_depth(path.parents[1] / "depth" / f"{scene}.png").depth
    H, W = truth.shape
    known = torch.ones(1, 1, H, W, dtype=torch.bool)
    colours = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None]
    generator = torch.Generator().manual_seed(seed)
    planes = torch.from_numpy(truth)[None, None], known, colours
    low, valid = DEGRADATIONS[kind](*planes, (H // ratio, W // ratio), generator)
    return image, truth, low[0, 0].numpy(), valid[0, 0].numpy()


def cloud(result: Result, image: np.ndarray, truth: np.ndarray) -> Picture:
    """As `--cloud` writes it, without the scene's far tenth, seen from the side."""
    H, W = truth.shape
    camera = Camera.from_field_of_view(W, H, 60)
    far = float(np.percentile(truth, 90)) * 1.05
    near = truth < far
    pose = orbit(point_cloud(truth, near, image, camera), -24, 12)
    shown = (result.depth > 0.1) & (result.depth < far)
    points = point_cloud(result.depth, shown, image, camera, **result.doubts)
    return render(points, camera.scaled(2 * WIDTH, 2 * WIDTH * H // W), pose)


if __name__ == "__main__":
    main()
