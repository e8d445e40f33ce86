"""The HTTP server: the page, JSON, pictures and films, and the named endpoints for programs.

Pages poll instead of streaming: browsers allow six connections per host, and share tunnels delay
streams.
"""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from importlib.util import find_spec
from typing import Any

import gradio as gr
from gradio import processing_utils
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from ssd_core import SSDError
from ssd_core.output.replay import FILMS, moments
from ssd_core.proxies import without_proxies

from .api import api_routes
from .errors import in_language
from .pages import page_routes
from .payloads import one_of
from .pictures import FORMATS, SCALES, converted
from .policy import middleware
from .programs import Programs
from .services import Services
from .words import language_of

LOOK = 0.2  # seconds between looks at Gradio's queue, where programs' calls wait


async def fetch_nothing(url: str, *_: object, **__: object) -> str:
    """Replaces Gradio's download of files that a request names by address."""
    raise gr.Error("files are not fetched from elsewhere: send the file", print_exception=False)


def reading_quietly(read: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Gradio's reading of a call's values; it would print a traceback for too few of them."""
    @wraps(read)
    async def reading(*args: Any, **options: Any) -> Any:
        try:
            return await read(*args, **options)
        except gr.Error:
            raise
        except Exception as error:
            raise gr.Error("the values of this call cannot be read: send those that "
                           "/gradio_api/info lists", print_exception=False) from error

    return reading


def routes(services: Services) -> list[BaseRoute]:
    """Our routes, which come before Gradio's."""
    def picture(request: Request) -> Response:
        """A picture, byte for byte, or as the query wants it: `format`, `scale`, `smooth`."""
        language = language_of(request, services.language)
        try:
            png = services.history.png(request.path_params["entry"])
        except SSDError as error:
            return PlainTextResponse(services.for_visitors(in_language(language, str(error))), 404)
        try:
            return picture_in(png, request.query_params)
        except SSDError as error:
            return PlainTextResponse(services.for_visitors(in_language(language, str(error))), 400)

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

    return [*page_routes(services), Mount("/api", routes=api_routes(services)),
            Route("/studio/picture/{entry:path}", picture),
            *(Route(f"/studio/replay/{{job}}.{kind}", replay) for kind in FILMS)]


def picture_in(png: bytes, query: Mapping[str, str]) -> Response:
    """A picture in the format and at the scale that are wanted, else as it is."""
    if not query.keys() & {"format", "scale", "smooth"}:
        return Response(png, media_type=FORMATS["png"])
    kind = one_of("format", query.get("format", "png"), FORMATS)
    scale = one_of("scale", query.get("scale", "1"), [str(scale) for scale in SCALES])
    smooth = one_of("smooth", query.get("smooth", "false"), ("true", "false"))
    return Response(converted(png, kind, int(scale), smooth == "true"), media_type=FORMATS[kind])


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
    if host == "0.0.0.0":  # where Gradio asks for localhost
        require_address("localhost", port)


def require_mcp() -> None:
    """Raise SSDError unless Gradio can serve MCP."""
    if find_spec("mcp") is None:
        raise SSDError("--mcp needs the package mcp: pip install 'gradio[mcp]'")


def serve(services: Services, host: str, port: int | None, share: bool, browser: bool = False,
          block: bool = True, users: Mapping[str, str] | None = None, mcp: bool = False,
          root: str = "", names: Sequence[str] = (), proxies: Sequence[str] = ()) -> gr.Blocks:
    """Serve the app, in a browser if `browser`; `block` keeps it open until Ctrl-C.

    users: names and passwords of those who may enter; None or empty for everybody. mcp: offer the
    named endpoints as MCP tools, too. root, names: the path below which a proxy has the app, and
    what it is called there. proxies: their addresses.
    """
    processing_utils.async_ssrf_protected_download = fetch_nothing
    os.environ["GRADIO_RUN_HISTORY"] = "False"  # our own history can be deleted
    os.environ["FORWARDED_ALLOW_IPS"] = ""  # else uvicorn believes everybody on this machine
    server = gr.Server(routes=routes(services), openapi_url=None, docs_url=None, redoc_url=None,
                       middleware=middleware(host, share, users or {}, root, names, proxies))
    Programs(services).offer(server)
    # Gradio asks the running server whether it answers; only a link to share goes to the network.
    with without_proxies(f"localhost,127.0.0.1,::1,{host}" if share else "*"):
        server.launch(
            server_name=host, server_port=port, share=share, prevent_thread_lock=True,
            quiet=True,  # it advises on code that users do not have
            ssr_mode=False, enable_monitoring=False, state_session_capacity=64, mcp_server=mcp,
            root_path=root)
    running = server.get_blocks()
    running.preprocess_data = reading_quietly(running.preprocess_data)
    queue = running._queue  # which looks for calls every millisecond, and for progress in them
    queue.sleep_when_free, queue.progress_update_sleep_when_free = LOOK, 4 * LOOK
    if browser:  # with the environment as it was
        webbrowser.open(running.share_url or running.local_url)
    if block:
        sys.stdout.write(f"Running on {running.local_url} (Ctrl-C ends it)\n")
        sys.stdout.flush()
        try:
            running.block_thread()
        finally:
            services.close()
    return running
