"""The network in the browser: the page of `scripts/static_page.py --network` against Python."""

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
from ducos.files import read_depth
from tests.places import REPOSITORY
from tests.serve.conftest import png_of
from tests.serve.pages import NO_BROWSER, hosted, opened, pixels, sharpen, upload
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


def cases() -> dict[str, tuple[np.ndarray, bytes, str, dict[str, Any]]]:
    """Colours, the depth map's file with its suffix, and options."""
    rgb = np.asarray(Image.open(example.RGB).convert("RGB"))
    truth = np.asarray(Image.open(example.TRUTH)).astype(np.uint16)
    odd = truth[:97, :131][1::3, 1::3]
    holes = truth.T[:322, :166][4::8, 4::8].astype(np.float32) / 1000
    holes[5:15, 3:12] = 0
    holes[30] = np.nan
    levels = (truth[:96, :128][::4, ::4] // 40).clip(0, 255).astype(np.uint8)
    return {
        "ratio not an integer": (rgb[:97, :131], png_of(odd[:31, :43]), "png", {}),
        "portrait, holes": (rgb.transpose(1, 0, 2)[:322, :166], npy_of(holes), "npy", {}),
        "time of flight": (rgb, example.PAIRS["tof"].depth.read_bytes(), "png", {"sensor": "tof"}),
        "relative levels": (rgb[:96, :128], png_of(levels), "png", {}),
        "finer than the photo": (rgb[:60, :80], png_of(truth[:120, :160]), "png", {}),
    }


@contextmanager
def downloaded(page: Any, kind: str) -> Iterator[Path]:
    with page.expect_download() as download:
        page.click(f"#get-{kind}")
    yield Path(download.value.path())


@pytest.mark.parametrize("name", cases())
def test_the_browser_says_what_python_says(
    browser: Any, site: str, tmp_path: Path, name: str
) -> None:
    colours, depth, suffix, options = cases()[name]
    (tmp_path / "rgb.png").write_bytes(png_of(colours))
    (tmp_path / f"low.{suffix}").write_bytes(depth)
    own = super_resolve(tmp_path / "rgb.png", tmp_path / f"low.{suffix}", runtime="onnx", **options)
    measured = own.low.depth[own.low.valid]
    for page in opened(browser, site):
        sent: list[tuple[str, str]] = []
        page.on("request", lambda request: sent.append((request.method, request.url)))
        upload(page, png_of(colours), depth, suffix)
        page.wait_for_selector("#run:enabled")
        for field, value in options.items():
            page.select_option(f"#options [name={field}]", value)
        page.click("#run")
        page.wait_for_selector("#state:text('Done.')")
        said = page.text_content("#facts")
        assert own.note in said
        assert f"noise of the input {own.noise:.4f}" in said
        with downloaded(page, "npy") as file:
            depth_there = np.load(file)
        shares = page.evaluate(
            "() => import('./engine.js').then(() => document.querySelector('#flew').textContent)"
        )
        assert "Flying pixels" in shares
        # Nothing goes out: the page's own files are asked for, and that is all.
        assert {method for method, _ in sent} <= {"GET"}
        assert all(url.startswith((site, "blob:")) for _, url in sent)
    assert depth_there.dtype == np.float32
    assert np.abs(depth_there - own.depth).max() <= MOST * np.ptp(measured)
