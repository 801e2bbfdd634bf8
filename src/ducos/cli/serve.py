"""`ducos serve`: the page and the HTTP API, on this computer unless asked otherwise."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import typer

LIMITS: Any = {"rich_help_panel": "Limits"}
ACCESS: Any = {"rich_help_panel": "Who may use it"}


def serve(
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes, one thread each. Default: one per core, at most 4."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A model that clients may choose: a name or a weight file; may be repeated."
            " Default: all that run without further weights."
        ),
    ] = None,
    recording: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder, CSV file or recorder's file as `ducos batch` takes, to be played; may"
            " be repeated."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "cpu",
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0 for the whole network.", **ACCESS)
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="DUCOS_TOKEN",
            help="Only clients that send this token may use the server.",
            **ACCESS,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="A web site whose pages may call, such as https://example.org.", **ACCESS
        ),
    ] = None,
    max_body: Annotated[str, typer.Option(help="Of one request.", **LIMITS)] = "64MB",
    max_megapixels: Annotated[
        float, typer.Option(help="Of one image or depth map.", **LIMITS)
    ] = 24.0,
    max_queue: Annotated[int, typer.Option(help="Requests that may wait.", **LIMITS)] = 256,
    max_seconds: Annotated[
        float, typer.Option(help="Of work on one request; then it is ended.", **LIMITS)
    ] = 120.0,
    keep: Annotated[
        float, typer.Option(help="Seconds for which results of jobs stay.", **LIMITS)
    ] = 900.0,
    max_disk: Annotated[
        str, typer.Option(help="Of all requests and results together.", **LIMITS)
    ] = "2GB",
    max_memory: Annotated[
        str, typer.Option(help="Of one process, for its work.", **LIMITS)
    ] = "6GB",
) -> None:
    """Serve a page, to drop two files on, and the same over HTTP.

    Example: ducos serve --open
    """
    from ducos.serve import Settings, bytes_of, listed_models, listed_recordings
    from ducos.serve import serve as run

    settings = Settings(
        host=host,
        port=port,
        workers=min(os.cpu_count() or 1, 4) if workers is None else workers,
        models=listed_models(model or []),
        recordings=listed_recordings(recording or []),
        token=token,
        origins=tuple(allow_origin or ()),
        body=bytes_of(max_body),
        pixels=round(max_megapixels * 1e6),
        queue=max_queue,
        seconds=max_seconds,
        keep=keep,
        disk=bytes_of(max_disk),
        memory=bytes_of(max_memory),
        device=device,
    )

    def listening(address: str) -> None:
        place = address + (f"/#token={token}" if token else "")
        print(f"open {place} (Ctrl-C ends it)", flush=True)
        if not settings.local and token is None:
            print("warning: anybody in the network can use it; --token asks", file=sys.stderr)
        if open_page:
            threading.Thread(target=show, args=(place, address), daemon=True).start()

    run(settings, listening)


def show(place: str, address: str) -> None:
    """Open the browser once the server answers."""
    import urllib.error
    import urllib.request
    import webbrowser

    for _ in range(200):
        try:
            urllib.request.urlopen(f"{address}/openapi.json", timeout=1).close()
            break
        except urllib.error.HTTPError:
            break
        except OSError:
            time.sleep(0.1)
    webbrowser.open(place)
