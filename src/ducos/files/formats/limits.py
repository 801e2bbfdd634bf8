"""What a file may ask for, and the sentence for one that asks for more or is damaged."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ducos.errors import InputError, one_line

MAX_PIXELS = 400_000_000
"""A file that declares more pixels than this is refused; the largest phone sensors have half."""

_PIXELS_PER_BYTE = 10_000  # more than a black 1-bit PNG or the flattest JPEG reaches

LONGEST_FACT = 100_000  # bytes of text a file may hold about itself


@contextmanager
def refusing(source: Path, name: str) -> Iterator[None]:
    """Turn whatever a decoder raises on bad bytes into one sentence.

    The list of what decoders raise is open (OSError, SyntaxError, KeyError, struct.error,
    MemoryError, ...), hence the broad clause; here it guards third-party decoding only.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        raise InputError(
            f"{source} could not be read as {name}: {one_line(problem)}; "
            "the file is damaged, truncated or of another kind"
        ) from problem


def check_size(source: Path, shape: tuple[int, ...]) -> None:
    """Refuse an empty or a gigantic array by its declared shape, before it is allocated."""
    if math.prod(shape) <= 0:
        raise InputError(f"{source} holds an array of zero size, shape {shape}; give a real map")
    pixels = math.prod(sorted(shape)[-2:])
    if pixels > MAX_PIXELS or math.prod(shape) > 4 * MAX_PIXELS:
        raise InputError(
            f"{source} declares an array of shape {shape}; the limit is "
            f"{MAX_PIXELS // 1_000_000} megapixels, crop or tile it first"
        )


def check_length(source: Path, shape: tuple[int, ...]) -> None:
    """Refuse a file far too short for what it declares: sparse formats would make it up."""
    if math.prod(shape) > max(16_000_000, _PIXELS_PER_BYTE * source.stat().st_size):
        sides = " x ".join(map(str, shape[::-1]))
        raise InputError(
            f"{source} declares {sides} pixels but is too short to hold them; the file is "
            "truncated or damaged"
        )


def limit_memory(values: int) -> None:
    """Bound this process, the child, to 1 GiB and what so many declared values honestly need.

    A few kilobytes of a compressed file can unpack to gigabytes, whatever size it declares.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    with suppress(ValueError, OSError):  # a stricter limit is in force, or the system has none
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, ((1 << 30) + 32 * values, resource.RLIM_INFINITY))
