"""Seeds on few visits: tops are drawn and cropped, ticked ones are finished, others expire."""

import pytest
from support.page_moments import laid_out

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.small_bundle import SIDE  # noqa: E402
from support.studio_visit import PROMPT, solo, tokens_of  # noqa: E402

from ssd_core.engine.methods import Exact  # noqa: E402
from ssd_core.output.recipe import read_recipe  # noqa: E402

DESK = {"viewport": {"width": 1366, "height": 768}}
PHONE = {"viewport": {"width": 390, "height": 844}}
DONE = ".seed[data-state=done]"


def at_seeds(visit, **options):
    """Tops are drawn row by row: a window would draw rows beyond those that were asked for."""
    visitor = visit(**options)
    visitor.page.fill("#prompt", PROMPT)
    visitor.unfold("#more")
    visitor.page.check("#reference")
    visitor.go("seeds")
    return visitor


def begin(visitor, count, seed=100):
    """Begin so many seeds, and wait until all are paused; their tiles."""
    page = visitor.page
    visitor.go("create")
    page.fill("#seed", str(seed))
    page.press("#seed", "Tab")
    visitor.go("seeds")
    page.locator("#seeds-count").fill(str(count))
    page.click("#seeds-start")
    tiles = page.locator(".seed[data-state=paused]")
    for n in range(count):
        expect(tiles.nth(n)).to_contain_text(f"seed {seed + n}")
    expect(tiles).to_have_count(count)
    return tiles


@pytest.mark.nightly  # by day the moments go through Seeds
def test_a_visit_of_seeds_that_are_finished_reloaded_and_expired(visit, app):
    visitor = at_seeds(visit, **DESK)
    ticked_ones_are_finished_from_where_they_are_paused(visitor, app)
    they_wait_through_a_reload_and_no_other_visitor_sees_them(visitor, visit, app)
    expired_ones_say_so(visitor, app)


def ticked_ones_are_finished_from_where_they_are_paused(visitor, app):
    page, before = visitor.page, len(app.pictures)
    tiles = begin(visitor, 3)
    expect(page.locator("#seeds-status")).to_contain_text("3 paused")
    expect(page.locator("#seeds-finish")).to_be_disabled()
    tiles.nth(1).click()  # anywhere on it
    page.get_by_role("checkbox", name="seed 102").focus()
    page.keyboard.press("Space")
    expect(page.locator("#seeds-status")).to_contain_text("2 ticked, about")
    expect(page.locator("#seeds-finish")).to_have_text("Finish 2")
    page.click("#seeds-finish")
    expect(page.locator(DONE)).to_have_count(2)
    expect(page.locator("#seeds-status")).to_contain_text("1 paused")
    expect(page.locator("#seeds-finish")).to_be_disabled()
    made = app.pictures[before:]
    assert [read_recipe(path)["seed"] for path in made] == [101, 102]
    for path, seed in zip(made, (101, 102), strict=True):
        assert tokens_of(path).equal(solo(Exact(), seed))


def they_wait_through_a_reload_and_no_other_visitor_sees_them(visitor, visit, app):
    page = visitor.page
    begin(visitor, 2, seed=200).nth(1).click()
    page.reload()
    visitor.ready()
    expect(page.locator(".seed[data-state=paused]")).to_have_count(2)
    expect(page.get_by_role("checkbox", name="seed 201")).to_be_checked()
    other = visit(f"{app.address}#seeds").page
    expect(other.locator(".seed").first).to_have_attribute("data-state", "")
    page.click("#seeds-finish")
    expect(page.locator(DONE)).to_have_count(1)


def expired_ones_say_so(visitor, app):
    page = visitor.page
    begin(visitor, 2, seed=300).first.click()
    app.services.parked_seeds.drop_all()
    page.click("#seeds-finish")
    expect(page.locator(".toast").last).to_contain_text("expired")
    expect(page.locator("#seeds-status")).to_contain_text("have expired")
    expect(page.locator(".seed").first).to_contain_text("expired")
    expect(page.locator("#seeds-finish")).to_be_disabled()


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_among_paused_ticked_and_finished_seeds(visit, violations, scheme):
    visitor = at_seeds(visit, color_scheme=scheme)
    page = visitor.page
    tiles = begin(visitor, 3)
    tiles.first.click()
    page.click("#seeds-finish")
    expect(page.locator(DONE)).to_have_count(1)
    tiles.first.click()
    assert violations(page) == []


@pytest.mark.nightly
def test_a_visit_of_more_seeds(visit, app):
    visitor = at_seeds(visit, **DESK)
    the_frames_of_the_next_ones_are_there_before_they_are_drawn(visitor)
    a_tile_shows_the_drawn_rows_only_and_a_finished_one_all(visitor)
    stop_leaves_the_paused_ones_and_a_new_start_replaces_them(visitor, app)
    one_that_is_stopped_while_it_is_finished_keeps_its_rows(visitor, app)
    a_finished_one_is_opened_saved_and_redone_from_its_tile(visitor, app)


