"""The preview's page in a headless Chromium, served from this repository over loopback.

Knows the browser, nothing about runs. Needs the package `playwright` and a Chromium or Chrome;
the variable CHROMIUM names one that is not on the path.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = "tools/preview_page.html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Files(SimpleHTTPRequestHandler):
    """Serves the repository's files; logs nothing, and knows the type of .js on every system."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """The address of the page while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(ROOT)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{PAGE}"
    finally:
        server.shutdown()
        server.server_close()


def find_browser() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser; raises RuntimeError with what is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise RuntimeError("the package playwright is missing: pip install playwright") from error
    if (path := find_browser()) is None:
        raise RuntimeError("no Chromium found: install it, or name it in CHROMIUM")
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


def opened(context: Any, address: str) -> Any:
    """A new page of a browser (or of one of its contexts) at which `mount` is ready."""
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("() => window.mount")
    return page
