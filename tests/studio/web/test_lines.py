"""<ssd-divider> and <ssd-keep-line>: by pointer, finger and keys, and the input they work."""

import pytest
from support.page_moments import turn

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
expect = playwright.expect

SIDE = 240  # px of the pictures
ROWS = 24  # of 10 px
INPUT = ('<div id="rows"><input type="number" min="1" max="23" value="12">'
         '<input type="range" min="1" max="23" value="12"></div><p style="height: 2000px">')
DIVIDER = ('<ssd-divider left="/red.png" right="/blue.png" left-label="AR" '
           'right-label="SSD &lt;2&gt;"></ssd-divider>')
LINE = f'<ssd-keep-line src="/red.png" rows="{ROWS}" row="12" target="#rows"></ssd-keep-line>'


@pytest.fixture(autouse=True)
def pictures(studio, png):
    studio.pictures = {"/red.png": png("red", SIDE, SIDE), "/blue.png": png("blue", SIDE, SIDE)}


def field(page):
    """Where the pictures stand: x, y, width, height in px."""
    page.locator(".ssd-field").wait_for()
    return page.locator(".ssd-field").bounding_box()


def drag(page, start, end):
    """Press at a share (x, y) of the pictures, move to another in steps, let go."""
    box = field(page)
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=4)
    page.mouse.up()


def handle(page):
    return page.get_by_role("slider").first


def value(page):
    return int(handle(page).get_attribute("aria-valuenow"))


def touch(page, *points):
    """A finger that goes down at the first point (shares of the pictures) and moves along."""
    box, session = field(page), page.context.new_cdp_session(page)
    kinds = ["touchStart", *["touchMove"] * (len(points) - 1)]
    for kind, (x, y) in zip(kinds, points, strict=True):
        at = {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]}
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def wanted(page):
    """What the page's number input holds."""
    return int(page.locator("#rows input[type=number]").input_value())


def shade(page, x, y, tmp_path):
    """The colour on the screen at a share of the pictures."""
    from PIL import Image
    path = tmp_path / "field.png"
    page.locator(".ssd-field").screenshot(path=path)
    with Image.open(path) as image:
        return image.convert("RGB").getpixel((int(x * image.width), int(y * image.height)))


# The divider


def test_the_left_picture_stands_left_of_the_divider_and_the_right_one_right(open_page, tmp_path):
    page = open_page(DIVIDER)
    drag(page, (0.5, 0.2), (0.25, 0.2))
    assert value(page) == 25
    assert shade(page, 0.15, 0.2, tmp_path) == (255, 0, 0)
    assert shade(page, 0.35, 0.2, tmp_path) == (0, 0, 255)


def test_a_press_anywhere_brings_the_divider_there(open_page):
    page = open_page(DIVIDER)
    drag(page, (0.8, 0.9), (0.8, 0.9))
    assert value(page) == 80


def test_a_pointer_that_leaves_the_picture_still_holds_the_divider(open_page):
    page = open_page(DIVIDER)
    drag(page, (0.5, 0.5), (1.4, 3))
    assert value(page) == 100
    page.mouse.move(field(page)["x"] + 10, field(page)["y"] + 10)
    assert value(page) == 100


def test_the_divider_moves_by_keys_and_says_where_it_is(open_page):
    page = open_page(DIVIDER)
    field(page)
    page.keyboard.press("Tab")
    expect(handle(page)).to_be_focused()
    for key in ("ArrowRight", "ArrowRight", "PageUp", "ArrowLeft"):
        page.keyboard.press(key)
    assert value(page) == 61
    expect(handle(page)).to_have_attribute("aria-valuetext", "61% AR, the rest SSD <2>")
    expect(handle(page)).to_have_accessible_name("Divider between the two pictures")
    page.keyboard.press("Home")
    assert value(page) == 0


def test_the_labels_are_stamped_as_text_and_the_pictures_named(open_page):
    page = open_page(DIVIDER)
    field(page)
    assert page.locator(".ssd-stamp").all_inner_texts() == ["AR", "SSD <2>"]
    assert page.get_by_role("img", name="SSD <2>").count() == 1


def test_a_finger_moves_the_divider(open_page):
    page = open_page(DIVIDER, has_touch=True)
    touch(page, (0.5, 0.5), (0.6, 0.5), (0.7, 0.5))
    assert value(page) == 70


@pytest.mark.parametrize("width, side", [(900, 800 - 156), (250, 240 - 6)])
def test_pictures_grow_and_shrink_with_the_room_there_is(open_page, width, side):
    page = open_page(f"<style>body {{ margin: 8px }}</style>{DIVIDER}")
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_function(f"document.querySelector('.ssd-field').clientWidth === {side}")
    assert field(page)["height"] == side


