"""Servers and pairs for the tests of `ducos serve`."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ducos import example
from tests.captures.recordings import kinect, record3d
from tests.serve.pages import CHROMIUM, FLAGS
from tests.serve.server import RunningServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, started once for a file of tests."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


def png_of(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(array).save(content, "PNG")
    return content.getvalue()


@pytest.fixture(scope="session")
def pair() -> tuple[bytes, bytes]:
    """A part of the bundled example: 128×96 colours, 16×12 millimetres; files as bytes."""
    rgb = np.asarray(Image.open(example.RGB).convert("RGB"))[200:296, 200:328]
    low = np.asarray(Image.open(example.LOW))[25:37, 25:41].astype(np.uint16)
    return png_of(rgb), png_of(low)


@pytest.fixture(scope="session")
def slow_pair() -> tuple[bytes, bytes]:
    """A pair of 6 megapixels, which keeps a worker busy for many seconds; few bytes."""
    rgb = np.zeros((2000, 3000, 3), np.uint8)
    rgb[::50] = 200
    low = (1000 + np.arange(200 * 300).reshape(200, 300) % 977).astype(np.uint16)
    return png_of(rgb), png_of(low)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory, pair: tuple[bytes, bytes]) -> Path:
    """Three frames."""
    folder = tmp_path_factory.mktemp("recordings") / "kitchen"
    for kind, content in zip(("rgb", "depth"), pair):
        (folder / kind).mkdir(parents=True)
        for number in range(3):
            (folder / kind / f"{number:03}.png").write_bytes(content)
    return folder


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A phone's recording with confidence, and one whose depth is to be registered."""
    folder = tmp_path_factory.mktemp("containers")
    return record3d(folder), kinect(folder)


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, recording: Path, containers: tuple[Path, Path]
) -> Iterator[RunningServer]:
    """A server with usual limits, one worker and three recordings."""
    folder = tmp_path_factory.mktemp("server")
    given = [word for place in (recording, *containers) for word in ("--recording", place)]
    with RunningServer(folder, "--workers", 1, *given) as running:
        yield running


TOKEN = "a long secret word"


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a token and narrow limits."""
    folder = tmp_path_factory.mktemp("strict")
    limits = ["--max-body", "2MB", "--max-megapixels", "7", "--max-seconds", "3"]
    limits += ["--max-queue", "2", "--keep", "2", "--max-disk", "6MB", "--workers", "1"]
    limits += ["--model", "ducos-tiny"]
    with RunningServer(folder, *limits, token=TOKEN) as running:
        yield running
