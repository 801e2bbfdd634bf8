"""What can go wrong for a client: one exception with a status, a code for programs, a sentence."""

import errno
from dataclasses import dataclass
from typing import Any

STATUS = {
    "input": 422,
    "token": 401,
    "origin": 403,
    "unknown": 404,
    "method": 405,
    "accept": 406,
    "gone": 410,
    "early": 409,
    "body": 413,
    "pixels": 413,
    "memory": 413,
    "host": 421,
    "busy": 503,
    "disk": 503,
    "worker": 503,
    "starting": 503,
    "time": 504,
    "cancelled": 499,
    "inside": 500,
}
"""Code for programs -> status of HTTP."""

LATER = ("busy", "disk", "worker", "starting")  # may be over in a moment
DISK_FULL = "the disk of the server is full; try again later"


@dataclass
class Problem(Exception):
    """code: one of STATUS. sentence: what was got, what is expected, what to do."""

    code: str
    sentence: str

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def plain(self) -> dict[str, Any]:
        return {"code": self.code, "sentence": self.sentence}

    @property
    def headers(self) -> dict[str, str]:
        """What HTTP says besides."""
        headers = {"Retry-After": "2"} if self.code in LATER else {}
        return {**headers, "WWW-Authenticate": "Bearer"} if self.code == "token" else headers


def is_disk_full(problem: BaseException) -> bool:
    """Whether an error of the system, or one behind it, means that the disk has no room."""
    seen: BaseException | None = problem
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
