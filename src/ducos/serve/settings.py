"""What whoever starts the server decides: where it listens, what it allows, and how much of it."""

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ducos.errors import InputError
from ducos.upscaling import Options, default_model, find_weights, model_rows

MEGABYTE = 10**6
OWN = ("model", "prompt", "device", "threads", "tile", "accept_noncommercial")
"""Options that the server decides; of these a client may only choose a listed model."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits and permissions; every number is a bound that holds whatever clients do.

    models: name as clients say it -> name or weight file. recordings: name -> folder or CSV file.
    token: what clients must show; None: nobody is asked. origins: web sites whose pages may call.
    body: bytes of one request. pixels: of one image or map. queue: tasks that wait. seconds: of
    work on one task, then its worker is ended. keep: seconds for which results stay. disk: bytes
    of all requests and results together. memory: bytes of one worker.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    models: dict[str, str] = field(default_factory=dict)
    recordings: dict[str, Path] = field(default_factory=dict)
    token: str | None = None
    origins: tuple[str, ...] = ()
    body: int = 64 * MEGABYTE
    pixels: int = 24 * MEGABYTE
    queue: int = 256
    streams: int = 8
    seconds: float = 120.0
    keep: float = 900.0
    disk: int = 2000 * MEGABYTE
    memory: int = 6000 * MEGABYTE
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not self.models:
            object.__setattr__(self, "models", runnable_models())
        for name in self.models:
            Options(model=self.models[name], device=self.device)
        if not 0 <= self.port < 65536:
            raise InputError(f"a port is 0 to 65535, got {self.port}")
        for name in ("workers", "body", "pixels", "queue", "streams", "seconds", "keep", "disk"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.body > self.disk:
            raise InputError(
                f"one request may have {self.body} bytes but all together {self.disk}; raise the "
                "disk limit or lower the body limit"
            )
        if self.token is not None and len(self.token) < 8:
            raise InputError("the token is too short to be safe; give 8 characters or more")

    @property
    def local(self) -> bool:
        """Whether only this computer can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def default(self) -> str:
        """The model of requests that name none."""
        return self.default_for(prior=False)

    def default_for(self, prior: bool) -> str:
        """The same, for requests with or without a prior."""
        name = default_model(prior=prior)
        return name if name in self.models else next(iter(self.models))


def runnable_models() -> dict[str, str]:
    """All models that run without further weights."""
    names = [row["name"] for row in model_rows() if row["runs"] == "now"]
    return {name: name for name in sorted(names, key=lambda name: name != default_model())}


def listed_models(given: list[str]) -> dict[str, str]:
    """Models by the name that clients use: of a weight file, its stem."""
    listed = {}
    for each in given:
        path = find_weights(each)
        name = each if path is None or not os.path.isfile(each) else Path(each).stem
        if name in listed:
            raise InputError(f"two models would have the name {name}; rename one of the files")
        listed[name] = each
    return listed


def listed_recordings(given: list[Path]) -> dict[str, Path]:
    """Folders, CSV files and files of recorders by the name that clients use."""
    listed: dict[str, Path] = {}
    for each in given:
        if not each.exists():
            raise InputError(f"got the recording {each}, which does not exist")
        name = each.resolve().stem if each.is_file() else each.resolve().name
        if name in listed:
            raise InputError(f"two recordings would have the name {name}; rename one of them")
        listed[name] = each
    return listed


def bytes_of(text: str) -> int:
    """A size such as 64MB or 2GB."""
    units: dict[str, int] = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
    number, unit = text.strip()[:-2], text.strip()[-2:].upper()
    try:
        size = float(number) * units[unit]
    except (ValueError, KeyError):
        raise InputError(f"a size is a number with a unit, such as 64MB, got {text!r}") from None
    if not 0 < size < float("inf"):
        raise InputError(f"a size is above 0, got {text!r}")
    return int(size)


def plain(settings: Settings) -> dict[str, Any]:
    """What clients may know: the limits."""
    names = ("body", "pixels", "queue", "seconds", "keep", "disk", "workers", "streams")
    return {name: getattr(settings, name) for name in names}
