"""Create in a real browser, on few visits: two clicks, the queue, the words, the keyboard."""

import pytest
from support.page_moments import laid_out

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import PROMPT  # noqa: E402

TOPS = """() => [...document.querySelectorAll("#create :is(#draw, #quality, #plan, #size, #seed)")]
  .map((element) => element.getBoundingClientRect().top)"""


def jobs_of(app):
    return list(app.services.worker._jobs.values())


def seeds_of(jobs):
    return [job.order.drawing.sampling.seed for job in jobs]


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
        expect(rows.first).to_contain_text(str(made[2].order.drawing.sampling.seed))
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


def test_a_visit_by_keyboard_and_by_ear(visit, app):
    visitor = visit()
    page = visitor.page
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert page.url == app.address, "the place stays"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.create') !== null")

    page.fill("#prompt", PROMPT)
    page.type("#prompt", "?")
    expect(page.locator("#keys")).to_have_count(0)
    page.fill("#prompt", PROMPT)
    page.focus("#draw")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text("Ctrl + Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_have_count(0)
    expect(page.locator("#draw")).to_be_focused()

    with app.holding():
        page.click("#draw")
        running = page.locator("#create-stage .ssd-picture")
        expect(running).to_have_accessible_name(f"{PROMPT}. Faithful, picture 1 of 1")
        expect(page.locator("#create-stage .ssd-aloud")).to_contain_text("Faithful: row")
    picture = page.locator("#create-stage .edit-picture")
    expect(picture).to_have_accessible_name(PROMPT)
    expect(page.locator("#status")).to_contain_text("exactly as the model draws it")

    assert page.locator("#quality input").count() == 3, "the reference is no quality"
    page.click("#more > summary")
    page.check("#reference")
    expect(page.locator("#quality input:checked")).to_have_count(0)
    page.uncheck("#reference")
    expect(page.locator("#quality :checked")).to_have_value("faithful")
    page.evaluate("document.querySelectorAll('#create details').forEach((f) => { f.open = true; })")
    assert "-1" not in page.inner_text("#create .panel")

    page.click("#gear")
    page.locator("#language label").filter(has_text="中文").click()
    expect(page.locator("#draw")).to_have_text("新图像")
    page.click("#gear")
    page.locator("#language label").filter(has_text="English").click()
    expect(page.locator("#draw")).to_have_text("New picture")


def test_a_visit_with_things_that_cannot_be_drawn(visit, app):
    visitor = visit()
    page, before = visitor.page, len(jobs_of(app))
    expect(page.locator("#plan")).not_to_be_empty()
    question = page.locator("#prompt-notes [data-kind=cannot]")

    page.fill("#prompt", "a dog, a red house on the left")
    page.keyboard.press("Control+Enter")  # before the page has read it
    expect(question).to_contain_text("postcard cannot draw a dog")
    expect(page.locator("#draw")).to_have_text("Draw the rest")
    assert len(jobs_of(app)) == before, "it asks first"
    with page.expect_response("**/api/draw"):
        page.keyboard.press("Control+Enter")
    assert page.input_value("#prompt") == "a red house on the left"
    assert jobs_of(app)[-1].order.drawing.prompt == "a red house on the left"

    expect(question).to_have_count(0)
    page.fill("#prompt", "a dog, a red house on the right")
    expect(question).to_be_visible()
    page.click("#draw")  # however long the note was there, it asks
    expect(page.locator("#draw")).to_have_text("Draw the rest")
    assert len(jobs_of(app)) == before + 1
    with page.expect_response("**/api/draw"):
        page.click("#draw")
    expect(question).to_have_count(0)

    page.fill("#prompt", "a dog")
    refused = page.locator("#prompt-notes [data-kind=refused]")
    expect(refused).to_contain_text("names nothing else")
    seed = page.input_value("#seed")
    with page.expect_response("**/api/draw"):
        page.click("#draw")
    expect(page.locator("#draw")).to_be_focused()
    expect(page.get_by_text("names nothing else")).to_have_count(1)
    assert len(jobs_of(app)) == before + 2, "with nothing left nothing is drawn"
    assert page.input_value("#seed") == seed

    page.fill("#prompt", "a (red:1.4) house, Haus")
    expect(page.locator("[data-kind=weighted]")).to_contain_text("(red:1.4)")
    expect(question).to_contain_text("Haus")
    expect(page.locator("#unknown")).to_be_hidden()  # nothing is like it, and one line tells it


def test_a_visit_of_numbers_that_cannot_be(visit):
    page = visit().page
    expect(page.get_by_role("radio", name="Faithful")).to_be_checked()
    said, seed = page.locator("#create .bad"), page.input_value("#seed")
    typed(page, "#pictures", "999")
    expect(said).to_have_text("Only whole numbers from 1 to 64 can be used.")
    assert page.input_value("#pictures") == "64"
    typed(page, "#pictures", "1.5")
    assert page.input_value("#pictures") == "64", "there is no whole number that is meant"
    typed(page, "#pictures", "1")
    expect(said).to_have_count(0)
    for number in ("-5", "9" * 30, "1.5"):
        typed(page, "#seed", number)
        expect(page.locator(".field:has(#seed) > .bad")).to_contain_text(str(2**64 - 1))
        assert page.input_value("#seed") == seed
    expect(said).to_have_count(1)
    page.click("#dice")
    expect(said).to_have_count(0)


def typed(page, field, text):
    page.fill(field, text)
    page.press(field, "Tab")


def test_a_visit_of_errors_that_grow_old(visit):
    visitor = visit()
    page, error = visitor.page, visitor.page.locator(".toast.bad")
    page.click("#draw")
    expect(error).to_contain_text("the prompt is empty")
    page.fill("#prompt", PROMPT)
    expect(error).to_have_count(0)

    page.route("**/api/surprise", lambda route: route.abort())
    page.click("#surprise")
    expect(error).to_be_visible()
    page.unroute("**/api/surprise")
    visitor.draw()
    expect(error).to_have_count(0)

    page.fill("#prompt", "")
    page.click("#draw")
    expect(error).to_be_visible()
    visitor.go("seeds")
    expect(error).to_have_count(0)
    expect(page.locator("#seeds-start")).to_be_disabled()
    visitor.go("race")
    expect(page.locator("#race-start")).to_be_disabled()
    page.select_option("#race-rows", "prompt")
    page.fill("#race-values", PROMPT)
    expect(page.locator("#race-start")).to_be_enabled()

    visitor.go("create")
    page.fill("#prompt", PROMPT)
    expect(page.locator("#plan")).not_to_be_empty()
    visitor.type_half_a_character()
    page.click("#draw")
    expect(page.locator("#plan.bad")).to_be_in_viewport()
    expect(page.get_by_role("radio", name="Faithful")).to_be_checked()
    expect(error).to_have_count(0)
