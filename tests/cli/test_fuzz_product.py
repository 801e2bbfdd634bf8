"""Whole products against hostile input: `super_resolve`, the doctor and their commands.

Whatever the files and arrays: a sound result or an InputError (commands: exit code 0, 1 or 2), in
bounded time and memory, without a warning. `test_io_fuzz.py` does the same for the readers alone,
with more files.

`pytest -m slow tests/cli/test_fuzz_product.py` draws many more examples, others each time.
"""

import json
import resource
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ducos import files
from ducos.cli import main
from ducos.doctor import Report, examine
from ducos.doctor.picture import report_picture
from ducos.errors import InputError
from ducos.files.formats import WRITTEN_AS
from ducos.hints import SENSORS
from ducos.pictures.palette import write_image
from ducos.upscaling import Result, super_resolve
from tests.files.test_damaged_files import GOOD_FILES, damaged, good_files, with_sound_checksums

SECONDS = 20.0  # of computing per example; the usual one takes a hundredth of that
WAITING_SECONDS = 150.0  # by the clock, on a busy machine; helper processes end after 120
MEGABYTES = 700.0  # above what the process had before the example
CHILD_MEGABYTES = 2000.0  # of a helper process that decodes, or of a whole command
NO_PARAMETERS = ("bicubic", "nearest", "bilinear", "guided-filter", "joint-bilateral")
pytestmark = pytest.mark.filterwarnings("error")  # they would end up on the user's terminal
MANY = settings(max_examples=1500, derandomize=False)


# ------------------------------------------------------------------------------- what is allowed


class TooSlow(BaseException):
    """No Exception, so that no broad clause takes a hang for a damaged file."""


