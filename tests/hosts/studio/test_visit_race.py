"""Race on few visits: racers, rows, stopping, the guarantee, and the tools of the pictures."""

import pytest
from PIL import Image
from support.page_moments import laid_out

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.small_bundle import PIXELS, SIDE  # noqa: E402
from support.studio_visit import PROMPT, tokens_of  # noqa: E402

from ssd_core.output.recipe import read_recipe  # noqa: E402

DESK = {"viewport": {"width": 1366, "height": 768}}
PHONE = {"viewport": {"width": 390, "height": 844}}
TILES = "#race-stage .race-tile"


def at_race(visit, **options):
    visitor = visit(**options)
    visitor.page.fill("#prompt", PROMPT)
    visitor.go("race")
    return visitor


def race(page, *racers):
    """Let these race, in place of the last race; the table's rows."""
    if page.locator("#race-again").is_visible():
        page.click("#race-again")
    choose(page, *racers)
    page.click("#race-start")
    expect(page.locator("#race-result")).to_be_visible()
    page.click("#race-result summary")
    lines = page.locator("#race-result tr:has(td)").all_inner_texts()
    return [line.split("\t") for line in lines]


def choose(page, *racers):
    boxes = page.locator(".racer select")
    while boxes.count() < len(racers):
        page.get_by_role("button", name="Add", exact=True).click()
    while boxes.count() > len(racers):
        page.get_by_role("button", name="Remove racer 1").click()
    for n, name in enumerate(racers):
        boxes.nth(n).select_option(label=name)


def is_held(page):
    """Wait until both pictures are begun."""
    expect(page.locator(f"{TILES} .ssd-summary").nth(1)).to_contain_text(f"of {SIDE}")


@pytest.mark.nightly  # by day the moments see a race in mid-run and done
def test_a_visit_of_three_races(visit, app):
    visitor = visit(f"{app.address}#race", **DESK)
    page = visitor.page
    without_a_prompt_nothing_starts(page)
    page.fill("#prompt", PROMPT)
    visitor.go("race")
    it_ends_with_a_guarantee_a_table_a_divider_and_a_sheet(page, app)
    a_stopped_one_keeps_what_is_there(page, app)
    rows_of_seeds_make_a_grid_of_two_settings(page, app)


def without_a_prompt_nothing_starts(page):
    expect(page.locator("#race-start")).to_be_disabled()
    expect(page.get_by_text("No prompt yet")).to_be_visible()
    page.get_by_role("link", name="Change in Create").click()
    expect(page.locator("#prompt")).to_be_visible()


def it_ends_with_a_guarantee_a_table_a_divider_and_a_sheet(page, app):
    rows = race(page, "Reference", "Faithful")
    assert [row[0] for row in rows] == ["Reference", "Faithful"]
    assert int(rows[0][1]) == SIDE**2 > int(rows[1][1])
    expect(page.locator("#race-result")).to_contain_text(
        "Faithful: the same picture as the reference.")
    path = [path for path in app.pictures if "race" not in path.name][-1]
    seed = read_recipe(path)["seed"]
    expect(page.get_by_text(f"seed {seed}", exact=True)).to_be_visible()
    assert page.locator("#race-result th").all_inner_texts() == [
        "Method", "Passes", "Seconds", "Picture"]
    assert tokens_of(app.pictures[-2]).equal(tokens_of(app.pictures[-3]))
    page.click("#race-compare")
    handle = page.locator("dialog [type=range]")
    before = float(handle.input_value())
    handle.press("ArrowLeft")
    assert float(handle.input_value()) < before
    page.keyboard.press("Escape")
    with page.expect_download() as saved:
        page.click("#race-sheet")
    assert saved.value.path().read_bytes() == app.pictures[-1].read_bytes()
    assert "race" in saved.value.suggested_filename
    assert Image.open(app.pictures[-1]).width > 2 * PIXELS


def a_stopped_one_keeps_what_is_there(page, app):
    before = len(app.pictures)
    choose(page, "Reference", "Fast")
    with app.holding():
        page.click("#race-start")
        is_held(page)
        page.click("#race-stop")
        expect(page.locator("#race-status")).to_contain_text("Stopped")
    expect(page.locator("#race-stop")).to_be_disabled()
    expect(page.locator(f"{TILES} .ssd-summary").first).to_contain_text("stopped at row")
    assert len(app.pictures) == before
    page.click("#race-again")
    expect(page.locator(".race-grid.idle .race-tile")).to_have_count(2)


