"""Work over HTTP: one pair at once, the doctor, and jobs for whoever does not want to wait."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.background import BackgroundTask

from ducos.serve.desk import Pair, unless_left, wanted_format
from ducos.serve.jobs import Job, Jobs
from ducos.serve.outputs import FORMATS, check_output_format
from ducos.serve.problems import STATUS, Problem
from ducos.serve.schema import JobModel, ProblemModel, ReportModel
from ducos.upscaling import Options

WORDS = {
    401: "The token is missing or wrong.",
    403: "A page of another site called.",
    404: "There is no such thing here.",
    406: "None of the accepted media types is a format.",
    409: "The job has no result yet.",
    413: "The request, or its pixels, are more than this server takes.",
    421: "The Host header names another computer.",
    422: "The files or options cannot be used; the sentence says why.",
    499: "The job was cancelled.",
    503: "Too many are waiting, the disk is full or a worker ended; try again later.",
    504: "The work took longer than this server allows.",
}
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
FILE_CONTENT = {entry.media: BINARY for entry in FORMATS.values()}
JobName = Annotated[str, Path(description="Of `POST /v1/jobs`.", pattern=r"^[\w-]{1,64}$")]
FormatName = Annotated[str, Path(description="One of: " + ", ".join(FORMATS))]


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Documentation of answers that are problems."""
    always = (401, 403, 413, 421, 422, 503)
    return {
        code: {"model": ProblemModel, "description": WORDS[code]}
        for code in sorted({*always, *codes})
    }


assert set(WORDS) <= set(STATUS.values())


def work_routes(jobs: Jobs) -> APIRouter:
    """Routes that hand work to the workers."""
    router = APIRouter(prefix="/v1")

    @router.post(
        "/upscale",
        summary="Super-resolve one pair and answer with the result",
        responses={
            200: {
                "description": "The result in the format asked for, or JSON with links.",
                "content": {**FILE_CONTENT, "application/json": {}},
                "model": JobModel,
            },
            **problems(406, 504),
        },
        response_class=Response,
    )
    async def upscale(
        request: Request,
        pair: Pair,
        format: Annotated[
            str | None,
            Form(description="One of: json, " + ", ".join(FORMATS) + ". Default: by Accept."),
        ] = None,
    ) -> Response:
        """`format=json`, or Accept: application/json, answers with facts and links to all formats,
        which are kept for a while."""
        name = wanted_format(format, request.headers.get("accept", "*/*"))
        job = await pair.fill(jobs)
        try:
            if name != "json":
                check_output_format(name, Options(**job.options), job.folder)
            await jobs.start(job, ["maps" if name == "json" else name])
            await unless_left(request, jobs.finished(job))
        except BaseException:
            jobs.drop(job)
            raise
        if name == "json":
            return Response(json.dumps(jobs.plain(job)), media_type="application/json")
        return file_response(job, name, BackgroundTask(jobs.drop, job))

    @router.post(
        "/doctor",
        summary="Say what is wrong with a pair, and what to do",
        response_model=ReportModel,
        responses=problems(504),
    )
    async def doctor(request: Request, pair: Pair) -> Any:
        job = await pair.fill(jobs)
        try:
            await jobs.start(job, [], kind="doctor")
            return await unless_left(request, jobs.finished(job))
        finally:
            jobs.drop(job)

    @router.post(
        "/jobs",
        summary="Hand in a pair and come back for the result",
        status_code=202,
        response_model=JobModel,
        responses=problems(),
    )
    async def start_job(pair: Pair) -> Any:
        job = await pair.fill(jobs)
        try:
            await jobs.start(job, ["maps"])
        except BaseException:
            jobs.drop(job)
            raise
        return jobs.plain(job)

    @router.get(
        "/jobs/{job}",
        summary="What has become of a job",
        response_model=JobModel,
        responses=problems(404),
    )
    async def show_job(job: JobName) -> Any:
        return jobs.plain(jobs.get(job))

    @router.delete(
        "/jobs/{job}",
        summary="Cancel a job, or delete its results",
        response_model=JobModel,
        responses=problems(404),
    )
    async def end_job(job: JobName) -> Any:
        known = jobs.get(job)
        jobs.cancel(known)
        if known.task is not None:
            with suppress(Problem):
                await jobs.finished(known)
        jobs.drop(known)
        return jobs.plain(known)

    @router.get(
        "/jobs/{job}/events",
        summary="Follow a job: server-sent events, each with its state",
        response_class=StreamingResponse,
        responses={
            200: {
                "description": "Events `state` whose data is a job, until it has ended.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **problems(404),
        },
    )
    async def follow_job(job: JobName) -> StreamingResponse:
        known = jobs.get(job)

        async def events() -> AsyncIterator[str]:
            async for state in jobs.follow(known):
                yield f"event: state\ndata: {json.dumps(state)}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    @router.get(
        "/jobs/{job}/results/{format}",
        summary="The result of a job in any format",
        response_class=Response,
        responses={
            200: {"description": "The file.", "content": FILE_CONTENT},
            **problems(404, 409, 499, 504),
        },
    )
    async def get_result(
        request: Request,
        job: JobName,
        format: FormatName,
        field_of_view: Annotated[
            float | None,
            Query(description="Degrees across, for ply and glb; no camera.", gt=0, lt=180),
        ] = None,
    ) -> FileResponse:
        known = jobs.get(job)
        if format not in FORMATS:
            raise Problem("unknown", f"unknown format {format!r}; one of: {', '.join(FORMATS)}")
        if known.problem is not None:
            raise known.problem
        if known.facts is None:
            raise Problem("early", "the job is not done yet; follow its events")
        degrees = field_of_view if FORMATS[format].in_space else None
        await unless_left(request, jobs.result(known, format, degrees))
        return file_response(known, format, None, degrees)

    return router


def file_response(
    job: Job, name: str, after: BackgroundTask | None, degrees: float | None = None
) -> FileResponse:
    """A file of a job; nothing in its name comes from a client."""
    entry = FORMATS[name]
    return FileResponse(
        job.path_of(name, degrees),
        media_type=entry.media,
        filename=f"sharp{entry.suffix}",
        background=after,
    )
