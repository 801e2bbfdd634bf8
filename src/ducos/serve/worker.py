"""A process that does the server's work, one task after the other.

JSON lines over pipes: settings in, "ready" back; then a task in, progress and one answer back,
until the pipe closes. Files lie in the task's folder under fixed names. The server ends the process
when a task takes too long or is cancelled, and starts another; so nothing here has to be stopped.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from ducos.doctor import examine
from ducos.errors import InputError, one_line
from ducos.files import picture_size, read_colour, read_low
from ducos.serve.maps import unpacked
from ducos.serve.outputs import FORMATS, check_output_format, write_output
from ducos.serve.problems import DISK_FULL, Problem, is_disk_full
from ducos.serve.recordings import unpack
from ducos.upscaling import Options, Result, Upscaler

Say = Callable[[dict[str, Any]], None]
NUMPY = b"\x93NUMPY"


@cache
def upscaler_of(model: str, device: str) -> Upscaler:
    """Models stay loaded: the server listed all that can be asked for."""
    return Upscaler(model, device=device)


def upscale(task: dict[str, Any], limits: dict[str, Any], say: Say) -> dict[str, Any]:
    """Super-resolve the pair in the task's folder and write the formats asked for."""
    folder = Path(task["folder"])
    options = Options(**task["options"])
    image, low = pair_of(folder, options, limits["pixels"])
    # The measurements are read by now; what is still to be done with them stays in the options.
    rest = replace(options, unit="auto", scale=None, mask=None, confidence=None)
    upscaler = upscaler_of(options.model, options.device)
    made = upscaler.run(image, low, rest, lambda share: say({"share": share}))
    result = replace(made, options=options)
    for name in task["formats"]:
        write_output(result, name, folder, upscaler_of("bicubic", options.device))
    return result.facts()


def convert(task: dict[str, Any], limits: dict[str, Any], say: Say) -> dict[str, Any]:
    """Write further formats of a finished result."""
    folder, target = Path(task["folder"]), Path(task["target"])
    options = Options(**task["options"])
    content = (folder / f"result{FORMATS['maps'].suffix}").read_bytes()
    result: Result[Any] = unpacked(content, colours_of(folder / "rgb"), options)
    for name in task["formats"]:
        check_output_format(name, options, target)
        write_output(result, name, target, upscaler_of("bicubic", options.device))
    return {}


def doctor(task: dict[str, Any], limits: dict[str, Any], say: Say) -> dict[str, Any]:
    """What is wrong with the pair in the task's folder."""
    folder = Path(task["folder"])
    options = Options(**task["options"])
    for name in ("rgb", "depth"):
        check_pixels(picture_size(folder / name), name, limits["pixels"])
    said = {"unit": options.unit, "scale": options.scale, "mask": options.mask}
    report = examine(colours_of(folder / "rgb"), folder / "depth", **said)
    found: dict[str, Any] = json.loads(report.to_json())
    return found


def unpacked_frame(task: dict[str, Any], limits: dict[str, Any], say: Say) -> dict[str, Any]:
    """Write the files of a frame of a recording."""
    unpack(task["frame"], task["place"], Path(task["folder"]))
    return {}


TASKS = {"upscale": upscale, "convert": convert, "doctor": doctor, "unpack": unpacked_frame}


def pair_of(folder: Path, options: Options, most: int) -> tuple[Any, Any]:
    """The pair as it was uploaded; a header that declares too much is refused unread."""
    for name in ("rgb", "depth", "mask", "confidence", "prior"):
        check_pixels(picture_size(folder / name), name, most)
    image = colours_of(folder / "rgb")
    check_pixels(image.shape[:2], "rgb", most)
    low = read_low(folder / "depth", options.unit, options.scale, options.mask, options.confidence)
    check_pixels(low.depth.shape, "depth", most)
    return image, low


def colours_of(path: Path) -> Any:
    """(H, W, 3) float32 of a picture, or of the array that the Python client sends."""
    with path.open("rb") as file:
        if file.read(6) != NUMPY:
            return read_colour(path)
    try:
        return read_colour(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as problem:
        raise InputError(f"rgb is no readable array: {one_line(problem)}") from None


def check_pixels(size: tuple[int, ...] | None, name: str, most: int) -> None:
    """Refuse what is larger than whoever started the server allows."""
    if size is not None and size[0] * size[1] > most:
        raise Problem(
            "pixels",
            f"{name} has {size[0] * size[1] / 1e6:.1f} megapixels; this server takes up to "
            f"{most / 1e6:g}: crop it or make it smaller",
        )


def answer(task: dict[str, Any], limits: dict[str, Any], say: Say) -> dict[str, Any]:
    """Do a task; whatever goes wrong with it must not end the process."""
    try:
        return {"done": TASKS[task["task"]](task, limits, say)}
    except Problem as problem:
        return {"problem": problem.plain()}
    except InputError as problem:
        if is_disk_full(problem):
            return {"problem": Problem("disk", DISK_FULL).plain()}
        # Users gave files, not folders of the server.
        sentence = str(problem).replace(f"{task['folder']}{os.sep}", "")
        return {"problem": Problem("input", sentence).plain()}
    except Exception as problem:
        return {"problem": unexpected(problem).plain()}


def unexpected(problem: Exception) -> Problem:
    """Causes that are nobody's mistake: no disk, no memory, or a fault of ours."""
    if is_disk_full(problem):
        return Problem("disk", DISK_FULL)
    if isinstance(problem, MemoryError) or "allocate memory" in str(problem):
        return Problem(
            "memory", "this pair needs more memory than the server allows; make it smaller"
        )
    print(f"{type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
    return Problem("inside", "the server has a fault; its log says more")


def limit_memory(more: int) -> None:
    """Bound this process to what it has now and so many bytes more."""
    with suppress(ImportError, OSError, ValueError):  # no such limit on this system
        import resource

        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (held + more, resource.RLIM_INFINITY))


def work(requests: IO[str], say: Say) -> None:
    """The process's whole life."""
    limits = json.loads(requests.readline())
    for name in ("bicubic", limits["default"]):
        warm = upscaler_of(name, limits["device"])
        warm(np.zeros((32, 32, 3), np.uint8), np.full((8, 8), 1000, np.uint16), shift="off")
    if limits["device"] == "cpu":
        limit_memory(limits["memory"])
    say({"ready": True})
    for line in requests:
        say(answer(json.loads(line), limits, say))


if __name__ == "__main__":
    # Whatever a library prints goes to stderr, so that stdout holds answers only.
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's to handle

    def say(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=pipe, flush=True)

    with suppress(BrokenPipeError):  # the server has gone
        work(sys.stdin, say)
