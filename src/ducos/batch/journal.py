"""What a folder of results remembers, so that a batch can go on after any end, also a kill -9.

One JSON line per finished frame, written *before* the frame takes its name: a line whose files are
not there, or hold other bytes, counts for nothing, and a file without a line does not either.
Thus nothing is lost, nothing half-written is trusted, and nothing finished is made again.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ducos.errors import InputError
from ducos.files import atomic_write, on_disk

JOURNAL = "journal.jsonl"
FAILURES = "failures.csv"
UNFINISHED = ".unfinished"
SET_ASIDE = "journal.damaged"


@dataclass
class Record:
    """A finished frame.

    out: its name below the folder. files: SHA-256 of each file written for it, by name.
    settings: all that decides the bytes beside the inputs. inputs: length and time of change of
    each input file. unit, scale: what the input's numbers were taken for. lengths: of the files, if
    they were sent elsewhere.
    """

    out: str
    files: dict[str, str]
    settings: dict[str, Any]
    inputs: dict[str, list[int]]
    unit: str = ""
    scale: float = 1.0
    lengths: dict[str, int] = field(default_factory=dict)


class Journal:
    """The records of one folder, held by one batch at a time.

    elsewhere: lengths of the files where the results are sent, by name. They are not read again, so
    a result that is there counts if it has its length.
    """

    def __init__(self, folder: Path, elsewhere: Mapping[str, int] | None = None):
        self.folder = folder
        self.elsewhere = elsewhere
        self.path = folder / JOURNAL
        found, self.damaged = _records(self.path)
        self.records = {record.out: record for record in found}
        if self.damaged:
            with (folder / SET_ASIDE).open("ab") as stream:
                stream.writelines(line + b"\n" for line in self.damaged)
        # Whole lines only, so that what is appended does not continue a torn one.
        if self.path.exists():
            with atomic_write(self.path) as temporary:
                text = "".join(_line(record) for record in self.records.values())
                temporary.write_text(text, encoding="utf-8")

    def add(self, record: Record) -> None:
        """Note a frame that is about to take its name."""
        new = not self.path.exists()
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(_line(record))
            stream.flush()
            os.fsync(stream.fileno())
        if new:
            on_disk(self.folder)
        self.records[record.out] = record

    def state(self, wanted: Record) -> str:
        """Of a frame: "done", or why it must be made: "new", "settings", "inputs", "damaged"."""
        stored = self.records.get(wanted.out)
        if stored is None:
            return "new"
        if stored.settings != wanted.settings:
            return "settings"
        if stored.inputs != wanted.inputs:
            return "inputs"
        whole = all(name in stored.files and self.whole(stored, name) for name in wanted.files)
        return "done" if whole else "damaged"

    def whole(self, record: Record, name: str) -> bool:
        """Whether a file of a record is what was written then."""
        if self.elsewhere is None:
            return digest_of(self.folder / name) == record.files[name]
        return name in record.lengths and self.elsewhere.get(name) == record.lengths[name]


def _records(path: Path) -> tuple[list[Record], list[bytes]]:
    """The records of a journal, and the lines that are none: torn by a crash, or changed since."""
    records, damaged = [], []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            records.append(_checked(Record(**json.loads(line))))
        except (ValueError, TypeError, RecursionError):
            damaged.append(line)
    return records, damaged


def _checked(record: Record) -> Record:
    """The record, if each of its fields is of its kind."""
    tables = (record.files, record.settings, record.inputs, record.lengths)
    whole = isinstance(record.out, str) and all(isinstance(table, dict) for table in tables)
    if not whole or not all(isinstance(digest, str) for digest in record.files.values()):
        raise TypeError("a field of another kind")
    if not isinstance(record.unit, str) or not isinstance(record.scale, int | float):
        raise TypeError("a field of another kind")
    return record


def _line(record: Record) -> str:
    return json.dumps(asdict(record)) + "\n"


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file's bytes, or None if there is no such file."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def stamps_of(files: Mapping[str, Path | None]) -> dict[str, list[int]]:
    """Length and time of change of each file that is there: enough to notice another one."""
    stamps = {}
    for kind, path in files.items():
        if path is not None and path.exists():
            about = path.stat()
            stamps[kind] = [about.st_size, about.st_mtime_ns]
    return stamps


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """While held, no second batch writes to the folder; the system frees it if we are killed."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another batch is writing to {folder}; wait for it or choose another folder"
            ) from None
        yield
    finally:
        os.close(handle)