def rows_of_seeds_make_a_grid_of_two_settings(page, app):
    before = len(app.pictures)
    page.select_option("#race-rows", "seed")
    page.fill("#race-values", "5, 18446744073709551615")
    expect(page.locator(".race-row")).to_have_count(2)
    expect(page.locator(".racers-form")).to_contain_text("2 × 2: 4 pictures.")
    rows = race(page, "Balanced", "Fast")
    assert [row[0] for row in rows] == ["Balanced", "Fast"] * 2
    assert page.locator("#race-result th[scope=rowgroup]").all_inner_texts() == [
        "Seed 5", "Seed 18446744073709551615"]
    drawn = [read_recipe(path) for path in app.pictures[before:] if "race" not in path.name]
    assert [recipe["seed"] for recipe in drawn] == [5, 5, 2**64 - 1, 2**64 - 1]
    page.locator(f"{TILES} input").nth(3).check()  # in place of the one ticked first
    assert [box.is_checked() for box in page.locator(f"{TILES} input").all()] == [
        False, True, False, True]
    page.click("#race-compare")
    expect(page.locator("dialog")).to_contain_text("Fast, Seed 18446744073709551615")
    page.keyboard.press("Escape")


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_beside_a_result(visit, violations, scheme):
    page = at_race(visit, color_scheme=scheme).page
    race(page, "Fast", "Fast", "Current settings")
    page.select_option("#race-rows", "prompt")
    assert violations(page) == []


@pytest.mark.nightly
def test_a_visit_of_more_races(visit, app):
    visitor = at_race(visit, **DESK)
    page = visitor.page
    one_waits_behind_a_picture_and_says_so(visitor, app)
    pictures_guarantee_and_tools_are_in_sight(page)
    the_overlay_is_one_switch_for_all_pictures(page)
    the_current_settings_race_under_the_name_of_their_quality(page)
    page.click("#race-again")
    one_goes_on_through_a_reload(visitor, app)
    with_rows_one_racer_is_enough_and_values_must_be_numbers(page)


def one_waits_behind_a_picture_and_says_so(visitor, app):
    page = visitor.page
    with app.holding():
        visitor.go("create")
        page.click("#draw")
        expect(page.locator("#stop")).to_be_enabled()
        visitor.go("race")
        page.click("#race-start")
        expect(page.locator("#race-status")).to_contain_text("Waiting")
        page.click("#race-stop")
        expect(page.locator("#race-status")).to_contain_text("Stopped before")
        visitor.go("create")
        page.click("#stop")
    visitor.go("race")


def pictures_guarantee_and_tools_are_in_sight(page):
    race(page, "Balanced", "Fast")
    laid_out(page)
    for there in ("#race-result p", "#race-compare", *(f"{TILES} >> nth={n}" for n in (0, 1))):
        box = page.locator(there).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 768, there
    assert page.evaluate("() => scrollY") == 0


def the_overlay_is_one_switch_for_all_pictures(page):
    assert page.get_attribute("#race-overlay", "aria-pressed") == "false"
    page.click("#race-overlay")
    expect(page.locator(".race-foot .ssd-legend")).to_be_visible()
    painted = """() => [...document.querySelectorAll("#race-stage .ssd-marks")].map((canvas) =>
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
        .some((value) => value > 0))"""
    assert page.evaluate(painted) == [True, True]
    page.click("#race-overlay")
    assert page.evaluate(painted) == [False, False]


def the_current_settings_race_under_the_name_of_their_quality(page):
    rows = race(page, "Fast", "Current settings")
    assert [row[0] for row in rows] == ["Fast", "Faithful (current)"]
    page.get_by_role("button", name="Open Faithful (current) larger").click()
    expect(page.locator("dialog img").first).to_be_visible()
    page.keyboard.press("Escape")


def one_goes_on_through_a_reload(visitor, app):
    page, before = visitor.page, len(app.pictures)
    choose(page, "Balanced", "Fast")
    with app.holding():
        page.click("#race-start")
        is_held(page)
        page.reload()
        visitor.ready()
        is_held(page)
    expect(page.locator("#race-result tbody tr")).to_have_count(2)
    assert len(app.pictures) == before + 3  # two, and the sheet
    assert [box.input_value() for box in page.locator(".racer select").all()] == [
        "balanced", "fast"]


def with_rows_one_racer_is_enough_and_values_must_be_numbers(page):
    page.select_option("#race-rows", "temperature")
    page.get_by_role("button", name="Remove racer 1").click()
    expect(page.locator(".racer")).to_have_count(1)
    page.fill("#race-values", "1, warm")
    page.click("#race-start")
    assert page.evaluate("() => !document.querySelector('#race-values').validity.valid")
    page.fill("#race-values", "0, 1")
    page.click("#race-again")
    page.click("#race-start")
    expect(page.locator("#race-result tr:has(td)")).to_have_count(2)
    page.select_option("#race-rows", "")
    expect(page.locator(".racer")).to_have_count(2)


@pytest.mark.nightly
def test_a_visit_by_phone_sees_two_pictures_a_line_and_nothing_beside_the_screen(visit):
    page = at_race(visit, **PHONE).page
    width = "() => document.documentElement.scrollWidth"
    page.select_option("#race-rows", "seed")
    laid_out(page)
    assert page.evaluate(width) == 390
    page.select_option("#race-rows", "")
    race(page, "Fast", "Fast", "Fast")
    laid_out(page)
    assert page.evaluate(width) == 390
    boxes = [tile.bounding_box() for tile in page.locator(TILES).all()[:3]]
    assert boxes[0]["y"] == boxes[1]["y"] < boxes[2]["y"]
    race(page, "Fast", "Current settings")
    assert page.locator(".race-name").last.evaluate(
        "name => name.scrollWidth <= name.clientWidth"), "it is not cut off"
