"""Frame after frame over one WebSocket, with one loaded model: for robots and recordings.

The client sends the options as JSON text; the server answers {"ready": true}. Then, for each frame,
two binary messages: the colour image, the depth map, each the bytes of a file. The answer is a text
message, {"done": facts} or {"problem": ...}, and after `done` the depth map as a binary message:
bytes of the format asked for, by default NPY (float32 metres). Frames are answered in order; a
client may send the next pair before it has the last answer.
"""

import time
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from ducos.errors import InputError
from ducos.serve.jobs import Jobs
from ducos.serve.outputs import FORMATS, check_output_format
from ducos.serve.pool import Task
from ducos.serve.problems import DISK_FULL, Problem
from ducos.serve.schema import options_of
from ducos.upscaling import Options


def stream_route(jobs: Jobs) -> APIRouter:
    """The WebSocket /v1/stream."""
    router = APIRouter(prefix="/v1")
    open_streams: set[WebSocket] = set()

    @router.websocket("/stream")
    async def stream(socket: WebSocket, format: str = "npy") -> None:
        await socket.accept()
        if len(open_streams) >= jobs.settings.streams:
            problem = Problem("busy", f"{len(open_streams)} streams are open; try again later")
            await refuse(socket, problem)
            return
        open_streams.add(socket)
        job = jobs.new()
        try:
            job.options = options_of(await socket.receive_text(), {}, jobs.settings)
            if format not in FORMATS:
                raise InputError(f"unknown format {format!r}; one of: {', '.join(FORMATS)}")
            check_output_format(format, Options(**job.options), job.folder)
            await socket.send_json({"ready": True})
            while True:
                await answer_frame(socket, jobs, job, format)
        except InputError as problem:
            await refuse(socket, Problem("input", str(problem)))
        except Problem as problem:
            await refuse(socket, problem)
        except OSError:
            await refuse(socket, Problem("disk", DISK_FULL))
        except (WebSocketDisconnect, KeyError, RuntimeError):
            pass  # the client left, or sent text where bytes belong: the socket is closed
        finally:
            open_streams.discard(socket)
            jobs.drop(job)

    return router


async def answer_frame(socket: WebSocket, jobs: Jobs, job: Any, name: str) -> None:
    """Take a pair, have it super-resolved, answer."""
    begun = 0.0
    for kind in ("rgb", "depth"):
        content = await socket.receive_bytes()
        begun = begun or time.perf_counter()
        (job.folder / kind).write_bytes(content)
    jobs.store.measure(job.name)
    message = {
        "task": "upscale",
        "folder": str(job.folder),
        "options": job.options,
        "formats": [name],
    }
    job.task = await jobs.pool.submit(Task(message))
    try:
        facts = await job.task.answer
    except Problem as problem:
        if problem.code not in ("input", "pixels"):
            raise
        await socket.send_json({"problem": problem.plain()})
        return
    facts["milliseconds"] = round(1000 * (time.perf_counter() - begun), 1)
    await socket.send_json({"done": facts})
    await socket.send_bytes(job.path_of(name).read_bytes())


async def refuse(socket: WebSocket, problem: Problem) -> None:
    """Say why, and close."""
    await socket.send_json({"problem": problem.plain()})
    await socket.close(code=1008 if problem.status < 500 else 1013, reason=problem.code)
