"""What an artist does on the stage, in a real browser: words, keys, tools, replay, phone."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.studio_visit import served, visits  # noqa: E402

from ssd_core.output.animation import can_write_mp4  # noqa: E402
from ssd_core.output.recipe import read_recipe  # noqa: E402
from studio.prompts import CHINESE_EXAMPLES  # noqa: E402

pytestmark = pytest.mark.slow
DESK = {"viewport": {"width": 1366, "height": 768}}
FORGOTTEN = """() => {
  const known = window.fetch;
  window.fetch = (address, ...rest) => String(address).includes("/studio/replay/")
    ? Promise.resolve(new Response("nothing to replay", { status: 404 }))
    : known(address, ...rest);
}"""

# The lines of pixels that a replay shows whole, from the top down.
REPLAYED = """() => {
  const canvas = document.querySelector('.ssd-replayed .ssd-pixels');
  const context = canvas.getContext('2d');
  const lines = Array.from({ length: canvas.height },
    (_, y) => context.getImageData(0, y, canvas.width, 1).data);
  const drawn = (line) => line.every((value, i) => i % 4 !== 3 || value === 255);
  const end = lines.findIndex((line) => !drawn(line));
  return lines.slice(0, end < 0 ? undefined : end).map((line) => [...line]);
}"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """The app as an artist has it: the bundled backbone in its own size."""
    with served(tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture(scope="module")
def page(chromium, app):
    """A window on a desk, opened once for all tests that need one."""
    with visits(chromium, app) as open_one:
        yield open_one(**DESK)


@pytest.fixture
def desk(page, app):
    page.tab("Create")
    page.page.evaluate("scrollTo(0, 0)")
    yield page
    app.drop_all()


def prompt(visitor):
    return visitor.page.locator("#prompt textarea").input_value()


def drawn_by(visitor, press):
    """Start a run by `press`, and wait for its tools."""
    visitor.drawn(press)
    visitor.until("done")
    visitor.page.locator("#create-stage .ssd-tools").wait_for()


def tool(visitor, name, stage="create-stage"):
    visitor.page.locator(f"#{stage} [data-tool={name}]").click()


def test_at_first_sight_the_picture_has_the_window_and_the_overlay_until_it_is_done(visit, app):
    """On a page of its own, since it is about a fresh one."""
    visitor = visit(**DESK)
    page = visitor.page
    page.get_by_role("button", name="Time", exact=True).click()
    page.get_by_role("button", name="at night", exact=True).click()
    page.get_by_role("button", name="Colour", exact=True).click()
    page.get_by_role("button", name="purple", exact=True).click()
    assert prompt(visitor) == "a purple house, at night"
    with app.holding():
        page.locator("#prompt textarea").press("Control+Enter")
        page.wait_for_selector("#create-stage .ssd-toggle[aria-pressed=true]")
    visitor.until("done")
    page.wait_for_selector("#create-stage .ssd-toggle[aria-pressed=false]")
    box = page.locator("#create-stage .ssd-picture").bounding_box()
    assert box["height"] >= 600 and box["y"] + box["height"] <= 768, box
    assert page.locator("#create-stage .ssd-heading").inner_text() == "Faithful"
    assert "normal decoding" in page.locator("#create-stage .ssd-figures").inner_text()
    assert read_recipe(app.pictures[-1])["prompt"] == prompt(visitor)

    before = len(app.pictures)
    visitor.fill("seed", 77)
    drawn_by(visitor, lambda: page.locator("#seed :is(input, textarea)").press("Enter"))
    assert read_recipe(app.pictures[-1])["seed"] == 77 and len(app.pictures) == before + 1
    page.get_by_role("button", name="Recent", exact=True).click()
    assert page.locator(".ssd-recent").first.inner_text() == prompt(visitor)
    tools_of_the_stage(visitor, app)
    copied_without_a_clipboard_of_the_browser(visitor)


def copied_without_a_clipboard_of_the_browser(visitor):
    """As on a page that another machine serves without https."""
    page = visitor.page
    page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    visitor.tab("History")
    page.locator("#history img").first.click()
    button = page.locator(".studio-details [data-copy]").first
    told = button.inner_text()
    for _ in range(2):  # a second click finds it copied already
        button.click()
        assert button.inner_text() == "Copied"
    page.wait_for_function("([one, told]) => one.textContent === told",
                           arg=[button.element_handle(), told])
    search = page.locator("#history-search :is(input, textarea)")
    search.click()
    page.keyboard.press("Control+V")
    assert search.input_value() == button.get_attribute("data-copy")


def tools_of_the_stage(visitor, app):
    """Full screen, comparison, replay with its films, redo in place, variations."""
    page = visitor.page
    tool(visitor, "full")
    image = page.locator("dialog .ssd-zoomed[data-scale]")
    fit = float(image.get_attribute("data-scale"))
    page.locator("dialog").press("+")
    page.wait_for_function("fit => +document.querySelector('.ssd-zoomed').dataset.scale > fit",
                           arg=fit)
    assert image.evaluate("one => getComputedStyle(one).imageRendering") == "pixelated"
    page.get_by_role("button", name="Close").click()
    tool(visitor, "compare")
    page.locator("dialog [role=slider]").wait_for()
    page.get_by_role("button", name="Close").click()

    tool(visitor, "replay")
    page.wait_for_selector(".ssd-scrub")
    page.wait_for_function("() => +document.querySelector('.ssd-scrub').value > 0")
    page.locator(".ssd-scrub").fill("400")
    page.wait_for_function("""() => /row [1-9]\\d* of 24/.test(
        document.querySelector('.ssd-replayed .ssd-figures')?.textContent)""")
    early = page.evaluate(REPLAYED)
    assert 0 < len(early) < 384, "not a part of the picture"
    with Image.open(app.pictures[-1]) as picture:
        whole = np.asarray(picture.convert("RGBA"))
    assert (np.array(early) == whole.reshape(384, -1)[: len(early)]).all(), "rows look coarse"
    with Image.open(film_saved(page, "Save as WebP", "replay.webp")) as moving:
        assert moving.n_frames > 3 and moving.size == (384, 384)
    if can_write_mp4():
        assert film_saved(page, "Save as MP4", "replay.mp4").read_bytes()[4:8] == b"ftyp"
    page.evaluate(FORGOTTEN)
    page.get_by_role("link", name="Save as WebP").click()
    page.get_by_text("nothing to replay").wait_for()  # the page still scrubs what it has
    page.locator(".ssd-scrub").fill("900")
    page.wait_for_function("() => !document.querySelector('.ssd-moment').textContent"
                           ".includes('nothing')")
    tool(visitor, "replay")

    saved = app.pictures[-1]
    tool(visitor, "redo")
    page.wait_for_selector("#redo-stage [role=slider]")
    assert saved.stem in page.locator("#redo-stage ssd-keep-line").get_attribute("src")
    visitor.fill("prompt", "a green tree on the right, at dawn")
    page.keyboard.press("Control+Enter")
    visitor.until("done", "redo-stage")
    redone = read_recipe(app.pictures[-1])
    assert redone["keep_rows"] == 12 and redone["prompt"].startswith("a green tree")

    visitor.fill("prompt", "a tent")
    tool(visitor, "vary", "redo-stage")
    page.wait_for_selector("#seeds-grid .ssd-seed")
    middle = page.locator("#seeds-grid .ssd-seed-label").nth(4).inner_text()
    assert middle == f"seed {redone['seed']}" and prompt(visitor) == "a tent", "typed since"


def film_saved(page, link, name):
    """The film that a click on this link saves."""
    with page.expect_download() as saved:
        page.get_by_role("link", name=link).click()
    assert saved.value.suggested_filename == name
    return Path(saved.value.path())


def test_on_a_phone_tabs_prompt_and_stage_come_first_and_the_rest_folds(visit):
    visitor = visit(viewport={"width": 390, "height": 844}, has_touch=True, locale="zh-CN")
    page = visitor.page
    page.wait_for_selector(".studio-fold")
    assert prompt(visitor) == CHINESE_EXAMPLES[0]
    places = [page.locator(one).first.bounding_box()["y"] for one in (
        "#tabs .tab-wrapper", "#prompt", "#chips .ssd-kind", ".studio-fold", "#create-stage")]
    assert places == sorted(places) and places[-1] < 600
    assert not page.locator("#speed").is_visible()
    page.click(".studio-fold")
    page.locator("#speed").wait_for()
    page.locator(".ssd-kind").first.click()
    page.get_by_role("button", name="城堡", exact=True).click()
    assert "城堡" in prompt(visitor)
    drawn_by(visitor, lambda: page.click("#draw"))
    two_fingers_zoom_the_picture(visitor)


def test_on_a_phone_tabs_that_draw_nothing_have_the_screen_for_themselves(visit):
    page = visit(viewport={"width": 390, "height": 844}, has_touch=True).page
    page.wait_for_selector(".studio-fold")
    for tab, shown in (("history", False), ("seeds", True), ("backbones", False),
                       ("doctor", False), ("create", True)):
        page.locator(f"[data-tab-id={tab}]").last.click()
        page.wait_for_selector(f"[data-tab-id={tab}][aria-selected=true]", state="attached")
        assert page.locator("#prompt").is_visible() is shown, tab
        assert page.locator(".studio-fold").is_visible() is shown, tab


def test_draw_and_the_picture_stay_in_sight_while_settings_are_scrolled(desk):
    drawn_by(desk, lambda: desk.page.click("#draw"))
    desk.expert()
    desk.page.locator("#min_p").scroll_into_view_if_needed()
    desk.page.wait_for_function("() => scrollY > 400")
    for there in ("#draw", "#create-stage .ssd-picture"):
        box = desk.page.locator(there).bounding_box()
        assert 0 <= box["y"] and box["y"] + box["height"] <= 768, there


def test_the_verdict_of_a_race_is_in_sight(desk):
    page = desk.page
    page.locator("[data-tab-id=race]").last.click()
    page.click("#race")
    page.wait_for_function("() => document.querySelector('#race-status p')?.innerText.trim()")
    told = page.locator("#race-status").bounding_box()
    assert page.evaluate("scrollY") == 0 and told["y"] + told["height"] <= 768


def test_experts_see_the_knobs_of_the_chosen_method_only(desk, app):
    desk.expert()

    def seen(name):
        return desk.page.locator(f"#{name}").is_visible()

    desk.page.locator("#window").wait_for()
    assert seen("cfg") and not seen("k_h") and not seen("group")
    desk.choose("method", "ssd")
    desk.page.locator("#k_h").wait_for()
    assert not seen("window") and seen("rounds") and seen("cfg")
    desk.fill("k_h", 3)
    desk.choose("method", "gsd")
    desk.page.locator("#group").wait_for()
    assert not seen("k_h")
    desk.choose("method", "ssd")
    desk.page.locator("#k_h").wait_for()
    assert desk.page.locator("#k_h input").input_value() == "3", "a hidden knob keeps its value"
    drawn_by(desk, lambda: desk.page.click("#draw"))
    assert read_recipe(app.pictures[-1])["knobs"]["k_h"] == 3


def test_the_list_of_pictures_stays_where_it_is_when_one_is_chosen(desk):
    drawn_by(desk, lambda: desk.page.click("#draw"))
    desk.tab("History")
    first = desk.page.locator("#history img").first
    desk.page.wait_for_selector(".studio-pick")
    assert not desk.page.locator("#history-restore").is_visible(), "there is none to restore"
    before = first.bounding_box()
    first.click()
    desk.page.wait_for_selector(".studio-details img")
    assert first.bounding_box() == before
    assert desk.page.locator("#history-restore").is_visible()


def test_a_search_keeps_the_picture_that_is_looked_at(desk):
    page, pictures = desk.page, desk.page.locator("#history .thumbnail-item")
    for seed in (7101, 7102):
        desk.lock(seed)
        drawn_by(desk, lambda: page.click("#draw"))
    desk.tab("History")
    pictures.nth(1).click()
    page.wait_for_selector(".studio-details h3:has-text('-7101-')")
    for search, place in (("7101", 0), ("", 1)):
        desk.fill("history-search", search)
        page.wait_for_function(
            "(n) => document.querySelectorAll('#history .thumbnail-item')[n]"
            "?.classList.contains('selected')", arg=place)
        assert page.locator("#history .selected").count() == 1
        assert "-7101-" in page.locator(".studio-details h3").inner_text()
    desk.fill("history-search", "7102")
    page.wait_for_selector(".studio-details", state="detached")


def two_fingers_zoom_the_picture(visitor):
    tool(visitor, "full")
    scale = "() => +document.querySelector('.ssd-zoomed').dataset.scale"
    visitor.page.wait_for_function(scale)
    fit, touch = visitor.page.evaluate(scale), visitor.page.context.new_cdp_session(visitor.page)
    for kind, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 120),
                        ("touchEnd", None)):
        points = [] if apart is None else [{"x": 195 + side * apart, "y": 400, "id": n}
                                           for n, side in enumerate((-1, 1))]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert visitor.page.evaluate(scale) == pytest.approx(3 * fit, rel=0.02)
