"""The network in the browser: the page of `scripts/static_page.py --network` against Python."""

import base64
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ducos import example, super_resolve
from ducos.cameras import Camera, flying_pixels
from ducos.files import read_depth
from tests.places import REPOSITORY
from tests.serve.conftest import png_of
from tests.serve.pages import NO_BROWSER, Pair, hosted, opened, pixels, upload
from tests.serve.server import ENVIRONMENT

MOST = 1e-4  # of the range of the measurements
ISOLATED = {  # with these a browser allows threads
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}

pytestmark = [
    NO_BROWSER,
    pytest.mark.skipif(shutil.which("npm") is None, reason="no Node here to build the page with"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as it would be put on a host of files; skips where npm reaches no packages."""
    page = REPOSITORY / "page"
    if not (page / "node_modules" / "onnxruntime-web").is_dir():
        got = subprocess.run(["npm", "ci"], cwd=page, capture_output=True, text=True)
        if got.returncode != 0:
            pytest.skip(f"npm ci could not install the page's libraries: {got.stderr[-200:]}")
    place = tmp_path_factory.mktemp("network")
    script = REPOSITORY / "scripts" / "static_page.py"
    environment = {**os.environ, **ENVIRONMENT}
    subprocess.run([sys.executable, script, place, "--network"], check=True, env=environment)
    return place


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    with hosted(folder) as url:
        yield url


def npy_of(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


Case = tuple[np.ndarray, bytes, str, dict[str, Any]]


def cases() -> dict[str, Case]:
    """Colours, the depth map's file with its suffix, and options."""
    rgb = np.asarray(Image.open(example.RGB).convert("RGB"))
    truth = np.asarray(Image.open(example.TRUTH)).astype(np.uint16)
    odd = truth[:97, :131][1::3, 1::3]
    holes = truth.T[:322, :166][4::8, 4::8].astype(np.float32) / 1000
    holes[5:15, 3:12] = 0
    holes[30] = np.nan
    levels = (truth[:96, :128][::4, ::4] // 40).clip(0, 255).astype(np.uint8)
    tof = np.asarray(Image.open(example.PAIRS["tof"].depth)).astype(np.uint16)[20:80, 40:120]
    wide = rgb[80:320, 160:480]
    return {
        "ratio not an integer": (rgb[:97, :131], png_of(odd[:31, :43]), "png", {}),
        "portrait, holes": (rgb.transpose(1, 0, 2)[:322, :166], npy_of(holes), "npy", {}),
        "time of flight": (wide, png_of(tof), "png", {"sensor": "tof", "keep_holes": True}),
        "relative levels": (rgb[:96, :128], png_of(levels), "png", {}),
        "finer than the photo": (rgb[:60, :80], png_of(truth[:120, :160]), "png", {}),
    }


CASES = cases()
MAPS = """async ({ rgb, depth, suffix, options }) => {
  const file = async (content, name) => new File([await (await fetch(content)).blob()], name);
  const { Engine } = await import("./engine.js");
  const engine = (window.engine ??= new Engine());
  const files = { rgb: await file(rgb, "rgb.png"), depth: await file(depth, `depth.${suffix}`) };
  const { facts, maps, view } = await engine.upscale(files, options, () => {});
  const planes = { ...maps, bicubic: view.bicubic, flying: view.flying };
  return [facts, Object.fromEntries(Object.entries(planes).map(([k, { data }]) => [k, [...data]]))];
}"""


def as_address(content: bytes) -> str:
    return f"data:application/octet-stream;base64,{base64.b64encode(content).decode()}"


def computed(page: Any, case: Case) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Facts and maps, in rows one after the other, as the browser computes them."""
    usual = {"unit": "auto", "sensor": "unknown", "mode": "auto", "keep_holes": False}
    colours, depth, suffix, options = case
    files = {"rgb": as_address(png_of(colours)), "depth": as_address(depth), "suffix": suffix}
    facts, maps = page.evaluate(MAPS, {**files, "options": {**usual, **options}})
    return facts, {name: np.array(each, np.float32) for name, each in maps.items()}


@pytest.fixture(scope="module")
def page(browser: Any, site: str) -> Iterator[Any]:
    """One page for all cases: opening the network takes longer than a small frame."""
    yield from opened(browser, site)


@pytest.mark.parametrize("name", CASES)
def test_the_browser_says_what_python_says(page: Any, tmp_path: Path, name: str) -> None:
    colours, depth, suffix, options = CASES[name]
    (tmp_path / "rgb.png").write_bytes(png_of(colours))
    low = tmp_path / f"low.{suffix}"
    low.write_bytes(depth)
    own = super_resolve(tmp_path / "rgb.png", low, runtime="onnx", **options)
    bicubic = super_resolve(tmp_path / "rgb.png", low, model="bicubic", **options)
    measured = own.low.depth[own.low.valid]
    facts, maps = computed(page, CASES[name])
    assert own.note in facts["notes"]
    assert facts["model"] == own.model
    assert facts["noise"] == pytest.approx(own.noise, rel=1e-4)
    assert facts["residual"] == pytest.approx(own.residual, rel=1e-3, abs=1e-6)
    for mine, theirs in (("depth", own.depth), ("sigma", own.sigma), ("bicubic", bicubic.depth)):
        assert np.abs(maps[mine] - theirs.ravel()).max() <= MOST * np.ptp(measured), mine
    for mine, theirs in (
        ("source", own.source),
        ("valid", own.valid),
        ("low_valid", own.low.valid),
    ):
        assert (maps[mine] == theirs.ravel()).all(), mine
    camera = Camera.from_field_of_view(*own.depth.shape[::-1], 60)
    flying = flying_pixels(own.depth, own.valid, camera, **own.doubts)
    assert (maps["flying"] != flying.ravel()).mean() < 1e-4  # some lie on the limit


@contextmanager
def downloaded(page: Any, kind: str) -> Iterator[Path]:
    with page.expect_download() as download:
        page.click(f"#get-{kind}")
    yield Path(download.value.path())


def test_an_example_with_threads_and_its_files(browser: Any, folder: Path, tmp_path: Path) -> None:
    own = super_resolve(example.RGB, example.LOW, unit="mm", runtime="onnx", field_of_view=60)
    with hosted(folder, ISOLATED) as url:
        for page in opened(browser, url):
            sent: list[tuple[str, str]] = []
            page.on("request", lambda request, to=sent: to.append((request.method, request.url)))
            assert page.evaluate("crossOriginIsolated")
            page.click("#example-table")
            page.wait_for_selector("#state:text('Done.')")
            page.wait_for_selector("#findings .good")
            assert f"to {own.depth.max():.3f} m" in page.text_content("#facts")
            assert pixels(page, "#space").std() > 15
            with downloaded(page, "npy") as file:
                depth = np.load(file)
            assert np.abs(depth - own.depth).max() <= MOST * np.ptp(own.low.depth)
            with downloaded(page, "png") as file:
                shutil.copyfile(file, tmp_path / "sharp.png")
            stored = read_depth(tmp_path / "sharp.png")
            assert stored.note == "unit read from the file: millimetres"
            assert np.abs(stored.depth - own.depth).max() < 0.0016
            with downloaded(page, "ply") as file:
                header, _, body = file.read_bytes().partition(b"end_header\n")
            kind = np.dtype([("xyz", "<f4", 3), ("rgb", "u1", 3)])
            cloud, points = own.cloud(), np.frombuffer(body, kind)
            assert b"element vertex %d\n" % len(points) in header
            assert abs(len(points) - len(cloud)) < 10
            assert np.abs(points["xyz"].mean(0) - cloud.points.mean(0)).max() < 1e-3
            # Nothing goes out: the page's own files are asked for, and that is all.
            assert {method for method, _ in sent} == {"GET"}
            assert all(to.startswith((url, f"blob:{url}")) for _, to in sent)
            link = page.url
            page.goto("about:blank")
            page.goto(link)
            page.wait_for_selector("#state:text('Done.')")


@pytest.mark.parametrize(
    ("depth", "suffix", "sentence"),
    [
        (b"v/1\x01 this is no picture", "exr", "must be a PNG or NPY file on this page"),
        (png_of(np.zeros((12, 16, 3), np.uint8)), "png", "has 3 channels"),
        (png_of(np.ones((12, 16), np.uint16))[:-30], "png", "This PNG is damaged"),
        (npy_of(np.zeros((12, 16), np.float32)), "npy", "no valid pixel"),
        (npy_of(np.zeros((12, 16), np.complex64)), "npy", "must be integers"),
    ],
    ids=["EXR", "colours", "cut off", "nothing measured", "complex"],
)
def test_wrong_files_are_said_in_words(
    browser: Any, site: str, pair: Pair, depth: bytes, suffix: str, sentence: str
) -> None:
    for page in opened(browser, site):
        upload(page, pair[0], depth, suffix)
        page.wait_for_selector(f"#findings .error:has-text('{sentence}')")
        assert page.is_disabled("#run")


def test_what_is_not_there_is_not_shown_and_work_can_be_cancelled(browser: Any, site: str) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
    for page in opened(browser, site, **phone):
        page.tap("#example-tof")
        page.wait_for_selector("#cancel:visible")
        page.tap("#cancel")
        page.wait_for_selector("#state:text('Cancelled.')")
        page.tap("#run")
        page.wait_for_selector("#state:text('Done.')")
        assert page.locator("#downloads button").count() == 3
        page.tap("summary")
        assert page.is_visible("#options [name=mask]")
        assert not page.is_visible("#options [name=prior]")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
