"""The page in a real browser: what people do with it, by mouse, by keyboard and on a phone."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ducos import example, super_resolve
from tests.places import REPOSITORY
from tests.serve.pages import (
    NO_BROWSER,
    Pair,
    hosted,
    middle_of,
    opened,
    pixels,
    sharpen,
    upload,
)
from tests.serve.server import ENVIRONMENT, RunningServer

TOF: dict[str, Any] = {"unit": "mm", "sensor": "tof", "field_of_view": 60.0}

pytestmark = NO_BROWSER


@pytest.fixture
def page(browser: Any, server: RunningServer) -> Iterator[Any]:
    yield from opened(browser, server.url)


# Files in


def test_the_example_shows_a_result_and_its_link_restores_the_view(page: Any) -> None:
    page.click("#example-table")
    page.wait_for_selector("#state:text('Done.')")
    page.wait_for_selector("#findings .good")
    assert "80×60 → 640×480" in page.text_content("#facts")
    page.click("#left [data-value=bicubic]")
    page.select_option("#palette", "viridis")
    page.click("#both")
    page.focus("#split")
    page.keyboard.press("PageUp")
    link = page.url
    before = pixels(page, "#map")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#state:text('Done.')")
    assert page.get_attribute("#left [data-value=bicubic]", "aria-pressed") == "true"
    assert page.get_attribute("#both", "aria-pressed") == "true"
    assert page.get_attribute("#split", "aria-valuenow") == "60"
    page.mouse.move(1, 1)
    assert np.abs(pixels(page, "#map") - before).mean() < 2


def test_the_doctor_speaks_as_soon_as_both_files_are_in(page: Any, pair: Pair) -> None:
    assert not page.is_visible("#run")
    upload(page, *pair)
    page.wait_for_selector("#findings li:has-text('photo 128×96, depth 16×12')")
    assert page.is_enabled("#run")


def test_advice_that_is_followed_says_so(page: Any) -> None:
    page.click("#example-tof")
    page.wait_for_selector("#findings li:has-text('This is taken into account')")
    page.select_option("[name=sensor]", "unknown")
    page.wait_for_selector("#findings button:has-text('It is time of flight')")
    assert "taken into account" not in page.text_content("#findings")


def test_a_wrong_file_is_said_in_words(page: Any, pair: Pair) -> None:
    upload(page, pair[0], b"this is no depth map")
    page.wait_for_selector("#findings .error")
    assert "not a format that holds depth" in page.text_content("#findings")
    assert page.is_disabled("#run")


def test_a_huge_file_is_refused_before_it_is_sent(page: Any, pair: Pair, tmp_path: Path) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    with (tmp_path / "huge.npy").open("wb") as file:
        file.truncate(80_000_000)
    upload(page, *pair)
    page.wait_for_selector("#run:enabled")
    before = sent.count("POST")
    page.set_input_files("#file-depth", str(tmp_path / "huge.npy"))
    page.wait_for_selector("#findings .error")
    assert "80 MB" in page.text_content("#findings")
    assert sent.count("POST") == before


def test_swapped_files_are_put_right(page: Any, pair: Pair) -> None:
    upload(page, pair[1], pair[0])
    page.wait_for_selector("#run:enabled")
    assert "exchanged" in page.text_content("#findings")
    assert "photo 128×96, depth 16×12" in page.text_content("#findings")
    assert page.text_content("#slot-rgb .name") == "depth.png"


# The map


def test_hovering_tells_the_metres_of_the_array(page: Any, pair: Pair, tmp_path: Path) -> None:
    for name, content in zip(("rgb.png", "low.png"), pair):
        (tmp_path / name).write_bytes(content)
    depth = super_resolve(tmp_path / "rgb.png", tmp_path / "low.png").depth
    sharpen(page, *pair)
    box = page.locator("#map").bounding_box()
    for x, y in ((10, 20), (64, 48), (120, 90)):
        across, down = (x + 0.5) / 128 * box["width"], (y + 0.5) / 96 * box["height"]
        page.mouse.move(box["x"] + across, box["y"] + down)
        said = page.text_content("#probe")
        assert said.startswith(f"x {x}, y {y}: {depth[y, x]:.3f} m"), said


def test_the_slider_uncovers_the_result(page: Any, pair: Pair) -> None:
    sharpen(page, *pair)
    page.mouse.move(1, 1)
    x, y = middle_of(page, "#split")
    box = page.locator("#map").bounding_box()
    halves = pixels(page, "#map")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 3, y, steps=4)
    page.mouse.up()
    assert int(page.get_attribute("#split", "aria-valuenow")) <= 1
    page.mouse.move(1, 1)
    result = pixels(page, "#map")
    width = result.shape[1]
    left, right = slice(40, width // 2 - 40), slice(width // 2 + 40, width - 40)
    assert np.abs(result[:, left] - halves[:, left]).mean() > 3  # was the coarse input
    assert np.abs(result[:, right] - halves[:, right]).mean() < 1


def test_overlays_colours_and_line_change_what_is_shown(page: Any, pair: Pair) -> None:
    sharpen(page, *pair)
    seen = [pixels(page, "#map")]
    for change in (
        lambda: page.click("#overlay [data-value=source]"),
        lambda: page.click("#overlay [data-value=sigma]"),
        lambda: page.click("#overlay [data-value=none]"),
        lambda: page.select_option("#palette", "grey"),
        lambda: page.evaluate("low.value = 600; low.dispatchEvent(new Event('input'))"),
    ):
        change()
        page.mouse.move(1, 1)
        seen.append(pixels(page, "#map"))
    for before, after in pairwise(seen):
        assert np.abs(before - after).mean() > 0.5
    page.click("#line")
    profile = pixels(page, "#profile")
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] - 30, steps=3)
    page.mouse.up()
    assert np.abs(pixels(page, "#profile") - profile).mean() > 0.5
    assert re.search(r"line=\d+%2C\d+%2C\d+%2C\d+", page.url)


# In space


def test_the_range_of_colours_goes_by_inverse_distance(page: Any, pair: Pair) -> None:
    """Near things have the finest steps."""
    sharpen(page, *pair)

    def metres(low: int, high: int) -> tuple[float, float]:
        page.evaluate(f"low.value = {low}; high.value = {high}")
        page.evaluate("low.dispatchEvent(new Event('input'))")
        near, far = (page.text_content(name).split()[0] for name in ("#near", "#far"))
        return float(near), float(far)

    near, far = metres(0, 1000)
    middle = metres(0, 500)[1]
    assert middle == pytest.approx(2 / (1 / near + 1 / far), abs=0.002)
    assert metres(500, 1000)[0] == pytest.approx(middle, abs=0.001)


def test_space_is_not_blank_turns_and_measures(page: Any, pair: Pair) -> None:
    sharpen(page, *pair)
    page.locator("#space").scroll_into_view_if_needed()
    first = pixels(page, "#space")
    assert first.std() > 15
    x, y = middle_of(page, "#space")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y + 30, steps=4)
    page.mouse.up()
    turned = pixels(page, "#space")
    assert np.abs(turned - first).mean() > 3
    page.click("#reset")
    page.click("#flying")
    assert np.abs(pixels(page, "#space") - turned).mean() > 1
    page.click("#shape [data-value=mesh]")
    assert pixels(page, "#space").std() > 15
    page.click("#both")
    assert page.is_visible("#before")
    assert pixels(page, "#space").std() > 15
    page.click("#both")
    page.click("#measure")
    page.mouse.click(x - 60, y)
    page.mouse.click(x + 60, y)
    said = page.text_content("#distance")
    assert re.fullmatch(r"\d+\.\d{2,3} m", said), said
    assert 0 < float(said.split()[0]) < 5


# Out


def test_downloads_are_what_the_library_writes(page: Any, pair: Pair, tmp_path: Path) -> None:
    for name, content in zip(("rgb.png", "low.png"), pair):
        (tmp_path / name).write_bytes(content)
    result = super_resolve(tmp_path / "rgb.png", tmp_path / "low.png", field_of_view=60)
    sharpen(page, *pair)
    names = {"png": "png", "exr": "exr", "npz": "npz", "npy": "npy", "tiff": "tif", "pfm": "pfm"}
    for name, suffix in {**names, "ply": "ply", "glb": "glb"}.items():
        with page.expect_download() as download:
            page.click(f"#get-{name}")
        assert download.value.suggested_filename == f"sharp.{suffix}"
        got = Path(download.value.path()).read_bytes()
        own = tmp_path / f"own.{suffix}"
        if suffix in ("ply", "glb"):
            (result.cloud() if suffix == "ply" else result.mesh()).save(own)
        else:
            result.save(own)
        assert got == own.read_bytes(), name


# Waiting


def test_cancelling_ends_the_work(page: Any, server: RunningServer, slow_pair: Pair) -> None:
    upload(page, *slow_pair)
    page.wait_for_selector("#run:enabled")
    page.click("#run")
    page.wait_for_selector("#cancel:visible")
    page.click("#cancel")
    page.wait_for_selector("#state:text('Cancelled.')")
    page.wait_for_timeout(300)
    assert server.http.get("/healthz").json()["busy"] == 0
    assert page.is_enabled("#run")


def test_a_recording_plays(page: Any) -> None:
    page.click("#recordings button")
    page.wait_for_selector("#state:text('Done.')")
    assert page.text_content("#frame") == "1 / 3"
    page.click("#play")
    page.wait_for_selector("#frame:text('3 / 3')")
    page.click("#play")
    assert "recording=kitchen" in page.url


def test_a_frame_of_a_recorder_brings_its_cameras(page: Any) -> None:
    page.click("#example-table")  # whose unit is millimetres
    page.wait_for_selector("#state:text('Done.')")
    page.click("#recordings button:has-text('output')")
    page.wait_for_selector("#facts li:has-text('registered')")
    assert page.input_value("#options [name=unit]") == "auto"
    assert not page.is_visible("#angle")  # the camera is known
    assert pixels(page, "#space").std() > 15


def test_own_files_do_not_inherit_the_options_of_an_example(page: Any, pair: Pair) -> None:
    page.click("#example-tof")
    page.wait_for_selector("#state:text('Done.')")
    assert page.input_value("#options [name=sensor]") == "tof"
    page.set_input_files(
        "#file-rgb", files=[{"name": "own.png", "mimeType": "image/png", "buffer": pair[0]}]
    )
    page.wait_for_selector("#slot-rgb .name:text('own.png')")
    assert page.text_content("#slot-depth .name") == ""
    assert page.input_value("#options [name=sensor]") == "unknown"
    upload(page, *pair)
    page.wait_for_selector("#findings li:has-text('photo 128×96, depth 16×12')")


def test_a_server_that_was_killed_is_found_again(browser: Any, tmp_path: Path, pair: Pair) -> None:
    with RunningServer(tmp_path, "--workers", 1) as first:
        pages = opened(browser, first.url)
        page = next(pages)
        sharpen(page, *pair)
        port = first.port
        first.stop(signal.SIGKILL)
        page.click("#run")
        page.wait_for_selector("#banner:visible")
        assert "does not answer" in page.text_content("#banner")
    with RunningServer(tmp_path, "--workers", 1, port=port):
        page.wait_for_selector("#banner", state="hidden")
        page.wait_for_selector("#state:text('Done.')")
        assert next(pages, None) is None


# Without a server of ours


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The folder of files that scripts/static_page.py writes, at a plain host of files."""
    folder = tmp_path_factory.mktemp("site")
    script = REPOSITORY / "scripts" / "static_page.py"
    subprocess.run([sys.executable, script, folder], check=True, env={**os.environ, **ENVIRONMENT})
    with hosted(folder) as url:
        yield url


