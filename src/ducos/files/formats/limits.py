"""What a file may ask for, and the sentence for one that asks for more or is damaged."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ducos.errors import InputError, one_line

MAX_BYTES = 2_500_000_000
"""What one file may take after decoding, in the form in which it is worked with: 208 megapixels of
RGB, 312 of depth. The largest phone sensors have 200."""

DEPTH_BYTES = 8  # of a pixel: float32, its mask, and what is computed on the way
RGB_BYTES = 12  # three float32

_FREE_PIXELS = 16_000_000  # however short the file
_PIXELS_PER_BYTE = 500  # photographs have 2 to 20; flat levels of 8 bits about 1000 at most
_FREE_BYTES = 64_000_000
MOST_INFLATION = 1100  # bytes out of one; deflate ends at 1032

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


def check_size(source: Path, shape: tuple[int, ...], each: int = DEPTH_BYTES) -> None:
    """Refuse an empty or a gigantic array by its declared shape, before it is allocated.

    each: bytes of one value after decoding.
    """
    if math.prod(shape) <= 0:
        raise InputError(f"{source} holds an array of zero size, shape {shape}; give a real map")
    if math.prod(shape) * each > MAX_BYTES:
        raise InputError(
            f"{source} declares an array of shape {str(shape)[:80]}, which takes "
            f"{math.prod(shape) * each / 1e9:.3g} GB; the limit is {MAX_BYTES / 1e9:g} GB, crop or "
            "tile it first"
        )


def check_inflation(source: Path, declared: int, stored: int) -> None:
    """Refuse what says that it unpacks to more than its format's compression can reach."""
    if declared > MAX_BYTES or declared > max(_FREE_BYTES, MOST_INFLATION * stored):
        raise InputError(
            f"{source} declares that {stored} bytes unpack to {declared}; no honest map does, so "
            "it is not unpacked"
        )


def check_length(source: Path, shape: tuple[int, ...]) -> None:
    """Refuse a file far too short for what it declares: sparse formats would make it up."""
    if math.prod(shape) > max(_FREE_PIXELS, _PIXELS_PER_BYTE * source.stat().st_size):
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
