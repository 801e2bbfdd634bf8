"""The parent's end of the workers: processes that are started, fed, timed and replaced.

Each worker holds two frames: while one is computed, the next is read and the last one written, so
that neither the disk nor the way from process to process is waited for. When a worker dies, one of
the two is to blame: the first is made again alone, and if that ends the process, too, it has
failed.
"""

import json
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from ducos.batch.worker import Answer, Job
from ducos.children import ONE_THREAD, environment, python_module
from ducos.errors import InputError
from ducos.upscaling import Options

if TYPE_CHECKING:
    from ducos.batch.run import Frame

IN_HAND = 2  # frames that a worker holds: one in work, one being read or written


class Worker:
    """One process. One that died is replaced when the next job comes.

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

    def answers(
        self, next_frame: Callable[[bool], "Frame | None"]
    ) -> Iterator[tuple["Frame", Answer]]:
        """Each frame with its answer, in order.

        next_frame: called with whether the worker has another one in hand; None if there is none.
        """
        in_hand: deque[Frame] = deque()
        again: deque[Frame] = deque()
        alone = False
        while not self.closed:
            while len(in_hand) < (1 if alone else IN_HAND):
                frame = again.popleft() if again else next_frame(bool(in_hand))
                if frame is None:
                    break
                self.send(frame.job)
                in_hand.append(frame)
            if not in_hand:
                return
            answer = self.receive()
            if answer is not None:
                alone = False
                yield in_hand.popleft(), answer
                continue
            late, cause = self.late, self.cause_of_death()
            if late or alone or len(in_hand) == 1:
                alone = False
                yield in_hand.popleft(), Answer(error=cause)
            else:
                alone = True
            again.extendleft(reversed(in_hand))
            in_hand.clear()

    def ask(self, job: Job) -> Answer:
        """Have one pair super-resolved; a death on the way is an answer like any other."""
        self.send(job)
        return self.receive() or Answer(error=self.cause_of_death())

    def send(self, job: Job) -> None:
        """Hand over a job. If the process dies of it, `receive` notices."""
        if self.process is None or self.process.poll() is not None:
            self._start()
        self._write(asdict(job))

    def receive(self) -> Answer | None:
        """The answer to the oldest job; None if the process is dead."""
        answer = self._read()
        return None if answer is None else Answer(**answer)

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
        self._write(self.options.plain())
        if not self._read():
            raise InputError(
                f"a worker could not start: {self.cause_of_death()}; with fewer --workers each "
                "has more memory"
            )

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except OSError:
            return  # it is dead, which the next reading finds

    def _read(self) -> dict[str, Any] | None:
        """Wait for a line; None if the process is dead."""
        assert self.process is not None
        assert self.process.stdout is not None
        clock = threading.Timer(self.seconds, self._give_up, [self.process])
        clock.daemon = True
        clock.start()
        try:
            answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            return None
        finally:
            clock.cancel()
        return answer

    def _give_up(self, process: "subprocess.Popen[str]") -> None:
        self.late = True
        process.kill()  # also ends a process that is stopped

    def cause_of_death(self) -> str:
        """Why the process ended, in words; it is gone afterwards."""
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


def local_answers(
    frames: "list[Frame]", options: Options, workers: int, timeout: float
) -> "Generator[tuple[Frame, Answer], None, None]":
    """Each frame with its worker's answer, as they come."""
    team = [Worker(options, timeout) for _ in range(min(workers, len(frames)))]
    to_do = deque(frames)
    came: SimpleQueue[tuple[Frame, Answer] | BaseException] = SimpleQueue()

    def next_frame(busy: bool) -> "Frame | None":
        # The last ones are for whoever has nothing left to do.
        if busy and len(to_do) < len(team):
            return None
        try:
            return to_do.popleft()
        except IndexError:
            return None

    def feed(worker: Worker) -> None:
        try:
            for answered in worker.answers(next_frame):
                came.put(answered)
        except BaseException as problem:
            came.put(problem)

    for worker in team:  # these threads only wait, the work is elsewhere
        threading.Thread(target=feed, args=(worker,), daemon=True).start()
    try:
        for _ in frames:
            answered = came.get()
            if isinstance(answered, BaseException):
                raise answered
            yield answered
    finally:
        for worker in team:
            worker.close()
