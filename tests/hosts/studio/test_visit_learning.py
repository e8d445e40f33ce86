"""Drafts that learn from the pictures of the history, in a real browser on one visit."""

from __future__ import annotations

import threading
from functools import partial

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support import studio_page  # noqa: E402
from support.mock_backbone import tiny_postcard  # noqa: E402
from support.studio_page import places  # noqa: E402
from support.studio_visit import served  # noqa: E402
from test_own_pictures import drawn  # noqa: E402

from ssd_core import Grid, SSDError  # noqa: E402
from ssd_core.backbones.postcard import save  # noqa: E402
from ssd_core.train import heads  # noqa: E402
from studio import learning  # noqa: E402

FAST = {"prompt": "a red house", "method": "rolling", "window": 8, "fewer": 4.0}


@pytest.fixture
def app(tmp_path, monkeypatch):
    """An app with a tiny model without drafts, whose lessons are short."""
    expect.set_options(timeout=90_000)
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 4))
    monkeypatch.setattr(learning, "HeadsRecipe", partial(heads.HeadsRecipe, batch=1, epochs=1))
    place = tmp_path / "models" / "ssd_backbones" / "seaside"
    place.mkdir(parents=True)
    save(tiny_postcard(3, Grid(6, 6)), place / "backbone.safetensors")
    with served(tmp_path, models=tmp_path / "models", backbone="seaside") as running:
        yield running


@pytest.fixture
def held(monkeypatch):
    """Lessons wait before every step until they are let on."""
    gate, going = threading.Semaphore(0), learning.Progress.__call__

    def wait(progress, done):
        gate.acquire()
        return going(progress, done)

    monkeypatch.setattr(learning.Progress, "__call__", wait)
    yield gate
    gate.release(1000)


def test_a_visit_while_drafts_learn(chromium, app, held, monkeypatch, violations):
    days = app.services.history.folder / "2026-01-31"
    drawn(app.services.library.current.backbone, days, 3)
    with places(chromium, app) as open_one:
        page = open_one("models")
        expect(page.locator("#learning-text")).to_contain_text("Here so far: 3. Draw 5 more.")
        expect(page.locator("#learn")).to_be_disabled()
        first = [studio_page.drawn(app, seed=str(seed), **FAST) for seed in (1, 2)]
        drawn(app.services.library.current.backbone, days, 12)
        (days / "photo.png").write_bytes(first[0].read_bytes()[:300])
        seen_again(page)
        what_there_is_is_told(page)
        a_lesson_is_stopped_and_goes_on(page, held)
        a_lesson_that_fails_says_why_in_a_line(page, monkeypatch)
        studio_page.drawn(app, seed="3", **FAST)
        passes_are_shown_with_a_mark_where_drafts_changed(page, violations)
        a_lesson_begins_by_itself_and_gives_way(page, app, held, days)
        a_picture_is_drawn_again_without_the_drafts_it_did_not_have(page, app, first[0])


def seen_again(page):
    """Go to another place and come back, so that all is asked for anew."""
    page.evaluate("location.hash = 'doctor'")
    page.wait_for_selector("#doctor:not([hidden])")
    with page.expect_response("**/api/learn"):
        page.evaluate("location.hash = 'models'")


def what_there_is_is_told(page):
    expect(page.locator("#learning-title")).to_have_text("Drafts of seaside")
    expect(page.locator("#learning-text")).to_contain_text("14 pictures of seaside: drafts could")
    expect(page.locator("#learning-text")).to_contain_text("on this machine")
    page.click(".learning > details > summary")
    expect(page.locator(".learning > details li")).to_have_text(["1: without settings in them"])
    expect(page.locator("[data-model='seaside']")).to_contain_text("none")


def a_lesson_is_stopped_and_goes_on(page, held):
    line, bar = page.locator("#learning-line"), page.locator(".learning progress")
    page.click("#learn")
    stop = page.locator("#learn-cancel")
    expect(stop).to_be_focused()
    held.release(2)
    page.wait_for_function("() => document.querySelector('.learning progress').value > 0")
    expect(line).to_contain_text("The drafts are learning")
    with page.expect_response("**/api/jobs/*/stop"):  # else the next step waits at the gate
        stop.click()
    held.release(1)
    expect(line).to_contain_text("Stopped. Learning goes on from here")
    expect(bar).to_be_hidden()
    expect(page.locator("#learn")).to_have_text("Go on learning")
    page.click("#learn")
    held.release(1000)
    expect(line).to_contain_text("Draft heads: pictures by ssd cost the model")
    expect(line).to_contain_text("The new drafts are in use.")
    expect(page.locator("#learn")).to_have_text("Learn")
    expect(page.locator("#learn")).to_be_focused()
    expect(page.locator("#learning-text")).to_contain_text("none of them new")
    expect(page.locator("[data-model='seaside']")).to_contain_text("yes")


def a_lesson_that_fails_says_why_in_a_line(page, monkeypatch):
    def fails(*_):
        raise SSDError("out of memory: close other programs")

    with monkeypatch.context() as patch:
        patch.setattr(learning, "prepare", fails)
        page.click("#learn")
        expect(page.locator("#learning-line.bad")).to_have_text(
            "out of memory: close other programs")
    expect(page.locator("#learn")).to_be_enabled()


def passes_are_shown_with_a_mark_where_drafts_changed(page, violations):
    seen_again(page)
    chart = page.locator(".passes-chart > svg")
    expect(chart).to_have_attribute("aria-label", "Passes of the last 3 pictures; their means are "
                                                  "in the table below")
    expect(chart.locator("circle")).to_have_count(3)
    expect(chart.locator(".change")).to_have_count(1)
    expect(page.locator(".passes-chart figcaption")).to_contain_text("new drafts")
    page.click("#passes-table > summary")
    rows = page.locator("#passes-table tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("none")
    assert violations(page) == []


def a_lesson_begins_by_itself_and_gives_way(page, app, held, days):
    while held.acquire(blocking=False):
        pass
    own, line = app.services.learning, page.locator("#learning-line")
    drawn(app.services.library.current.backbone, days, 20, 20)
    own.when_rested()
    assert own.latest is None, "it is off at first"
    with page.expect_response("**/api/learn/idle"):
        page.check("#learn-idle")
    own.when_rested()
    seen_again(page)
    expect(line).to_contain_text("The drafts are learning by themselves")
    expect(page.locator("#learn-cancel")).to_be_hidden()
    held.release(1)
    app.services.worker.submit("draw", lambda job: None, "somebody")
    held.release(1)
    expect(line).to_contain_text("Paused. Learning goes on when nothing is drawn")
    held.release(1000)
    own.when_rested()
    seen_again(page)
    expect(line).to_contain_text("of your prompts")
    page.reload()
    expect(page.locator("#learn-idle")).to_be_checked()
    page.uncheck("#learn-idle")


def a_picture_is_drawn_again_without_the_drafts_it_did_not_have(page, app, picture):
    page.evaluate("location.hash = 'history'")
    id_ = app.services.history.id_of(picture)
    page.locator(f"#pictures [data-id='{id_}'] button").first.click()
    page.click("[data-action=restore]")
    expect(page.locator(".toast")).to_contain_text("It was drawn without drafts")
    for asked in ("none", ""):  # the second one is another picture
        with page.expect_request("**/api/draw") as request:
            page.click("#draw")
        assert request.value.post_data_json["settings"]["draft_hash"] == asked
        app.wait_idle(60)
