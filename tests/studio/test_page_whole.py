"""The page as a whole: how it opens, its places on every screen, languages, colours, bad lines."""

import re

import pytest
from support.page_moments import laid_out

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import PROMPT, served  # noqa: E402

pytestmark = pytest.mark.slow

PLACES = ("create", "race", "seeds", "history", "models", "doctor")
PHONE = {"width": 390, "height": 844}
PICTURES = re.compile(r"/studio/examples/|/api/thumbnail/|icon\.svg")
MOST_REQUESTS = 30  # until the page can be used, pictures not counted
WIDER = """() => [...document.querySelectorAll("body *")].filter(element => {
  const box = element.getBoundingClientRect();
  const scrolls = (node) => node && (getComputedStyle(node).overflowX !== "visible"
    || scrolls(node.parentElement));
  return box.width && box.right > innerWidth + 1 && !scrolls(element.parentElement);
}).map(element => element.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def drawn(app, chromium):
    """The app with a picture in its history."""
    from support.studio_visit import visits

    with visits(chromium, app) as visit:
        visitor = visit()
        visitor.page.fill("#prompt", PROMPT)
        visitor.draw()
    return app


def test_few_requests_are_made_until_the_page_can_be_used(visit):
    visitor = visit()
    page = visitor.page
    ready = page.evaluate("() => performance.getEntriesByName('usable')[0].startTime")
    entries = page.evaluate("""() => performance.getEntriesByType("resource").map(
        ({ name, startTime }) => [name, startTime])""")
    asked = [name for name, start in entries if start <= ready and not PICTURES.search(name)]
    assert 1 + len(asked) <= MOST_REQUESTS, asked


def test_nothing_is_asked_of_any_other_machine(visit, drawn):
    visitor = visit()
    for place in PLACES:
        visitor.go(place)
    assert visitor.asked
    other = [url for url in visitor.asked if not url.startswith((drawn.address, "data:", "blob:"))]
    assert other == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.by_day(1)
def test_axe_finds_nothing_in_any_place(visit, drawn, violations, scheme):
    visitor = visit(color_scheme=scheme)
    for place in PLACES:
        visitor.go(place)
        laid_out(visitor.page)
        assert violations(visitor.page) == [], place


@pytest.mark.nightly
def test_axe_finds_nothing_beside_a_picture_and_in_open_menus(visit, drawn, violations):
    visitor = visit()
    page = visitor.page
    page.locator("#filmstrip button").first.click()
    expect(page.locator("#tools")).to_be_visible()
    visitor.unfold("#more", ".expert")
    page.click("#gear")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.click("[data-tool=compare]")
    page.wait_for_selector(".compare-list > *")
    assert violations(page) == []


@pytest.mark.parametrize("width", [390, 768, 1366])
@pytest.mark.by_day(1)
def test_no_place_is_wider_than_the_window(visit, drawn, width):
    visitor = visit(viewport={"width": width, "height": 844})
    page = visitor.page
    for place in PLACES:
        visitor.go(place)
        laid_out(page)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, (
            place, page.evaluate(WIDER))
        assert page.evaluate(WIDER) == [], place


@pytest.mark.nightly
def test_on_a_phone_prompt_and_draw_are_in_the_first_screen(visit):
    page = visit(viewport=PHONE).page
    for name in ("#prompt", "#draw"):
        box = page.locator(name).bounding_box()
        assert box["y"] + box["height"] < PHONE["height"], name


def test_the_page_speaks_the_language_of_the_browser(visit):
    page = visit(locale="zh-CN").page
    expect(page.locator("#draw")).to_have_text("绘制")
    assert page.get_attribute("html", "lang") == "zh"


@pytest.mark.nightly
def test_a_language_can_be_forced(chromium, small_assets, tmp_path):
    from support.small_bundle import small_bundle
    from support.studio_visit import visits

    with small_bundle(small_assets), served(tmp_path, language="zh") as app:
        with visits(chromium, app) as visit:
            expect(visit(locale="en-GB").page.locator("#draw")).to_have_text("绘制")


@pytest.mark.nightly
def test_the_appearance_is_a_choice_that_a_reload_keeps(visit):
    visitor = visit(color_scheme="light")
    page = visitor.page
    background = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click("#gear")
    page.get_by_role("radio", name="Dark").check(force=True)
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    visitor.ready()
    assert page.evaluate(background) == dark


def test_an_address_leads_to_its_place_and_an_unknown_one_to_create(visit, app):
    assert visit(f"{app.address}#seeds").page.locator("#seeds").is_visible()
    assert visit(f"{app.address}#nowhere").page.locator("#create").is_visible()


def test_a_lost_server_is_told_and_when_it_is_back_the_run_goes_on(visit, app):
    visitor = visit()
    page = visitor.page
    page.fill("#prompt", PROMPT)
    with app.holding():
        page.click("#draw")
        expect(page.locator("#create-stage .ssd-summary")).to_contain_text(re.compile("row [3-9]"))
        lost = re.compile("/api/(feed|jobs)")
        page.route(lost, lambda route: route.abort())
        expect(page.locator("#status")).to_contain_text("does not answer")
        page.unroute(lost)
        expect(page.locator("#status")).not_to_contain_text("does not answer")
    page.wait_for_selector("#create-stage [data-state=done]")
