"""The one exception for a user's mistake. The command line prints it and exits with code 2."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any


class InputError(ValueError):
    """Says what was got, what is expected, and what to do about it."""


def build(what: str, constructor: Callable[..., Any], *parts: Any, **arguments: Any) -> Any:
    """Call a constructor with arguments from a config file; wrong names are the user's mistake."""
    try:
        inspect.signature(constructor).bind(*parts, **arguments)
    except TypeError as problem:
        accepted = ", ".join(list(inspect.signature(constructor).parameters)[len(parts) :])
        raise InputError(f"{what}: {problem}; it takes: {accepted or 'no arguments'}") from None
    return constructor(*parts, **arguments)


def one_line(problem: BaseException) -> str:
    """What an exception of another library says, short enough for a sentence of ours."""
    reason = problem.strerror if isinstance(problem, OSError) else None
    text = " ".join((reason or str(problem)).split()) or type(problem).__name__
    return text if len(text) <= 160 else text[:157] + "..."


def needed(library: str, extra: str) -> Any:
    """An optional library, imported; or the sentence that says how to get it."""
    try:
        return import_module(library)
    except ImportError:
        raise InputError(
            f"this needs the library {library}, which is not installed: "
            f"pip install 'ducos[{extra}]'"
        ) from None