@contextmanager
def bounded() -> Iterator[None]:
    """Fail if the block takes more than SECONDS or more memory than MEGABYTES."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"not done after {SECONDS} s of computing or {WAITING_SECONDS} s")

    before = {number: signal.signal(number, stop) for number in (signal.SIGALRM, signal.SIGPROF)}
    had, children_had = megabytes(forget_peak=True), largest_child()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WAITING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert megabytes() - had < MEGABYTES
    # The peak of all children ever: one of an earlier test says nothing about this block.
    assert largest_child() < max(CHILD_MEGABYTES, children_had + 1)


def largest_child() -> float:
    """Megabytes of the largest child process that this process ever had."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def megabytes(forget_peak: bool = False) -> float:
    """Largest memory of this process, on Linux since the last call that forgot the peak."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if forget_peak:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def upscaled(rgb: Any, depth: Any, **options: Any) -> Result | None:
    """A result that makes sense, or None if the pair was refused."""
    with bounded():
        try:
            result = super_resolve(rgb, depth, **options)
        except InputError as problem:
            assert_one_sentence(problem)
            return None
    assert result.depth.shape == result.valid.shape == result.source.shape
    assert np.isfinite(np.asarray(result.depth)).all()
    assert np.isfinite(result.residual)
    return result


def examined(rgb: Any, depth: Any, **options: Any) -> Report | None:
    """A report with its picture and JSON, or None if the pair was refused."""
    with bounded():
        try:
            report = examine(rgb, depth, **options)
        except InputError as problem:
            assert_one_sentence(problem)
            return None
        picture = report_picture(report)
    assert picture.dtype == np.uint8
    assert json.loads(report.to_json())["worst"] in ("none", "note", "warning", "error")
    if report.low is not None:
        assert not {"nan", "inf", "-inf"} & set(" ".join(report.lines()).split())
    return report


def assert_one_sentence(problem: InputError) -> None:
    assert "\n" not in str(problem)
    assert 10 < len(str(problem)) < 2000


# -------------------------------------------------------------------------------- hostile files


@cache
def sound_files(kind: str) -> list[bytes]:
    return good_files(kind)


SUFFIXES = [*WRITTEN_AS, ".jpg", ".bmp", ".webp", ".ppm", ".bin", ""]
START = {
    "png": b"\x89PNG\r\n\x1a\n",
    "npy": b"\x93NUMPY\x01\0",
    "npz": b"PK\x03\x04",
    "pfm": b"Pf\n",
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "bmp": b"BM",
    "webp": b"RIFF",
    "ppm": b"P6\n",
}
CHILD_START = {"tiff": b"II*\0", "exr": b"v/1\x01", "hdf5": b"\x89HDF\r\n\x1a\n"}
SIDES = (0, 1, 7, 2000, 65_535, 100_000, 2**31 - 1, 2**32 - 1)


def huge_png(height: int, width: int, bits: int, colour: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + b"0000"

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([bits, colour, 0, 0, 0])
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    return with_sound_checksums(START["png"] + body)


def huge_npy(height: int, width: int, bits: int, colour: int) -> bytes:
    kind = f"<{'fiuc'[colour % 4]}{bits // 2 or 1}"
    text = repr({"descr": kind, "fortran_order": bool(bits % 3), "shape": (height, width)})
    return START["npy"] + len(text).to_bytes(2, "little") + text.encode() + b"\1" * 600


def huge_pfm(height: int, width: int, bits: int, colour: int) -> bytes:
    return f"{'PF' if colour else 'Pf'}\n{width} {height}\n-1\n".encode() + b"\1" * 600


def huge_ppm(height: int, width: int, bits: int, colour: int) -> bytes:
    return f"P6\n{width} {height}\n{2**bits - 1}\n".encode() + b"\1" * 600


def huge_bmp(height: int, width: int, bits: int, colour: int) -> bytes:
    sides = (width & 0x7FFFFFFF).to_bytes(4, "little") + (height & 0x7FFFFFFF).to_bytes(4, "little")
    head = b"BM" + bytes(8) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little") + sides
    return head + b"\1\0" + (24).to_bytes(2, "little") + bytes(24) + b"\1" * 600


def huge_tiff(height: int, width: int, bits: int, colour: int) -> bytes:
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: 1, 273: 200, 277: 1, 278: height}
    tags |= {279: 600, 339: 1 + colour % 3}
    entries = b"".join(
        tag.to_bytes(2, "little") + b"\4\0\1\0\0\0" + value.to_bytes(4, "little")
        for tag, value in sorted(tags.items())
    )
    head = b"II*\0\x08\0\0\0" + len(tags).to_bytes(2, "little") + entries + bytes(4)
    return head.ljust(200, b"\0") + b"\1" * 600


def huge_exr(height: int, width: int, bits: int, colour: int) -> bytes:
    """A sound file whose two windows are overwritten."""
    content = bytearray(sound_files("exr")[0])
    corner = b"".join((side - 1 & 0x7FFFFFFF).to_bytes(4, "little") for side in (width, height))
    for name in (b"dataWindow\0", b"displayWindow\0"):
        at = content.index(name) + len(name) + len(b"box2i\0") + 4
        content[at : at + 16] = bytes(8) + corner
    return bytes(content)


def huge_hdf5(height: int, width: int, bits: int, colour: int) -> bytes:
    """A dataset of any size without data: sparse by the format's own rules."""
    from io import BytesIO

    import h5py

    with h5py.File(stream := BytesIO(), "w") as file:
        chunks = (min(max(height, 1), 500), min(max(width, 1), 500))
        options = {"chunks": chunks, "maxshape": (None, None)} if height and width else {}
        file.create_dataset("depth", (height, width), "u2" if colour else "f8", **options)
    return stream.getvalue()


HUGE = {"png": huge_png, "npy": huge_npy, "pfm": huge_pfm, "ppm": huge_ppm, "bmp": huge_bmp}
CHILD_HUGE = {"tiff": huge_tiff, "exr": huge_exr, "hdf5": huge_hdf5}
QUICK = [kind for kind in GOOD_FILES if kind not in ("tiff", "exr", "hdf5")]


