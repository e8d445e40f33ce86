"""The page over HTTP: the feed of running jobs, our own modules, and rules for the browser.

Polling, not a stream: browsers allow six connections a host, of which Gradio holds some a tab, and
share tunnels hold streams back.
"""

from __future__ import annotations

from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ssd_core import SSDError

from .page import build
from .services import Services
from .words import AUTO, translations

HERE = Path(__file__).parent
PREVIEW = HERE.parent / "web"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST_UPLOAD = "40mb"
# Nothing may come from elsewhere, whatever a library or a picture's text asks for.
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'"
FONTS = ["system-ui", "-apple-system", "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei",
         "sans-serif"]
MONO = ["ui-monospace", "Menlo", "Consolas", "monospace"]


class Policy:
    """Adds the content policy to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"],
                                      (b"content-security-policy", POLICY.encode()),
                                      (b"referrer-policy", b"no-referrer")]
            await send(message)
        await self.app(scope, receive, with_policy if scope["type"] == "http" else send)


def routes(services: Services) -> list[Route | Mount]:
    """Ours, before Gradio's own."""
    def feed(request: Request) -> Response:
        jobs, after = (request.query_params.getlist(key) for key in ("job", "after"))
        asked = zip(jobs, after, strict=False)
        return JSONResponse({job: services.worker.feed(job, int(n)) for job, n in asked
                             if n.isdecimal()}, headers={"cache-control": "no-store"})

    def picture(request: Request) -> Response:
        """A saved picture, byte for byte as it lies on the disk."""
        try:
            entry = services.history.entry(request.path_params["entry"])
        except SSDError as error:
            return Response(str(error), 404, media_type="text/plain")
        return FileResponse(entry.path, media_type="image/png")

    return [Route("/studio/feed", feed), Route("/studio/picture/{entry:path}", picture),
            Mount("/studio/web/core", StaticFiles(directory=PREVIEW)),
            Mount("/studio/web", StaticFiles(directory=HERE / "web"))]


def middleware(host: str, share: bool) -> list[Middleware]:
    """On loopback only names of this machine are answered, so that no other site's name may be."""
    own = [Middleware(Policy)]
    if host in LOOPBACK and not share:
        own.append(Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"]))
    return own


def head(language: str) -> str:
    """Our style sheet and module; a forced language is written where the modules look for it."""
    forced = ("" if language == AUTO else "<script>document.documentElement.dataset.ssdLanguage="
              f'"{language}"</script>')
    return (f'{forced}<link rel="stylesheet" href="/studio/web/studio.css">'
            '<script type="module" src="/studio/web/studio.js"></script>')


def theme() -> gr.Theme:
    """Gradio's own look in calmer colours and with the fonts of the system."""
    return gr.themes.Default(primary_hue="teal", neutral_hue="slate", font=FONTS, font_mono=MONO)


def serve(services: Services, host: str, port: int | None, share: bool, browser: bool = False,
          block: bool = True) -> gr.Blocks:
    """Open the app, in a browser too if `browser`; `block` keeps it open until Ctrl-C."""
    demo = build(services)
    demo.queue(default_concurrency_limit=None, max_size=256)  # runs wait in our own queue
    demo.launch(
        server_name=host, server_port=port, share=share, inbrowser=browser,
        prevent_thread_lock=True, quiet=not block,
        theme=theme(), head=head(services.language),
        i18n=translations(services.language), footer_links=[], max_file_size=LARGEST_UPLOAD,
        allowed_paths=[str(services.history.folder)], ssr_mode=False, enable_monitoring=False,
        state_session_capacity=64,
        app_kwargs={"routes": routes(services), "middleware": middleware(host, share)})
    if block:
        try:
            demo.block_thread()
        finally:
            services.close()
    return demo
