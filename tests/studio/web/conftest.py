"""Pages with the studio's elements, and a feed that says what a test makes it say."""

import io
import json
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image
from support.page_moments import COUNTING
from support.preview_run import Run, preview_page, watched

ROOT = Path(__file__).resolve().parents[3]
WEB = {"/studio/web/core/": ROOT / "web" / "preview", "/studio/web/": ROOT / "studio" / "web"}
SHELL = """<!doctype html><html lang="en" %s><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/studio/web/studio.css">
<script type="module" src="/studio/web/studio.js"></script><body>%s</body></html>"""


@pytest.fixture(autouse=True)
def patience():
    """What is expected of a page may come late on a busy machine."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    playwright.expect.set_options(timeout=30_000)


class Studio:
    """A server of one page. `jobs` maps ids to [state, messages, more fields of the entry]."""

    def __init__(self):
        self.jobs, self.queries = {}, []
        self.pictures, self.body, self.root_attributes = {}, "", ""

    def say(self, job, state, *messages, **fields):
        """A job's state from now on, and what it says in addition."""
        told = self.jobs.get(job, ("", [], {}))[1]
        self.jobs[job] = (state, [*told, *messages], fields)

    def feed(self, query):
        asked = parse_qs(query)
        self.queries.append(asked)
        return {job: self.entry(*self.jobs[job], int(after)) for job, after in
                zip(asked["job"], asked["after"], strict=True) if job in self.jobs}

    @staticmethod
    def entry(state, messages, fields, after):
        return {"state": state, "position": 0, "messages": messages[after:], "error": None,
                "next": len(messages), "progress": 0.0, "seconds_left": None, **fields}

    def page(self):
        return (SHELL % (self.root_attributes, self.body)).encode()


class Handler(preview_page.Files):
    """Serves what the test of the moment has."""

    @property
    def studio(self):
        return self.server.studio

    def translate_path(self, path):
        path = urlsplit(path).path
        start = next((start for start in WEB if path.startswith(start)), None)
        if start is None:
            return "/nowhere"
        return str(WEB[start] / path.removeprefix(start))

    def do_GET(self):
        address = urlsplit(self.path)
        if address.path == "/":
            self.answer("text/html", self.studio.page())
        elif address.path in self.studio.pictures:
            self.answer("image/png", self.studio.pictures[address.path])
        elif address.path == "/studio/feed":
            self.answer("application/json", json.dumps(self.studio.feed(address.query)).encode())
        else:
            super().do_GET()

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="session")
def server():
    """One for all tests, so that a page finds in the browser's cache what another has loaded."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=partial(server.serve_forever, 0.02), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def studio(server):
    server.studio = Studio()
    return server.studio


@pytest.fixture
def address(server):
    return f"http://127.0.0.1:{server.server_port}/"


@pytest.fixture
def open_page(chromium, address, studio):
    """Opens a page with this body; arguments go to the browser's context."""
    with watched(chromium) as new_page:
        def open_one(body, **options):
            studio.body = body
            page = new_page(viewport={"width": 900, "height": 800}, **options)
            page.set_default_timeout(30_000)  # a busy machine takes its time
            page.add_init_script(COUNTING)
            page.goto(address)
            return page
        yield open_one


@pytest.fixture
def run():
    return Run()


@pytest.fixture
def new_run():
    return Run


@pytest.fixture
def png():
    """PNG bytes of a plain colour: png(colour, width, height)."""
    def plain(colour, width=32, height=32):
        file = io.BytesIO()
        Image.new("RGB", (width, height), colour).save(file, "PNG")
        return file.getvalue()
    return plain
