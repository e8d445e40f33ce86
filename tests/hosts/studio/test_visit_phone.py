"""A phone in a real browser: Stop in reach, nothing moves under the finger, no sideways scroll."""

import re

import pytest
from support.page_moments import laid_out

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import PROMPT  # noqa: E402

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
NARROW = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
PLACES = ("create", "race", "seeds", "history", "models", "doctor")


def box(page, name):
    """[left, top, right, bottom] on the screen."""
    return page.evaluate("""(name) => {
      const { left, top, right, bottom } = document.querySelector(name).getBoundingClientRect();
      return [left, top, right, bottom].map(Math.round);
    }""", name)


def in_reach(page, name):
    _, top, _, bottom = box(page, name)
    return 0 <= top < bottom <= page.viewport_size["height"]


def test_a_visit_by_phone(visit, app):
    visitor = visit(**PHONE)
    page = visitor.page
    page.fill("#prompt", PROMPT)
    visitor.plan()
    assert in_reach(page, "#draw") and in_reach(page, "#stop")
    places = [box(page, name) for name in ("#draw", "#stop")]
    with app.holding():
        page.tap("#draw")
        expect(page.locator("#create-stage .ssd-summary")).to_contain_text("row")
        page.tap("#draw")
        expect(page.locator("#queue-open")).to_have_text("1")
        laid_out(page)
        stage = box(page, "#create-stage canvas")
        assert [box(page, name) for name in ("#draw", "#stop")] == places
        assert in_reach(page, "#create-stage canvas") and in_reach(page, "#stop")
        expect(page.locator(".toast")).to_be_visible()
        page.locator(".toast button").last.tap()
        laid_out(page)
        assert box(page, "#create-stage canvas") == stage, "a message moves nothing"
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        assert in_reach(page, "#stop"), "wherever one has scrolled to"
        page.evaluate("scrollTo(0, 0)")
        page.tap("#queue-open")
        page.tap("#queue-stop")
    expect(page.locator("#stop")).to_be_disabled()

    visitor.draw()
    page.locator("label", has_text="Brush").tap()
    page.locator(".mask-field").tap()
    laid_out(page)
    canvas = box(page, ".mask-field")
    with app.holding():
        page.tap("#edit-apply")
        expect(page.locator("#stop")).to_be_enabled()
        laid_out(page)
        assert box(page, ".mask-field") == canvas, "Stop pushes nothing"
        assert in_reach(page, "#stop")
        page.tap("#stop")
        expect(page.locator("#stop")).to_be_disabled()


def test_a_run_of_four_that_was_stopped_says_so_once(visit, app):
    page = visit(**PHONE).page
    page.fill("#prompt", PROMPT)
    page.fill("#pictures", "4")
    page.press("#pictures", "Tab")
    with app.holding():
        page.tap("#draw")
        expect(page.locator("#create-stage .ssd-summary")).to_contain_text(re.compile("row [3-9]"))
        page.tap("#stop")
        expect(page.locator("#keep-top")).to_be_visible()
    laid_out(page)
    said = page.locator("#create-stage").get_by_text("topped at row").filter(visible=True)
    expect(said).to_have_count(2)  # the line, and one for those who hear it
    last = page.locator("#create-stage .ssd-picture").last.bounding_box()
    assert last["y"] + last["height"] <= box(page, ".kept")[1] + 1


def test_a_visit_to_all_places_320_pixels_wide(visit):
    page = visit(**NARROW).page
    for place in PLACES:
        page.evaluate("(place) => { location.hash = place; }", place)
        page.wait_for_selector(f"#{place}:not([hidden]) > *")
        laid_out(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 320, place
    page.click("#gear")
    laid_out(page)
    menu = box(page, "#gear-menu")
    assert menu[0] >= 0 and menu[2] <= 320
