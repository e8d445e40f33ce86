"""The history on few visits: finding, choosing, deleting, looking closely, and drawing on."""

import base64
import shutil
import zipfile
from io import BytesIO
from time import sleep

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")

from PIL import Image  # noqa: E402
from support.moments import DROP  # noqa: E402
from support.page_moments import laid_out  # noqa: E402
from support.preview_run import FORGET  # noqa: E402
from support.small_bundle import PIXELS, SIDE  # noqa: E402
from support.studio_page import drawn, fill_history, places  # noqa: E402
from support.studio_visit import answer, tokens_of  # noqa: E402

expect = playwright.expect
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
WORDS = ("a red house on the left, on a lake, hills behind, in the rain, at sunset",
         "a blue boat on the left, on a lake, hills behind, under a clear sky, at noon")


@pytest.fixture(scope="module")
def originals(app, tmp_path_factory):
    """Two pictures of other words and seeds, which tests copy into the history."""
    folder = tmp_path_factory.mktemp("originals")
    made = [drawn(app, prompt=words, seed=str(7 + n), method="rolling", fewer=12, expand=False)
            for n, words in enumerate(WORDS)]
    return [shutil.copy(path, folder / f"{n}.png") for n, path in enumerate(made)]


@pytest.fixture
def open_place(chromium, app):
    with places(chromium, app) as open_one:
        yield open_one


@pytest.fixture
def history(app, originals):
    """Goes to the place with six pictures: house, boat, house ..., and the ids of them."""
    def begin(page):
        leave(page)
        begin.ids = fill_history(app, originals * 3)
        page.goto(f"{app.address}#history")
        expect(page.locator(".picture")).to_have_count(6)

    return begin


def leave(page):
    """Leave the page, which then asks for no picture that is gone."""
    page.evaluate(FORGET)  # else the page goes on with the shown one
    page.goto("about:blank")


def sideways(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def chosen(page):
    return page.locator(".picture.chosen").evaluate_all("all => all.map(one => one.dataset.id)")


def drop(page, data, name, kind):
    page.evaluate(DROP, [base64.b64encode(data).decode(), name, kind])


def test_a_visit_to_six_pictures(open_place, app, history, originals):
    page = open_place("history")
    they_are_found_by_words_by_seed_and_by_favourites(page, history)
    several_are_chosen_deleted_and_brought_back(page, history, app)
    one_tells_its_facts_and_gives_its_settings(page, history)
    page.fill("#prompt", "")
    a_dropped_one_restores_its_settings(page, originals)
    files_that_are_no_pictures_are_refused_in_words(page)


def they_are_found_by_words_by_seed_and_by_favourites(page, history):
    history(page)
    expect(page.locator(".picture-title").first).to_have_text(WORDS[0])
    page.fill("#history-search", "boat")
    expect(page.locator(".picture")).to_have_count(3)
    page.fill("#history-search", "7")
    expect(page.locator(".picture-title").first).to_have_text(WORDS[0])
    page.fill("#history-search", "giraffe")
    expect(page.locator("#history-hint")).to_contain_text("No picture matches")
    page.fill("#history-search", "")
    expect(page.locator(".picture")).to_have_count(6)
    page.locator(".picture-open").nth(2).press("f")
    expect(page.locator(".picture.favourite")).to_have_count(1)
    page.click("#history-only")
    expect(page.locator(".picture")).to_have_count(1)
    assert page.locator(".picture").get_attribute("data-id") == history.ids[2]
    assert sideways(page) <= 0


def several_are_chosen_deleted_and_brought_back(page, history, app):
    history(page)
    page.locator(".picture").nth(1).hover()
    page.locator(".picture-check").nth(1).click()
    page.locator(".picture-check").nth(3).click(modifiers=["Shift"])
    assert chosen(page) == history.ids[1:4]
    expect(page.locator(".acting strong")).to_have_text("3 chosen")
    status, packed = answer(app, page.locator("#chosen-zip").get_attribute("href").lstrip("/"))
    names = zipfile.ZipFile(BytesIO(packed)).namelist()
    assert status == 200 and [name.split("-")[1] for name in names] == ["blue", "red", "blue"]
    page.click("#chosen-remove")
    expect(page.locator(".picture")).to_have_count(3)
    assert len(app.pictures) == 3
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".picture")).to_have_count(6)
    assert len(app.pictures) == 6


