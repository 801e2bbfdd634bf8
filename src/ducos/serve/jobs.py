"""Jobs: pairs that were handed over, what becomes of them, and how long their results stay."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ducos.serve.outputs import FORMATS, check_output_format
from ducos.serve.pool import Pool, Task
from ducos.serve.problems import Problem
from ducos.serve.settings import Settings
from ducos.serve.store import Store
from ducos.upscaling import Options

ENDED = ("done", "failed", "cancelled")


@dataclass(eq=False)
class Job:
    """One pair with its options.

    options: as the worker takes them, with paths of the job's own folder. state: queued, running,
    done, failed or cancelled. facts: of the result; problem: why there is none.
    """

    name: str
    folder: Path
    options: dict[str, Any]
    task: Task | None = None
    share: float = 0.0
    created: float = field(default_factory=time.monotonic)
    ended: float | None = None
    facts: dict[str, Any] | None = None
    problem: Problem | None = None
    change: asyncio.Event = field(default_factory=asyncio.Event)
    converting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def state(self) -> str:
        if self.problem is not None:
            return "cancelled" if self.problem.code == "cancelled" else "failed"
        if self.facts is not None:
            return "done"
        return "running" if self.task is not None and self.task.started else "queued"

    def notify(self) -> None:
        """Wake those who follow it."""
        self.change.set()
        self.change = asyncio.Event()

    def path_of(self, name: str, degrees: float | None = None) -> Path:
        """Where a format of its result lies."""
        folder = self.folder if degrees is None else self.folder / f"view-{degrees:g}"
        return folder / f"result{FORMATS[name].suffix}"


class Jobs:
    """All jobs of a server."""

    def __init__(self, settings: Settings, pool: Pool, store: Store):
        self.settings, self.pool, self.store = settings, pool, store
        self.known: dict[str, Job] = {}
        self.outcomes = {"done": 0, "failed": 0, "cancelled": 0}
        self.watching: set[asyncio.Task[None]] = set()

    def new(self) -> Job:
        """An empty job, whose folder is to be filled; its name cannot be guessed."""
        name = secrets.token_urlsafe(16)
        job = Job(name, self.store.make(name), {})
        self.known[name] = job
        return job

    async def start(self, job: Job, formats: list[str], kind: str = "upscale") -> None:
        """Hand a filled job to the workers."""

        def heard(share: float) -> None:
            job.share = share
            job.notify()

        message = {
            "task": kind,
            "folder": str(job.folder),
            "options": job.options,
            "formats": formats,
        }
        self.store.measure(job.name)
        job.task = await self.pool.submit(Task(message, heard))
        watcher = asyncio.create_task(self.watch(job))
        self.watching.add(watcher)
        watcher.add_done_callback(self.watching.discard)

    async def watch(self, job: Job) -> None:
        """Enter what comes of a job."""
        assert job.task is not None
        try:
            facts = await job.task.answer
            self.store.measure(job.name)
            job.facts, job.share = facts, 1.0
        except Problem as problem:
            job.problem = problem
            self.store.drop(job.name)  # its files are of no use to anybody
        job.ended = time.monotonic()
        self.outcomes[job.state] += 1
        job.notify()

    async def finished(self, job: Job) -> dict[str, Any]:
        """Wait for its facts, or its problem."""
        while job.ended is None:
            await job.change.wait()
        if job.problem is not None:
            raise job.problem
        assert job.facts is not None
        return job.facts

    async def follow(self, job: Job, pulse: float = 10.0) -> AsyncIterator[dict[str, Any]]:
        """Its state at once, at each change, and now and then between."""
        while True:
            change = job.change
            yield self.plain(job)
            if job.ended is not None:
                return
            waits = 0.25 if job.state == "queued" else pulse
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(waits):
                    await change.wait()

    async def result(self, job: Job, name: str, degrees: float | None = None) -> Path:
        """The file of a format, made when it is first asked for.

        degrees: field of view for clouds and meshes, instead of the one in the options.
        """
        path = job.path_of(name, degrees)
        async with job.converting:
            if path.is_file():
                return path
            changes = {} if degrees is None else {"field_of_view": degrees, "rgb_intrinsics": None}
            if degrees is not None:
                changes |= {"depth_intrinsics": None, "extrinsics": None}
            options = {**job.options, **changes}
            check_output_format(name, Options(**options), job.folder)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            message = {
                "task": "convert",
                "folder": str(job.folder),
                "target": str(path.parent),
                "options": options,
                "formats": [name],
            }
            try:
                await (await self.pool.submit(Task(message), urgent=True)).answer
                self.store.measure(job.name)
            except Problem:
                self.get(job.name)  # deleted meanwhile: that is the reason to state
                raise
        return path

    def get(self, name: str) -> Job:
        if name not in self.known:
            raise Problem(
                "unknown",
                f"there is no such job; results are kept for {self.settings.keep:g} s",
            )
        return self.known[name]

    def cancel(self, job: Job) -> None:
        if job.task is not None and job.ended is None:
            self.pool.cancel(job.task)

    def drop(self, job: Job) -> None:
        """Forget a job and delete its files."""
        self.cancel(job)
        self.known.pop(job.name, None)
        self.store.drop(job.name)

    def drop_old(self) -> None:
        """Forget what has been kept for the stated time."""
        now = time.monotonic()
        for job in list(self.known.values()):
            if job.ended is not None and now - job.ended > self.settings.keep:
                self.drop(job)

    async def sweep(self) -> None:
        """Look for old jobs, as long as the server runs."""
        while True:
            await asyncio.sleep(min(5.0, self.settings.keep / 4))
            self.drop_old()

    def plain(self, job: Job) -> dict[str, Any]:
        """Its state for clients."""
        home = f"/v1/jobs/{job.name}"
        now = time.monotonic()
        running = job.task is not None and job.task.started is not None
        return {
            "id": job.name,
            "state": job.state,
            "ahead": self.pool.ahead_of(job.task) if job.task is not None and not running else 0,
            "share": job.share,
            "seconds": round((job.ended or now) - job.created, 3),
            "kept_for": None
            if job.ended is None
            else max(0.0, round(job.ended + self.settings.keep - now, 1)),
            "problem": None if job.problem is None else job.problem.plain(),
            "facts": job.facts,
            "links": {
                "self": home,
                "events": f"{home}/events",
                "results": {name: f"{home}/results/{name}" for name in FORMATS},
            },
        }