def test_the_page_needs_no_server_of_ours(browser: Any, site: str, tmp_path: Path) -> None:
    for page in opened(browser, site):
        assert "Nothing is sent" in page.text_content("footer")
        page.click("#example-tof")
        page.wait_for_selector("#state:text('Done.')")
        page.wait_for_selector("#findings .good")
        result = super_resolve(example.RGB, example.PAIRS["tof"].depth, **TOF)
        assert f"to {result.depth.max():.3f} m" in page.text_content("#facts")
        assert pixels(page, "#space").std() > 15
        for name in ("png", "npz", "ply"):
            with page.expect_download() as download:
                page.click(f"#get-{name}")
            own = tmp_path / f"own.{name}"
            result.cloud().save(own) if name == "ply" else result.save(own)
            assert Path(download.value.path()).read_bytes() == own.read_bytes(), name
        link = page.url
        page.goto("about:blank")
        page.goto(link)
        page.wait_for_selector("#state:text('Done.')")


def test_it_says_what_it_cannot_do(browser: Any, site: str, pair: Pair) -> None:
    for page in opened(browser, site):
        page.click("#example-table")
        page.wait_for_selector("#state:text('Done.')")
        page.check("#options [name=keep_holes]")
        page.click("#run")
        page.wait_for_selector("#findings .error:has-text('its own options only')")
        upload(page, *pair)
        page.wait_for_selector("#findings .error:has-text('its own pairs only')")
        assert page.is_disabled("#run")