def one_tells_its_facts_and_gives_its_settings(page, history):
    history(page)
    page.locator(".picture-open").nth(1).click()
    panel = page.locator("#picture-panel")
    expect(panel.locator("h2")).to_have_text(WORDS[1])
    expect(page.locator(".picture-open").nth(1)).to_be_focused()
    expect(panel.locator(".facts")).to_contain_text("8")
    page.locator("[data-action=restore]").click()
    expect(page.locator("#create")).to_be_visible()
    expect(page.locator("#prompt")).to_have_value(WORDS[1])
    expect(page.locator("#seed")).to_have_value("8")
    expect(page.get_by_role("radio", name="Fast")).to_be_checked()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#prompt")).to_have_value("")


def a_dropped_one_restores_its_settings(page, originals):
    page.wait_for_selector("#incoming", state="attached")
    drop(page, originals[1].read_bytes(), "boat.png", "image/png")
    expect(page.locator("#prompt")).to_have_value(WORDS[1])
    expect(page.locator(".toast")).to_contain_text("restored from boat.png")


def files_that_are_no_pictures_are_refused_in_words(page):
    page.wait_for_selector("#incoming", state="attached")
    drop(page, b"hello", "notes.txt", "text/plain")
    expect(page.locator(".toast.bad")).to_contain_text(
        "notes.txt is not a picture. Use PNG, JPEG, WebP, AVIF")


@pytest.mark.nightly
def test_a_visit_to_many_pictures(open_place, app, originals):
    ids = fill_history(app, originals * 30)
    page = open_place("history")
    more_come_as_one_scrolls(page, ids)
    page.set_viewport_size({"width": 1920, "height": 2000})
    page.reload()
    expect(page.locator(".picture")).to_have_count(60)  # without scrolling
    new_ones_appear_before_the_others(page, app, originals)


def more_come_as_one_scrolls(page, ids):
    expect(page.locator(".picture")).to_have_count(48)
    page.locator("#history-more").scroll_into_view_if_needed()
    expect(page.locator(".picture")).to_have_count(60)
    shown = page.locator(".picture").evaluate_all("all => all.map(one => one.dataset.id)")
    assert shown == ids
    expect(page.locator("#history-more")).to_be_hidden()


def new_ones_appear_before_the_others(page, app, originals):
    page.goto(f"{app.address}#create")
    expect(page.locator("#create")).to_be_visible()
    shutil.copy(originals[1], app.services.history.folder / "2026-01-02" / "130000.png")
    page.goto(f"{app.address}#history")
    expect(page.locator(".picture")).to_have_count(61)
    expect(page.locator(".picture-title").first).to_have_text(WORDS[1])


@pytest.mark.nightly
def test_a_visit_by_keys(open_place, app, history):
    page = open_place("history", permissions=["clipboard-read", "clipboard-write"])
    they_reach_choose_and_delete(page, history, app)
    two_are_compared_by_a_line_that_keys_and_pointer_move(page, history)
    escape_closes_a_picture_and_returns_to_it(page, history)
    the_viewer_zooms_moves_and_goes_to_the_next(page, history)
    a_picture_is_copied_and_pasted(page, history)
    a_picture_is_saved_in_any_format(page, history, app)


def they_reach_choose_and_delete(page, history, app):
    history(page)
    page.locator(".picture-open").first.focus()
    for key in ("ArrowRight", "x", "End", "x", "Home"):
        page.keyboard.press(key)
    assert chosen(page) == [history.ids[1], history.ids[5]]
    tabbed = page.locator(".pictures [tabindex='0']")
    assert tabbed.evaluate_all("all => new Set(all.map(one => one.closest('li'))).size") == 1
    page.keyboard.press("Delete")
    expect(page.locator(".picture")).to_have_count(5)
    assert page.evaluate("document.activeElement.closest('li').dataset.id") == history.ids[1]
    assert len(app.pictures) == 5


