"""Long visits to the stage of the app as it is shipped: the bundled model, nothing switched off."""

import re
from contextlib import contextmanager
from threading import Event
from unittest.mock import patch

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")

from support.live_canvas import canvas_of, decoded, faults, known  # noqa: E402
from support.page_moments import laid_out  # noqa: E402
from support.studio_visit import served, tokens_of, visits  # noqa: E402

from ssd_core import load_backbone  # noqa: E402
from ssd_core.output import preview  # noqa: E402
from studio import running  # noqa: E402

expect = playwright.expect
PROMPT = "a red house on the left, a lake, at sunset"
CANVAS, PICTURE = "#create-stage canvas.ssd-pixels", "#create-stage .edit-picture"
PLACE = """(name) => {
  const { x, y, width, height } = document.querySelector(name).getBoundingClientRect();
  return [x, y + scrollY, width, height];
}"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    expect.set_options(timeout=90_000)
    with served(tmp_path_factory.mktemp("shipped")) as running_app:
        yield running_app


@pytest.fixture
def visit(chromium, app):
    with visits(chromium, app) as open_one:
        yield open_one


class Gate:
    """Holds runs once so many rows are final, until it is opened further."""

    def __init__(self):
        self.rows, self.opened = 0, Event()

    def to(self, rows):
        self.rows = rows
        self.opened.set()

    def wait(self, job, run):
        while run.result.rows >= self.rows:
            job.check()
            self.opened.wait(0.02)
            self.opened.clear()


@contextmanager
def gate(rows):
    """Runs wait at so many rows, unless they are stopped; yields what lets them go on."""
    estimate, held = running.estimate, Gate()
    held.to(rows)

    def wait(job, runs):
        estimate(job, runs)
        for run in runs:
            held.wait(job, run)

    with patch.object(running, "estimate", wait):
        try:
            yield held
        finally:
            held.to(10_000)


def held_at(app, page, gate, rows):
    """(canvas, cells told) of the run once it waits at so many rows."""
    gate.to(rows)
    job = app.services.worker.running
    while job.state == "running" and not known(job.messages)[rows - 1].all():
        page.wait_for_timeout(50)
    return canvas_of(page, CANVAS), known(job.messages)


def test_a_picture_that_is_being_drawn_has_neither_stripes_nor_gaps(visit, app):
    """That `faults` sees them is tested with the preview's own page (tests/hosts/web)."""
    page = visit().page
    page.fill("#prompt", PROMPT)
    page.fill("#seed", "7")
    with gate(5) as held:
        page.click("#draw")
        expect(page.locator(CANVAS)).to_be_visible()
        seen = [held_at(app, page, held, rows) for rows in (5, 18)]
    page.wait_for_selector("#create-stage [data-state=done]")
    picture = decoded(load_backbone("postcard", device="cpu"), tokens_of(app.pictures[-1]))
    assert [faults(canvas, told, picture) for canvas, told in seen] == [[], []]


@pytest.mark.parametrize("width", [1366, 390])
def test_a_picture_of_any_size_stays_in_its_place_when_its_run_ends(visit, app, width, monkeypatch):
    monkeypatch.setattr(preview, "BUDGET", 1e6)  # tell every pass
    page = visit(viewport={"width": width, "height": 844}).page
    for size in ("768x768", "384x384", "1024x576"):
        page.fill("#prompt", PROMPT)
        page.select_option("#size", size)
        with gate(6):
            page.click("#draw")
            said = page.locator("#create-stage .ssd-summary")
            expect(said).to_contain_text(re.compile("row ([6-9]|1[0-9])"))  # one pass, two rows
            laid_out(page)
            drawn = page.evaluate(PLACE, CANVAS)
        expect(page.locator(PICTURE)).to_be_visible()
        laid_out(page)
        assert page.evaluate(PLACE, PICTURE) == pytest.approx(drawn, abs=1.5), size
