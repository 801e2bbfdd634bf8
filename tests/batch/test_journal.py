"""The journal by itself: what a line says, what counts as done, and who may write."""

import fcntl
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ducos.batch.journal import Journal, Record, claimed, digest_of, stamps_of
from ducos.errors import InputError

RECORD = Record("a.png", {"a.png": hashlib.sha256(b"result").hexdigest()},
                {"model": "bicubic"}, {"rgb": [3, 5]}, "mm", 0.001)  # fmt: skip
LINE = {
    "out": "a.png",
    "files": RECORD.files,
    "settings": {"model": "bicubic"},
    "inputs": {"rgb": [3, 5]},
    "unit": "mm",
    "scale": 0.001,
    "lengths": {},
}


def test_a_line_for_each_frame_and_the_last_one_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert (journal.records, journal.damaged) == ({}, [])
    assert not journal.path.exists()
    journal.add(RECORD)
    journal.add(replace(RECORD, out="b.png"))
    journal.add(replace(RECORD, unit="m"))
    lines = journal.path.read_text().splitlines()
    assert [json.loads(line)["out"] for line in lines] == ["a.png", "b.png", "a.png"]
    assert json.loads(lines[0]) == LINE
    assert {name: each.unit for name, each in journal.records.items()} == {
        "a.png": "m",
        "b.png": "mm",
    }
    again = Journal(tmp_path)
    assert again.records == journal.records
    assert again.damaged == []
    lines = again.path.read_text().splitlines()  # once each
    assert sorted(json.loads(line)["out"] for line in lines) == ["a.png", "b.png"]
    assert not (tmp_path / "journal.damaged").exists()


def test_each_line_is_on_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file at each line; its folder, which knows of the file, when the file is new."""
    synced = []

    def fsync(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        synced.append((path.name, path.read_bytes().count(b"\n") if path.is_file() else None))

    journal = Journal(tmp_path)
    monkeypatch.setattr(os, "fsync", fsync)
    journal.add(RECORD)
    assert synced == [("journal.jsonl", 1), (tmp_path.name, None)]
    journal.add(replace(RECORD, out="b.png"))
    assert synced[2:] == [("journal.jsonl", 2)]


@pytest.mark.parametrize(
    "changes",
    [
        {"out": 7},
        {"files": None},
        {"files": {"a.png": 5}},
        {"settings": []},
        {"inputs": 3},
        {"unit": 3},
        {"scale": "x"},
        {"lengths": 3},
        {"more": 1},
    ],
    ids=str,
)
def test_a_field_of_another_kind_is_damage(tmp_path: Path, changes: dict) -> None:
    bad = json.dumps({**LINE, "out": "bad.png", **changes}).encode()
    path = tmp_path / "journal.jsonl"
    path.write_bytes(json.dumps(LINE).encode() + b"\n" + bad + b"\n")
    journal = Journal(tmp_path)
    assert journal.damaged == [bad]
    assert journal.records == {"a.png": RECORD}
    assert (tmp_path / "journal.damaged").read_bytes() == bad + b"\n"
    assert path.read_text() == json.dumps(LINE) + "\n"


def test_what_is_set_aside_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for torn in (b'{"out": "a', b"[" * 50_000, b'{"out": 1}\n{"files": 2}'):
        path.write_bytes(path.read_bytes() + torn if path.exists() else torn)
        Journal(tmp_path)
    lines = (tmp_path / "journal.damaged").read_bytes().splitlines()
    assert lines == [b'{"out": "a', b"[" * 50_000, b'{"out": 1}', b'{"files": 2}']
    Journal(tmp_path).add(RECORD)  # not at the end of a torn line
    assert Journal(tmp_path).records == {"a.png": RECORD}


def test_older_lines_without_a_unit_count(tmp_path: Path) -> None:
    few = {name: LINE[name] for name in ("out", "files", "settings", "inputs")}
    (tmp_path / "journal.jsonl").write_text(json.dumps(few) + "\n")
    (record,) = Journal(tmp_path).records.values()
    assert (record.unit, record.scale) == ("", 1.0)
    (tmp_path / "journal.jsonl").write_text(json.dumps({**few, "scale": 2}) + "\n")
    assert Journal(tmp_path).records["a.png"].scale == 2


def test_what_counts_as_done(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert journal.state(RECORD) == "new"
    journal.add(RECORD)
    assert journal.state(RECORD) == "damaged"  # its file is not there
    (tmp_path / "a.png").write_bytes(b"result")
    assert journal.state(RECORD) == "done"
    assert journal.state(replace(RECORD, out="b.png")) == "new"
    assert journal.state(replace(RECORD, settings={"model": "other"})) == "settings"
    assert journal.state(replace(RECORD, inputs={"rgb": [3, 6]})) == "inputs"
    # Digests, unit and scale are known after the work only.
    assert journal.state(replace(RECORD, files={"a.png": ""}, unit="", scale=1.0)) == "done"
    wanted = replace(RECORD, files={"a.png": "", "preview/a.png": ""})
    assert journal.state(wanted) == "damaged"  # a preview is wanted now, and there is none
    (tmp_path / "a.png").write_bytes(b"Result")
    assert journal.state(RECORD) == "damaged"


def test_one_damaged_file_of_several_is_enough(tmp_path: Path) -> None:
    both = replace(RECORD, files={"a.png": RECORD.files["a.png"], "b.png": RECORD.files["a.png"]})
    journal = Journal(tmp_path)
    journal.add(both)
    (tmp_path / "b.png").write_bytes(b"result")
    assert journal.state(both) == "damaged"
    (tmp_path / "a.png").write_bytes(b"result")
    assert journal.state(both) == "done"


def test_files_that_were_sent_elsewhere_count_by_their_length(tmp_path: Path) -> None:
    both = replace(RECORD, files={"a.png": "", "b.png": ""}, lengths={"a.png": 6000, "b.png": 7000})
    Journal(tmp_path).add(both)
    for there, expected in (
        ({"a.png": 6000, "b.png": 7000}, "done"),
        ({"a.png": 6000, "b.png": 8000}, "damaged"),
        ({"a.png": 6000}, "damaged"),
        ({}, "damaged"),
    ):
        assert Journal(tmp_path, there).state(both) == expected
    Journal(tmp_path).add(replace(both, lengths={"a.png": 6000}))
    assert Journal(tmp_path, {"a.png": 6000, "b.png": 7000}).state(both) == "damaged"
    assert Journal(tmp_path).state(both) == "damaged"  # nothing lies here


def test_digests(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"result")
    assert digest_of(tmp_path / "a") == hashlib.sha256(b"result").hexdigest()
    assert digest_of(tmp_path / "b") is None
    assert digest_of(tmp_path / "a" / "b") is None
    assert digest_of(tmp_path) is None


def test_stamps_tell_a_file_from_a_changed_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    os.utime(path, ns=(7, 5))
    assert stamps_of({"rgb": path, "mask": None, "depth": tmp_path / "b"}) == {"rgb": [3, 5]}


def test_one_batch_at_a_time(tmp_path: Path) -> None:
    with claimed(tmp_path):
        with pytest.raises(InputError, match="another batch is writing to"), claimed(tmp_path):
            raise AssertionError("two batches in one folder")
        handle = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.close(handle)
    before = len(os.listdir("/proc/self/fd"))
    with claimed(tmp_path):
        pass
    assert len(os.listdir("/proc/self/fd")) == before  # no handle is left
