"""The studio's own page in tests: its places, and a history that is filled without drawing."""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

from .preview_run import watched
from .studio_visit import REFUSED, App

VISITOR = {"x-ssd-visitor": "c" * 64, "content-type": "application/json"}
PATIENCE = 90_000  # ms, on a busy machine

OPEN_SETTINGS = """try { localStorage.setItem("ssd-studio-settings-open", "true"); }
catch { /* a page without an origin */ }"""


@contextmanager
def places(chromium, app: App):
    """Opens places of the page by their names; options go to the browser's context."""
    with watched(chromium, REFUSED) as new_page:
        def open_one(place: str, **options):
            page = new_page(**options)
            page.set_default_timeout(PATIENCE)
            page.add_init_script(OPEN_SETTINGS)
            page.goto(f"{app.address}#{place}")
            page.wait_for_selector("body[data-ready]")
            return page

        yield open_one
    app.drop_all()


def ask(app: App, path: str, values: dict | None = None) -> dict:
    """The app's answer to a GET, or to a POST with values."""
    body = None if values is None else json.dumps(values).encode()
    request = urllib.request.Request(app.address + path, body, VISITOR)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def drawn(app: App, **settings: object) -> Path:
    """Draw a picture by the app; its file."""
    job = ask(app, "api/draw", {"settings": settings})["id"]
    while (now := ask(app, f"api/jobs/{job}"))["state"] in ("waiting", "running"):
        time.sleep(0.02)
    assert now["state"] == "done", now["error"]
    return app.services.history.folder / now["saved"][0]["id"]


def fill_history(app: App, pictures: Sequence[Path]) -> list[str]:
    """Let the history hold copies of these pictures and no others, the first one newest; ids."""
    day = app.services.history.folder / "2026-01-02"
    shutil.rmtree(app.services.history.folder)
    day.mkdir(parents=True)
    names = [f"{120000 + len(pictures) - n}.png" for n in range(len(pictures))]
    for name, picture in zip(names, pictures, strict=True):
        shutil.copy(picture, day / name)
    return [f"{day.name}/{name}" for name in names]
