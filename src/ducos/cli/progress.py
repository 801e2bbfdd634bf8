"""Life signs of work that takes more than a moment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def waiting(text: str, *, quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """A spinner on stderr for work that takes more than a moment; yields what shows its share."""
    if quiet:
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield lambda share: status.update(f"{text}, {share:.0%} done")
