"""The sketch on the stage while one types, on one visit."""

import time

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import PROMPT  # noqa: E402

from studio import sketches  # noqa: E402
from studio.sketches import SketchCost  # noqa: E402

SLOW = "A sketch would take about 8 s on this machine."
OTHER = PROMPT.replace("red", "blue")


@pytest.fixture
def promised(monkeypatch):
    """What this machine promises, whatever it measures."""
    answers = [SketchCost(0.5, None)]
    monkeypatch.setattr(sketches, "cost_of", lambda request, language: answers[-1])
    return answers


def shown(page):
    """Wait until a whole sketch is in sight."""
    expect(page.locator("#sketch[data-sketch=done]")).to_be_visible()
    expect(page.locator("#sketch .ssd-picture")).to_be_visible()


def asks(page, text):
    """Type a prompt; what the page asks of the server for its sketch."""
    with page.expect_request("**/api/sketch") as asked:
        page.fill("#prompt", text)
    return asked.value.post_data_json["settings"]


def test_a_visit_with_sketches(visit, app, promised, violations):
    visitor = visit()
    page = visitor.page
    page.wait_for_selector("#sketch-on", state="attached")
    what_is_typed_is_sketched_and_a_click_draws_that_very_picture(visitor, app, violations)
    typing_ends_the_sketch_before(page, app)
    it_is_closed_until_the_next_change(page)
    the_switch_is_kept(page)
    a_slow_machine_says_why_there_is_none(page, promised)


def what_is_typed_is_sketched_and_a_click_draws_that_very_picture(visitor, app, violations):
    page, before = visitor.page, len(app.pictures)
    expect(page.locator("#sketch")).to_be_hidden()
    sketched = asks(page, PROMPT)
    shown(page)
    assert violations(page) == [] and len(app.pictures) == before
    with page.expect_request("**/api/draw") as drawn:
        visitor.drawn(lambda: page.click("#sketch .sketch-draw"))
    assert drawn.value.post_data_json["settings"] == sketched
    expect(page.locator("#sketch")).to_be_hidden()  # of the next seed nobody asked for one
    assert len(app.pictures) == before + 1


def typing_ends_the_sketch_before(page, app):
    with app.holding() as hold:
        asks(page, OTHER)
        hold.to(1)
        before = app.services.worker.running
        page.locator("#prompt").press_sequentially(", ")
        assert before.title == sketches.SKETCH and before.wait(60) and before.state == "cancelled"
    shown(page)


def it_is_closed_until_the_next_change(page):
    page.locator("#sketch .cross").click()
    expect(page.locator("#sketch")).to_be_hidden()
    page.click("#more > summary")
    page.click("#seed + button")
    shown(page)


def the_switch_is_kept(page):
    page.uncheck("#sketch-on")
    expect(page.locator("#sketch")).to_be_hidden()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response("**/api/plan"):
        page.fill("#prompt", PROMPT)
    time.sleep(0.7)
    assert not any(url.endswith("/api/sketch") for url in asked)
    assert page.evaluate("() => localStorage.getItem('ssd-studio-sketch')") == "false"
    with page.expect_request("**/api/sketch"):
        page.check("#sketch-on")
    shown(page)


def a_slow_machine_says_why_there_is_none(page, promised):
    promised.append(SketchCost(8.0, SLOW))
    page.fill("#prompt", OTHER)
    expect(page.locator("#sketch-why")).to_have_text(SLOW)
    expect(page.locator("#sketch-on")).to_be_disabled()
    expect(page.locator("#sketch-on")).not_to_be_checked()
