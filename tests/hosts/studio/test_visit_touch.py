"""A visit that touches the picture, by the bundled model as it is shipped: its things are found."""

import re

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import served, visits  # noqa: E402

from ssd_core.output.recipe import read_recipe  # noqa: E402


def test_a_visit_that_touches_the_picture(chromium, tmp_path, violations):
    with served(tmp_path) as app, visits(chromium, app) as visit:
        expect.set_options(timeout=90_000)
        visitor = visit()
        page = visitor.page
        page.fill("#prompt", "a red house on the left, a green tree on the right, a lake, at day")
        page.fill("#seed", "7")
        page.get_by_role("radio", name="Fast").check(force=True)
        visitor.draw()
        what_the_pointer_rests_on_is_named_and_a_click_offers_words_for_it(page, violations)
        a_word_is_chosen_by_keys_and_drawn_at_once(page, app)
        a_thing_is_dragged_to_another_place(page, app)
        the_scene_is_changed_where_there_is_no_thing_whatever_is_painted(page, app)
        what_waits_behind_an_edit_is_shown_when_it_is_drawn(page, app)


def at(page, x, y):
    box = page.locator(".mask-field").bounding_box()
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def thing(page, name):
    return page.locator(".touch-things button", has_text=name)


def words_of(app):
    return read_recipe(app.pictures[-1])["prompt"]


def what_the_pointer_rests_on_is_named_and_a_click_offers_words_for_it(page, violations):
    things = page.locator(".touch-things button")
    menu = page.locator(".touch-menu")
    page.mouse.click(*at(page, .5, .1))  # before anything is known
    expect(menu).to_contain_text("Add a thing")
    page.keyboard.press("Escape")
    expect(things).to_have_count(3)
    assert {name.split(",")[0] for name in things.all_inner_texts()} == {
        "red house", "green tree", "The scene"}
    tag = page.locator(".touch-tag")
    page.mouse.move(*at(page, .4, .1))
    expect(tag).to_have_text("The scene")
    box = thing(page, "red house").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tag).to_have_text("red house, left")
    page.mouse.down()
    page.mouse.up()
    expect(menu).to_be_visible()
    page.locator(".touch-chip", has_text="blue").hover()
    expect(page.locator(".edit-legend")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(page.locator(".edit-legend")).to_be_hidden()


def a_word_is_chosen_by_keys_and_drawn_at_once(page, app):
    thing(page, "red house").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".touch-chip").first).to_be_focused()
    while page.evaluate("document.activeElement.textContent") != "purple":
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#steps button")).to_have_count(2)
    finished(page)
    assert "purple house" in words_of(app) and "green tree" in words_of(app)
    expect(page.locator("#prompt")).to_have_value(words_of(app))
    assert read_recipe(app.pictures[-1])["seed"] == 7
    expect(page.locator(".touch-things button").first).to_be_focused()


def a_thing_is_dragged_to_another_place(page, app):
    page.mouse.move(*at(page, .5, .1))
    house = thing(page, "purple house")
    box = house.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(*at(page, .52, .6), steps=4)
    page.mouse.up()
    expect(page.locator("#steps button")).to_have_count(3)
    finished(page)
    assert "purple house in the middle" in words_of(app)


def the_scene_is_changed_where_there_is_no_thing_whatever_is_painted(page, app):
    page.keyboard.press("b")
    page.mouse.click(*at(page, .9, .9))
    expect(page.locator("#status")).to_contain_text("is redrawn")
    page.keyboard.press("v")
    page.mouse.move(*at(page, .1, .05))
    expect(thing(page, "The scene")).to_be_attached()
    page.mouse.click(*at(page, .1, .05))
    page.locator("[data-kind=add] .touch-chip", has_text=re.compile("^boat$")).click()
    expect(page.locator("#steps button")).to_have_count(4)
    finished(page)
    assert re.search("a boat (on the|at) left", words_of(app))
    assert "purple house in the middle" in words_of(app)
    assert read_recipe(app.pictures[-1]).get("keep_mask") is None


def what_waits_behind_an_edit_is_shown_when_it_is_drawn(page, app):
    expect(page.locator(".touch-things button").first).to_be_attached()
    thing(page, "boat").press("Enter")
    page.locator(".touch-chip", has_text="remove").click()
    expect(page.locator(".mask-field[data-busy]")).to_be_visible()
    page.fill("#prompt", "a yellow tent in the middle, sand, at dawn")
    page.click("#draw")
    expect(page.locator("#steps")).to_be_hidden()
    expect(page.locator(".edit-picture")).to_have_attribute("alt", re.compile("yellow tent"))


def finished(page):
    """Wait for the end of an edit: its steps are shown a moment earlier."""
    expect(page.locator(".mask-field[data-busy]")).to_have_count(0)
