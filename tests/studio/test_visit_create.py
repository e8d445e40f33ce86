"""Create in a real browser, on few visits: two clicks, the queue, the words, the keyboard."""

import pytest
from support.page_moments import laid_out

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import PROMPT  # noqa: E402

pytestmark = pytest.mark.slow
TOPS = """() => [...document.querySelectorAll("#create :is(#draw, #quality, #plan, #size, #seed)")]
  .map((element) => element.getBoundingClientRect().top)"""


def jobs_of(app):
    return list(app.services.worker._jobs.values())


def seeds_of(jobs):
    return [job.order.settings.knobs["seed"] for job in jobs]


def in_focus(page, name):
    return page.evaluate("(name) => document.activeElement?.dataset[name]", name)


def test_a_visit_of_two_clicks_and_the_queue(visit, app):
    visitor = visit()
    page, before = visitor.page, len(jobs_of(app))
    page.fill("#prompt", PROMPT)
    visitor.plan()
    tops = page.evaluate(TOPS)
    with app.holding():
        page.dblclick("#draw")
        for _ in range(8):
            page.click("#draw")
        expect(page.locator("#queue-open")).to_have_text("9 waiting")
        made = jobs_of(app)[before:]
        assert len(set(seeds_of(made))) == len(made) == 10, "no picture is drawn twice"
        assert page.evaluate(TOPS) == tops, "the queue moves nothing"

        page.click("#queue-open")
        rows = page.locator("#queue .queued")
        ids = [job.id for job in made[1:]]
        rows.nth(1).locator("[data-act=up]").click()
        expect(rows.first).to_have_attribute("data-id", ids[1])
        expect(rows.first.locator("[data-act=down]")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(rows).to_have_count(8)
        expect(rows.first).to_have_attribute("data-id", ids[0])
        expect(rows.first.locator("[data-act=out]")).to_be_focused()

        page.get_by_role("button", name="Undo").click()
        page.click("#queue-open")
        expect(rows).to_have_count(9)
        expect(rows.first).to_contain_text(str(made[2].order.settings.knobs["seed"]))
        page.click("#queue-clear")
        expect(page.locator("#queue-open")).to_be_hidden()
        expect(page.locator("#draw")).to_be_focused()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#queue-open")).to_have_text("9 waiting")
        page.click("#queue-open")
        page.click("#queue-stop")
        expect(page.locator("#stop")).to_be_disabled()
    laid_out(page)
    assert page.evaluate(TOPS) == tops, "nothing appears under Draw"

    page.check("#keep-seed")
    before = len(jobs_of(app))
    with app.holding():
        page.dblclick("#draw")
        page.click("#draw")
        expect(page.locator("#stop")).to_be_enabled()
        assert len(jobs_of(app)) == before + 1, "one seed is one job"
        page.click("#stop")
        expect(page.locator("#stop")).to_be_disabled()
    with page.expect_response("**/api/draw"):
        page.click("#draw")
    page.uncheck("#keep-seed")
