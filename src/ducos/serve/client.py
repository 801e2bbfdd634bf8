"""The same call as `super_resolve`, done by a server.

client = ducos.Client("http://127.0.0.1:8000")
result = client.super_resolve("rgb.png", "depth.png", sensor="tof")
with client.stream(sensor="tof") as frames:
    for rgb, depth in camera:
        sharp = frames(rgb, depth)  # (H, W) float32, metres
"""

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.cameras import Camera, Extrinsics
from ducos.errors import InputError, needed
from ducos.files import DepthMap, existing_file, is_tensor, read_colour, read_relative
from ducos.serve.maps import unpacked
from ducos.serve.problems import LATER
from ducos.serve.recordings import plain_camera
from ducos.serve.schema import FILES
from ducos.serve.settings import OWN
from ducos.upscaling import OPTIONS, Options, Result, documented


class ServerError(RuntimeError):
    """The server could not do it; code as in `serve.problems`."""

    def __init__(self, code: str, sentence: str):
        super().__init__(sentence)
        self.code = code


class Client:
    """A server somewhere. token: if it asks for one. seconds: how long to wait for an answer."""

    def __init__(self, url: str, *, token: str | None = None, seconds: float = 300.0):
        httpx = needed("httpx", "serve")
        self.url = url.rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(base_url=self.url, headers=self.headers, timeout=seconds)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    def super_resolve(
        self,
        rgb: Any,
        depth: Any,
        options: Options | None = None,
        *,
        progress: Callable[[float], None] | None = None,
        **changes: Any,
    ) -> Result[Any]:
        """Arguments, options and result as of `ducos.super_resolve`, without the server's own:
        device, threads, tile. A model is one of `models()`.

        Options:
        {options}
        """
        said, further = told(options, changes)
        more: dict[str, Any] = {}
        if isinstance(depth, DepthMap):
            depth, more, further = of_map(depth, said, further)
        files: dict[str, Any] = {"rgb": colour_bytes(rgb), "depth": plane_bytes(depth)}
        files |= {name: upload(name, value) for name, value in further.items()}
        job = self.ask("POST", "/v1/jobs", files=files, data={"options": json.dumps(said | more)})
        for state in self.follow(job["links"]["events"]):
            job = state
            if progress is not None and state["state"] == "running":
                progress(state["share"])
        if job["problem"] is not None:
            raise error_of(**job["problem"])
        maps = self.get(job["links"]["results"]["maps"])
        self.ask("DELETE", job["links"]["self"])
        kept = {name: value for name, value in said.items() if name != "model"}
        chosen = Options.of(None, {**kept, **further})
        result = unpacked(maps, read_colour(rgb), chosen)
        return as_tensors(result) if is_tensor(depth) else result

    def doctor(self, rgb: Any, depth: Any, **changes: Any) -> dict[str, Any]:
        """What is wrong with a pair, as `ducos doctor --json` prints it."""
        said, further = told(None, changes)
        files: dict[str, Any] = {"rgb": colour_bytes(rgb), "depth": plane_bytes(depth)}
        files |= {name: upload(name, value) for name, value in further.items()}
        report: dict[str, Any] = self.ask(
            "POST", "/v1/doctor", files=files, data={"options": json.dumps(said)}
        )
        return report

    def models(self) -> list[dict[str, Any]]:
        """Models that the server runs."""
        rows: list[dict[str, Any]] = self.ask("GET", "/v1/models")["models"]
        return rows

    @contextmanager
    def stream(self, **changes: Any) -> Iterator[Callable[[Any, Any], NDArray[np.float32]]]:
        """A function (rgb, depth) -> (H, W) float32 metres, over one connection."""
        from websockets.sync.client import connect

        said, further = told(None, changes)
        if further:
            raise InputError(f"{', '.join(further)}: a stream takes pairs only; leave it out")
        address = "ws" + self.url.removeprefix("http") + "/v1/stream"
        with connect(address, additional_headers=self.headers, max_size=None) as socket:

            def hear() -> dict[str, Any]:
                answer: dict[str, Any] = json.loads(socket.recv())
                if "problem" in answer:
                    raise error_of(**answer["problem"])
                return answer

            def frame(rgb: Any, depth: Any) -> NDArray[np.float32]:
                socket.send(colour_bytes(rgb))
                socket.send(plane_bytes(depth))
                hear()
                content = socket.recv()
                assert isinstance(content, bytes)
                sharp: NDArray[np.float32] = np.load(io.BytesIO(content), allow_pickle=False)
                return sharp

            socket.send(json.dumps(said))
            hear()
            yield frame

    def ask(self, method: str, path: str, **content: Any) -> Any:
        """A JSON answer, or the problem as an exception."""
        with self.reaching():
            answer = self.http.request(method, path, **content)
        return json.loads(checked(answer).content)

    def get(self, path: str) -> bytes:
        with self.reaching():
            content: bytes = checked(self.http.get(path)).content
        return content

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """States of a job, until it has ended."""
        with self.reaching(), self.http.stream("GET", path) as answer:
            if answer.status_code != 200:
                answer.read()
            for line in checked(answer).iter_lines():
                if line.startswith("data:"):
                    yield json.loads(line.removeprefix("data:"))

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """A server that does not answer is one sentence."""
        import httpx

        try:
            yield
        except httpx.TransportError as problem:
            words = str(problem) or type(problem).__name__
            raise ServerError("unreachable", f"no answer from {self.url}: {words}") from problem


