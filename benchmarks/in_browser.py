"""What the network costs in a browser, beside Python on the same machine.

    python scripts/static_page.py site --network
    python benchmarks/in_browser.py site                      # 640×480 from 160×120, each 5 times
    python benchmarks/in_browser.py site --megapixels 3 6 12  # time and memory of large photos
    python benchmarks/in_browser.py --server                  # the page of `ducos serve` instead

Headless Chromium opens the folder with one thread, and with the two headers that allow threads.
Processor seconds are those of all of Chromium's processes; memory is the peak of the largest one.
Python runs `super_resolve` with onnxruntime, one thread, `shift="off"`: the page does not look
for a shift, either. Turns alternate, so that what else the machine does meets all alike.
`--server` starts `ducos serve` and clicks on an example: until its result is shown.
"""

import argparse
import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from ducos import example
from ducos.upscaling import Upscaler

ISOLATED = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
OPENED = """async ({ rgb, depth }) => {
  const file = async (address, name) => new File([await (await fetch(address)).blob()], name);
  const { Engine } = await import("./engine.js");
  window.engine = new Engine();
  window.pair = { rgb: await file(rgb, "rgb.png"), depth: await file(depth, "depth.png") };
}"""
WORK = """async () => {
  const options = { unit: "mm", sensor: "unknown", mode: "auto", keep_holes: false };
  const begun = performance.now();
  await window.engine.upscale(window.pair, options, () => {});
  return (performance.now() - begun) / 1000;
}"""


