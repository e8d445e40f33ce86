"""The HTTP server: the feed of running jobs, our own modules, and security rules.

Pages poll instead of streaming: browsers allow six connections per host, of which Gradio uses some
per tab, and share tunnels delay streams.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import gradio as gr
from gradio import processing_utils
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ssd_core import SSDError
from ssd_core.output.animation import FILMS
from ssd_core.output.replay import moments

from .api import api_routes
from .errors import in_language
from .page import build
from .prompts import THUMBNAILS
from .schema import LARGEST_UPLOAD
from .services import Services
from .sharing import Password, UploadQuota
from .views import asked_for, feed_view
from .words import AUTO, language_of, translations

HERE = Path(__file__).parent
PREVIEW = HERE / "web" / "core"  # its place in a wheel; in the repository ComfyUI uses it too
if not PREVIEW.is_dir():
    PREVIEW = HERE.parent / "web" / "preview"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FETCHED = re.compile(r"/gradio_api/(proxy=|file=/*[a-z]+:)", re.IGNORECASE)
# The page may load nothing from other hosts, whatever a library or a text asks for.
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'"
FONTS = ["system-ui", "-apple-system", "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei",
         "sans-serif"]
MONO = ["ui-monospace", "Menlo", "Consolas", "monospace"]


class Policy:
    """Refuse requests that our page never makes, and add the content policy to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (why := refused(Request(scope))):
            await PlainTextResponse(why, 403)(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"],
                                      (b"content-security-policy", POLICY.encode()),
                                      (b"referrer-policy", b"no-referrer")]
            await send(message)
        await self.app(scope, receive, with_policy if scope["type"] == "http" else send)


def refused(request: Request) -> str | None:
    """Why a request is refused: another site sent it, or Gradio would fetch an address."""
    if FETCHED.match(request.url.path):
        return "this app fetches nothing from elsewhere"
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return None
    site, origin = (request.headers.get(name) for name in ("sec-fetch-site", "origin"))
    if site is not None:
        own = site in ("same-origin", "none")
    else:  # a browser without this header, or no browser
        own = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    return None if own else "this app takes nothing from other sites"


async def fetch_nothing(url: str, *_: object, **__: object) -> str:
    """Replaces Gradio's download of files that a request names by address."""
    raise gr.Error("files are not fetched from elsewhere: upload the file",
                   print_exception=False)


def routes(services: Services) -> list[Route | Mount]:
    """Our routes, which come before Gradio's."""
    def feed(request: Request) -> Response:
        polled = asked_for(request.query_params)
        news = feed_view(services, polled, language_of(request, services.language))
        return JSONResponse(news, headers={"cache-control": "no-store"})

    def picture(request: Request) -> Response:
        """A picture, byte for byte as on the disk or in memory."""
        try:
            png = services.history.png(request.path_params["entry"])
        except SSDError as error:
            return PlainTextResponse(services.for_visitors(str(error)), 404)
        return Response(png, media_type="image/png")

    def replay(request: Request) -> Response:
        """The film of a run that is still known, with its overlay if the query says so."""
        job = services.worker.job(request.path_params["job"])
        kind = request.url.path.rsplit(".")[-1]
        overlay = "overlay" in request.query_params
        try:
            film = FILMS[kind](moments(job.messages if job else [], overlay))
        except SSDError as error:
            text = in_language(language_of(request, services.language), str(error))
            return PlainTextResponse(text, 404)
        return Response(film, media_type={"webp": "image/webp", "mp4": "video/mp4"}[kind])

    return [Route("/studio/feed", feed), Route("/studio/picture/{entry:path}", picture),
            *(Route(f"/studio/replay/{{job}}.{kind}", replay) for kind in FILMS),
            Mount("/api", routes=api_routes(services)),
            Mount("/studio/examples", StaticFiles(directory=THUMBNAILS)),
            Mount("/studio/web/core", StaticFiles(directory=PREVIEW)),
            Mount("/studio/web", StaticFiles(directory=HERE / "web"))]


def middleware(host: str, share: bool, users: Mapping[str, str]) -> list[Middleware]:
    """On loopback answer only to this machine's names, which prevents DNS rebinding.

    With users, everybody else is refused. Visitors of a shared app may upload so much an hour.
    """
    own = [Middleware(Policy)]
    if users:
        own.append(Middleware(Password, users=users))
    if share or host not in LOOPBACK:
        own.append(Middleware(UploadQuota))
    if host in LOOPBACK and not share:
        own.append(Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"]))
    return own


def head(language: str) -> str:
    """Our style sheet and module; a forced language is set where the modules read it."""
    spoken = ("" if language == AUTO else "<script>document.documentElement.lang="
              f'document.documentElement.dataset.ssdLanguage="{language}"</script>')
    return (f'{spoken}<link rel="stylesheet" href="/studio/web/studio.css">'
            '<script type="module" src="/studio/web/studio.js"></script>')


def theme() -> gr.Theme:
    """Gradio's default theme in calmer colours, with the system's fonts."""
    return gr.themes.Default(primary_hue="teal", neutral_hue="slate", font=FONTS, font_mono=MONO)


def require_address(host: str, port: int | None) -> None:
    """Raise SSDError if the address cannot be listened on; Gradio's own message misleads."""
    try:
        place = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(place[0]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place[4])
    except OSError as error:
        where = f"{host}:{port}" if port else host
        raise SSDError(f"cannot listen on {where} ({error.strerror}): choose a --host of this "
                       "machine and a --port that is free") from error


def serve(services: Services, host: str, port: int | None, share: bool, browser: bool = False,
          block: bool = True, users: Mapping[str, str] | None = None) -> gr.Blocks:
    """Serve the app, in a browser if `browser`; `block` keeps it open until Ctrl-C.

    users: names and passwords of those who may enter; None or empty for everybody.
    """
    processing_utils.async_ssrf_protected_download = fetch_nothing
    os.environ["GRADIO_RUN_HISTORY"] = "False"  # our own history can be deleted
    demo = build(services)
    demo.queue(default_concurrency_limit=None, max_size=256)  # runs wait in the Worker's queue
    demo.launch(
        server_name=host, server_port=port, share=share, inbrowser=browser,
        prevent_thread_lock=True, quiet=True,  # its lines advise on code that users do not have
        allowed_paths=[str(THUMBNAILS)],  # wherever the program was started from
        theme=theme(), head=head(services.language),
        i18n=translations(services.language), footer_links=[], max_file_size=LARGEST_UPLOAD,
        ssr_mode=False, enable_monitoring=False, state_session_capacity=64,
        app_kwargs={"routes": routes(services), "middleware": middleware(host, share, users or {})})
    if block:
        sys.stdout.write(f"Running on {demo.local_url} (Ctrl-C ends it)\n")
        sys.stdout.flush()
        try:
            demo.block_thread()
        finally:
            services.close()
    return demo