def two_are_compared_by_a_line_that_keys_and_pointer_move(page, history):
    """Also where the style sheet comes late, without which the line has no room."""
    history(page)
    page.route("**/viewer.css", lambda route: (sleep(0.5), route.continue_()))
    for n in (0, 1):
        page.locator(".picture-open").nth(n).press("x")
    page.click("#chosen-compare")
    line = page.locator(".viewer [type=range]")
    expect(line).to_be_focused()
    expect(page.locator(".viewer-stamp").first).to_contain_text("a red house")
    page.keyboard.press("ArrowRight")
    expect(line).to_have_value("51")
    box = page.locator(".viewer-field").bounding_box()
    page.mouse.click(box["x"] + 0.4 * box["width"], box["y"] + 40)
    expect(line).to_have_value("40")
    page.keyboard.press("Escape")
    expect(page.locator(".viewer")).to_have_count(0)


def escape_closes_a_picture_and_returns_to_it(page, history):
    history(page)
    page.locator(".picture-open").nth(2).click()
    expect(page.locator("#picture-panel h2")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#picture-panel")).to_be_hidden()
    expect(page.locator(".picture-open").nth(2)).to_be_focused()


def the_viewer_zooms_moves_and_goes_to_the_next(page, history):
    history(page)
    page.locator(".picture-open").first.dblclick()
    share, image = page.locator(".viewer-share"), page.locator(".viewer-image")
    expect(share).to_contain_text("%")
    fitting = share.inner_text()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".viewer-label")).to_contain_text("2 of 6")
    expect(image).to_have_js_property("complete", True)
    laid_out(page)
    page.keyboard.press("1")
    expect(share).to_have_text("100 %")
    page.keyboard.press("0")
    expect(share).to_have_text(fitting)
    for _ in range(4):
        page.keyboard.press("+")
    before = image.bounding_box()
    page.keyboard.press("ArrowRight")  # now it moves
    assert image.bounding_box()["x"] < before["x"]
    expect(page.locator(".viewer-label")).to_contain_text("2 of 6")
    page.mouse.move(400, 300)
    page.mouse.wheel(0, -200)
    assert image.bounding_box()["width"] > before["width"]
    page.keyboard.press("Escape")
    expect(page.locator(".viewer")).to_have_count(0)


def a_picture_is_copied_and_pasted(page, history):
    history(page)
    page.locator(".picture-open").first.click()
    page.click("#picture-panel [data-tool=send]")
    page.locator("[data-action=copy]").click()
    expect(page.locator(".toast").last).to_contain_text("Picture copied")
    page.keyboard.press("Control+v")
    expect(page.locator(".of-file")).to_contain_text("image.png holds no settings")


