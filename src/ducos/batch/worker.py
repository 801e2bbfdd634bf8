"""A process that super-resolves pairs, and the parent's end of it.

They talk in JSON lines over pipes: options in, "ready" back, then job in, answer back, until the
pipe closes. So a worker ends with its parent however that ends, and the parent notices at once
when a worker dies. A fresh interpreter, not a fork: torch's threads do not survive forking.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ducos.batch.storage import Places, at_hand, send
from ducos.children import ONE_THREAD, environment, python_module
from ducos.errors import InputError
from ducos.upscaling import Options

if TYPE_CHECKING:
    from ducos.captures import Frame
    from ducos.files import FramePair
    from ducos.upscaling import Result, Upscaler


@dataclass(frozen=True)
class Job:
    """One pair with the temporary names of its results.

    place: of a frame inside a recording: its source, layout and key, see `FrameRef`.
    places, names: if recording or results are elsewhere: `storage.Places`, and under which names
    the results are sent there, by their names here.
    """

    rgb: str
    depth: str
    mask: str | None
    confidence: str | None
    out: str
    preview: str | None
    cloud: str | None = None
    place: dict[str, Any] | None = None
    places: dict[str, Any] | None = None
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Of a job: what the input's numbers were taken for, or what went wrong.

    sent: of results that were sent elsewhere: SHA-256 and length, by name.
    """

    unit: str = ""
    scale: float = 0.0
    error: str | None = None
    sent: dict[str, tuple[str, int]] = field(default_factory=dict)


class Worker:
    """The parent's end. A process that died is replaced when the next job comes.

    seconds: that an answer may take; one that does not come, also because the process was stopped,
    ends the process.
    """

    def __init__(self, options: Options, seconds: float):
        self.options = options
        self.seconds = seconds
        self.late = False
        self.process: subprocess.Popen[str] | None = None
        self.errors: IO[bytes] | None = None
        self.closed = False

    def ask(self, job: Job) -> Answer:
        """Have a pair super-resolved; a death on the way is an answer like any other."""
        if self.process is None or self.process.poll() is not None:
            self._start()
        answer = self._exchange(asdict(job))
        return Answer(**answer) if answer else Answer(error=self._cause_of_death())

    def close(self) -> None:
        """End the process at once; whoever waits for its answer gets one."""
        self.closed = True
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _start(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115, lives as long as the process
        self.process = subprocess.Popen(
            python_module("ducos.batch.worker"),
            env=environment(ONE_THREAD),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
        )
        if self.closed:  # meanwhile, by another thread
            self.process.kill()
        if not self._exchange(self.options.plain()):
            raise InputError(
                f"a worker could not start: {self._cause_of_death()}; with fewer --workers each "
                "has more memory"
            )

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Send a line and wait for one; None if the process is dead."""
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        clock = threading.Timer(self.seconds, self._give_up, [self.process])
        clock.daemon = True
        clock.start()
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            return None
        finally:
            clock.cancel()
        return answer

    def _give_up(self, process: "subprocess.Popen[str]") -> None:
        self.late = True
        process.kill()  # also ends a process that is stopped

    def _cause_of_death(self) -> str:
        assert self.process is not None
        assert self.errors is not None
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it closed its pipe and goes on
            self.process.kill()
            code = self.process.wait()
        if self.late:
            self.late = False
            return f"it took longer than {self.seconds:g} s and was given up; see --timeout"
        if code == -signal.SIGKILL:
            return "its process was killed, as happens when memory runs out; try fewer --workers"
        self.errors.seek(0)
        said = self.errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        name = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"its process ended with {name}" + (f": {said[-1]}" if said else "")


def serve(requests: IO[str], answers: IO[str]) -> None:
    """The process's own end: answer requests until they end."""
    from ducos.upscaling import Upscaler

    settings = json.loads(requests.readline())
    upscaler = Upscaler(**{**settings, "threads": settings["threads"] or 1})
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in requests:
        answer = work_on(Job(**json.loads(line)), upscaler)
        print(json.dumps(asdict(answer)), file=answers, flush=True)


def work_on(job: Job, upscaler: "Upscaler") -> Answer:
    """Super-resolve one pair; whatever goes wrong with it must not end the process."""
    places = None if job.places is None else Places(**job.places)
    try:
        with at_hand(places, (job.rgb, job.depth, job.mask, job.confidence)):
            result = result_of(job, upscaler)
        if job.names:  # a machine that has not seen the folder yet
            Path(job.out).parent.mkdir(parents=True, exist_ok=True)
        result.save(job.out)
        if job.preview:
            result.preview(job.preview)
        if job.cloud:
            result.cloud().save(job.cloud)
        sent = send(places, job.names)
    except InputError as problem:
        return Answer(error=str(problem))
    except Exception as problem:
        return Answer(error=f"{type(problem).__name__}: {problem}")
    return Answer(result.low.unit, result.low.scale, sent=sent)


def result_of(job: Job, upscaler: "Upscaler") -> "Result[Any]":
    """The result of a pair of files, or of a frame of a recording."""
    from ducos.captures import FrameRef
    from ducos.files import FramePair

    paths: dict[str, Any] = {
        name: Path(value)
        for name in ("rgb", "depth", "mask", "confidence")
        if (value := getattr(job, name)) is not None
    }
    if job.place is None:
        return frame_result(FramePair(**paths, out=""), upscaler)
    place = {**job.place, "source": Path(job.place["source"])}
    return frame_result(FrameRef(**paths, **place), upscaler)


def frame_result(
    pair: "FramePair", upscaler: "Upscaler", frame: "Frame | None" = None
) -> "Result[Any]":
    """Super-resolve a pair of files, or a frame of a recording with the cameras it states.

    frame: what the recording holds there, if it was read already.
    """
    from ducos.captures import FrameRef, read_frame

    if not isinstance(pair, FrameRef):
        return upscaler(str(pair.rgb), str(pair.depth), mask=pair.mask, confidence=pair.confidence)
    given = upscaler.options
    frame = frame or read_frame(pair, given.unit, given.scale)
    changes: dict[str, Any] = {"unit": "auto", "scale": None}
    if frame.camera is not None and given.rgb_intrinsics is None and given.field_of_view is None:
        changes["rgb_intrinsics"] = frame.camera
    if frame.extrinsics is not None and not given.registers:
        changes["depth_intrinsics"] = frame.depth_camera
        changes["rgb_intrinsics"] = frame.camera
        changes["extrinsics"] = frame.extrinsics
    return upscaler(frame.image, frame.low, **changes)


if __name__ == "__main__":
    # Whatever a library prints goes to stderr, so that stdout holds answers only.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    with suppress(BrokenPipeError):  # the parent has gone
        serve(sys.stdin, answers)
