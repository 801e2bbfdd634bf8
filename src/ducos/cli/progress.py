"""Life signs of work that takes more than a moment."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def waiting(text: str, *, quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """A spinner on stderr for work that takes more than a moment; yields what shows its share.

    Where nobody would see it turn, nothing is loaded for it.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield lambda share: status.update(f"{text}, {share:.0%} done")


@contextmanager
def counting(text: str) -> Iterator[Callable[[str, int], None]]:
    """A bar on stderr, shown once two seconds have passed; yields `advance(what, total)`."""
    import threading

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(text, total=None)
    timer = threading.Timer(2.0, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda what, total: bar.update(task, advance=1, description=what, total=total)
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()


def wide_console() -> "Console":
    """For tables on stdout: as wide as the terminal; into files and pipes they need no folding."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=160)
