"""The app served for tests, in this process, and ways of a visitor around its page."""

from __future__ import annotations

import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from ssd_core import Sampling, generate, load_backbone, load_heads
from ssd_core.backbones.base import Backbone
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import Method
from ssd_core.output import preview
from ssd_core.output.recipe import read_recipe, recipe_tokens
from ssd_core.runs.live import LiveRun
from ssd_core.weights import find
from ssd_core.weights.downloads import Downloads
from studio import running
from studio.history import History
from studio.jobs import Job, Worker
from studio.learning import Learning
from studio.library import Library, trim
from studio.seeds import ParkedSeeds
from studio.services import Services

from .preview_run import watched
from .small_bundle import SIDE

PATIENCE = 180_000  # ms, on a busy machine
HELD = 3  # rows
# The browser's own line about a request that was refused, as the page tells in words.
REFUSED = tuple("Failed to load resource: the server responded with a status of " + status
                for status in ("400 (Bad Request)", "404 (Not Found)"))
LOST = ("Failed to load resource: net::ERR_FAILED",)
# It names everything, so nothing is filled in: what the app draws is what is drawn without it.
PROMPT = "one red house on the left, on a lake, hills behind, in the rain, at sunset"


@dataclass
class Hold:
    """Where runs wait, and the row at which one did so last."""

    row: int
    reached: int = -1

    def to(self, row: int) -> None:
        """Move it, and wait until a run is there."""
        self.row = row
        end = time.monotonic() + PATIENCE / 1000
        while self.reached != row:
            assert time.monotonic() < end, f"no run comes to row {row}"
            time.sleep(0.02)


