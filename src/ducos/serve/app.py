"""The application: workers and folder for its life, routes, guards, and problems as answers."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from ducos import __version__
from ducos.errors import InputError
from ducos.serve.information import information_routes
from ducos.serve.jobs import Jobs
from ducos.serve.metrics import Counted, Metrics
from ducos.serve.pool import Pool
from ducos.serve.problems import DISK_FULL, Problem, is_disk_full
from ducos.serve.routes import work_routes
from ducos.serve.safety import Guard
from ducos.serve.settings import Settings
from ducos.serve.store import Store
from ducos.serve.stream import stream_route

PAGE = Path(__file__).parent / "page"
ABOUT = (
    "A colour image and a small, noisy depth map in, a sharp metric depth map out. "
    "Every problem is JSON with a `code` for programs and a `sentence` for people."
)


def create_app(settings: Settings, place: Path | None = None) -> FastAPI:
    """The server as an ASGI application. place: where its private folder is made."""
    pool, store = Pool(settings), Store(settings.disk, place)
    jobs = Jobs(settings, pool, store)
    metrics = Metrics(jobs)

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        store.open()
        await pool.start()
        sweeping = asyncio.create_task(jobs.sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            await pool.close()
            store.close()

    app = FastAPI(
        title="ducos",
        version=__version__,
        description=ABOUT,
        lifespan=life,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
    )
    app.state.jobs = jobs
    app.include_router(work_routes(jobs))
    app.include_router(information_routes(settings, jobs, metrics))
    app.include_router(stream_route(jobs))
    app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    answer_problems(app)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization"],
        )
    app.add_middleware(Guard, settings=settings, store=store)
    app.add_middleware(Counted, metrics=metrics)
    return app


def answer_problems(app: FastAPI) -> None:
    """Whatever goes wrong is answered in one form."""

    def answer(problem: Problem) -> JSONResponse:
        return JSONResponse(problem.plain(), problem.status, problem.headers)

    @app.exception_handler(Problem)
    async def known(request: Request, problem: Problem) -> JSONResponse:
        return answer(problem)

    @app.exception_handler(InputError)
    async def mistake(request: Request, problem: InputError) -> JSONResponse:
        return answer(Problem("input", str(problem)))

    @app.exception_handler(RequestValidationError)
    async def shape(request: Request, problem: RequestValidationError) -> JSONResponse:
        first = problem.errors()[0]
        place = str(first["loc"][-1]) if first["loc"] else "request"
        return answer(Problem("input", f"{place}: {first['msg']}"))

    @app.exception_handler(HTTPException)
    async def of_framework(request: Request, problem: HTTPException) -> JSONResponse:
        if is_disk_full(problem):  # while the body was being written to it
            return answer(Problem("disk", DISK_FULL))
        codes = {404: "unknown", 405: "method"}
        code = codes.get(problem.status_code, "input")
        made = Problem(code, str(problem.detail))
        return JSONResponse(made.plain(), made.status, problem.headers)

    @app.exception_handler(OSError)
    @app.exception_handler(Exception)
    async def unexpected(request: Request, problem: Exception) -> JSONResponse:
        if is_disk_full(problem):
            return answer(Problem("disk", DISK_FULL))
        print(f"ducos: {type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
        return answer(Problem("inside", "the server has a fault; its log says more"))
