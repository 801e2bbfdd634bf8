"""Files of the user: one that can be read, or one that can be written, whole or not at all."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ducos.errors import InputError, one_line

PathLike = str | os.PathLike[str]


def existing_file(path: PathLike) -> Path:
    """The path, if a regular file that may be read is there; pipes and devices could hang."""
    try:
        source = Path(path)
        mode = source.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist; check the name and the folder") from None
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(f"{str(path)!r} is no readable file: {one_line(problem)}") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
        raise InputError(f"{source} is {kind}; give the name of one file")
    try:
        source.open("rb").close()
    except OSError as problem:
        raise InputError(f"{source} may not be read: {one_line(problem)}") from None
    return source


def read_text(path: PathLike, most: int = 1_000_000, *, errors: str = "strict") -> str:
    """The text of a file of at most so many bytes; a byte-order mark goes.

    Calibrations, configs and tables are short: a long file is another one, or an attack.
    """
    source = existing_file(path)
    try:
        with source.open("rb") as file:
            content = file.read(most + 1)
    except OSError as problem:
        raise InputError(f"{source} cannot be read: {one_line(problem)}") from None
    if len(content) > most:
        raise InputError(f"{source} is longer than {most} bytes; is it the right file?")
    try:
        return content.decode("utf-8-sig", errors)
    except UnicodeDecodeError as problem:
        raise InputError(f"{source} is no text: {one_line(problem)}; save it as UTF-8") from None


def check_output(path: PathLike) -> Path:
    """The file a write to this path will replace, links followed; InputError if it cannot.

    Cheap: call it before the work whose result is to be written.
    """
    try:
        target = Path(os.path.realpath(path))
        folder_is_there = target.parent.is_dir()
        mode = target.stat().st_mode if target.exists() else stat.S_IFREG
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(f"{str(path)!r} cannot be written: {one_line(problem)}") from None
    if not folder_is_there:
        raise InputError(f"{path} cannot be written: the folder {target.parent} does not exist")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} cannot be written: it is a folder or a device; name a file")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{path} cannot be written: no permission for {target.parent}")
    return target


def check_output_folder(folder: PathLike) -> None:
    """InputError if this folder is not there and cannot be made, or cannot be written to."""
    place = Path(os.path.realpath(folder))
    there = next(path for path in (place, *place.parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"{folder} cannot be a folder: {there} is a file; choose another")
    if not os.access(there, os.W_OK):
        raise InputError(f"{folder} cannot be written: no permission for {there}")


def on_disk(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, would survive a power cut."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # where folders cannot be opened
        return
    handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot
            raise
    finally:
        os.close(handle)


UNFINISHED = ".ducos-"  # how the names of files begin that have not taken theirs yet


def remove_unfinished(folder: Path) -> None:
    """Remove what killed writes left in a folder that is ours alone to write to."""
    for path in folder.glob(UNFINISHED + "*"):
        path.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: PathLike) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it takes its place in one step.

    On any error, also an interrupt, the temporary file goes and what was there stays. A killed
    process can leave the hidden temporary file, see `remove_unfinished`, never a half-written
    `path`; nor can a power cut: the bytes are on disk before the name is theirs. A file that is
    replaced keeps its mode.
    """
    target = check_output(path)
    temporary = target.with_name(f"{UNFINISHED}{secrets.token_hex(8)}{target.suffix}")
    try:
        # Created here and not by tempfile: that would make the result private to the user.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        on_disk(temporary)
        os.replace(temporary, target)
        on_disk(target.parent)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {one_line(problem)}") from problem
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
