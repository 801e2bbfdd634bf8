"""What a weight file states about itself, read without torch and without its tensors."""

import json
from pathlib import Path
from typing import Any

LONGEST_HEADER = 100_000_000  # bytes, as the library of the format allows


def read_about(path: Path) -> dict[str, Any]:
    """What its maker wrote into a weight file: name, version, licence, data, config, figures.

    {} of a file that states nothing, or is no weight file: whoever loads it will say so.
    """
    try:
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(path.stat().st_size, LONGEST_HEADER):
                return {}
            stated = json.loads(file.read(length))["__metadata__"]["about"]
        about = json.loads(stated)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}
