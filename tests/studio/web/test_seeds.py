"""<ssd-seeds>: small pictures, each with a checkbox that stands for one of the page's."""

import pytest
from support.page_moments import quiet

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
expect = playwright.expect

SEEDS = '<ssd-seeds jobs="a,b,c" seeds="7,8,123" target="#ticks"></ssd-seeds>'
BOXES = "".join(f"<label><input type='checkbox' name='{seed}'>{seed}</label>"
                for seed in (7, 8, 123))
TICKS = f"<fieldset id='ticks'>{BOXES}</fieldset>"


def state(page, seed):
    return page.locator(".ssd-seed").nth(seed).locator(".ssd-seed-state")


def box(page, seed):
    """The checkbox of a seed's card."""
    return page.locator("ssd-seeds").get_by_role("checkbox", name=f"seed {seed}", exact=True)


def twin(page, seed):
    return page.locator(f"#ticks input[name='{seed}']")


def test_every_seed_says_how_far_it_is(studio, open_page, new_run):
    first, second = new_run("first"), new_run("second")
    studio.say("a", "paused", first.started(), first.rows(0, "red"))
    studio.say("b", "running", second.started(), second.rows(0, "red"), second.rows(1, "red"))
    studio.say("c", "waiting", position=1)
    page = open_page(SEEDS + TICKS)
    expect(state(page, 0)).to_have_text("paused at row 1 of 4")
    expect(state(page, 1)).to_have_text("row 2 of 4")
    expect(state(page, 2)).to_have_text("waiting")
    studio.say("b", "failed", error="out of memory: lower pictures")
    expect(state(page, 1)).to_have_text("Failed: out of memory: lower pictures")


def test_a_paused_seed_goes_on_in_the_same_picture(studio, open_page, run):
    studio.say("a", "paused", run.started(), run.rows(0, "red"))
    page = open_page('<ssd-seeds jobs="a" seeds="7" target="#ticks"></ssd-seeds>' + TICKS)
    expect(state(page, 0)).to_have_text("paused at row 1 of 4")
    studio.say("a", "done", run.rows(1, "blue"), run.finished())
    expect(state(page, 0)).to_have_text("done")
    pixels = page.evaluate("""() => [0, 8].map((y) => [...document.querySelector(".ssd-pixels")
      .getContext("2d").getImageData(3, y, 1, 1).data.slice(0, 3)])""")
    assert pixels == [[255, 0, 0], [0, 0, 255]]


def test_a_finished_seed_is_downloaded_and_looked_at_from_its_card(studio, open_page, run, png):
    studio.say("a", "running", run.started(), run.rows(0, "red"))
    page = open_page(SEEDS + TICKS)
    page.locator(".ssd-picture").wait_for()
    assert page.locator(".ssd-seed-tools").count() == 0
    studio.say("a", "done", run.rows(1, "blue"), run.finished(),
               saved=[{"id": "2026/7 a.png", "seed": "7", "label": None}])
    studio.pictures["/studio/picture/2026/7%20a.png"] = png("red", 8, 8)
    card = page.locator(".ssd-seed").first
    link = card.get_by_role("link", name="Download")
    expect(link).to_have_attribute("download", "7 a.png")
    assert link.get_attribute("href").endswith("/studio/picture/2026/7%20a.png")
    card.get_by_role("button", name="Full screen").click()
    expect(page.locator("dialog img")).to_have_attribute("src", link.get_attribute("href"))
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(twin(page, 7)).not_to_be_checked()


def test_a_tick_is_the_page_s_tick_and_the_other_way_round(studio, open_page):
    page = open_page(SEEDS + TICKS)
    box(page, 8).check()
    assert [twin(page, seed).is_checked() for seed in (7, 8, 123)] == [False, True, False]
    twin(page, 123).check()
    expect(box(page, 123)).to_be_checked()
    twin(page, 8).uncheck()
    expect(box(page, 8)).not_to_be_checked()


def test_the_page_hears_of_a_tick_as_of_a_click(studio, open_page):
    page = open_page(SEEDS + TICKS)
    page.evaluate("""() => { window.heard = []; document.querySelector("#ticks")
      .addEventListener("change", (event) => heard.push(event.target.name)); }""")
    box(page, 7).check()
    assert page.evaluate("heard") == ["7"]


def test_ticks_that_the_page_sets_without_an_event_are_seen(studio, open_page):
    page = open_page(SEEDS + TICKS)
    page.evaluate("document.querySelectorAll('#ticks input').forEach((box) => box.checked = true)")
    for seed in (7, 8, 123):
        expect(box(page, seed)).to_be_checked()


def test_a_click_on_the_picture_ticks_it_and_so_does_the_keyboard(studio, open_page, run):
    studio.say("a", "paused", run.started(), run.rows(0, "red"))
    page = open_page(SEEDS + TICKS)
    page.locator(".ssd-picture").wait_for()
    page.mouse.click(*page.locator(".ssd-picture").evaluate(
        "(e) => { const at = e.getBoundingClientRect(); return [at.x + 5, at.y + 5]; }"))
    expect(twin(page, 7)).to_be_checked()
    page.keyboard.press("Tab")
    expect(box(page, 8)).to_be_focused()
    page.keyboard.press("Space")
    expect(twin(page, 8)).to_be_checked()


def test_a_seed_without_a_checkbox_on_the_page_cannot_be_ticked_until_there_is_one(
        studio, open_page):
    page = open_page(SEEDS)
    expect(box(page, 7)).to_be_disabled()
    page.evaluate("(html) => document.body.insertAdjacentHTML('beforeend', html)", TICKS)
    expect(box(page, 7)).to_be_enabled()


def test_one_request_asks_for_all_seeds_and_none_follows_when_all_are_over(
        studio, open_page, run):
    for job in "abc":
        studio.say(job, "done")
    page = open_page(SEEDS + TICKS)
    expect(state(page, 2)).to_have_text("done")
    assert quiet(page)
    assert [query["job"] for query in studio.queries] == [["a", "b", "c"]]


def test_off_the_page_it_asks_and_follows_no_more(studio, open_page, run):
    studio.say("a", "running", run.started())
    page = open_page(SEEDS + TICKS)
    page.locator(".ssd-panel").wait_for()
    page.evaluate("() => { window.gone = document.querySelector('ssd-seeds'); gone.remove(); }")
    twin(page, 7).check()
    assert quiet(page)
    assert page.evaluate("gone.querySelectorAll(':checked').length") == 0