# Everybody


def grave_findings(results: Any) -> list[Any]:
    found = results.response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in grave]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, server: RunningServer, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for page in opened(browser, server.url, color_scheme=scheme):
        assert not grave_findings(Axe().run(page))
        page.click("#example-tof")
        page.wait_for_selector("#state:text('Done.')")
        page.wait_for_selector("#findings .good")
        page.click("summary")
        assert not grave_findings(Axe().run(page))


def test_a_phone_needs_no_scrolling_sideways(browser: Any, server: RunningServer) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
    for page in opened(browser, server.url, **phone):
        page.tap("#example-table")
        page.wait_for_selector("#state:text('Done.')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        small = page.evaluate(
            "[...document.querySelectorAll('button, select')].filter(e => e.offsetParent &&"
            " (e.offsetHeight < 34 || e.offsetWidth < 34)).map(e => e.outerHTML)"
        )
        assert not small


def test_the_keyboard_is_enough(page: Any, pair: Pair) -> None:
    def focus(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches('{selector}')"):
                return
        raise AssertionError(f"the Tab key does not reach {selector}")

    page.evaluate("scrollTo(0, 0)")
    focus("#example-table")
    page.keyboard.press("Enter")
    page.wait_for_selector("#state:text('Done.')")
    page.wait_for_selector("#findings .good")
    focus("#left [data-value=photo]")
    page.keyboard.press("Space")
    assert page.get_attribute("#left [data-value=photo]", "aria-pressed") == "true"
    focus("#line")
    page.keyboard.press("Enter")
    focus("#map")
    page.keyboard.press("Shift+ArrowRight")
    assert page.text_content("#probe").startswith("x 330, y 240: ")
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    assert "line=330%2C240%2C330%2C280" in page.url
    focus("#split")
    page.keyboard.press("Home")
    assert page.get_attribute("#split", "aria-valuenow") == "0"
    focus("#space")
    before = pixels(page, "#space")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("+")
    assert np.abs(pixels(page, "#space") - before).mean() > 1
