"""A server in this process, until it is stopped."""

import socket
from collections.abc import Callable

from ducos.errors import InputError, needed
from ducos.serve.settings import Settings

LIBRARIES = ("fastapi", "uvicorn", "python_multipart", "websockets", "prometheus_client")


def serve(settings: Settings, listening: Callable[[str], None]) -> None:
    """Serve until Ctrl-C. listening: called with the address once it is known."""
    for library in LIBRARIES:
        needed(library, "serve")
    import uvicorn

    from ducos.serve.app import create_app

    channel = bound(settings)
    host, port = channel.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        ws_max_size=settings.body,
        timeout_graceful_shutdown=2,
    )
    listening(f"http://{shown}:{port}")
    with channel:
        uvicorn.Server(config).run(sockets=[channel])


def bound(settings: Settings) -> socket.socket:
    """A socket at the address asked for; refused in one sentence if that is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    channel = socket.socket(family, socket.SOCK_STREAM)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        channel.bind((settings.host, settings.port))
    except OSError as problem:
        channel.close()
        raise InputError(
            f"cannot listen at {settings.host}:{settings.port}: {problem.strerror}; choose another "
            "--port, or 0 for any that is free"
        ) from None
    channel.listen(1024)
    return channel
