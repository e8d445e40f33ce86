"""The page as a whole, on few visits: how it opens, its places, a lost server, looks, languages."""

import re

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import PROMPT, served  # noqa: E402

PLACES = ("create", "race", "seeds", "history", "models", "doctor")
PICTURES = re.compile(r"/studio/examples/|/api/thumbnail/|icon\.svg")
MOST_REQUESTS = 31  # until the page can be used, pictures not counted
ROWS = re.compile("row [3-9]")  # where `app.holding` holds a run


def test_a_visit_to_every_place_in_which_the_server_is_lost_for_a_while(visit, app):
    visitor = visit(f"{app.address}#nowhere")
    page = visitor.page
    assert page.locator("#create").is_visible(), "an unknown address leads to Create"
    few_requests_were_made(page)
    the_server_is_lost_while_it_draws(visitor, app)
    for place in PLACES:
        visitor.go(place)
    other = [url for url in visitor.asked if not url.startswith((app.address, "data:", "blob:"))]
    assert visitor.asked and other == [], "nothing is asked of any other machine"


def few_requests_were_made(page):
    ready = page.evaluate("() => performance.getEntriesByName('usable')[0].startTime")
    entries = page.evaluate("""() => performance.getEntriesByType("resource").map(
        ({ name, startTime }) => [name, startTime])""")
    asked = [name for name, start in entries if start <= ready and not PICTURES.search(name)]
    assert 1 + len(asked) <= MOST_REQUESTS, asked


def the_server_is_lost_while_it_draws(visitor, app):
    """It is told; once the server is back the run goes on."""
    page = visitor.page
    page.fill("#prompt", PROMPT)
    with app.holding():
        page.click("#draw")
        expect(page.locator("#create-stage .ssd-summary")).to_contain_text(ROWS)
        lost = re.compile("/api/(feed|jobs)")
        page.route(lost, lambda route: route.abort())
        expect(page.locator("#lost")).to_contain_text("does not answer")
        page.unroute(lost)
        expect(page.locator("#lost")).to_be_empty()
    page.wait_for_selector("#create-stage [data-state=done]")


@pytest.mark.nightly
def test_a_visit_with_open_menus_and_another_appearance(visit, app, violations):
    visitor = visit(color_scheme="light")
    page = visitor.page
    page.fill("#prompt", PROMPT)
    visitor.draw()
    page.locator("#filmstrip button").first.click()
    expect(page.locator("#tools")).to_be_visible()
    visitor.unfold("#more", ".expert")
    page.click("#gear")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.click("[data-tool=compare]")
    page.wait_for_selector(".compare-list > *")
    assert violations(page) == []
    page.keyboard.press("Escape")
    the_appearance_is_a_choice_that_a_reload_keeps(visitor)


def the_appearance_is_a_choice_that_a_reload_keeps(visitor):
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


@pytest.mark.nightly
def test_a_language_can_be_forced(chromium, small_assets, tmp_path):
    from support.small_bundle import small_bundle
    from support.studio_visit import visits

    with small_bundle(small_assets), served(tmp_path, language="zh") as app:
        with visits(chromium, app) as visit:
            expect(visit(locale="en-GB").page.locator("#draw")).to_have_text("绘制")