@contextmanager
def hosted(folder: Path, headers: Mapping[str, str]) -> Iterator[str]:
    """The address of a host of files that adds these headers."""

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            for name, value in headers.items():
                self.send_header(name, value)
            super().end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as host:
        threading.Thread(target=host.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{host.server_address[1]}/"
        host.shutdown()


class Browser:
    """One Chromium with the page, and what its processes use. driver: Playwright's."""

    def __init__(self, driver: Any, url: str):
        before = set(below(os.getpid()))
        chromium = shutil.which("chromium")
        self.page = driver.chromium.launch(executable_path=chromium, args=FLAGS).new_page()
        self.process = min(set(below(os.getpid())) - before)
        self.page.set_default_timeout(0)
        self.page.goto(url)

    def give(self, files: dict[str, bytes]) -> None:
        """Hand the engine of the page a pair, to be worked on again and again."""
        address = "data:image/png;base64,{}".format
        given = {name: address(base64.b64encode(each).decode()) for name, each in files.items()}
        self.page.evaluate(OPENED, given)

    def work(self) -> tuple[float, float]:
        """Seconds and processor seconds of one frame."""
        cpu = processor(self.process)
        return self.page.evaluate(WORK), processor(self.process) - cpu

    def peak(self) -> int:
        """Megabytes of the largest process."""
        rows = [Path(f"/proc/{each}/status").read_text() for each in below(self.process)]
        return (
            max(int(found[1]) for row in rows if (found := re.search(r"VmHWM:\s+(\d+)", row)))
            // 1000
        )


def below(process: int) -> list[int]:
    """All processes that descend from one."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *below(child)]
    return found


def processor(process: int) -> float:
    """Processor seconds of a process and of all below it."""
    ticks = 0
    for each in (process, *below(process)):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def pair_of(megapixels: float | None) -> dict[str, bytes]:
    """The bundled time-of-flight pair, or the same scene drawn larger, as PNG files."""
    tof = example.PAIRS["tof"]
    if megapixels is None:
        return {"rgb": tof.rgb.read_bytes(), "depth": tof.depth.read_bytes()}
    height = round((megapixels * 1e6 * 3 / 4) ** 0.5)
    width = round(height * 4 / 3)
    colours = Image.open(tof.rgb).convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
    depth = Image.open(tof.depth).resize((width // 4, height // 4), Image.Resampling.NEAREST)
    return {"rgb": encoded(colours), "depth": encoded(depth)}


def encoded(picture: Image.Image) -> bytes:
    content = io.BytesIO()
    picture.save(content, "PNG")
    return content.getvalue()


def compared(folder: Path, turns: int) -> dict[str, Any]:
    """Seconds and processor seconds per frame: of the first one with opening, and of others."""
    upscaler = Upscaler(runtime="onnx", threads=1, shift="off")
    tof = example.PAIRS["tof"]
    bare: list[float] = []
    with sync_playwright() as driver, hosted(folder, {}) as plain, hosted(folder, ISOLATED) as many:
        files = pair_of(None)
        names = {"one thread": plain, "with threads": many}
        browsers = {name: Browser(driver, url) for name, url in names.items()}
        for browser in browsers.values():
            browser.give(files)
        took = {name: [browser.work()] for name, browser in browsers.items()}
        upscaler(tof.rgb, tof.depth)
        for _ in range(turns):
            for name, browser in browsers.items():
                took[name].append(browser.work())
            begun = time.process_time()
            upscaler(tof.rgb, tof.depth)
            bare.append(time.process_time() - begun)
    figures: dict[str, Any] = {"python, one thread": {"cpu": round(median(bare), 2)}}
    for name, ((first, first_cpu), *others) in took.items():
        seconds, cpu = (sorted(each) for each in zip(*others, strict=True))
        figures[name] = {
            "first": round(first, 2),
            "first_cpu": round(first_cpu, 2),
            "median": round(median(seconds), 2),
            "least": round(seconds[0], 2),
            "cpu": round(median(cpu), 2),
        }
    return figures


def large(folder: Path, megapixels: float) -> dict[str, Any]:
    """Processor seconds and peak memory of one large photo, opening included."""
    with sync_playwright() as driver, hosted(folder, {}) as url:
        browser = Browser(driver, url)
        browser.give(pair_of(megapixels))
        seconds, cpu = browser.work()
        figures = {"seconds": round(seconds, 1), "cpu": round(cpu, 1), "peak_mb": browser.peak()}
        return {"megapixels": megapixels, **figures}


def served() -> dict[str, Any]:
    """From the start of `ducos serve` to its page, and from a click on an example to its result:
    seconds, and processor seconds of server and browser."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "ducos", "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = {}
    try:
        url = server.stdout.readline().split()[1]
        figures["address printed"] = {"seconds": round(time.monotonic() - begun, 2)}
        with sync_playwright() as driver:
            browser = Browser(driver, url)
            browser.page.wait_for_selector("#server:has-text('ready')")
            figures["ready"] = {"seconds": round(time.monotonic() - begun, 2)}
            for name in ("table", "tof"):
                before = [processor(server.pid), processor(browser.process), time.monotonic()]
                browser.page.click(f"#example-{name}")
                words = f"{sizes(name)} → 640×480"
                browser.page.wait_for_selector(f"#facts li:has-text('{words}')")
                browser.page.wait_for_selector("#state:text('Done.')")
                after = [processor(server.pid), processor(browser.process), time.monotonic()]
                named = zip(("cpu of the server", "cpu of the browser", "seconds"), before, after)
                figures[f"click on {name}"] = {each: round(b - a, 2) for each, a, b in named}
    finally:
        server.terminate()
        server.wait()
    return figures


def sizes(name: str) -> str:
    with Image.open(example.PAIRS[name].depth) as picture:
        return "×".join(map(str, picture.size))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="that static_page.py --network wrote")
    parser.add_argument("--server", action="store_true", help="the page of `ducos serve` instead")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--megapixels", type=float, nargs="*", default=[])
    options = parser.parse_args()
    if options.server:
        print(json.dumps(served(), indent=1))
        return
    if options.folder is None:
        parser.error("name the folder that scripts/static_page.py --network wrote, or --server")
    for megapixels in options.megapixels:
        print(json.dumps(large(options.folder, megapixels)), flush=True)
    if not options.megapixels:
        print(json.dumps(compared(options.folder, options.turns), indent=1))


if __name__ == "__main__":
    main()
