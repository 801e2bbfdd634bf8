"""Damaged journals, power cuts, forks: what is left afterwards is whole, or said to be lost."""

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ducos.batch import run_batch
from ducos.batch.journal import Journal
from ducos.errors import InputError
from ducos.example import LOW, RGB
from ducos.files import atomic_write, find_pairs
from ducos.training import differences, load_recipe
from ducos.upscaling import super_resolve
from tests.batch.test_batch import BICUBIC, results, write_folder
from tests.places import CONFIGS

DAMAGED = [
    b'{"out": "001.png"}',
    b'{"out": 7, "files": {}, "settings": {}, "inputs": {}}',
    b'{"out": "001.png", "files": null, "settings": {}, "inputs": {}}',
    b'{"out": "001.png", "files": {"001.png": 5}, "settings": {}, "inputs": {}}',
    b'{"out": "001.png", "files": {}, "settings": [], "inputs": {}, "scale": "x"}',
    b"[" * 50_000,
    b"\xff\xfe\x00",
    bytes(100),
    b'"text"',
]


def test_damaged_lines_are_set_aside(tmp_path: Path) -> None:
    """Each kind of damage once; the second run is quiet, and what was whole is kept."""
    pairs, out = find_pairs(write_folder(tmp_path / "in", 2)).pairs, tmp_path / "out"
    run_batch(pairs, out, options=BICUBIC)
    first, second = (out / "journal.jsonl").read_bytes().splitlines()
    (out / "journal.jsonl").write_bytes(b"\n".join([first, *DAMAGED, second[:-9]]))
    before = results(out)
    again = run_batch(pairs, out, options=BICUBIC)
    assert (again.kept, again.made, results(out)) == (1, 1, before)
    (warning,) = again.warnings
    assert f"{len(DAMAGED) + 1} lines of" in warning
    assert (out / "journal.damaged").read_bytes().splitlines() == [*DAMAGED, second[:-9]]
    quiet = run_batch(pairs, out, options=BICUBIC)
    assert (quiet.kept, quiet.warnings) == (2, [])


class Disk:
    """What a power cut would leave: bytes that were synced, and names that were or may be.

    A rename may reach the disk before or without the sync of its folder, so from the moment of a
    rename its bytes must be there.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.synced: dict[int, bytes] = {}
        self.names: list[tuple[str, bool, bytes]] = []
        self.folders: list[str] = []
        sync, replace = os.fsync, os.replace

        def fsync(handle: int) -> None:
            place = os.readlink(f"/proc/self/fd/{handle}")
            if os.path.isdir(place):
                self.folders.append(place)
            else:
                self.synced[os.fstat(handle).st_ino] = Path(place).read_bytes()
            sync(handle)

        def rename(source: Any, target: Any, **options: Any) -> None:
            content = Path(source).read_bytes()
            whole = self.synced.get(os.stat(source).st_ino) == content
            journal = Path(target).parent / "journal.jsonl"
            noted = b""
            if journal.exists():
                noted = self.synced.get(journal.stat().st_ino, b"")
            self.names.append((str(target), whole, noted))
            replace(source, target, **options)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "replace", rename)
        monkeypatch.setattr(Path, "replace", lambda self, target: rename(self, target))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_no_name_is_given_to_bytes_that_a_power_cut_would_lose(tmp_path: Path, disk: Disk) -> None:
    with atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("whole")
    ((name, whole, _),) = disk.names
    assert (Path(name).name, whole) == ("a.txt", True)
    assert disk.folders == [str(tmp_path)]


def test_a_power_cut_in_a_batch_loses_no_finished_frame(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a result takes its name, its line of the journal is on disk already."""
    pairs, out = find_pairs(write_folder(tmp_path / "in", 2)).pairs, tmp_path / "out"
    run_batch(pairs, out, options=BICUBIC)
    published = [each for each in disk.names if Path(each[0]).parent == out]
    assert sorted(Path(name).name for name, _, _ in published) == ["000.png", "001.png"]
    for name, _, noted in published:
        lines = [json.loads(line)["out"] for line in noted.splitlines()]
        assert Path(name).name in lines
        assert str(out) in disk.folders


def test_the_line_comes_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between the two must not leave a result that nobody knows."""
    pairs, out = find_pairs(write_folder(tmp_path / "in", 1)).pairs, tmp_path / "out"

    def killed(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        run_batch(pairs, out, options=BICUBIC)
    monkeypatch.undo()
    assert not (out / "000.png").exists()
    assert list(Journal(out).records) == ["000.png"]
    summary = run_batch(pairs, out, options=BICUBIC)
    assert (summary.made, summary.remade) == (1, {"damaged": 1})


ON_TORCH: dict[str, Any] = {"model": "bicubic", "runtime": "torch"}


def in_a_fork(threads: int | None, answers: Any) -> None:
    try:
        depth = super_resolve(RGB, LOW, unit="mm", threads=threads, **ON_TORCH).depth
        answers.put(depth.tobytes())
    except InputError as problem:
        answers.put(str(problem))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.timeout(120)
def test_a_fork_after_use_works_with_one_thread() -> None:
    """It waited for ever for threads that a fork does not copy."""
    expected = super_resolve(RGB, LOW, unit="mm", threads=2, **ON_TORCH).depth
    fork = multiprocessing.get_context("fork")
    said = {}
    for threads in (None, 1, 2):
        answers = fork.Queue()
        child = fork.Process(target=in_a_fork, args=(threads, answers))
        child.start()
        try:
            said[threads] = answers.get(timeout=60)
        finally:
            child.kill()
            child.join()
    for threads in (None, 1):
        depth = np.frombuffer(said[threads], np.float32).reshape(expected.shape)
        np.testing.assert_allclose(depth, expected, atol=1e-5)
    assert "was forked after a super-resolution" in said[2]
    assert torch.get_num_threads() == 1  # of the tests; the fork changed nothing here


def test_other_settings_on_resume_are_named(tmp_path: Path) -> None:
    config = load_recipe(CONFIGS / "shapes.toml", []).base
    (tmp_path / "config.json").write_text(config.model_dump_json())
    assert differences(config, tmp_path) == []
    other = load_recipe(CONFIGS / "shapes.toml", ["train.steps=7", "train.clip=0.5"]).base
    told = differences(other, tmp_path)
    assert [line.split(" ")[0] for line in told] == ["train.clip", "train.steps"]
    assert f"train.steps = {config.train.steps}, now 7" in told
    assert differences(other, tmp_path / "nowhere") == []
