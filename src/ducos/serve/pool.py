"""Workers and who waits for them: a bounded queue in front of processes that may be ended.

A task that exceeds its time, or is cancelled, ends its process: that is the only way which surely
frees it. Another process starts at once; tasks of other workers never notice.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ducos.children import ONE_THREAD, environment, python_module
from ducos.serve.problems import Problem
from ducos.serve.settings import Settings

LONGEST_LINE = 1 << 24
PATIENCE = 300.0  # seconds for a process to become ready
FAILURES = 3  # starts in a row that fail before requests are refused


@dataclass(eq=False)
class Task:
    """Work for one process.

    message: as `worker` takes it. heard: called with each sign of progress. answer: what came of
    it, or a Problem.
    """

    message: dict[str, Any]
    heard: Callable[[float], None] = lambda share: None
    answer: "asyncio.Future[dict[str, Any]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    started: float | None = None

    def finish(self, answer: dict[str, Any]) -> None:
        """Enter what a worker said."""
        if self.answer.done():
            return
        if "problem" in answer:
            self.answer.set_exception(Problem(**answer["problem"]))
            self.answer.exception()  # whoever waits may have left; then nobody asks for it
        else:
            self.answer.set_result(answer["done"])

    def fail(self, code: str, sentence: str) -> None:
        self.finish({"problem": {"code": code, "sentence": sentence}})


class Pool:
    """A number of workers and the tasks that wait for them."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.waiting: deque[Task] = deque()
        self.change = asyncio.Condition()
        self.seats = [Seat(self) for _ in range(settings.workers)]
        self.loops: list[asyncio.Task[None]] = []
        self.restarts = 0
        self.failures = 0

    @property
    def ready(self) -> int:
        """Processes that can work."""
        return sum(seat.ready for seat in self.seats)

    @property
    def busy(self) -> int:
        return sum(seat.task is not None for seat in self.seats)

    async def start(self) -> None:
        self.loops = [asyncio.create_task(seat.live()) for seat in self.seats]

    async def close(self) -> None:
        """End all processes; whoever waits is told."""
        for loop in self.loops:
            loop.cancel()
        await asyncio.gather(*self.loops, return_exceptions=True)
        for seat in self.seats:
            await seat.end()
        while self.waiting:
            self.waiting.popleft().fail("worker", "the server is being closed; try again later")

    async def submit(self, task: Task, *, urgent: bool = False) -> Task:
        """Put a task into the queue; urgent ones, which are short, come before the others."""
        if self.failures >= FAILURES:
            raise Problem("worker", "the server's workers do not start; its log says why")
        if len(self.waiting) >= self.settings.queue:
            raise Problem("busy", f"{len(self.waiting)} tasks are waiting already; try again later")
        async with self.change:
            self.waiting.appendleft(task) if urgent else self.waiting.append(task)
            self.change.notify()
        return task

    async def take(self) -> Task:
        async with self.change:
            await self.change.wait_for(lambda: self.waiting)
            return self.waiting.popleft()

    def ahead_of(self, task: Task) -> int:
        """How many tasks come first."""
        return self.waiting.index(task) if task in self.waiting else 0

    def cancel(self, task: Task) -> None:
        """Nobody wants it any more: out of the queue, or its process ends."""
        if task in self.waiting:
            self.waiting.remove(task)
        task.fail("cancelled", "the job was cancelled")
        for seat in self.seats:
            if seat.task is task:
                seat.kill()


class Seat:
    """One process after another, each answering tasks."""

    def __init__(self, pool: Pool):
        self.pool = pool
        self.process: asyncio.subprocess.Process | None = None
        self.task: Task | None = None
        self.ready = False

    async def live(self) -> None:
        """Keep a process and feed it, for as long as the server runs."""
        while True:
            try:
                await self.begin()
            except (OSError, Problem, TimeoutError) as problem:
                self.pool.failures += 1
                print(f"ducos: a worker did not start: {problem}", file=sys.stderr, flush=True)
                await self.end()
                if self.pool.failures >= FAILURES:
                    while self.pool.waiting:
                        self.pool.waiting.popleft().fail(
                            "worker", "the server's workers do not start; its log says why"
                        )
                await asyncio.sleep(min(30, 2**self.pool.failures))
                continue
            self.pool.failures = 0
            while self.ready:
                task = await self.next_task()
                if task is None:
                    break
                await self.work_on(task)
            await self.end()
            self.pool.restarts += 1

    async def next_task(self) -> Task | None:
        """The next task; None if the process ends while it waits for one."""
        assert self.process is not None
        taking = asyncio.ensure_future(self.pool.take())
        ending = asyncio.ensure_future(self.process.wait())
        try:
            await asyncio.wait((taking, ending), return_when=asyncio.FIRST_COMPLETED)
            if ending.done() and taking.done():
                await self.pool.submit(taking.result(), urgent=True)  # for another process
            return taking.result() if taking.done() and not ending.done() else None
        finally:
            taking.cancel()
            ending.cancel()

    async def begin(self) -> None:
        settings = self.pool.settings
        # A group of its own: Ctrl-C in the terminal is for the server, which ends its workers.
        self.process = await asyncio.create_subprocess_exec(
            *python_module("ducos.serve.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(ONE_THREAD),
            limit=LONGEST_LINE,
            start_new_session=True,
        )
        hello = {
            "pixels": settings.pixels,
            "memory": settings.memory,
            "device": settings.device,
            "default": settings.models[settings.default],
        }
        async with asyncio.timeout(PATIENCE):
            await self.send(hello)
            if not await self.hear():
                raise Problem("worker", "its process ended")
        self.ready = True

    async def work_on(self, task: Task) -> None:
        self.task, task.started = task, time.monotonic()
        try:
            async with asyncio.timeout(self.pool.settings.seconds):
                answer = await self.ask(task)
        except TimeoutError:
            self.ready = False
            task.fail(
                "time",
                f"the work took more than {self.pool.settings.seconds:g} s, which is this "
                "server's limit; make the pair smaller",
            )
        except asyncio.CancelledError:
            task.fail("worker", "the server is being closed; try again later")
            raise
        else:
            if answer is None:
                self.ready = False
                task.fail(
                    "worker",
                    "the process that worked on it ended, as happens when memory runs out; try "
                    "again, or make the pair smaller",
                )
            else:
                task.finish(answer)
        finally:
            self.task = None

    async def ask(self, task: Task) -> dict[str, Any] | None:
        """The answer of the process; None if it died."""
        try:
            await self.send(task.message)
        except OSError:
            return None
        while True:
            answer = await self.hear()
            if answer is None or "share" not in answer:
                return answer
            task.heard(answer["share"])

    async def send(self, message: dict[str, Any]) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def hear(self) -> dict[str, Any] | None:
        assert self.process is not None
        assert self.process.stdout is not None
        try:
            answer: dict[str, Any] = json.loads(await self.process.stdout.readline())
        except ValueError:
            return None
        return answer

    def kill(self) -> None:
        """The process and whatever it started, such as a decoder."""
        self.ready = False
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        self.kill()
        if self.process is not None:
            await self.process.wait()
