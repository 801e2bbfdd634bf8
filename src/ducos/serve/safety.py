"""What every request passes before anything reads it: host, origin, token, size; and the headers.

Plain ASGI, so that a body that is too large is refused while it arrives, not after.
"""

import hmac
import json
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ducos.serve.problems import Problem
from ducos.serve.settings import Settings
from ducos.serve.store import Store

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
GUARDED = ("/v1/", "/metrics")  # the page itself and /healthz hold no secret


class Guard:
    """Refuses what must not reach the application, and adds the headers to what leaves it."""

    def __init__(self, app: ASGIApp, settings: Settings, store: Store):
        self.app, self.settings, self.store = app, settings, store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self.check(scope, headers)
            if scope["type"] == "websocket":
                await self.app(scope, receive, send)
                return
            size = declared_size(headers, self.settings.body)
            with self.store.room_for(size):
                body = Body(receive, self.settings.body)
                await self.app(scope, body.receive, self.with_headers(send, body))
        except Problem as problem:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": problem.code})
            else:
                await refuse(problem, self.with_headers(send))

    def check(self, scope: Scope, headers: Headers) -> None:
        """Host, origin and token."""
        host = headers.get("host", "")
        if self.settings.local and host_name(host) not in (*LOCAL_NAMES, self.settings.host):
            # A page of the web whose name resolves to this computer must not read from it.
            raise Problem("host", "this server answers to the names of this computer only")
        origin = headers.get("origin")
        own = origin is None or urlsplit(origin).netloc == host
        if not own and origin not in self.settings.origins:
            raise Problem("origin", "pages of other sites may not call this server")
        preflight = scope["type"] == "http" and scope["method"] == "OPTIONS" and not own
        guarded = scope["path"].startswith(GUARDED)
        if self.settings.token is not None and guarded and not preflight:
            shown = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(shown.encode(), self.settings.token.encode()):
                raise Problem("token", "this needs the server's token: Authorization: Bearer TOKEN")

    def with_headers(self, send: Send, body: "Body | None" = None) -> Send:
        """`send`, with the security headers; of a body that was refused, the answer is why."""
        refused = False

        async def sending(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                if body is not None and body.problem is not None:
                    refused = True
                    await refuse(body.problem, self.with_headers(send))
                    return
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            if not refused:
                await send(message)

        return sending


class Body:
    """A body that is counted while it is read."""

    def __init__(self, source: Receive, limit: int):
        self.source, self.limit, self.seen = source, limit, 0
        self.problem: Problem | None = None

    async def receive(self) -> Message:
        message = await self.source()
        self.seen += len(message.get("body", b""))
        if self.seen > self.limit:
            self.problem = too_large(self.limit)
            raise self.problem
        return message


def declared_size(headers: Headers, limit: int) -> int:
    """Bytes to reserve for a body: what it declares, or what it may have at most."""
    if "content-length" in headers:
        length = headers["content-length"]
        size = int(length) if length.isdigit() else limit + 1
        if size > limit:
            raise too_large(limit)
        return size
    return limit if headers.get("transfer-encoding") else 0


def too_large(limit: int) -> Problem:
    return Problem(
        "body", f"the request is larger than {limit / 1e6:g} MB, which is this server's limit"
    )


def host_name(host: str) -> str:
    """The Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


async def refuse(problem: Problem, send: Send) -> None:
    """Answer with a problem."""
    content = json.dumps(problem.plain()).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
    pairs = {**headers, **problem.headers}.items()
    raw = [(name.lower().encode(), value.encode()) for name, value in pairs]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": content})
