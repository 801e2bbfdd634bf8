"""A process that super-resolves pairs; `team` is the parent's end of it.

They talk in JSON lines over pipes: options in, "ready" back, then jobs in, answers back in the same
order, until the pipe closes. So a worker ends with its parent however that ends, and the parent
notices at once when a worker dies. A fresh interpreter, not a fork: torch's threads do not survive
forking.
"""

import json
import os
import signal
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ducos.batch.storage import Places, at_hand, send
from ducos.errors import InputError
from ducos.upscaling import Options

if TYPE_CHECKING:
    from ducos.captures import Frame
    from ducos.files import FramePair
    from ducos.upscaling import Result, Upscaler

MOST_AHEAD = 4_000_000
"""Pixels of an image: larger frames are read, computed and written one after another, since each
takes a gigabyte."""


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


def serve(requests: IO[str], answers: IO[str]) -> None:
    """The process's own end: answer requests, in their order, until they end.

    While a frame is computed, a thread reads the next one and another writes the last one.
    """
    from ducos.upscaling import Upscaler

    settings = json.loads(requests.readline())
    upscaler = Upscaler(**{**settings, "threads": settings["threads"] or 1})
    print(json.dumps({"ready": True}), file=answers, flush=True)

    def next_job() -> "tuple[Job, Frame | Answer | None] | None":
        line = requests.readline()
        if not line:
            return None
        job = Job(**json.loads(line))
        return job, read_ahead(job, upscaler.options)

    def finish(job: Job, made: "Result[Any] | Answer") -> None:
        print(json.dumps(asdict(written(job, made))), file=answers, flush=True)

    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as writer:
        coming = reader.submit(next_job)
        finishing: Future[None] | None = None
        while (job_and_frame := coming.result()) is not None:
            coming = reader.submit(next_job)
            made = computed(*job_and_frame, upscaler)
            if finishing is not None:
                finishing.result()
            finishing = writer.submit(finish, job_and_frame[0], made)
            if not isinstance(made, Answer) and made.depth.size > MOST_AHEAD:
                finishing.result()
            del made  # the writer's alone: it need not live as long as the next one is computed
        if finishing is not None:
            finishing.result()


def work_on(job: Job, upscaler: "Upscaler") -> Answer:
    """Super-resolve one pair; whatever goes wrong with it must not end the process."""
    return written(job, computed(job, None, upscaler))


def read_ahead(job: Job, options: Options) -> "Frame | Answer | None":
    """A frame before its turn, or what is wrong with it.

    None: it is read in its turn, because it is large, or points; or because it is a pair of files
    of which one cannot be read, about which more is known then. Recordings that are one file are
    open in the thread that reads ahead, and are left to it.
    """
    from ducos.captures import FrameRef, read_frame
    from ducos.files import is_points, picture_size, read_colour

    pair = pair_of(job)
    try:
        with at_hand(places_of(job), inputs_of(job)):
            width, height = picture_size(pair.rgb) or (0, 0)
            if is_points(pair.depth) or width * height > MOST_AHEAD:
                return None
            frame = read_frame(pair, options.unit, options.scale)
            return replace(frame, image=read_colour(frame.image))
    except Exception as problem:
        return Answer(error=in_words(problem)) if isinstance(pair, FrameRef) else None


def computed(
    job: Job, frame: "Frame | Answer | None", upscaler: "Upscaler"
) -> "Result[Any] | Answer":
    """The result of a job, or what went wrong. frame: what `read_ahead` gave."""
    if isinstance(frame, Answer):
        return frame
    try:
        if frame is not None:
            return frame_result(pair_of(job), upscaler, frame)
        with at_hand(places_of(job), inputs_of(job)):
            return frame_result(pair_of(job), upscaler)
    except Exception as problem:
        return Answer(error=in_words(problem))


def written(job: Job, made: "Result[Any] | Answer") -> Answer:
    """Write what a job asks for under the temporary names."""
    if isinstance(made, Answer):
        return made
    try:
        if job.names:  # a machine that has not seen the folder yet
            Path(job.out).parent.mkdir(parents=True, exist_ok=True)
        made.save(job.out)
        if job.preview:
            made.preview(job.preview)
        if job.cloud:
            made.cloud().save(job.cloud)
        sent = send(places_of(job), job.names)
    except Exception as problem:
        return Answer(error=in_words(problem))
    return Answer(made.low.unit, made.low.scale, sent=sent)


def in_words(problem: Exception) -> str:
    """For failures.csv."""
    if isinstance(problem, InputError):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"


def places_of(job: Job) -> Places | None:
    return None if job.places is None else Places(**job.places)


def inputs_of(job: Job) -> tuple[str | None, ...]:
    return job.rgb, job.depth, job.mask, job.confidence


def pair_of(job: Job) -> "FramePair":
    """The pair of files, or the frame of a recording, that a job is about."""
    from ducos.captures import FrameRef
    from ducos.files import FramePair

    paths: dict[str, Any] = {
        name: Path(value)
        for name in ("rgb", "depth", "mask", "confidence")
        if (value := getattr(job, name)) is not None
    }
    if job.place is None:
        return FramePair(**paths, out="")
    return FrameRef(**paths, **{**job.place, "source": Path(job.place["source"])})


def frame_result(
    pair: "FramePair", upscaler: "Upscaler", frame: "Frame | None" = None
) -> "Result[Any]":
    """Super-resolve a pair of files, or a frame of a recording with the cameras it states.

    frame: what the recording holds there, if it was read already.
    """
    from ducos.captures import FrameRef, read_frame

    if frame is None and not isinstance(pair, FrameRef):
        return upscaler(str(pair.rgb), str(pair.depth), mask=pair.mask, confidence=pair.confidence)
    given = upscaler.options
    frame = frame or read_frame(pair, given.unit, given.scale)
    changes: dict[str, Any] = {"unit": "auto", "scale": None, "mask": None, "confidence": None}
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
