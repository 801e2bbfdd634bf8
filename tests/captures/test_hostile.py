"""Damaged and hostile recordings: a frame or one sentence, no traceback, no flood of memory."""

import json
import os
import resource
import shutil
import struct
import zipfile
from pathlib import Path

import imagecodecs
import numpy as np
import pytest

from ducos.captures import find_frames, read_frame
from ducos.errors import InputError
from ducos.files import FramePair
from tests.captures import recordings as made
from tests.captures.recordings import RECORDINGS

CONTAINERS = ("sens", "record3d", "mkv", "ros1", "mcap", "realsense")
FOLDERS = [name for name in RECORDINGS if name not in CONTAINERS]
TRIES = 12


def survives(path: Path) -> None:
    """Read all that can be found; only InputError may come out."""
    said: list[str] = []
    pairs: list[FramePair] = []
    try:
        pairs = find_frames(path).pairs
    except InputError as problem:
        said.append(str(problem))
    for pair in pairs[:3]:
        try:
            assert read_frame(pair).low.valid.any()
        except InputError as problem:
            said.append(str(problem))
    assert not any("\n" in sentence for sentence in said)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut off, overwritten in places, or partly zero."""
    data = bytearray(content)
    kind = rng.integers(4)
    if kind == 0:
        return bytes(data[: rng.integers(len(data))])
    if kind == 1:
        return rng.bytes(min(len(data), 2000))
    places = rng.integers(len(data), size=rng.integers(1, 30))
    if kind == 3:
        places = rng.integers(min(len(data), 600), size=8)  # heads
    for place in places:
        data[place] = rng.integers(256)
    return bytes(data)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_pipe_in_place_of_a_file_hangs_nobody(name: str, tmp_path: Path) -> None:
    """The container itself, or each file of a folder in turn; of pictures the first few."""
    whole = RECORDINGS[name][1](tmp_path)
    files = sorted(path for path in whole.rglob("*") if path.is_file()) if whole.is_dir() else []
    texts = [path for path in files if path.suffix not in (".png", ".jpg", ".PNG")]
    for path in (*texts, *files[:3]) if files else (whole,):
        content = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        survives(whole)
        path.unlink()
        path.write_bytes(content)


@pytest.mark.parametrize("name", CONTAINERS)
def test_damaged_containers(name: str, tmp_path: Path) -> None:
    whole = RECORDINGS[name][1](tmp_path)
    content, rng = whole.read_bytes(), np.random.default_rng(1)
    for number in range(TRIES):
        spoilt = tmp_path / f"{number}{whole.suffix}"
        spoilt.write_bytes(damaged(content, rng))
        survives(spoilt)


@pytest.mark.parametrize("name", FOLDERS)
def test_damaged_folders(name: str, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = RECORDINGS[name][1](tmp_path / "whole")
    rng = np.random.default_rng(2)
    for number in range(TRIES):
        spoilt = tmp_path / str(number)
        shutil.copytree(whole, spoilt)
        files = sorted(path for path in spoilt.rglob("*") if path.is_file())
        texts = [path for path in files if path.suffix not in (".png", ".jpg", ".PNG")]
        for path in (files[rng.integers(len(files))], *texts[: number % 3]):
            path.write_bytes(damaged(path.read_bytes(), rng))
        survives(spoilt)


def test_an_archive_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    path = made.record3d(tmp_path)
    about = json.loads(zipfile.ZipFile(path).read("metadata"))
    bomb = imagecodecs.lzfse_encode(bytes(5 << 20))
    assert len(bomb) < 1 << 16
    for kind in ("lzfse", "zip", "size"):
        target = tmp_path / f"{kind}.r3d"
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            stated = {**about, "dw": 10**9, "dh": 10**9} if kind == "size" else about
            archive.writestr("metadata", json.dumps(stated))
            archive.writestr("rgbd/0.jpg", made.jpeg(made.colours(0)))
            archive.writestr("rgbd/0.depth", bytes(300 << 20) if kind == "zip" else bomb)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(InputError):
            read_frame(find_frames(target).pairs[0])
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 700 << 10  # kilobytes; the zip bomb itself is made here


def test_names_that_lead_out_of_an_archive_write_nothing(tmp_path: Path) -> None:
    path = made.record3d(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../escaped.txt", "x")
        link = zipfile.ZipInfo("rgbd/9.jpg")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("rgbd/9.depth", "x")
    found = find_frames(path)
    with pytest.raises(InputError, match="9"):
        read_frame(found.pairs[-1])
    assert not list(tmp_path.parent.rglob("escaped.txt"))


@pytest.mark.parametrize("sizes", [(1 << 31, 1 << 31), (0, 24), (60_000, 60_000)])
def test_headers_that_lie(sizes: tuple[int, int], tmp_path: Path) -> None:
    content = bytearray(made.sens(tmp_path).read_bytes())
    place = content.index(struct.pack("<4I", made.W, made.H, made.w, made.h)) + 8
    content[place : place + 8] = struct.pack("<2I", *sizes)
    (tmp_path / "lies.sens").write_bytes(content)
    with pytest.raises(InputError):
        read_frame(find_frames(tmp_path / "lies.sens").pairs[0])


def test_a_recording_that_was_cut_off_gives_what_it_has(tmp_path: Path) -> None:
    path = made.sens(tmp_path)
    path.write_bytes(path.read_bytes()[:-50])
    found = find_frames(path)
    assert len(found.pairs) == made.FRAMES - 1
    assert "cut off" in found.unmatched[0].reason
