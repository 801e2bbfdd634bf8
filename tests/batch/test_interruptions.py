"""Damaged journals, power cuts, forks: what is left afterwards is whole, or said to be lost."""

import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ducos.batch import Summary, run_batch
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
    """What a power cut would leave: only bytes that were synced, under names that were, or may be.

    A file system may write a new name at any time before its folder is synced. So a cut is looked
    at twice: with all such names, and with none of them.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.events: list[tuple[str, Any, Any]] = []
        sync, replace = os.fsync, os.replace

        def fsync(handle: int) -> None:
            place = Path(os.readlink(f"/proc/self/fd/{handle}"))
            if place.is_dir():
                self.events.append(("folder", place, None))
            else:
                inode = os.fstat(handle).st_ino
                self.events.append(("name", place, inode))  # unless it is there, it was made now
                self.events.append(("bytes", inode, place.read_bytes()))
            sync(handle)

        def rename(source: Any, target: Any, **options: Any) -> None:
            inode = os.stat(source).st_ino
            if ".unfinished" in Path(source).parts:  # a worker has synced it, by `atomic_write`
                self.events.append(("bytes", inode, Path(source).read_bytes()))
            self.events.append(("name", Path(target), inode))
            replace(source, target, **options)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "replace", rename)
        monkeypatch.setattr(Path, "replace", lambda self, target: rename(self, target))

    def left(self, folder: Path, cut: int, *, early: bool) -> dict[str, bytes]:
        """The files of a folder after so many events; early: names come before their sync."""
        synced: dict[int, bytes] = {}
        new: dict[Path, int] = {}
        names: dict[Path, int] = {}
        for kind, what, more in self.events[:cut]:
            if kind == "bytes":
                synced[what] = more
            elif kind == "name" and names.get(what) != more:
                new[what] = more
            elif kind == "folder":
                names |= {path: inode for path, inode in new.items() if path.parent == what}
                new = {path: inode for path, inode in new.items() if path.parent != what}
        names |= new if early else {}
        return {path.name: synced.get(inode, b"") for path, inode in names.items()
                if path.parent == folder and not path.name.startswith(".")}  # fmt: skip


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_file_is_old_or_new_after_a_power_cut(tmp_path: Path, disk: Disk) -> None:
    for text in ("old", "new"):
        with atomic_write(tmp_path / "a.txt") as temporary:
            temporary.write_text(text)
    found = [disk.left(tmp_path, cut, early=early).get("a.txt")
             for cut in range(len(disk.events) + 1) for early in (False, True)]  # fmt: skip
    assert set(found) == {None, b"old", b"new"}
    assert found == sorted(found, key=[None, b"old", b"new"].index)
    assert found[-2:] == [b"new", b"new"]  # when the call returns


def test_a_power_cut_at_any_moment_loses_no_finished_frame(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing damaged counts as done, and what was reported is there."""
    pairs, out = find_pairs(write_folder(tmp_path / "in", 2)).pairs, tmp_path / "out"

    def told(summary: Summary) -> None:
        disk.events.append(("told", summary.made, None))

    run_batch(pairs, out, options=BICUBIC, progress=told)
    monkeypatch.undo()
    whole, records = results(out), Journal(out).records.values()
    assert len(records) == 2
    states = set()
    for cut in range(len(disk.events) + 1):
        reported = [made for kind, made, _ in disk.events[:cut] if kind == "told"]
        for early in (False, True):
            place = tmp_path / f"cut{cut}{early}"
            place.mkdir()
            for name, content in disk.left(out, cut, early=early).items():
                (place / name).write_bytes(content)
            journal = Journal(place)
            done = [each.out for each in records if journal.state(each) == "done"]
            assert len(done) >= max(reported, default=0), f"after {disk.events[cut - 1][:2]}"
            assert {name: results(place)[name] for name in done}.items() <= whole.items()
            assert journal.damaged == []
            # A result without a line would be a stranger's file, which a batch does not replace.
            assert results(place).keys() <= journal.records.keys()
            states.add((len(done), len(journal.records), len(results(place))))
    assert {(0, 1, 0), (1, 1, 1), (1, 2, 1), (2, 2, 2)} <= states  # the cuts were at all places
    again = run_batch(pairs, place, options=BICUBIC)
    assert (again.kept, results(place)) == (2, whole)


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
ON_ONNX: dict[str, Any] = {"model": "ducos-tiny", "runtime": "onnx"}


def in_a_fork(options: dict[str, Any], threads: int | None, answers: Any) -> None:
    try:
        depth = super_resolve(RGB, LOW, unit="mm", threads=threads, **options).depth
        answers.put(depth.tobytes())
    except InputError as problem:
        answers.put(str(problem))


def told_by_forks(options: dict[str, Any]) -> dict[int | None, Any]:
    """By number of threads: what a process says that is forked now."""
    fork = multiprocessing.get_context("fork")
    said = {}
    for threads in (None, 1, 2):
        answers = fork.Queue()
        child = fork.Process(target=in_a_fork, args=(options, threads, answers))
        child.start()
        try:
            said[threads] = answers.get(timeout=60)
        finally:
            child.kill()
            child.join()
    return said


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.timeout(120)
def test_a_fork_after_use_works_with_one_thread() -> None:
    """It waited for ever for threads that a fork does not copy."""
    expected = super_resolve(RGB, LOW, unit="mm", threads=2, **ON_TORCH).depth
    said = told_by_forks(ON_TORCH)
    for threads in (None, 1):
        depth = np.frombuffer(said[threads], np.float32).reshape(expected.shape)
        np.testing.assert_allclose(depth, expected, atol=1e-5)
    assert "was forked after a super-resolution" in said[2]
    assert torch.get_num_threads() == 1  # of the tests; the fork changed nothing here


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.timeout(240)
def test_a_fork_after_use_works_on_onnxruntime() -> None:
    """Its main thread takes back what the threads that are gone have not begun."""
    expected = super_resolve(RGB, LOW, unit="mm", threads=2, **ON_ONNX).depth
    for said in told_by_forks(ON_ONNX).values():
        depth = np.frombuffer(said, np.float32).reshape(expected.shape)
        np.testing.assert_allclose(depth, expected, atol=1e-4)


def test_other_settings_on_resume_are_named(tmp_path: Path) -> None:
    config = load_recipe(CONFIGS / "shapes.toml", []).base
    (tmp_path / "config.json").write_text(config.model_dump_json())
    assert differences(config, tmp_path) == []
    other = load_recipe(CONFIGS / "shapes.toml", ["train.steps=7", "train.clip=0.5"]).base
    told = differences(other, tmp_path)
    assert [line.split(" ")[0] for line in told] == ["train.clip", "train.steps"]
    assert f"train.steps = {config.train.steps}, now 7" in told
    assert differences(other, tmp_path / "nowhere") == []
