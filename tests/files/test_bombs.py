"""Small files that ask for gigabytes, and names behind which no file lies."""

import json
import os
import signal
import struct
import subprocess
import sys
import textwrap
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from ducos.batch import run_batch
from ducos.batch.team import Worker
from ducos.batch.worker import Job
from ducos.cameras import read_camera
from ducos.errors import InputError
from ducos.example import LOW, RGB
from ducos.files import FramePair, find_pairs, picture_size, read_depth, write_depth
from ducos.training import load_recipe
from tests.batch.test_batch import BICUBIC, write_folder
from tests.commands import ducos

pytestmark = pytest.mark.timeout(120)

GROWTH = """
    import resource, sys
    from ducos.errors import InputError
    from ducos import files
    files.read_depth, files.read_rgb
    import numpy, PIL.Image
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        getattr(files, sys.argv[1])(sys.argv[2])
        said = "read"
    except InputError as problem:
        said = str(problem)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(growth, said)
"""


def growth_of(reader: str, path: Path) -> tuple[int, str]:
    """Megabytes that a reader took, in a process of its own, and what it said."""
    command = [sys.executable, "-c", textwrap.dedent(GROWTH), reader, str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    kilobytes, said = printed.stdout.strip().split(" ", 1)
    return int(kilobytes) // 1000, said


def flat_png(path: Path, side: int) -> None:
    """A black picture of 1 bit per pixel, made without its pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = zlib.compress(bytes(side * (1 + side // 8)), 9)
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", rows), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def npy_head(shape: tuple[int, ...], kind: str) -> bytes:
    text = str({"descr": kind, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize("reader", ["read_rgb", "read_depth", "read_mask"])
def test_a_short_picture_does_not_take_gigabytes(tmp_path: Path, reader: str) -> None:
    flat_png(tmp_path / "a.png", 20_000)
    assert (tmp_path / "a.png").stat().st_size < 50_000
    growth, said = growth_of(reader, tmp_path / "a.png")
    assert "too short to hold them" in said or "the limit is" in said
    assert growth < 100


def test_a_large_flat_picture_stays_below_a_gigabyte(tmp_path: Path) -> None:
    """As large as a file of this length may be."""
    flat_png(tmp_path / "a.png", 4000)
    growth, said = growth_of("read_rgb", tmp_path / "a.png")
    assert said == "read"
    assert growth < 1000


def packed(path: Path, method: int, *members: tuple[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(f"{name}.npy", content)


def test_archives_unpack_within_limits(tmp_path: Path) -> None:
    """bzip2 and LZMA unpack whole blocks for a few bytes; deflate what it declares."""
    million = npy_head((500, 500), "<f4") + bytes(1_000_000)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed(tmp_path / "a.npz", method, ("depth", million), ("other", bytes(200_000_000)))
        growth, said = growth_of("read_depth", tmp_path / "a.npz")
        assert "packed in a way that numpy does not write" in said
        assert growth < 50
    packed(tmp_path / "b.npz", zipfile.ZIP_DEFLATED, ("depth", million), ("x", b"a"))
    content = bytearray((tmp_path / "b.npz").read_bytes())
    at = content.rfind(b"PK\x01\x02", 0, content.rfind(b"PK\x01\x02"))
    content[at + 24 : at + 28] = struct.pack("<I", 3_000_000_000)  # its declared length
    (tmp_path / "b.npz").write_bytes(content)
    with pytest.raises(InputError, match="it is not unpacked"):
        read_depth(tmp_path / "b.npz")


def test_types_count_by_their_bytes(tmp_path: Path) -> None:
    """Ten values of 300 MB each are no small array."""
    declared = npy_head((10, 10), "V30000000")
    (tmp_path / "a.npy").write_bytes(declared)
    with pytest.raises(InputError, match="GB; the limit is"):
        read_depth(tmp_path / "a.npy")
    fields = str([("depth", "<f4"), ("more", "V900000000")])
    (tmp_path / "b.npy").write_bytes(npy_head((2, 2), "X").replace(b"'X'", fields.encode()))
    with pytest.raises(InputError, match="declares the type"):
        read_depth(tmp_path / "b.npy")
    many = [(f"a{number}", b"") for number in range(1001)]
    packed(tmp_path / "c.npz", zipfile.ZIP_STORED, *many)
    with pytest.raises(InputError, match="holds 1001 arrays"):
        read_depth(tmp_path / "c.npz")


@pytest.mark.parametrize("side", [0, 5, 40_000, 2**31 - 2, -5])
def test_exr_headers_that_lie(tmp_path: Path, side: int) -> None:
    """A data window of another size than the pixels that follow."""
    write_depth(tmp_path / "a.exr", np.ones((30, 30), np.float32))
    content = (tmp_path / "a.exr").read_bytes()
    window = struct.pack("<iiii", 0, 0, 29, 29)
    assert content.count(window) == 2  # data and display window
    lie = content.replace(window, struct.pack("<iiii", 0, 0, side, side))
    (tmp_path / "a.exr").write_bytes(lie)
    with pytest.raises(InputError, match=r"a\.exr"):
        read_depth(tmp_path / "a.exr")


def test_texts_have_a_limit(tmp_path: Path) -> None:
    camera = tmp_path / "camera.json"
    camera.write_text(json.dumps({"width": 4}) + " " * 1_000_001)
    with pytest.raises(InputError, match="longer than 1000000 bytes"):
        read_camera(camera, "depth")
    camera.rename(tmp_path / "run.toml")
    with pytest.raises(InputError, match="longer than 1000000 bytes"):
        load_recipe(tmp_path / "run.toml", [])
    with (tmp_path / "pairs.csv").open("wb") as file:
        file.truncate(100_000_001)
    with pytest.raises(InputError, match="longer than 100000000 bytes"):
        find_pairs(tmp_path / "pairs.csv")
    (tmp_path / "deep.toml").write_text("a = " + 100_000 * "[")
    with pytest.raises(InputError, match="not valid TOML"):
        load_recipe(tmp_path / "deep.toml", [])


def test_pipes_devices_and_folders_are_no_files(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for place in (pipe, folder, Path("/dev/zero")):
        for read in (
            lambda place: read_camera(place, "depth"),
            lambda place: load_recipe(place, []),
            read_depth,
        ):
            with pytest.raises(InputError, match=r"is a folder|is a pipe or device"):
                read(place)
        assert picture_size(place) is None


def test_a_pipe_among_the_frames_hangs_nobody(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "in", 2)
    for name in ("rgb/pipe.png", "depth/pipe.png"):
        os.mkfifo(folder / name)
    made = ducos("batch", folder, "-o", tmp_path / "out", "--model", "bicubic", "--workers", 1)
    assert made.returncode == 1, made.stderr
    assert "pipe.png is a pipe or device" in made.stderr
    assert "2 frames made" in made.stdout
    looked = ducos("doctor", folder)
    assert "Traceback" not in looked.stderr
    assert "is a pipe or device" in looked.stdout + looked.stderr


def test_a_stopped_worker_is_noticed(tmp_path: Path) -> None:
    worker = Worker(BICUBIC, seconds=60)
    job = Job(str(RGB), str(LOW), None, None, str(tmp_path / "a.png"), None)
    try:
        assert worker.ask(job).error is None
        worker.seconds = 0.5
        assert worker.process is not None
        stopped = worker.process
        stopped.send_signal(signal.SIGSTOP)
        assert "took longer than 0.5 s" in str(worker.ask(job).error)
        assert stopped.poll() == -signal.SIGKILL
        worker.seconds = 60
        assert worker.ask(job).error is None  # by a process that took its place
    finally:
        worker.close()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_limit_of_no_time_is_refused(tmp_path: Path, seconds: float) -> None:
    pairs = [FramePair(RGB, LOW, "a")]
    with pytest.raises(InputError, match="a timeout is a number of seconds above 0"):
        run_batch(pairs, tmp_path / "out", options=BICUBIC, timeout=seconds)
    assert not (tmp_path / "out").exists()