def the_frames_of_the_next_ones_are_there_before_they_are_drawn(visitor):
    page = visitor.page
    visitor.go("create")
    page.fill("#seed", "100")
    page.press("#seed", "Tab")
    visitor.go("seeds")
    expect(page.locator(".seed")).to_have_count(8)
    expect(page.locator(".seed").last).to_contain_text("seed 107")
    page.get_by_role("radio", name="A third").check(force=True)
    page.locator("#seeds-count").fill("5")
    expect(page.locator(".seed")).to_have_count(5)
    laid_out(page)
    box = page.locator(".seed .tile-window").first.bounding_box()
    assert box["height"] == pytest.approx(box["width"] / 3, abs=1)
    visitor.go("create")
    visitor.go("seeds")
    page.reload()
    visitor.ready()
    expect(page.locator(".seed")).to_have_count(5)
    page.get_by_role("radio", name="Five sixths").check(force=True)


def a_tile_shows_the_drawn_rows_only_and_a_finished_one_all(visitor):
    page = visitor.page
    begin(visitor, 2)
    laid_out(page)
    box = page.locator(".seed .tile-window").first.bounding_box()
    assert box["height"] == pytest.approx(box["width"] * 7 / SIDE, abs=1)
    page.click("#seeds-all")
    page.click("#seeds-finish")
    expect(page.locator(DONE)).to_have_count(2)
    laid_out(page)
    box = page.locator(".seed .tile-window").first.bounding_box()
    assert box["height"] == pytest.approx(box["width"], abs=1)
    expect(page.locator("#seeds-status")).to_have_text("2 finished and saved.")


def stop_leaves_the_paused_ones_and_a_new_start_replaces_them(visitor, app):
    page = visitor.page
    begin(visitor, 2, seed=200)
    expect(page.get_by_text("drops the paused seeds: 2")).to_be_visible()
    with app.holding():
        page.click("#seeds-start")
        expect(page.locator(".seed[data-state=running]")).to_have_count(1)
        expect(page.locator(".seed[data-state=paused]")).to_have_count(0)
        expect(page.locator("#seeds .uses")).to_contain_text("For the next run")
        expect(page.locator("#stop")).to_have_attribute("title", "Stop seed")
        page.click("#seeds-stop")
        expect(page.locator(".seed[data-state='']")).to_have_count(2)  # frames again
    expect(page.locator("#seeds-stop")).to_be_disabled()
    assert not app.services.parked_seeds._parked


def one_that_is_stopped_while_it_is_finished_keeps_its_rows(visitor, app):
    page = visitor.page
    begin(visitor, 2, seed=300).first.click()
    with app.holding():
        page.click("#seeds-finish")
        expect(page.locator(".seed[data-state=running]")).to_have_count(1)
        page.click("#seeds-stop")
        page.get_by_role("button", name="Keep these rows").click()
    expect(page.locator("#create-stage .ssd-slider input")).to_be_visible()


def a_finished_one_is_opened_saved_and_redone_from_its_tile(visitor, app):
    page = visitor.page
    begin(visitor, 2, seed=400).first.click()
    page.click("#seeds-finish")
    done = page.locator(DONE)
    done.get_by_role("button", name="Open seed 400 larger").click()
    expect(page.locator("dialog img").first).to_be_visible()
    page.keyboard.press("Escape")
    done.get_by_role("button", name="Send").click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="PNG with its settings").click()
    assert saved.value.path().read_bytes() == app.pictures[-1].read_bytes()
    done.get_by_role("button", name="Redo").click()
    expect(page.locator("#create-stage .ssd-slider input")).to_be_visible()


@pytest.mark.nightly
def test_other_seeds_of_a_picture_are_drawn_around_its_own_with_its_settings(visit, app):
    visitor = at_seeds(visit, **DESK)
    page = visitor.page
    page.locator("#seeds-count").fill("2")
    visitor.go("create")
    page.fill("#seed", "100")
    visitor.draw()
    page.fill("#prompt", "another prompt")
    page.click("#more-tools")
    page.click("[data-tool=seeds]")
    expect(page.locator(".likes")).to_contain_text(PROMPT)
    page.click("#seeds-start")
    expect(page.locator(".seed[data-state=paused]")).to_have_count(2)
    assert page.locator(".seed-label").all_inner_texts() == ["seed 99", "seed 100"]
    assert page.input_value("#prompt") == "another prompt", "what was typed stays"
    page.get_by_role("button", name="Use Create's prompt").click()
    expect(page.locator(".uses-prompt")).to_have_text("another prompt")


@pytest.mark.nightly
def test_on_a_phone_finish_stays_in_sight(visit):
    visitor = at_seeds(visit, **PHONE)
    page = visitor.page
    tiles = begin(visitor, 4)
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator("#seeds-status")).to_be_in_viewport()
    tiles.first.click()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    laid_out(page)
    box = page.locator("#seeds-finish").bounding_box()
    assert 800 < box["y"] + box["height"] <= 844
    assert page.locator("#seeds-start").bounding_box()["y"] < 700, "Finish has its place"
    page.click("#seeds-finish")
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
