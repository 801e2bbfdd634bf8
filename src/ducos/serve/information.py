"""What a server has and how it is: models, options, pairs to try, recordings, health, figures."""

from pathlib import Path as FilePath
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Response
from fastapi.responses import FileResponse

from ducos import __version__, example
from ducos.serve.jobs import Jobs
from ducos.serve.metrics import Metrics
from ducos.serve.problems import Problem
from ducos.serve.recordings import KINDS, Recordings
from ducos.serve.routes import BINARY, problems
from ducos.serve.schema import (
    FrameModel,
    HealthModel,
    ModelsModel,
    PairsModel,
    RecordingsModel,
    options_model,
)
from ducos.serve.settings import Settings, plain
from ducos.upscaling import model_rows

FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"application/octet-stream": BINARY}}
}
Kind = Annotated[str, Path(description="One of: " + ", ".join(KINDS))]
Number = Annotated[int, Path(ge=0, lt=10**9)]


def information_routes(settings: Settings, jobs: Jobs, metrics: Metrics) -> APIRouter:
    """Routes that only tell."""
    router = APIRouter()
    recordings = Recordings(settings.recordings, jobs)

    @router.get(
        "/healthz",
        summary="Whether the server can work",
        response_model=HealthModel,
        responses={
            421: problems()[421],
            403: problems()[403],
            503: {"model": HealthModel, "description": "No worker is ready."},
        },
    )
    async def health(response: Response) -> Any:
        pool = jobs.pool
        response.status_code = 200 if pool.ready else 503
        return {
            "ready": pool.ready > 0,
            "version": __version__,
            "workers": pool.ready,
            "busy": pool.busy,
            "waiting": len(pool.waiting),
            "limits": plain(settings),
        }

    @router.get(
        "/metrics",
        summary="Figures for Prometheus",
        response_class=Response,
        responses={
            200: {
                "description": "Prometheus text.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            **problems(),
        },
    )
    async def figures() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @router.get(
        "/v1/models",
        summary="Models that this server runs",
        response_model=ModelsModel,
        responses=problems(),
    )
    async def models() -> Any:
        known = {row["name"]: row for row in model_rows()}
        rows = []
        for name in settings.models:
            row = known.get(name, {"version": None, "parameters": None, "licence": "", "about": ""})
            kept = {key: row[key] for key in ("version", "parameters", "licence", "about")}
            rows.append({"name": name, "default": name == settings.default, **kept})
        return {"models": rows}

    @router.get(
        "/v1/options",
        summary="JSON schema of the options",
        response_model=dict[str, Any],
        responses=problems(),
    )
    async def options() -> Any:
        return options_model(settings).model_json_schema()

    @router.get(
        "/v1/examples",
        summary="Bundled pairs to try",
        response_model=PairsModel,
        responses=problems(),
    )
    async def examples() -> Any:
        return {
            "pairs": [
                {
                    "name": name,
                    "about": pair.about,
                    "rgb": f"/v1/examples/{name}/rgb",
                    "depth": f"/v1/examples/{name}/depth",
                    "options": dict(pair.options),
                }
                for name, pair in example.PAIRS.items()
            ]
        }

    @router.get(
        "/v1/examples/{name}/{kind}",
        summary="A file of a bundled pair",
        response_class=FileResponse,
        responses={**FILE, **problems(404)},
    )
    async def example_file(name: str, kind: Literal["rgb", "depth"]) -> FileResponse:
        if name not in example.PAIRS:
            raise Problem("unknown", f"there is no example of this name: {name!r}")
        pair = example.PAIRS[name]
        return as_file(pair.rgb if kind == "rgb" else pair.depth)

    @router.get(
        "/v1/recordings",
        summary="Recordings that this server plays",
        response_model=RecordingsModel,
        responses=problems(),
    )
    async def list_recordings() -> Any:
        return {"recordings": recordings.frames()}

    @router.get(
        "/v1/recordings/{name}/{frame}",
        summary="What a frame consists of",
        response_model=FrameModel,
        responses=problems(404, 504),
    )
    async def show_frame(name: str, frame: Number) -> Any:
        kinds = await recordings.files(name, frame)
        place = f"/v1/recordings/{quote(name, safe='')}/{frame}"
        return {"files": {kind: f"{place}/{kind}" for kind in kinds}}

    @router.get(
        "/v1/recordings/{name}/{frame}/{kind}",
        summary="A file of a frame",
        response_class=FileResponse,
        responses={**FILE, **problems(404, 504)},
    )
    async def frame_file(name: str, frame: Number, kind: Kind) -> FileResponse:
        place = (await recordings.files(name, frame)).get(kind)
        if place is None:
            raise Problem("unknown", f"the recordings have no such file: {name} {frame} {kind}")
        return as_file(place)

    return router


def as_file(place: FilePath) -> FileResponse:
    return FileResponse(place, media_type="application/octet-stream")
