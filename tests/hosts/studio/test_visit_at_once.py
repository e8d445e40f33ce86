"""A visit to a server that does not answer: the page shows every gesture before it does."""

import pytest
import torch

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.small_bundle import SIDE  # noqa: E402
from support.studio_visit import PROMPT  # noqa: E402

from ssd_core.output.packed import pack_mask  # noqa: E402

# Questions to the server wait until they are let go.
HOLD = """() => {
  const { fetch } = window;
  const held = [];
  window.fetch = (...what) => new Promise((go) => held.push(go)).then(() => fetch(...what));
  window.letGo = () => {
    window.fetch = fetch;
    for (const go of held) go();
  };
}"""
MOVED = "() => document.querySelector('.touch-cutout').style.translate"


class Silence:
    """Within the block the server answers nothing."""

    def __init__(self, page):
        self.page = page

    def __enter__(self):
        self.page.evaluate(HOLD)

    def __exit__(self, *error):
        self.page.evaluate("window.letGo()")


def things():
    """A house in the lower left quarter, which can be blue or on the right."""
    house = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    house[SIDE // 2:, :SIDE // 2] = True
    blue, right = PROMPT.replace("red", "blue"), PROMPT.replace("left", "right")
    return {"rows": SIDE, "columns": SIDE, "prompt": PROMPT, "scene": [], "things": [{
        "phrase": "one red house", "name": "red house", "mask": pack_mask(house),
        "box": [SIDE // 2, 0, SIDE // 2, SIDE // 2], "choices": [
            {"kind": "colour", "title": "Colour", "options": [{"label": "blue", "prompt": blue}]},
            {"kind": "place", "title": "Place", "options": [
                {"label": "left", "prompt": PROMPT, "now": True, "at": 0.25},
                {"label": "right", "prompt": right, "at": 0.75}]}]}]}


def test_a_visit_to_a_server_that_does_not_answer(visit, app):
    visitor = visit()
    page = visitor.page
    page.route("**/api/things*", lambda route: route.fulfill(json=things()))
    draw_and_stop(visitor, app)
    touch_and_drag(page, app)
    undo_and_favourite(page, app)
    queue(page, app)
    delete(visitor)
    race(visitor)


def is_asked(page):
    expect(page.locator("#status")).to_have_text("Asked…")
    expect(page.locator("#stop")).to_be_enabled()


def stop(page):
    page.click("#stop")
    expect(page.locator("#stop")).to_be_disabled()
    expect(page.locator("#status")).not_to_have_text("Asked…")


def draw_and_stop(visitor, app):
    page, before = visitor.page, len(app.pictures)
    page.fill("#prompt", PROMPT)
    visitor.plan()
    with Silence(page):
        page.fill("#prompt", f"{PROMPT}, calm")
        assert page.locator("body[data-stale]").count(), "what was told is of other words"
        page.click("#draw")
        is_asked(page)
        expect(page.locator(".empty-picture")).to_be_visible()
        stop(page)
        expect(page.locator("#gallery")).to_be_visible()
    page.fill("#prompt", PROMPT)
    visitor.plan()
    assert len(app.pictures) == before, "what was stopped is not drawn"
    visitor.draw()


def touch_and_drag(page, app):
    field, house = page.locator(".mask-field"), page.locator(".touch-things button")
    field.hover()
    expect(house).to_have_count(1)
    with Silence(page):
        house.press("Enter")
        page.locator(".touch-chip", has_text="blue").click()
        is_asked(page)
        stop(page)
    app.wait_idle(60)
    expect(page.locator("#stop")).to_be_disabled()
    box = field.bounding_box()
    with Silence(page):
        page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 0.75 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.75 * box["height"], steps=3)
        page.mouse.up()
        is_asked(page)
        assert page.evaluate(MOVED), "it stays where it was dropped"
        stop(page)
        assert not page.evaluate(MOVED), "and goes back when that is not wanted any more"
    app.wait_idle(60)


def undo_and_favourite(page, app):
    page.fill("#prompt", PROMPT)
    page.keyboard.press("Tab")
    page.keyboard.press("b")
    page.locator(".mask-field").focus()
    page.keyboard.press(" ")
    page.click("#edit-apply")
    steps = page.locator("#steps button")
    expect(steps.nth(1)).to_be_attached()
    expect(page.locator(".mask-field[data-busy]")).to_have_count(0)
    expect(page.locator("#mask-undo")).to_be_enabled()
    with Silence(page):
        page.click("#mask-undo")
        expect(steps.first).to_have_attribute("aria-pressed", "true")
    favourite = page.locator("[data-tool=favourite]")
    expect(page.locator("#edit-apply")).to_be_enabled()
    page.route("**/api/history/favourite", lambda route: route.abort())
    with Silence(page):
        favourite.click()
        expect(favourite).to_have_attribute("aria-pressed", "true")
    expect(favourite).to_have_attribute("aria-pressed", "false")  # it was refused
    page.unroute("**/api/history/favourite")


def queue(page, app):
    page.click("#mask-clear")
    count = page.locator("#queue-open")
    with app.holding():
        page.click("#draw")
        expect(page.locator(".run .ssd-summary")).to_contain_text("row")
        page.click("#draw")
        expect(count).to_have_text("1 waiting")
        with Silence(page):
            page.click("#draw")
            expect(count).to_have_text("2 waiting")
        expect(page.locator("#queue .queued")).to_have_count(2)
        page.click("#queue-open")
        with Silence(page):
            page.locator("#queue [data-act=out]").first.click()
            expect(page.locator("#queue .queued")).to_have_count(1)
        page.click("#queue-stop")
        expect(page.locator("#stop")).to_be_disabled()
    app.wait_idle(60)


def delete(visitor):
    page = visitor.page
    visitor.go("history")
    tiles = page.locator(".picture-open:visible")
    expect(tiles.first).to_be_visible()
    before = tiles.count()
    with Silence(page):
        tiles.first.focus()
        page.keyboard.press("Delete")
        expect(tiles).to_have_count(before - 1)
    expect(page.get_by_role("button", name="Undo")).to_be_visible()


def race(visitor):
    page = visitor.page
    visitor.go("race")
    with Silence(page):
        page.click("#race-start")
        expect(page.locator("#race-status")).to_have_text("Asked…")
        expect(page.locator("#race-stop")).to_be_enabled()
        page.click("#race-stop")
        expect(page.locator("#race-stop")).to_be_disabled()