@dataclass
class App:
    """A running app: its address, and what it works with."""

    address: str
    services: Services

    @property
    def pictures(self) -> list[Path]:
        """Saved pictures, the latest last."""
        return sorted(self.services.history.folder.rglob("*.png"),
                      key=lambda path: path.stat().st_mtime_ns)

    def idle(self) -> bool:
        """Whether nothing runs, nothing waits and nothing is parked."""
        worker, parked_seeds = self.services.worker, self.services.parked_seeds
        return not (worker.running or worker._waiting or parked_seeds._parked)

    def drop_all(self) -> None:
        """Free the seeds that wait for their visitors, and wait for what runs."""
        self.services.parked_seeds.drop_all()
        self.wait_idle(60)

    @contextmanager
    def holding(self, row: int = HELD):
        """Within the block runs tell every pass, and wait at this row, or where `to` moves it,
        unless stopped."""
        estimate, hold = running.estimate, Hold(row)

        def wait(job: Job, runs: Sequence[LiveRun]) -> None:
            estimate(job, runs)
            while any(run.result.rows >= hold.row for run in runs):
                hold.reached = hold.row
                job.check()
                time.sleep(0.02)

        with patch.object(running, "estimate", wait), patch.object(preview, "BUDGET", 1e6):
            try:
                yield hold
            finally:
                hold.row = sys.maxsize

    def wait_idle(self, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not self.idle():
            assert time.monotonic() < end, "a run goes on that nobody wants"
            time.sleep(0.02)


@contextmanager
def served(folder: Path, language: str = "auto", models: Path | None = None,
           backbone: str = "postcard", users: Mapping[str, str] | None = None, root: str = "",
           names: Sequence[str] = (), proxies: Sequence[str] = ()):
    """The app on a free port of loopback, with the bundled backbone unless told otherwise.

    With users it is shared, as by --host and --auth. root, names, proxies: as by --root-path,
    --allow-host, --proxy.
    """
    from studio.server import serve

    models = models or folder / "models"
    library, history = Library(models, backbone, device="cpu"), History(folder / "outputs")
    services = Services(Worker(idle=trim), library, history, ParkedSeeds(library, history),
                        Downloads(models), language, local=not (users or names))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    demo = serve(services, "127.0.0.1", port, share=False, block=False, users=users, root=root,
                 names=names, proxies=proxies)
    try:
        yield App(f"http://127.0.0.1:{port}/", services)
    finally:
        demo.close()
        services.close()


def begin_history(app: App, folder: Path) -> None:
    """Give the app an empty history, as at a first visit."""
    history = History(folder)
    worker, library = app.services.worker, app.services.library
    vars(app.services).update(history=history, parked_seeds=ParkedSeeds(library, history),
                              learning=Learning(worker, library, history))


@contextmanager
def visits(chromium, app: App):
    """Opens pages, each in a context of its own; ends with no complaint and nothing running."""
    with watched(chromium, REFUSED + LOST) as new_page:
        def open_one(address: str = app.address, **options):
            return Visitor(new_page(**options), address)
        yield open_one
    app.drop_all()


@cache
def bundle(assets: Path) -> tuple[Backbone, DraftHeads]:
    """The bundle that lies there now."""
    backbone = load_backbone("postcard", device="cpu")
    return backbone, load_heads("postcard", backbone)


def solo(method: Method, seed: int, **sampling: Any) -> torch.Tensor:
    """The tokens that a run of this prompt, method and seed draws without the app."""
    backbone, heads = bundle(find.ASSETS)
    *_, finished = generate(backbone, PROMPT, method, heads, Sampling(seed=seed, **sampling))
    return finished.tokens[0]


def tokens_of(path: Path) -> torch.Tensor:
    return recipe_tokens(read_recipe(path))


def answer(app: App, path: str, **headers: str) -> tuple[int, bytes]:
    """Status and body of what the app answers to a request without a browser."""
    request = urllib.request.Request(app.address + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as told:
            return told.status, told.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


class Visitor:
    """A page of the app and what one does there; `asked`: the addresses that it requested."""

    def __init__(self, page, address: str) -> None:
        self.page, self.asked = page, []
        page.on("request", lambda request: self.asked.append(request.url))
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        self.ready()

    def ready(self) -> None:
        self.page.wait_for_selector("body[data-ready]")
        self.page.evaluate("() => document.querySelector('#settings')?.setAttribute('open', '')")

    def go(self, place: str) -> None:
        """Go to a place by its link in the head, or by the gear."""
        menu = ".places"
        if not self.page.locator(f".places a[href='#{place}']").count():
            self.page.click("#gear")
            menu = "#gear-menu"
        self.page.click(f"{menu} a[href='#{place}']")
        self.page.wait_for_selector(f"#{place}:not([hidden]) > *")

    def type_half_a_character(self) -> None:
        """Words that no run takes: the app refuses them."""
        self.page.evaluate("""() => {
            const box = document.querySelector("#prompt");
            box.value = "half a character \\ud83d";
            box.dispatchEvent(new Event("input"));
        }""")

    def unfold(self, *folds: str) -> None:
        for fold in folds:
            if not self.page.evaluate("name => document.querySelector(name).open", fold):
                self.page.click(f"{fold} > summary")

    def plan(self) -> str:
        """The line about the run, once it belongs to the settings on the page."""
        with self.page.expect_response("**/api/plan"):
            pass
        return self.page.inner_text("#plan")

    def draw(self) -> str:
        """Press Draw and wait for the picture; the id of the job."""
        return self.drawn(lambda: self.page.click("#draw"))

    def drawn(self, press: Callable[[], object]) -> str:
        """Start a run by `press` and wait until the stage has its end; the id of the job."""
        with self.page.expect_response(asks_for_a_run) as answer:
            press()
        job = answer.value.json()["id"]
        self.page.wait_for_selector(f"#create-stage [data-job='{job}'][data-state=done]")
        return job

    def figures(self) -> str:
        """What stands below the picture on the stage."""
        return self.page.inner_text("#status")

    def is_painted(self, seconds: float = 30) -> bool:
        """Whether all rows are painted, or the saved picture is shown in their place."""
        shown = "() => document.querySelector('#create-stage .edit-picture')?.naturalWidth > 0"
        for _ in range(int(seconds * 20)):
            if self.page.evaluate(shown) or all(self.painted_rows()):
                return True
            self.page.wait_for_timeout(50)
        return False

    def painted_rows(self) -> list[bool]:
        """Which of SIDE rows of the canvas on the stage have a pixel that is not transparent."""
        return self.page.evaluate("""rows => {
          const canvas = document.querySelector("#create-stage canvas.ssd-pixels");
          if (!canvas) return new Array(rows).fill(false);
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          return Array.from({ length: rows }, (_, row) => {
            const middle = Math.floor((row + 0.5) * height / rows) * width + (width >> 1);
            return data[4 * middle + 3] > 0;
          });
        }""", SIDE)


def asks_for_a_run(response) -> bool:
    path = response.url.partition("/api/")[2]
    return response.request.method == "POST" and (
        path in ("draw", "redo", "race") or path.endswith("/repeat"))