def a_picture_is_saved_in_any_format(page, history, app):
    history(page)
    page.locator(".picture-open").first.click()
    page.click("#picture-panel [data-tool=send]")
    links = page.locator("#picture-panel .menu a").evaluate_all(
        "all => all.map(one => one.getAttribute('href'))")
    assert links[0].startswith("api/send?id=")
    saved = [Image.open(BytesIO(answer(app, link.lstrip("/"))[1])) for link in links[1:]]
    assert [image.format for image in saved] == ["PNG", "PNG", "JPEG", "WEBP"]
    assert [image.width // PIXELS for image in saved] == [1, 2, 1, 1]


@pytest.mark.nightly
def test_a_visit_by_phone(open_place, history):
    page = open_place("history", **PHONE)
    it_reaches_everything(page, history)
    a_long_press_chooses_and_opens_nothing(page, history)


def it_reaches_everything(page, history):
    history(page)
    assert sideways(page) <= 0
    page.locator(".picture-open").nth(1).tap()
    expect(page.locator("#picture-panel h2")).to_have_text(WORDS[1])
    for action in ("restore", "edit", "seeds", "delete", "favourite"):
        page.locator(f"[data-action={action}]").scroll_into_view_if_needed()
    page.tap("#picture-panel [data-tool=send]")
    expect(page.locator("[data-action=copy]")).to_be_in_viewport()
    page.keyboard.press("Escape")
    assert sideways(page) <= 0
    page.locator("[data-action=close]").tap()
    page.tap("#history-pick")
    for n in (0, 1):
        page.locator(".picture-open").nth(n).tap()
    page.tap("#chosen-compare")
    expect(page.locator(".viewer")).to_be_visible()
    assert sideways(page) <= 0


def a_long_press_chooses_and_opens_nothing(page, history):
    history(page)
    finger = {"pointerType": "touch", "pointerId": 5, "isPrimary": True}
    picture = page.locator(".picture-open").nth(2)
    picture.dispatch_event("pointerdown", finger)
    expect(page.locator(".acting")).to_be_visible()
    picture.dispatch_event("pointerup", finger)
    picture.dispatch_event("click")
    assert chosen(page) == [history.ids[2]]
    expect(page.locator("#picture-panel")).to_be_hidden()
    picture.press("Escape")
    assert chosen(page) == []


@pytest.mark.nightly
def test_a_visit_that_draws_on(open_place, app, history, originals):
    page = open_place("history")
    a_picture_is_redone_below_the_line(page, history, app, originals)
    one_without_settings_is_edited_from_its_pixels(page, history, app, originals)
    other_seeds_with_the_settings_of_a_picture_are_drawn_on_seeds(page, history)


def redo(page, number):
    page.locator(".picture-open").nth(number).click()
    page.locator("[data-action=edit]").click()
    page.get_by_role("radio", name="Below a line").check(force=True)
    return page.get_by_role("slider", name="Line above which the picture is kept")


def a_picture_is_redone_below_the_line(page, history, app, originals):
    history(page)
    line = redo(page, 0)
    expect(page.locator("#prompt")).to_have_value(WORDS[0])
    line.press("End")
    expect(page.locator("#edit-rows")).to_have_value("1")
    page.fill("#edit-rows", "5")
    expect(line).to_have_attribute("aria-valuetext", f"Keep 5 of {SIDE} rows")
    page.fill("#edit-rows", "99")
    page.keyboard.press("Tab")
    expect(page.locator("#edit-rows")).to_have_value("5")
    page.fill("#seed", "99")
    page.keyboard.press("Tab")
    page.click("#edit-apply")
    expect(page.locator("#steps button")).to_have_count(2)
    old, new = tokens_of(originals[0]), tokens_of(app.pictures[-1])
    assert old[:5].equal(new[:5]) and not old[5:].equal(new[5:])


def one_without_settings_is_edited_from_its_pixels(page, history, app, originals):
    history(page)
    page.evaluate("location.hash = 'create'")
    page.wait_for_selector("#incoming", state="attached")
    photo = BytesIO()
    Image.open(originals[0]).save(photo, "JPEG")
    drop(page, photo.getvalue(), "photo.jpg", "image/jpeg")
    page.click("#edit-file")
    expect(page.locator("#status")).to_contain_text("its pixels are read")
    page.fill("#prompt", WORDS[1])
    page.get_by_role("radio", name="Below a line").check(force=True)
    page.click("#edit-apply")
    expect(page.locator("#steps button")).to_have_count(2)
    page.goto(f"{app.address}#history")
    expect(page.locator(".picture")).to_have_count(8)
    page.locator(".picture-open").first.click()
    page.locator("[data-action=source]").click()
    photo_id = app.pictures[-2].relative_to(app.services.history.folder).as_posix()
    expect(page.locator(".panel-picture img")).to_have_attribute(
        "src", f"studio/picture/{photo_id}")


def other_seeds_with_the_settings_of_a_picture_are_drawn_on_seeds(page, history):
    history(page)
    page.locator(".picture-open").nth(1).click()
    page.locator("[data-action=seeds]").click()
    expect(page.locator("#seeds .likes")).to_be_visible()
    page.click("#seeds-start")
    expect(page.locator("#seeds")).to_contain_text("seed 8")
