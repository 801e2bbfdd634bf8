"""Recordings and results behind addresses such as s3://bucket/prefix, through fsspec.

A recording appears as a folder on this machine: its lists, cameras and containers are copied, its
pictures and maps are hollow: right name, length and time, no content. Whoever works on a frame
fetches what that frame needs and hollows it again. A worker on another machine makes the same
folder there.

Results are made here and sent whole. A store of objects shows an object whole or not at all, which
stands in for renaming; it cannot append, so the journal is sent again now and then.
"""

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from ducos.batch.journal import FAILURES, JOURNAL, digest_of
from ducos.errors import InputError, needed, one_line
from ducos.files import FramePair

# Files that belong to one frame. All others are copied when the folder is made.
HOLLOW = (
    ".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff",
    ".exr", ".npy", ".npz", ".pfm", ".h5",
)  # fmt: skip
JOURNAL_SECONDS = 30.0  # between two sendings


@dataclass(frozen=True)
class Places:
    """Where the files of a batch really are; plain values, since workers elsewhere need them.

    source: address of the recording, None if it is here; folder: where it appears. results: address
    of OUT, None if that is here. shared: files in the folder that several frames need.
    """

    folder: str
    source: str | None = None
    results: str | None = None
    shared: tuple[str, ...] = ()

    def told(self, text: str) -> str:
        """A message with the recording's address instead of its folder here."""
        return text if self.source is None else text.replace(self.folder, self.source)

    def plain(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)


class Store:
    """What lies behind an address."""

    def __init__(self, address: str):
        fsspec = needed("fsspec", "cloud")
        self.address = address
        try:
            self.files, root = fsspec.url_to_fs(address)
        except (ImportError, ValueError) as problem:
            raise InputError(f"{address} cannot be opened: {one_line(problem)}") from None
        self.root = root.rstrip("/")

    def listed(self) -> dict[str, tuple[int, int]]:
        """Length and time of change (nanoseconds) of each file, by its name below the address."""
        with said(self.address):
            self.files.invalidate_cache()
            found = self.files.find(self.root, detail=True)
        files = {}
        for path, about in found.items():
            name = path.removeprefix(self.root).lstrip("/") or PurePosixPath(path).name
            if ".." not in PurePosixPath(name).parts and not name.endswith("/"):
                files[name] = (int(about.get("size") or 0), changed(about))
        return files

    def path(self, name: str) -> str:
        """Of a file below the address; of a recording that is one file, that file."""
        one = PurePosixPath(self.root)
        return self.root if name == one.name and one.suffix else f"{self.root}/{name}"

    def fetch(self, name: str, target: Path) -> None:
        """A copy, whole or not at all."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as place:
            unnamed = Path(place, "file")
            with said(f"{self.address}/{name}"):
                self.files.get_file(self.path(name), str(unnamed))
            unnamed.replace(target)

    def send(self, source: Path, name: str) -> None:
        """Put a file there in one step, under a name below the address."""
        with said(f"{self.address}/{name}"):
            self.files.put_file(str(source), f"{self.root}/{name}")


@contextmanager
def said(what: str) -> Iterator[None]:
    """Errors of libraries for many kinds of storage, as one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as problem:  # each kind has its own
        raise InputError(f"{what} cannot be reached: {one_line(problem)}") from None


def changed(about: Mapping[str, Any]) -> int:
    """When a file was changed; stores name it differently. 0 if they do not say."""
    when = about.get("LastModified") or about.get("mtime") or about.get("updated") or 0
    return int(when.timestamp() if hasattr(when, "timestamp") else when) * 10**9


# The folder as which a recording appears


