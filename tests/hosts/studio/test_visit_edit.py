"""The surface on few visits: paint, redraw in place, steps, keys, words."""

import shutil

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.preview_run import FORGET  # noqa: E402
from support.small_bundle import SIDE  # noqa: E402
from support.studio_page import drawn, fill_history  # noqa: E402
from support.studio_visit import PROMPT, tokens_of  # noqa: E402

from ssd_core.output.packed import unpack_mask  # noqa: E402
from ssd_core.output.recipe import read_recipe  # noqa: E402


@pytest.fixture(scope="module")
def original(app, tmp_path_factory):
    made = drawn(app, prompt=PROMPT, seed="7", method="rolling", fewer=12, expand=False)
    return shutil.copy(made, tmp_path_factory.mktemp("original") / "0.png")


def begin(page, app, original):
    """Show a picture that was never edited."""
    page.evaluate(FORGET)  # else the page goes on with what was painted
    page.goto("about:blank")
    fill_history(app, [original])
    page.goto(app.address)
    page.wait_for_selector("body[data-ready]")
    page.locator("#filmstrip button").first.click()
    expect(page.locator("#create-stage .edit")).to_be_visible()
    expect(page.locator("#steps")).to_be_hidden()
    page.click("#settings > summary")
    page.fill("#seed", "99")
    page.keyboard.press("Tab")


def paint(page, *points):
    """Draw a line through points that are shares of the picture's sides."""
    page.keyboard.press("b")
    box = page.locator(".mask-field").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=3)
    page.mouse.up()


def finished(page):
    """Wait for the end of an edit: its steps are shown a moment earlier."""
    expect(page.locator(".mask-field[data-busy]")).to_have_count(0)


def test_a_visit_to_the_surface(visit, app, original):
    page = visit().page
    a_painted_part_is_redrawn_in_place_and_the_step_can_be_taken_back(page, app, original)
    other_words_light_up_their_cells_and_are_applied(page, app, original)


def a_painted_part_is_redrawn_in_place_and_the_step_can_be_taken_back(page, app, original):
    begin(page, app, original)
    paint(page, (.3, .5), (.6, .5))
    expect(page.locator("#status")).to_contain_text("is redrawn with the words of this picture")
    page.click("#edit-apply")
    steps = page.locator("#steps button")
    expect(steps).to_have_count(2)
    expect(steps.nth(1)).to_have_attribute("aria-pressed", "true")
    old, new = tokens_of(original), tokens_of(app.pictures[-1])
    known = unpack_mask(read_recipe(app.pictures[-1])["keep_mask"])
    assert old[known].equal(new[known]) and not old.equal(new)
    finished(page)
    page.keyboard.press("Control+z")
    expect(steps.nth(0)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#status")).to_contain_text("is redrawn")
    page.click("#tools [data-tool=compare]")
    page.locator(".compare-list button").first.click()
    expect(page.locator("dialog.viewer")).to_be_visible()
    page.keyboard.press("Escape")


def other_words_light_up_their_cells_and_are_applied(page, app, original):
    begin(page, app, original)
    status, apply = page.locator("#status"), page.locator("#edit-apply")
    page.fill("#prompt", "a blorf elephant")
    expect(status).to_contain_text("postcard cannot draw a blorf elephant")
    expect(apply).to_be_disabled()
    page.fill("#prompt", f"{PROMPT}, zzxq")
    expect(status).to_contain_text("zzxq")
    expect(status).to_contain_text("These words change nothing")
    expect(apply).to_be_disabled()
    page.fill("#prompt", f"{PROMPT.replace('red', 'blue')}, zzxq")
    expect(apply).to_be_enabled()
    expect(status).to_contain_text("zzxq")
    page.fill("#prompt", PROMPT.replace("red", "blue"))
    expect(page.locator("#edit-range")).to_be_visible()
    page.wait_for_function("""() => {
      const { width, height } = document.querySelector(".mask-map");
      const context = document.querySelector(".mask-map").getContext("2d");
      return context.getImageData(0, 0, width, height).data.some((share) => share);
    }""")
    expect(page.locator(".edit-legend")).to_be_visible()
    expect(page.locator("#status")).to_contain_text("Apply redraws the glowing parts")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#steps button")).to_have_count(2)
    expect(page.locator("#edit-range")).to_be_hidden()
    expect(page.locator(".edit-legend")).to_be_hidden()
    recipe = read_recipe(app.pictures[-1])
    assert recipe["old_prompt"] == PROMPT and recipe["seed"] == 7, "drawn by the picture's own seed"
    assert page.input_value("#prompt") == recipe["prompt"], "it is the picture's"
    assert page.input_value("#seed") == "99"


@pytest.mark.nightly
def test_a_visit_by_keys_and_back_from_the_history(visit, app, original):
    page = visit().page
    the_keyboard_alone_paints_and_suggests_four(page, app, original)
    an_edited_picture_is_restored_onto_the_surface_and_its_history_tells(page, app, original)


def the_keyboard_alone_paints_and_suggests_four(page, app, original):
    begin(page, app, original)
    field = page.locator(".mask-field")
    page.keyboard.press("b")
    field.focus()
    for key in ("[", "[", "ArrowLeft", " ", "Shift+ArrowDown", "e", "ArrowDown", " ", "x"):
        page.keyboard.press(key)
    page.keyboard.press("x")
    expect(page.get_by_role("radio", name="Eraser")).to_be_checked()
    page.keyboard.press("l")
    for key in (" ", "ArrowRight", "ArrowRight", " ", "ArrowDown", " ", "Enter"):
        page.keyboard.press(key)
    page.click("#edit-suggest")
    expect(page.locator("#steps button")).to_have_count(5)
    finished(page)
    expect(page.get_by_role("radio", name="All", exact=True)).to_be_focused()
    expect(page.locator(".edit-spread img")).to_have_count(4)
    page.keyboard.press("ArrowRight")
    shown = page.locator("#steps [aria-pressed=true]")
    best = shown.get_attribute("data-id")
    page.keyboard.press("ArrowRight")
    expect(shown).not_to_have_attribute("data-id", best)
    open_cells = ~unpack_mask(read_recipe(app.pictures[-1])["keep_mask"])
    assert open_cells.shape == (SIDE, SIDE) and 3 <= open_cells.sum() <= 8


def an_edited_picture_is_restored_onto_the_surface_and_its_history_tells(page, app, original):
    begin(page, app, original)
    paint(page, (.2, .2), (.5, .3))
    page.click("#edit-apply")
    expect(page.locator("#steps button")).to_have_count(2)
    page.goto(f"{app.address}#history")
    page.locator(".picture-open").nth(1).click()
    page.locator("[data-action=made]").click()
    expect(page.locator("[data-action=source]")).to_be_visible()
    page.click("[data-action=restore]")
    expect(page.locator("#steps button").first).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#status")).to_contain_text("is redrawn")
    expect(page.locator("#tools")).to_be_visible()