def test_a_picture_that_is_not_there_is_said_to_be_missing(open_page):
    page = open_page(DIVIDER.replace("/blue.png", "data:image/png;base64,AAAA"))
    expect(page.get_by_text("The picture could not be loaded")).to_be_visible()
    expect(page.locator(".ssd-field")).to_be_hidden()


# The keep line


def test_the_line_snaps_to_rows_and_writes_the_row(open_page):
    page = open_page(LINE + INPUT)
    drag(page, (0.2, 0.5), (0.2, 0.335))
    assert (value(page), wanted(page)) == (8, 8)
    expect(page.locator(".ssd-tag")).to_have_text("Keep 8 of 24 rows")


def test_what_lies_below_the_line_is_dimmed(open_page, tmp_path):
    page = open_page(LINE + INPUT, color_scheme="light")
    drag(page, (0.2, 0.5), (0.2, 0.25))
    kept, dropped = (shade(page, 0.6, y, tmp_path) for y in (0.12, 0.6))
    assert kept == (255, 0, 0) and min(dropped) > 150


def test_a_value_that_is_written_is_an_input_and_a_change_to_the_page(open_page):
    page = open_page(LINE + INPUT)
    page.evaluate("""() => { window.heard = [];
      for (const kind of ["input", "change"]) document.querySelector("#rows")
        .addEventListener(kind, (event) => heard.push([kind, event.target.value])); }""")
    field(page)
    handle(page).focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("heard") == [["input", "13"], ["change", "13"]]


def test_the_line_moves_by_keys_and_says_where_it_is(open_page):
    page = open_page(LINE + INPUT)
    field(page)
    handle(page).focus()
    for key in ("ArrowDown", "PageDown", "ArrowUp"):
        page.keyboard.press(key)
    assert (value(page), wanted(page)) == (16, 16)
    expect(handle(page)).to_have_attribute("aria-valuetext", "Keep 16 of 24 rows")
    expect(handle(page)).to_have_attribute("aria-orientation", "vertical")
    page.keyboard.press("End")
    assert (value(page), handle(page).get_attribute("aria-valuemax")) == (23, "23")


def test_the_line_follows_what_is_typed_and_waits_while_that_is_no_row(open_page):
    page = open_page(LINE + INPUT)
    field(page)
    number = page.locator("#rows input[type=number]")
    for typed, row in (("", 12), ("99", 12), ("7.5", 12), ("7", 7)):
        number.fill(typed)
        assert value(page) == row, typed


def test_the_line_follows_a_value_that_the_page_sets_without_an_event(open_page):
    page = open_page(LINE + INPUT)
    field(page)
    page.evaluate("document.querySelector('#rows input').value = 5")
    expect(handle(page)).to_have_attribute("aria-valuenow", "5")


def test_of_a_stopped_picture_no_more_is_kept_than_there_is(open_page):
    page = open_page(LINE + INPUT.replace('max="23" value="12"', 'max="8" value="8"'))
    drag(page, (0.2, 0.2), (0.2, 0.9))
    assert (value(page), wanted(page)) == (8, 8)


def test_a_finger_moves_the_line_by_its_handle_and_sets_it_by_a_tap(open_page):
    page = open_page(LINE + INPUT, has_touch=True)
    touch(page, (0.9, 0.5), (0.9, 0.6), (0.9, 0.75))
    assert wanted(page) == 18
    box = field(page)
    for _ in range(5):  # on a busy machine a tap may last long enough to be a long press
        turn(page)  # a tap of its own, not the second half of a double one
        page.touchscreen.tap(box["x"] + 20, box["y"] + 0.25 * box["height"])
        turn(page, 300)
        if wanted(page) == 6:
            break
    assert wanted(page) == 6


def test_a_finger_elsewhere_scrolls_the_page_and_leaves_the_line(open_page):
    page = open_page(LINE + INPUT, has_touch=True)
    touch(page, (0.3, 0.9), (0.3, 0.7), (0.3, 0.4), (0.3, 0.2))
    assert wanted(page) == 12
    page.wait_for_function("scrollY > 20")


def test_another_picture_takes_the_place_of_the_first(open_page, tmp_path):
    page = open_page(LINE + INPUT)
    field(page)
    page.evaluate("""() => { const line = document.querySelector("ssd-keep-line");
      line.setAttribute("row", 20); line.setAttribute("src", "/blue.png"); }""")
    expect(page.locator("img")).to_have_attribute("src", "/blue.png")
    assert page.locator(".ssd-field").count() == 1


def test_off_the_page_the_line_follows_nothing(open_page):
    page = open_page(LINE + INPUT)
    field(page)
    page.evaluate("""() => { window.gone = document.querySelector("ssd-keep-line");
      gone.remove(); document.querySelector("#rows input").value = 3; }""")
    turn(page)
    assert page.evaluate("gone.slider.value") == 12 and page.locator(".ssd-field").count() == 0