documented(Client.super_resolve)


def told(options: Options | None, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a user asks for: values for JSON, and files, both without what is at its default."""
    unknown = sorted(changes.keys() - OPTIONS.keys())
    if unknown:
        raise InputError(f"unknown option {unknown[0]!r}; choose from: {', '.join(OPTIONS)}")
    given = {} if options is None else {name: getattr(options, name) for name in OPTIONS}
    said = {**given, **changes}
    further = {name: said.pop(name) for name in FILES if name in said}
    further = {name: value for name, value in further.items() if value is not None}
    asked = {name: value for name, value in said.items() if value != OPTIONS[name].default}
    for name in OWN[1:]:
        if name in asked:
            raise InputError(f"{name} is decided by whoever starts the server; leave it out")
    if not isinstance(asked.get("model", ""), str):
        raise InputError("a server's model is given by its name, see Client.models()")
    Options.of(None, {name: value for name, value in asked.items() if name != "model"})
    return asked, further


def colour_bytes(rgb: Any) -> bytes:
    """The file as it is, or the colours as an array, exact either way."""
    if isinstance(rgb, str | os.PathLike):
        return existing_file(rgb).read_bytes()
    return array_bytes(read_colour(rgb))


def plane_bytes(values: Any) -> bytes:
    """The file as it is, or the numbers as an array."""
    if isinstance(values, str | os.PathLike):
        return existing_file(values).read_bytes()
    return array_bytes(values.detach().cpu().numpy() if is_tensor(values) else values)


def upload(name: str, value: Any) -> tuple[str, bytes]:
    """A further file with its name: the ending of a camera's file says how it is read."""
    named = isinstance(value, str | os.PathLike)
    return Path(value).name if named else name, further_bytes(name, value)


def further_bytes(name: str, value: Any) -> bytes:
    """A mask, a confidence, a prior or a camera."""
    if isinstance(value, str | os.PathLike):
        return existing_file(value).read_bytes()
    if name == "mask":
        return array_bytes(np.not_equal(np.asarray(value), 0).astype(np.uint8))
    if name == "confidence":
        return plane_bytes(value)
    if name == "prior":
        return array_bytes(read_relative(value))
    if isinstance(value, Camera | Extrinsics):
        return plain_camera(value).encode()
    raise InputError(f"{name} must be a file or a camera, got {type(value).__name__}")


def array_bytes(values: Any) -> bytes:
    """An array as a NPY file."""
    array = np.ascontiguousarray(values)
    if array.dtype.hasobject:
        raise InputError(f"an array of {array.dtype} holds no numbers")
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def of_map(
    depth: DepthMap, said: dict[str, Any], further: dict[str, Any]
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A DepthMap as an array in its own unit, with its mask and confidence as files."""
    taken = {"unit", "scale"} & said.keys() | {"mask", "confidence"} & further.keys()
    if taken:
        raise InputError("a DepthMap knows its unit and mask; leave unit, scale and mask out")
    planes = {**further, "mask": depth.valid.astype(np.uint8)}
    if depth.confidence is not None:
        planes["confidence"] = depth.confidence
    unit = "relative" if depth.unit == "relative" else "m"
    return depth.depth, {"unit": unit}, planes


def as_tensors(result: Result[Any]) -> Result[Any]:
    """Tensor in, tensor out."""
    import torch

    names = ("depth", "valid", "source", "sigma")
    maps = {name: getattr(result, name) for name in names}
    there: dict[str, Any] = {
        name: None if each is None else torch.tensor(each) for name, each in maps.items()
    }
    return replace(result, **there)


def checked(answer: Any) -> Any:
    """An answer that is none of our problems."""
    if answer.status_code < 400:
        return answer
    try:
        said = json.loads(answer.content)
        problem = {"code": said["code"], "sentence": said["sentence"]}
    except (ValueError, KeyError, TypeError):
        problem = {"code": "unknown", "sentence": f"the answer was {answer.status_code}"}
    raise error_of(**problem)


def error_of(code: str, sentence: str) -> Exception:
    """A user's mistake is an InputError here as there; all else is the server's."""
    if code in ("input", "pixels", "body", "memory"):
        return InputError(sentence)
    later = "" if code not in LATER or "later" in sentence else "; try again later"
    return ServerError(code, sentence + later)
