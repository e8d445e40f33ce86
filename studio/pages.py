"""The page and its modules as files: addresses carry a version, so browsers ask for each once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from .prompts import THUMBNAILS
from .services import Services
from .words import AUTO, language_of

WEB = Path(__file__).parent / "web"
PREVIEW = WEB / "core"  # its place in a wheel; in the repository ComfyUI uses it too
if not PREVIEW.is_dir():
    PREVIEW = WEB.parent.parent / "web" / "preview"
ALWAYS, ASKED = "public, max-age=31536000, immutable", "no-cache"


class Files(StaticFiles):
    """The files of a folder, kept by browsers for good or only until they have asked again."""

    def __init__(self, folder: Path, kept: str) -> None:
        super().__init__(directory=folder)
        self.kept = kept

    def file_response(self, *args, **options) -> Response:
        answer = super().file_response(*args, **options)
        answer.headers["cache-control"] = self.kept
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


def page_html(language: str, forced: str) -> str:
    """The page in a language; with one that is forced, its modules ask no browser."""
    told = "" if forced == AUTO else f' data-ssd-language="{forced}"'
    html = (WEB / "page.html").read_text(encoding="utf-8")
    html = html.replace('<html lang="en"', f'<html lang="{language}"{told}', 1)
    return html.replace("/studio/web/", f"/studio/web/v/{version()}/")


def page_routes(services: Services) -> list[BaseRoute]:
    def page(request: Request) -> Response:
        html = page_html(language_of(request, services.language), services.language)
        return Response(html, media_type="text/html",
                        headers={"cache-control": ASKED, "vary": "accept-language"})

    return [Route("/", page),
            Mount("/studio/examples", Files(THUMBNAILS, ASKED)),
            Mount("/studio/web/v/{version}/core", Versioned(PREVIEW)),
            Mount("/studio/web/v/{version}", Versioned(WEB)),
            Mount("/studio/web/core", Files(PREVIEW, ASKED)),
            Mount("/studio/web", Files(WEB, ASKED))]
