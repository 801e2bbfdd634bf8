"""One thread for products of matrices, so that a result does not depend on how many there are.

numpy hands them to a library that splits the work by its number of threads, and so rounds
differently. Workers of a batch have one thread, a program of the user's often more; both must give
the same bytes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits

_lock = Lock()
_inside: list[Any] = []  # one entry for each caller; the first holds the limit


@contextmanager
def one_thread() -> Iterator[None]:
    """Meanwhile numpy's products run on one thread. OpenBLAS takes this from the main thread only:
    results of other threads may differ from its results by rounding, a millionth of the depth."""
    with _lock:
        _inside.append(None if _inside else threadpool_limits(1, "blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop(0)
            if limit is not None and _inside:
                _inside[0] = limit
            elif limit is not None:
                limit.restore_original_limits()
