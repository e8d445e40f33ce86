"""Who may ask for what: nothing from other sites, of Gradio only what programs need, nothing large.

ASGI middleware around the whole server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import in_language
from .proxied import LOOPBACK, NAME, Below, forwarded, name_of, place_of
from .sharing import Password, UploadQuota, path_in_app
from .words import language_of

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
    """Refuse requests that no page or program of ours makes; add the content policy to answers.

    names: of proxies and tunnels before the app. local: answer to these and loopback's names only,
    which prevents DNS rebinding.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str] = (), local: bool = True) -> None:
        self.app, self.names, self.local = app, names, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)
        request = Request(scope)
        refusal = (self.local and not_named(request, self.names)) or refused(request, self.names)
        await (refusal or self.app)(scope, receive, with_policy)


def not_named(request: Request, names: Sequence[str]) -> Response | None:
    """The answer to a request for another machine's name, whoever passed it on."""
    known = {*LOOPBACK, *map(name_of, names)}
    asked = [request.headers.get("host", ""), *forwarded(request.headers, "host")]
    unknown = [host for host in asked if name_of(host) not in known]
    if not unknown:
        return None
    name = name_of(unknown[0])
    name = name if NAME.fullmatch(name) else "NAME"
    return refusal(request, 400, f"this app does not answer to this name: if {name} is your proxy "
                                 f"or tunnel, start the app with --allow-host {name}")


def refused(request: Request, names: Sequence[str] = ()) -> Response | None:
    """The answer to a request that is refused."""
    path = path_in_app(request.scope)
    if path != "/" and not path.startswith((*OURS, *GRADIO)):
        return PlainTextResponse("nothing is here", 404)
    reads = request.method in ("GET", "HEAD", "OPTIONS")
    followed = reads and request.headers.get("sec-fetch-mode") == "navigate"  # a link, not a script
    if not (followed or same_site(request, names)):
        site = request.headers.get("origin", "").rpartition("://")[2]
        if not NAME.fullmatch(site):
            return refusal(request, 403, "this app answers no other sites")
        return refusal(request, 403, f"this app answers no other sites: if {site} is your proxy or "
                                     f"tunnel, start the app with --allow-host {site}")
    if path.startswith(GRADIO) and not reads:
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            return PlainTextResponse(f"send at most {LARGEST >> 20} MiB, and say how much", 413)
    if reads and asks_for_no_call(request, path):
        return PlainTextResponse("no such call, or it is over", 404)
    return None


CALLS = 3  # slashes of /gradio_api/call/NAME, which begins a call; /ID behind it waits for one


def asks_for_no_call(request: Request, path: str) -> bool:
    """Whether somebody waits for a call through Gradio's queue that is unknown there. For each such
    request Gradio would print a traceback of 80 lines.
    """
    if path.rstrip("/") == "/gradio_api/queue/data":
        call = request.query_params.get("session_hash", "")
    elif path.startswith("/gradio_api/call/") and path.rstrip("/").count("/") > CALLS:
        call = path.rstrip("/").rpartition("/")[2]
    else:
        return False
    queue = request.app.get_blocks()._queue
    return not (call in queue.pending_messages_per_session or call in queue.event_ids_to_events
                or any(call in ids for ids in queue.pending_event_ids_session.values()))


def refusal(request: Request, status: int, line: str) -> Response:
    """The answer with one line in the visitor's language, which the page can show."""
    line = in_language(language_of(request), line)
    if path_in_app(request.scope).startswith("/api"):
        return JSONResponse({"error": line}, status)
    return PlainTextResponse(line, status)


def same_site(request: Request, names: Sequence[str] = ()) -> bool:
    """Whether our own page, or no page, sent a request.

    A proxy may ask by another Host than the browser did. What it says about that counts for names
    of the app only: nobody else can extend them by a header.
    """
    site, origin = (request.headers.get(name) for name in ("sec-fetch-site", "origin"))
    if site is not None:
        return site in ("same-origin", "none")
    if origin is None:  # a browser without this header, or no browser
        return True
    scheme, _, host = origin.partition("://")
    known = {*LOOPBACK, *map(name_of, names)}
    own = [request.headers.get("host", ""), *names,
           *(host for host in forwarded(request.headers, "host") if name_of(host) in known)]
    place = place_of(host, scheme)
    return place is not None and place in [place_of(name, scheme) for name in own]


def middleware(host: str, share: bool, users: Mapping[str, str], root: str = "",
               names: Sequence[str] = (), proxies: Sequence[str] = ()) -> list[Middleware]:
    """On loopback answer only to this machine's names and those that were allowed.

    With users, everybody else is refused. Visitors of a shared app may send so much an hour.
    root: the path below which a proxy has the app. proxies: whose X-Forwarded-For counts.
    """
    local = host in LOOPBACK and not share
    own = [Middleware(Below, root=root, proxies=proxies),
           Middleware(Policy, names=names, local=local)]
    if users:
        own.append(Middleware(Password, users=users))
    if names or not local:
        own.append(Middleware(UploadQuota))
    return own
