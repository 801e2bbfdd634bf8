"""Pages in a real browser: how tests open them, use them and look at them."""

import io
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
    "--enable-unsafe-swiftshader",  # 3D without a graphics card
]
LATER = 60_000  # milliseconds; a busy machine is slow
Pair = tuple[bytes, bytes]
NO_BROWSER = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="no Chromium or no Playwright here: install them with the package managers",
)


def opened(browser: Any, url: str, **context: Any) -> Iterator[Any]:
    """A page without errors in its scripts."""
    context.setdefault("viewport", {"width": 1280, "height": 900})
    inside = browser.new_context(reduced_motion="reduce", accept_downloads=True, **context)
    page = inside.new_page()
    page.set_default_timeout(LATER)
    errors: list[str] = []
    page.on("pageerror", lambda problem: errors.append(str(problem)))
    page.goto(url)
    page.wait_for_selector("#example-table")
    yield page
    inside.close()
    assert not errors


@contextmanager
def hosted(folder: Path, headers: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a plain host of files. headers: more of them, with every answer."""

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            super().end_headers()

    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as host:
        threading.Thread(target=host.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{host.server_address[1]}/"
        host.shutdown()


def upload(page: Any, rgb: bytes, depth: bytes, suffix: str = "png") -> None:
    """Choose both files. suffix: of the depth map."""
    for name, content in (("rgb.png", rgb), (f"depth.{suffix}", depth)):
        file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        page.set_input_files(f"#file-{name.split('.')[0]}", files=[file])


def sharpen(page: Any, rgb: bytes, depth: bytes, suffix: str = "png") -> None:
    upload(page, rgb, depth, suffix)
    page.wait_for_selector("#run:enabled")
    page.click("#run")
    page.wait_for_selector("#state:text('Done.')")


def pixels(page: Any, selector: str) -> np.ndarray:
    picture = Image.open(io.BytesIO(page.locator(selector).screenshot())).convert("RGB")
    return np.asarray(picture).astype(int)


def middle_of(page: Any, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
