"""The page and its modules as files: addresses carry a version, so browsers ask for each once."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ssd_core import SSDError

from .prompts import THUMBNAILS
from .schema import schema_view
from .services import Services
from .views import readable
from .words import language_of

WEB = Path(__file__).parent / "web"
PREVIEW = WEB / "core"  # its place in a wheel; in the repository ComfyUI uses it too
if not PREVIEW.is_dir():
    PREVIEW = WEB.parent.parent / "web" / "preview"
IMPORTED = re.compile(r'^(?:import|\}) [^;]*?from "\./([^"]+)";', re.MULTILINE)
ALWAYS, ASKED = "public, max-age=31536000, immutable", "no-cache"


class Files(StaticFiles):
    """The files of a folder, kept by browsers for good or only until they have asked again."""

    def __init__(self, folder: Path, caching: str) -> None:
        super().__init__(directory=folder)
        self.caching = caching

    def file_response(self, *args, **options) -> Response:
        answer = super().file_response(*args, **options)
        answer.headers["cache-control"] = self.caching
        return answer


class Versioned:
    """The same under addresses with a version; a page of another version keeps nothing."""

    def __init__(self, folder: Path) -> None:
        self.now, self.other = Files(folder, ALWAYS), Files(folder, "no-store")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        files = self.now if scope["path_params"]["version"] == version() else self.other
        await files(scope, receive, send)


def version() -> str:
    """A name that changes with any file of the page."""
    files = [path for folder in (WEB, PREVIEW) for path in sorted(folder.iterdir())]
    stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()[:12]


def page_html(language: str, schema: dict) -> str:
    """The page in a language, with the schema."""
    html = (WEB / "page.html").read_text(encoding="utf-8")
    html = html.replace('<html lang="en"', f'<html lang="{language}"', 1)
    now = version()
    at = f"studio/web/v/{now}/"
    links = "".join(f'  <link rel="modulepreload" href="{at}{name}">\n'
                    for name in first_modules(now))
    data = json.dumps(schema, ensure_ascii=False).replace("<", "\\u003c")
    data = f'  <script type="application/json" id="schema">{data}</script>\n'
    return html.replace("studio/web/", at).replace("</head>", f"{links}{data}</head>", 1)


@lru_cache(1)
def first_modules(now: str) -> list[str]:
    """The modules that the page needs at once, so that a browser asks for all of them together."""
    found, left = [], ["app.js", "create.js"]
    while left:
        name = left.pop(0)
        if name in found:
            continue
        found.append(name)
        folder, file = (PREVIEW, name[5:]) if name.startswith("core/") else (WEB, name)
        prefix = name[: -len(file)]
        source = (folder / file).read_text(encoding="utf-8")
        left += [prefix + other for other in IMPORTED.findall(source)]
    return found


def not_yet(line: str, language: str) -> Response:
    """What stands in place of the page while another model is loaded; it asks again by itself."""
    html = f'<!doctype html><html lang="{language}"><title>SSD Studio</title><p>{escape(line)}</p>'
    return Response(html, 503, {"refresh": "2", "cache-control": "no-store"}, "text/html")


def page_routes(services: Services) -> list[BaseRoute]:
    def page(request: Request) -> Response:
        language = language_of(request, services.language)
        if request.method == "HEAD":  # Gradio asks whether anybody answers
            return Response(media_type="text/html")
        try:
            schema = schema_view(services, language)
        except SSDError as error:
            return not_yet(readable(services, language, str(error)), language)
        return Response(page_html(language, schema), media_type="text/html",
                        headers={"cache-control": ASKED, "vary": "accept-language, cookie"})

    return [Route("/", page),
            Mount("/studio/examples", Files(THUMBNAILS, ASKED)),
            Mount("/studio/web/v/{version}/core", Versioned(PREVIEW)),
            Mount("/studio/web/v/{version}", Versioned(WEB)),
            Mount("/studio/web/core", Files(PREVIEW, ASKED)),
            Mount("/studio/web", Files(WEB, ASKED))]
