"""The same frames on a cluster: Ray Data over the list of jobs, one Upscaler per actor.

Actors write results under their temporary names on storage that all nodes share; the driver alone
keeps the journal and lets files take their names. A worker that dies costs Ray a retry of the
frames it had in hand, and nothing that was finished is made again. A frame over which several
workers died is a failure like any other; workers that are silent for too long, because they are
stopped, end the batch.
"""

import json
import math
import os
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import chdir
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ducos.batch.worker import Answer, Job, work_on
from ducos.children import PACKAGES
from ducos.errors import InputError, needed, one_line
from ducos.upscaling import FILES, Options

if TYPE_CHECKING:
    from ducos.batch.run import Frame

MOST_BLOCKS_PER_WORKER = 500  # a block is what Ray hands out, and repeats if a worker dies
MOST_STARTS = 3  # tries to start or join a cluster that takes too long
MOST_DEATHS = 3  # of workers over one frame; Ray itself would go on for ever


@dataclass(frozen=True)
class Cluster:
    """Where and with how much the frames are made.

    address: of a running cluster ("auto", "host:6379", "ray://host:10001"); None: one of its own on
    this machine. cpus, gpus: of each worker; fractions let several share one.
    """

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.cpus <= 1024 and 0 <= self.gpus <= 64):
            raise InputError(
                f"got {self.cpus:g} CPUs and {self.gpus:g} GPUs per worker; expected more than 0 "
                "CPUs and 0 or more GPUs"
            )


class Actor:
    """A worker of the cluster: a model that is loaded once, then rows in, rows out."""

    def __init__(self, settings: dict[str, Any]):
        from ducos.upscaling import Upscaler

        # As the local worker: one thread unless told otherwise, so that the bytes are the same.
        self.upscaler = Upscaler(**{**settings, "threads": settings["threads"] or 1})

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """number and job (JSON) of a frame -> number and answer (JSON)."""
        job = Job(**json.loads(row["job"]))
        begun = begun_list(job)
        deaths = len(begun.read_text().splitlines()) if begun.exists() else 0
        if deaths >= MOST_DEATHS:
            answer = Answer(error=f"{deaths} workers died over it, as when memory runs out")
        else:
            if job.names:  # results go elsewhere, and this machine may not know the folder yet
                begun.parent.mkdir(parents=True, exist_ok=True)
            with begun.open("a") as file:
                file.write(f"{socket.gethostname()} {os.getpid()}\n")
            answer = work_on(job, self.upscaler)
        begun.unlink(missing_ok=True)
        return {"number": row["number"], "answer": json.dumps(asdict(answer))}


def begun_list(job: Job) -> Path:
    """A file beside the unnamed result: a line of each worker that began the frame and died."""
    return Path(job.out).with_suffix(".begun")


def ray_answers(
    frames: "Sequence[Frame]", options: Options, workers: int, cluster: Cluster, timeout: float
) -> "Generator[tuple[Frame, Answer], None, None]":
    """Each frame with its worker's answer, as they come.

    timeout: seconds for one frame, and for the start of the workers. It is measured as silence of
    the whole cluster, since nobody outside knows on which frame a worker is.
    """
    if not frames:
        return
    ray = needed("ray", "ray")
    needed("pyarrow", "ray")
    started = not ray.is_initialized()
    if started:
        start(ray, cluster, workers)
    try:
        rows = [
            {"number": number, "job": json.dumps(job_anywhere(frame.job))}
            for number, frame in enumerate(frames)
        ]
        blocks = min(len(rows), MOST_BLOCKS_PER_WORKER * workers)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        made = ray.data.from_items(rows, override_num_blocks=blocks).map(
            Actor,
            fn_constructor_args=(settings_anywhere(options),),
            concurrency=min(workers, len(rows)),
            num_cpus=cluster.cpus,
            num_gpus=cluster.gpus or None,
            max_restarts=-1,
            max_task_retries=-1,
        )
        silence = timeout * math.ceil(len(rows) / blocks)  # a block is answered as a whole
        seen: set[int] = set()
        for row in while_they_come(made.iter_rows, silence):
            if row["number"] not in seen:  # a row that was made again after a death
                seen.add(row["number"])
                yield frames[row["number"]], Answer(**json.loads(row["answer"]))
        for number, frame in enumerate(frames):
            if number not in seen:
                words = f"no worker of the cluster gave an answer for {silence:g} s; see --timeout"
                yield frame, Answer(error=words)
    except ray.exceptions.RayError as problem:
        raise InputError(
            f"the cluster stopped: {one_line(problem)}; run the same command again, it goes on"
        ) from problem
    finally:
        if started:
            ray.shutdown()


def while_they_come(
    rows: Callable[[], Iterable[dict[str, Any]]], seconds: float
) -> Iterator[dict[str, Any]]:
    """The rows until their end, or until none came for so long."""
    came: SimpleQueue[dict[str, Any] | BaseException | None] = SimpleQueue()

    def fetch() -> None:
        try:
            for row in rows():
                came.put(row)
            came.put(None)
        except BaseException as problem:
            came.put(problem)

    threading.Thread(target=fetch, daemon=True).start()
    while True:
        try:
            row = came.get(timeout=seconds)
        except Empty:
            return
        if isinstance(row, BaseException):
            raise row
        if row is None:
            return
        yield row


OF_A_JOB = ("rgb", "depth", "mask", "confidence", "out", "preview", "cloud")


def whole_paths(plain: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same with whole paths: a worker of the cluster has a current folder of its own."""
    paths = {name: plain[name] for name in names if plain[name] is not None}
    return plain | {name: os.path.abspath(path) for name, path in paths.items()}


def job_anywhere(job: Job) -> dict[str, Any]:
    """A job for a worker that runs elsewhere."""
    plain = whole_paths(asdict(job), *OF_A_JOB)
    return plain if job.place is None else plain | {"place": whole_paths(job.place, "source")}


def settings_anywhere(options: Options) -> dict[str, Any]:
    """Options for a worker that runs elsewhere; a model may be a name of ours."""
    plain = options.plain()
    weights = ("model",) if plain["model"] and os.path.isfile(plain["model"]) else ()
    if options.foundation is not None and os.path.exists(options.foundation.source):
        name, source, _ = options.foundation
        plain["prompt"] = f"{name}={os.path.abspath(source)}"
    return whole_paths(plain, *FILES, *weights)


def start(ray: Any, cluster: Cluster, workers: int) -> None:
    """Join a cluster, or begin one on this machine."""
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    told: dict[str, Any] = {"address": cluster.address}
    if cluster.address is None:
        need = max(1, round(workers * cluster.cpus))
        told = {"num_cpus": need, "include_dashboard": False}
    where = cluster.address or "this machine"
    for attempt in range(1, MOST_STARTS + 1):
        try:
            # Ray's workers import from the current folder of whoever starts them: see `children`.
            with chdir(PACKAGES):
                ray.init(**told, **quiet)
            return
        except Exception as problem:  # some of Ray's are plain ones
            ray.shutdown()
            # Ray waits half a minute for its own processes: too short for a machine under load.
            if "timed out" not in str(problem) or attempt == MOST_STARTS:
                raise InputError(f"no Ray cluster at {where}: {one_line(problem)}") from None
