"""A click on the page counts although the page changes between pressing and releasing."""

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect



def test_what_is_filled_in_does_not_move_the_button_that_is_pressed(visit):
    page = visit().page
    page.get_by_text("What postcard can draw").click()
    before = page.locator(".kind").first.bounding_box()["y"]
    held = []
    page.route("**/api/plan", lambda route: held.append(route))
    page.fill("#prompt", "a red house")
    while not held:
        page.wait_for_timeout(50)
    kind = page.locator(".kind", has_text="Colour")
    box = kind.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    with page.expect_response("**/api/plan"):
        held.pop().continue_()
    page.wait_for_timeout(300)
    page.mouse.up()
    expect(kind).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#filled .pin").first).to_be_visible()
    assert page.locator(".kind").first.bounding_box()["y"] > before + 20, "nothing moved it"
