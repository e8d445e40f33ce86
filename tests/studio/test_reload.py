"""Pages that are closed, reloaded or cut off while something goes on, in a real browser."""

import time

import pytest
from PIL import Image

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.preview_run import lent_page  # noqa: E402
from support.small_bundle import SIDE  # noqa: E402
from support.studio_visit import PROMPT, Visitor  # noqa: E402


@pytest.fixture(scope="module")
def page(chromium, app):
    """Reloaded or cut off while it is told of a run; Gradio itself complains of that on the
    console, so nobody looks there."""
    with lent_page(chromium) as page:
        yield Visitor(page, app.address)


@pytest.fixture
def reloading(page, app):
    page.tab("Create")
    yield page
    app.drop_all()


def test_a_closed_tab_does_not_end_its_run_and_what_it_parked_is_freed_after_the_grace(
        visit, app, monkeypatch):
    one, before = visit(), len(app.pictures)
    one.tab("Seeds")
    one.fill("seeds-count", 2)
    one.page.click("#seeds-start")
    one.paused()
    one.tab("Create")
    one.fill("pictures", 2)
    with app.holding():
        one.page.click("#draw")
        one.until("running")
        monkeypatch.setattr("studio.jobs.GRACE_SECONDS", 0.5)
        monkeypatch.setattr("studio.jobs.LOOK_SECONDS", 0.2)
        one.page.close()
        time.sleep(1.5)  # longer than the grace
    app.wait_idle(30)
    assert len(app.pictures) == before + 2, "the run was finished and saved"


def test_a_run_goes_on_through_a_reload_and_is_shown_again(reloading, app):
    one, before = reloading, len(app.pictures)
    one.fill("prompt", PROMPT)
    one.fill("pictures", 2)
    with app.holding():
        one.page.click("#draw")
        one.until("running")
        one.page.wait_for_selector("#create-stage canvas.ssd-pixels")
        one.page.reload()
        one.until("running")
        one.page.wait_for_selector("#stop:not([disabled])")
    one.until("done")
    assert f"instead of {SIDE * SIDE}" in one.figures()
    assert len(app.pictures) == before + 2 and one.is_painted()
    one.page.reload()
    one.until("done")
    assert one.page.get_by_role("link", name="Download").is_visible()


def test_a_run_is_stopped_after_a_reload_as_before_it(reloading, app):
    one = reloading
    with app.holding():
        one.page.click("#draw")
        one.until("running")
        one.page.reload()
        one.page.click("#stop:not([disabled])")
        one.until("cancelled")


def test_a_cut_that_the_page_notices_ends_nothing(reloading, app):
    one, before, context = reloading, len(app.pictures), reloading.page.context
    one.fill("pictures", 2)
    with app.holding():
        one.page.click("#draw")
        one.until("running")
        with one.page.expect_event("requestfailed"):
            context.set_offline(True)
        context.set_offline(False)
    one.page.get_by_role("link", name="Download").wait_for()
    one.until("done")
    assert len(app.pictures) == before + 2


def test_parked_seeds_wait_through_a_reload_and_no_other_visitor_sees_them(reloading, visit, app):
    one, before = reloading, len(app.pictures)
    one.tab("Seeds")
    one.fill("seeds-count", 3)
    one.page.click("#seeds-start")
    one.paused()
    one.page.reload()
    one.paused()
    assert one.page.locator("#seeds-grid canvas.ssd-pixels").count() == 3
    other = visit()
    other.tab("Seeds")
    assert other.page.locator("#seeds-grid canvas.ssd-pixels").count() == 0
    one.page.locator("#seeds-grid input[type=checkbox]").nth(1).check()
    one.page.wait_for_function(
        "() => document.querySelectorAll('#seeds-ticks input:checked').length === 1")
    one.page.click("#seeds-finish")
    one.page.wait_for_function(
        "() => document.querySelector('#seeds-status').innerText.includes('1 finished')")
    assert len(app.pictures) == before + 1


def test_half_a_character_is_refused_and_the_page_lives_on(visit):
    one = visit()
    one.page.evaluate("""() => {
      const box = document.querySelector("#prompt textarea");
      box.value = "a red house \\ud800";
      box.dispatchEvent(new Event("input", { bubbles: true }));
    }""")
    one.page.wait_for_selector("#note .studio-problem:has-text('half of one')")
    one.page.click("#draw")
    assert "half of one" in one.told("trouble")
    one.fill("prompt", PROMPT)
    one.draw()
    assert "passes" in one.figures()
    assert one.text("trouble") == ""


def test_pictures_and_settings_survive_a_reload(reloading, app):
    one = reloading
    one.fill("prompt", PROMPT)
    one.lock(11)
    one.expert()
    one.fill("window", 24)
    one.unfold("metadata")
    one.page.locator("#metadata input").uncheck()
    one.draw()
    assert Image.open(app.pictures[-1]).text == {}
    one.page.reload()
    one.ready()
    one.page.wait_for_function(
        "(prompt) => document.querySelector('#prompt textarea').value === prompt", arg=PROMPT)
    assert one.page.locator("#seed :is(input, textarea)").input_value() == "11"
    one.page.wait_for_selector("#lock input:checked")
    one.unfold("metadata")
    one.page.wait_for_selector("#metadata input:not(:checked)")
    one.expert()
    one.page.locator("#window").wait_for()
    assert one.page.locator("#window input").input_value() == "24"
    one.tab("History")
    shown = one.page.locator("#history img")
    shown.first.wait_for()
    assert shown.count() == min(24, len(app.pictures))