@st.composite
def hostile_files(draw: st.DrawFn, with_child: bool = False) -> bytes:
    """Noise, noise after a signature, damaged sound files, and headers that declare any size.

    with_child: of the formats that a helper process decodes, at 0.3 s per file.
    """
    starts, huge = (CHILD_START, CHILD_HUGE) if with_child else (START, HUGE)
    kinds = list(CHILD_START) if with_child else QUICK
    match draw(st.sampled_from(["noise", "signature", "damaged", "damaged", "huge"])):
        case "noise":
            return draw(st.binary(max_size=600))
        case "signature":
            return starts[draw(st.sampled_from(sorted(starts)))] + draw(st.binary(max_size=600))
        case "damaged":
            files = sound_files(draw(st.sampled_from(kinds)))
            seed = draw(st.integers(0, 2**32))
            return damaged(files[seed % len(files)], Random(seed))
        case _:
            make = huge[draw(st.sampled_from(sorted(huge)))]
            side = st.sampled_from(SIDES)
            bits = draw(st.sampled_from((1, 2, 4, 8, 16, 32)))
            return make(draw(side), draw(side), bits, draw(st.integers(0, 6)))


RGB = np.random.default_rng(0).integers(0, 256, (37, 46, 3)).astype(np.uint8)
LOW = np.random.default_rng(1).uniform(0.5, 4, (19, 23)).astype(np.float32)


def check_files(folder: Path, content: bytes, role: str, suffix: str) -> None:
    path = folder / f"hostile{suffix}"
    path.write_bytes(content)
    rgb, depth, options = RGB, LOW, {}
    if role == "rgb":
        rgb = path
    elif role == "depth":
        depth = path
    else:
        options = {"mask": path}
    examined(rgb, depth, **options)
    upscaled(rgb, depth, model="bicubic", any_aspect=True, **options)


ROLES = st.sampled_from(["rgb", "depth", "depth", "mask"])


@settings(max_examples=150)
@given(hostile_files(), ROLES, st.sampled_from(SUFFIXES))
def test_hostile_files(tmp_path: Path, content: bytes, role: str, suffix: str) -> None:
    check_files(tmp_path, content, role, suffix)


@settings(max_examples=8)
@given(hostile_files(with_child=True), ROLES)
def test_hostile_files_decoded_by_a_child(tmp_path: Path, content: bytes, role: str) -> None:
    check_files(tmp_path, content, role, ".tif")


@pytest.mark.parametrize("kind", [*HUGE, *CHILD_HUGE])
@pytest.mark.parametrize(("height", "width"), [(65_535, 65_535), (2**31 - 1, 7)])
def test_declared_sizes_are_refused(tmp_path: Path, kind: str, height: int, width: int) -> None:
    """The strongest claim first: such headers are refused, never believed."""
    path = tmp_path / "huge"
    path.write_bytes((HUGE | CHILD_HUGE)[kind](height, width, 16, 0))
    with bounded(), pytest.raises(InputError):
        files.read_rgb(path) if kind in ("ppm", "bmp") else files.read_depth(path)


@pytest.mark.slow
@settings(MANY, max_examples=3000)
@given(hostile_files(), ROLES, st.sampled_from(SUFFIXES))
def test_many_hostile_files(tmp_path: Path, content: bytes, role: str, suffix: str) -> None:
    check_files(tmp_path, content, role, suffix)


@pytest.mark.slow
@settings(MANY, max_examples=60)
@given(hostile_files(with_child=True), ROLES)
def test_many_hostile_files_decoded_by_a_child(tmp_path: Path, content: bytes, role: str) -> None:
    check_files(tmp_path, content, role, ".tif")


# ------------------------------------------------------------------------------- hostile arrays

