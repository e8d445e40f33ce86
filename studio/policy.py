"""Who may ask for what: nothing from other sites, of Gradio only what programs need, nothing large.

ASGI middleware around the whole server.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .sharing import Password, UploadQuota

LOOPBACK = ("127.0.0.1", "localhost", "::1")
OURS = ("/api", "/studio/")  # and the page itself, at /
# What gradio_client and MCP clients need; all other routes of Gradio's are closed.
GRADIO = ("/config", *(f"/gradio_api/{name}" for name in (
    "info", "call/", "queue/", "heartbeat/", "cancel", "reset", "startup-events", "mcp")))
LARGEST = 60 << 20  # bytes of a call through Gradio's queue: a picture of 40 MiB in base64
# The page loads nothing from other hosts and runs nothing but our modules.
CONTENT = ("default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
           "form-action 'none'; frame-ancestors 'self'")
HEADERS = [(b"content-security-policy", CONTENT.encode()), (b"referrer-policy", b"no-referrer"),
           (b"x-content-type-options", b"nosniff")]


class Policy:
    """Refuse requests that no page or program of ours makes; add the content policy to answers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)
        refusal = refused(Request(scope))
        await (refusal or self.app)(scope, receive, with_policy)


def refused(request: Request) -> PlainTextResponse | None:
    """The answer to a request that is refused."""
    path = request.url.path
    if path != "/" and not path.startswith((*OURS, *GRADIO)):
        return PlainTextResponse("nothing is here", 404)
    reads = request.method in ("GET", "HEAD", "OPTIONS")
    followed = reads and request.headers.get("sec-fetch-mode") == "navigate"  # a link, not a script
    if not (followed or same_site(request)):
        return PlainTextResponse("this app answers no other sites", 403)
    if path.startswith(GRADIO) and not reads:
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            return PlainTextResponse(f"send at most {LARGEST >> 20} MiB, and say how much", 413)
    return None


def same_site(request: Request) -> bool:
    """Whether our own page, or no page, sent a request."""
    site, origin = (request.headers.get(name) for name in ("sec-fetch-site", "origin"))
    if site is not None:
        return site in ("same-origin", "none")
    # a browser without this header, or no browser
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def middleware(host: str, share: bool, users: Mapping[str, str]) -> list[Middleware]:
    """On loopback answer only to this machine's names, which prevents DNS rebinding.

    With users, everybody else is refused. Visitors of a shared app may send so much an hour.
    """
    own = [Middleware(Policy)]
    if users:
        own.append(Middleware(Password, users=users))
    if share or host not in LOOPBACK:
        own.append(Middleware(UploadQuota))
    else:
        own.append(Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"]))
    return own
