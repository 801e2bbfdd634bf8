"""The server's one folder: private, bounded in bytes, and empty again when the server ends.

Every request reserves its bytes before its body is read; a job owns a folder below, where inputs
and results have fixed names, until its time is over. What a server that was killed left behind is
removed by the next one.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ducos.serve.problems import Problem

PREFIX = "ducos-serve-"
LOCK = "lock"


class Store:
    """Folders of jobs, with the bytes that they may have together."""

    def __init__(self, limit: int, place: Path | None = None):
        self.limit = limit
        self.place = place or Path(tempfile.gettempdir())
        self.reserved = 0
        self.kept: dict[str, int] = {}  # job -> bytes of its folder

    def open(self) -> None:
        """Make the folder, and clear up after servers that were killed."""
        remove_abandoned(self.place)
        self.root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.place))
        self.lock = os.open(self.root / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    @property
    def used(self) -> int:
        return self.reserved + sum(self.kept.values())

    @contextmanager
    def room_for(self, size: int) -> Iterator[None]:
        """So many bytes are promised to somebody meanwhile."""
        if self.used + size > self.limit:
            raise Problem("disk", "the server keeps as many results as it may; try again later")
        self.reserved += size
        try:
            yield
        finally:
            self.reserved -= size

    def make(self, name: str) -> Path:
        """A new folder, readable by nobody else."""
        folder = self.root / name
        folder.mkdir(mode=0o700)
        self.kept[name] = 0
        return folder

    def measure(self, name: str) -> None:
        """Count what a folder holds now; refuse if all together are too much."""
        if name not in self.kept:  # dropped meanwhile
            return
        files = (path for path in (self.root / name).rglob("*") if path.is_file())
        self.kept[name] = sum(path.stat().st_size for path in files)
        if self.used > self.limit:
            raise Problem("disk", "the server keeps as many results as it may; try again later")

    def drop(self, name: str) -> None:
        """A folder with all that is in it."""
        self.kept.pop(name, None)
        shutil.rmtree(self.root / name, ignore_errors=True)

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        os.close(self.lock)


def remove_abandoned(place: Path) -> None:
    """Folders of servers that were killed: those of this user whose lock nobody holds."""
    for folder in place.glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its server is alive
        finally:
            os.close(lock)