DTYPES = st.one_of(
    st.sampled_from(["u1", "u2", "i2", "i4", "u8", "f2", "f4", "f8", ">f4", "?"]).map(np.dtype),
    st.one_of(hnp.complex_number_dtypes(), hnp.datetime64_dtypes(), st.just(np.dtype("O"))),
)
SPECIAL = st.sampled_from(
    [0.0, -0.0, np.nan, np.inf, -np.inf, -1.0, 65535.0, 5e-324, 1e-45, 1e-38, 1.0, 3.4e38, -3.4e38]
)
DISTANCES = st.one_of(st.floats(0.1, 9), st.floats(width=32), SPECIAL)


@st.composite
def depth_arrays(draw: st.DrawFn) -> Any:
    """Any type and shape; or (h, w) floats, sound ones mixed with everything a float can be."""
    if draw(st.integers(0, 3)) == 0:
        shape = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
        return draw(hnp.arrays(draw(DTYPES), draw(shape)))
    sides = draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    kind = draw(st.sampled_from([np.float32, np.float64, np.float16]))
    with np.errstate(over="ignore"):
        plane = draw(hnp.arrays(np.float64, sides, elements=DISTANCES)).astype(kind)
    layout = draw(st.sampled_from(["plain", "reversed", "masked", "tensor", "list", "read-only"]))
    if layout == "reversed":
        return plane[::-1, ::-1]
    if layout == "masked":
        return np.ma.masked_less(plane, 2)
    if layout == "tensor":
        return torch.from_numpy(plane)
    if layout == "list":
        return plane.tolist()
    plane.flags.writeable = layout == "plain"
    return plane


@st.composite
def colour_arrays(draw: st.DrawFn) -> Any:
    """Mostly sound pictures of small sides; at times any array, odd numbers or no picture."""
    choice = draw(st.integers(0, 9))
    if choice == 0:
        shape = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
        return draw(hnp.arrays(draw(DTYPES), draw(shape)))
    if choice == 1:
        return draw(st.sampled_from([None, "", b"x", 3, {}, [[[]]], object()]))
    sides = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    channels = draw(st.sampled_from([1, 3, 4]))
    picture = np.random.default_rng(choice).random((*sides, channels)).astype(np.float32)
    if choice == 2:
        picture[0, 0, 0] = draw(SPECIAL)
    return picture if choice < 6 else (255 * picture).astype(np.uint8)


MASKS = st.one_of(
    st.none(),
    hnp.arrays(bool, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12)),
    st.sampled_from(["ones", "nothing", "text"]),
)
UNIT_NAMES = st.sampled_from(["auto", "auto", "m", "mm", "cm", "relative", "furlong"])
SCALES = st.sampled_from([None, None, None, 0.001, 1e-300, 0.0, -1.0, np.nan, 99.0, 5000.0])


def check_arrays(depth: Any, rgb: Any, mask: Any, unit: str, scale: Any, model: str) -> None:
    shape = np.shape(depth)
    if isinstance(mask, str):
        mask = {"ones": np.ones(shape), "nothing": np.zeros(shape), "text": "no such file"}[mask]
    same = {"unit": unit, "scale": scale, "mask": mask}
    examined(rgb, depth, **same)
    seed = len(shape) + len(unit)
    switches = {
        "keep_holes": bool(seed & 1),
        "mode": "faithful" if seed & 2 else "repair",
        "any_aspect": True,
        "sensor": list(SENSORS)[seed % len(SENSORS)],
    }
    result = upscaled(rgb, depth, model=model, **same, **switches)
    assert result is None or isinstance(result.depth, torch.Tensor if torch.is_tensor(depth)
                                        else np.ndarray)  # fmt: skip


ARRAYS = (
    depth_arrays(),
    colour_arrays(),
    MASKS,
    UNIT_NAMES,
    SCALES,
    st.sampled_from(NO_PARAMETERS),
)


@settings(max_examples=150)
@given(*ARRAYS)
def test_hostile_arrays(
    depth: Any, rgb: Any, mask: Any, unit: str, scale: float | None, model: str
) -> None:
    check_arrays(depth, rgb, mask, unit, scale, model)