def mirrored(places: Places) -> Path:
    """The recording's path on this machine; makes the folder if it is not there yet."""
    assert places.source is not None
    store, folder = Store(places.source), Path(places.folder)
    one = PurePosixPath(store.root)
    source = folder / one.name if one.suffix else folder
    if folder.exists():
        return source
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as place:
        for name, (length, when) in store.listed().items():
            path = Path(place, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.suffix.lower() in HOLLOW:
                    path.touch()
                    hollow(path, length, when)
                else:
                    store.fetch(name, path)
                    os.utime(path, ns=(when, when))
            except InputError:
                raise
            except (OSError, ValueError) as problem:  # names of stores may be anything
                raise InputError(
                    f"{places.source} has {name[:100]!r}, which cannot be a file here: "
                    f"{one_line(problem)}; rename it there"
                ) from None
        with suppress(OSError):  # another worker of this machine was faster
            os.rename(place, folder)
        os.makedirs(place, exist_ok=True)  # for the end of the block
    return source


def hollow(path: Path, length: int, when: int) -> None:
    """Leave name, length and time of a file."""
    os.truncate(path, 0)
    os.truncate(path, length)
    os.utime(path, ns=(when, when))


@contextmanager
def at_hand(places: Places | None, files: Iterable[str | Path | None]) -> Iterator[None]:
    """While inside, these files of a frame have their content."""
    if places is None or places.source is None:
        yield
        return
    mirrored(places)
    store, folder = Store(places.source), Path(places.folder)
    wanted = {Path(file) for file in files if file is not None}
    fetched: list[tuple[Path, os.stat_result]] = []
    try:
        for path in wanted:
            if path.is_relative_to(folder) and path.suffix.lower() in HOLLOW and path.exists():
                about = path.stat()
                store.fetch(path.relative_to(folder).as_posix(), path)
                os.utime(path, ns=(about.st_mtime_ns, about.st_mtime_ns))
                fetched.append((path, about))
        yield
    finally:
        for path, about in fetched:
            if str(path) not in places.shared:
                hollow(path, about.st_size, about.st_mtime_ns)


def used_often(pairs: Iterable[FramePair]) -> tuple[str, ...]:
    """Files that several frames need: they keep their content, since another may just read it."""
    count = Counter(
        str(path)
        for pair in pairs
        for path in {pair.rgb, pair.depth, pair.mask, pair.confidence} - {None}
    )
    return tuple(path for path, uses in count.items() if uses > 1)


# Results


def send(places: Places | None, names: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Send files, given with their names there, and forget them here: SHA-256 and length."""
    if places is None or places.results is None:
        return {}
    store, sent = Store(places.results), {}
    for here, name in names.items():
        path = Path(here)
        sent[name] = (digest_of(path) or "", path.stat().st_size)
        store.send(path, name)
        path.unlink()
    return sent


class Returns:
    """The driver's end of a folder of results that is elsewhere.

    The journal is kept here and sent again every so many seconds: what was finished after the
    last time is made again after an end without warning.
    """

    def __init__(self, address: str, folder: Path):
        self.store, self.folder = Store(address), folder
        self.lengths = {name: length for name, (length, _) in self.store.listed().items()}
        if JOURNAL in self.lengths:
            self.store.fetch(JOURNAL, folder / JOURNAL)
        self.sent = time.monotonic()

    def keep(self, *, now: bool = False) -> None:
        """Send the journal if it is time."""
        if now or time.monotonic() - self.sent > JOURNAL_SECONDS:
            for name in (JOURNAL, FAILURES) if now else (JOURNAL,):
                if (self.folder / name).exists():
                    self.store.send(self.folder / name, name)
            self.sent = time.monotonic()

    def check_replaced(self, names: Iterable[str]) -> None:
        """Refuse to replace what is there and no result of ours."""
        taken = next((name for name in names if name in self.lengths), None)
        if taken is not None:
            raise InputError(
                f"{self.store.address}/{taken} is there and not of an earlier batch, and would be "
                "replaced; pass --overwrite, or choose another -o"
            )


# Addresses of users


def address_of(text: str | Path) -> str | None:
    """The address that a user gave, or None if it is a path of this machine."""
    kind, mark, _ = str(text).partition("://")
    if not mark or kind == "file":
        return None
    if kind == "memory":
        raise InputError(f"got {text}, which one process alone can see; use a folder instead")
    return str(text).rstrip("/")


def local_path(text: str | Path) -> Path:
    """A path of this machine, also of a file:// address."""
    parts = urlsplit(str(text))
    return Path(unquote(parts.path) if parts.scheme == "file" else text)


@contextmanager
def opened_places(source: str, out: str) -> Iterator[tuple[Path, Path, Places | None]]:
    """Recording and folder of results as paths here, and where they really are, if elsewhere.

    What is here of them for the work goes at the end.
    """
    addresses = address_of(source), address_of(out)
    if addresses == (None, None):
        yield local_path(source), local_path(out), None
        return
    with tempfile.TemporaryDirectory(prefix="ducos-") as place:
        places = Places(str(Path(place, "recording")), *addresses)
        there = local_path(source) if places.source is None else mirrored(places)
        results = local_path(out) if places.results is None else Path(place, "results")
        yield there, results, places