@pytest.mark.slow
@settings(MANY, max_examples=3000)
@given(*ARRAYS)
def test_many_hostile_arrays(
    depth: Any, rgb: Any, mask: Any, unit: str, scale: float | None, model: str
) -> None:
    check_arrays(depth, rgb, mask, unit, scale, model)


@pytest.mark.slow
@settings(MANY, max_examples=300)
@given(*ARRAYS[:-1])
def test_the_embedded_model_survives_hostile_arrays(
    depth: Any, rgb: Any, mask: Any, unit: str, scale: float | None
) -> None:
    check_arrays(depth, rgb, mask, unit, scale, "ducos-tiny")


def test_long_thin_pictures_are_no_burden() -> None:
    """Sides far apart tempt code that pads to squares or searches along the longer side."""
    for sides in ((1, 60_000), (60_000, 1), (2, 30_000)):
        rgb = np.random.default_rng(0).random((*sides, 3)).astype(np.float32)
        low = np.random.default_rng(1).uniform(1, 3, [max(1, side // 4) for side in sides])
        assert examined(rgb, low) is not None
        assert upscaled(rgb, low, model="bicubic", any_aspect=True) is not None


# -------------------------------------------------------------------------------------- commands


def run_here(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> int:
    """Exit code of the command, run in this process."""
    monkeypatch.setattr(sys, "argv", ["ducos", *arguments])
    with bounded():
        try:
            main()
        except SystemExit as done:
            return int(done.code or 0)
    return 0


def check_commands(
    run: Callable[[list[str]], int], folder: Path, content: bytes, role: str
) -> None:
    """Both commands end with a stated exit code, and a refused one leaves no output behind."""
    write_image(folder / "rgb.png", RGB)
    files.write_depth(folder / "depth.png", LOW)
    hostile = folder / "hostile.png"
    hostile.write_bytes(content)
    paths = {"rgb": str(folder / "rgb.png"), "depth": str(folder / "depth.png")}
    extra = ["--mask", str(hostile)] if role == "mask" else []
    if role != "mask":
        paths[role] = str(hostile)
    pair = [paths["rgb"], paths["depth"], *extra]
    out, picture = folder / "out.png", folder / "look.png"
    for written in (out, picture):
        written.unlink(missing_ok=True)
    code = run(["upscale", *pair, "-o", str(out), "--model", "bicubic", "--any-aspect"])
    assert code in (0, 2)
    assert out.exists() == (code == 0)
    code = run(["doctor", *pair, "--json", "--report", str(picture)])
    assert code in (0, 1, 2)
    assert picture.exists() == (code != 2)
    assert {path.name for path in folder.iterdir()} <= {
        "rgb.png", "depth.png", "hostile.png", "out.png", "look.png"
    }  # fmt: skip


@settings(max_examples=30)
@given(hostile_files(), ROLES)
def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, role: str
) -> None:
    check_commands(lambda arguments: run_here(monkeypatch, arguments), tmp_path, content, role)


@pytest.mark.slow
@settings(MANY)
@given(hostile_files(), ROLES)
def test_commands_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, role: str
) -> None:
    check_commands(lambda arguments: run_here(monkeypatch, arguments), tmp_path, content, role)


@pytest.mark.parametrize("role", ["rgb", "depth"])
def test_commands_in_processes_of_their_own(tmp_path: Path, role: str) -> None:
    """What a user sees: one line on stderr, no traceback."""

    def run(arguments: list[str]) -> int:
        done = subprocess.run(
            [sys.executable, "-m", "ducos", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=WAITING_SECONDS,
        )
        assert "Traceback" not in done.stderr
        if done.returncode == 2:
            assert done.stderr.startswith("ducos: ")
            assert done.stderr.count("\n") == 1
        return done.returncode

    check_commands(run, tmp_path, huge_png(65_535, 65_535, 16, 2 if role == "rgb" else 0), role)
