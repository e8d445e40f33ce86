"""The prompt of Create on few visits: words to click, fill-ins, unknown words, alternatives."""

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.studio_visit import PROMPT  # noqa: E402

from ssd_core.backbones.prompts.alternatives import resolved  # noqa: E402
from ssd_core.output.recipe import read_recipe  # noqa: E402
from ssd_core.output.words import drawn_words  # noqa: E402

# Where the text area, the layer behind it and the box around both begin and end.
PLACES = """() => {
  const box = document.querySelector(".prompt-box");
  const parts = [...box.querySelectorAll("textarea, .prompt-layer")];
  const sizes = parts.map((part) => [part.offsetTop, part.offsetLeft, part.clientWidth,
    part.offsetHeight, part.scrollHeight, part.scrollTop]);
  return { sizes, scrolled: box.scrollTop, whole: box.scrollHeight, seen: box.clientHeight };
}"""


def click(page, *names):
    for name in names:
        page.get_by_role("button", name=name, exact=True).click()


def filled(page):
    return page.locator("#filled .pin")


def test_a_visit_to_the_words_of_a_prompt(visit, app):
    visitor = visit()
    page = visitor.page
    words_are_clicked_by_kind_and_a_second_click_takes_them_back(page)
    an_unknown_one_is_underlined_and_a_click_takes_the_nearest_known_one(page)
    what_is_filled_in_can_be_written_into_the_prompt_or_left_open(page, visitor, app)


def words_are_clicked_by_kind_and_a_second_click_takes_them_back(page):
    page.get_by_text("What postcard can draw").click()
    expect(page.locator(".kind")).to_have_count(7)
    click(page, "Colour")
    expect(page.get_by_role("button", name="purple")).to_be_disabled()
    click(page, "Thing", "house", "Colour", "purple", "Time", "at night")
    expect(page.locator("#prompt")).to_have_value("a purple house, at night")
    expect(page.locator(".chip", has_text="at night")).to_have_attribute("aria-pressed", "true")
    click(page, "at night")
    expect(page.locator("#prompt")).to_have_value("a purple house")
    click(page, "Time")
    expect(page.locator("#word-chips")).to_be_hidden()


def an_unknown_one_is_underlined_and_a_click_takes_the_nearest_known_one(page):
    page.fill("#prompt", "a red hous, near a zzxq")
    marks = page.locator(".prompt-layer mark")
    expect(marks).to_have_text(["hous", "zzxq"])
    box = marks.first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.click("#nearest")
    expect(page.locator("#prompt")).to_have_value("a red house, near a zzxq")
    expect(marks).to_have_text(["zzxq"])
    page.keyboard.press("Control+z")
    expect(page.locator("#prompt")).to_have_value("a red hous, near a zzxq")
    page.fill("#prompt", "a red hous, a blue hous, near a zzxq")
    page.get_by_role("button", name="hous → house").press("Enter")
    expect(page.locator("#prompt")).to_have_value("a red house, a blue house, near a zzxq")
    expect(page.locator("#prompt-notes .question")).to_contain_text("zzxq")


def what_is_filled_in_can_be_written_into_the_prompt_or_left_open(page, visitor, app):
    page.fill("#prompt", "")
    expect(page.locator("#filled")).to_be_hidden()
    page.fill("#prompt", "a red house")
    expect(filled(page).nth(3)).to_be_visible()
    first, second, *others = filled(page).all_inner_texts()
    filled(page).nth(0).focus()
    page.keyboard.press("Delete")
    expect(filled(page)).to_have_text([second, *others])
    filled(page).nth(0).click()
    expect(page.locator("#prompt")).to_be_focused()
    expect(filled(page)).to_have_text(others)
    typed = page.input_value("#prompt")
    assert second in typed and first not in typed
    visitor.draw()
    words = drawn_words(read_recipe(app.pictures[-1])).prompt
    assert all(other in words for other in others) and first not in words.split()


def test_a_visit_in_chinese(visit):
    visitor = visit(locale="zh-CN")
    page = visitor.page
    expect(page.locator("#draw")).to_have_text("绘制")
    assert page.get_attribute("html", "lang") == "zh"
    page.get_by_text("postcard 能画什么").click()
    click(page, "事物", "房子", "颜色", "红色")
    expect(page.locator("#prompt")).to_have_value("红色的房子")
    expect(filled(page).first).to_be_visible()
    page.fill("#prompt", "红色的房子，恐龙")
    expect(page.locator(".prompt-layer mark")).to_have_text("恐龙")
    page.fill("#prompt", "红色的房子")
    visitor.draw()
    expect(page.locator("#status")).to_contain_text("与模型原样一致。点击")


@pytest.mark.nightly
def test_a_visit_to_what_is_said_of_a_prompt(visit, app):
    visitor = visit()
    page = visitor.page
    other_words_are_filled_in_with_another_seed_or_none_at_all(page)
    the_layer_grows_and_scrolls_with_the_text(page)
    what_is_said_of_the_words_stands_below_them(page)
    one_alternative_is_drawn_by_the_seed_or_each_of_them(page)


def other_words_are_filled_in_with_another_seed_or_none_at_all(page):
    page.fill("#prompt", "a red house")
    expect(filled(page).first).to_be_visible()
    before, seed = filled(page).all_inner_texts(), page.input_value("#seed")
    for _ in range(5):  # a seed may fill in the same ones
        with page.expect_response("**/api/plan"):
            page.click("#fill-other")
        assert page.input_value("#seed") != seed
        if filled(page).all_inner_texts() != before:
            break
    expect(filled(page)).not_to_have_text(before)
    page.uncheck("#expand")
    expect(page.locator("#filled")).to_be_hidden()
    page.check("#expand")
    expect(filled(page).first).to_be_visible()


def the_layer_grows_and_scrolls_with_the_text(page):
    lines = "\n".join(["a house"] * 11)
    for text, grown in (("a hous", False), (f"{lines}\n", True)):
        page.fill("#prompt", text)
        places = page.evaluate(PLACES)
        assert places["sizes"][0] == places["sizes"][1], places
        assert (places["whole"] > places["seen"]) is grown
    page.press("#prompt", "Control+End")
    page.keyboard.type("a zzxq")
    expect(page.locator(".prompt-layer mark").last).to_have_text("zzxq")
    places = page.evaluate(PLACES)
    assert places["sizes"][0] == places["sizes"][1]
    below = places["whole"] - places["seen"] - places["scrolled"]
    assert places["scrolled"] > 0 and below <= 10, "the last line is in sight"


def what_is_said_of_the_words_stands_below_them(page):
    page.fill("#prompt", "a house, no trees, a purple sky")
    notes = page.locator("#prompt-notes p")
    expect(notes).to_have_count(2)
    expect(notes.first).to_have_text("Moved to the negative prompt: no trees")
    page.fill("#prompt", "house sun " * 300)
    expect(page.locator("#prompt-notes")).to_contain_text("600 words")
    page.fill("#prompt", "")
    expect(notes).to_have_count(0)


def one_alternative_is_drawn_by_the_seed_or_each_of_them(page):
    prompt = "a {red|blue} house"
    page.fill("#prompt", prompt)
    expect(page.locator("#alternatives")).to_contain_text("One of 2, by the seed:")
    named, seed = page.inner_text("#alternatives p").split()[-1], page.input_value("#seed")
    assert f"a {named} house" == resolved(prompt, int(seed)).text
    with page.expect_response("**/api/draw") as answer:
        page.click("#draw-all")
    drawn = [job["settings"] for job in answer.value.json()["jobs"]]
    assert [settings["prompt"] for settings in drawn] == ["a red house", "a blue house"]
    assert {settings["seed"] for settings in drawn} == {seed}
    expect(page.locator("#seed")).not_to_have_value(seed)
    page.fill("#prompt", "a red house")
    expect(page.locator("#alternatives")).to_be_hidden()


@pytest.mark.nightly
def test_a_visit_of_prompts_that_come_back(visit, app):
    visitor = visit()
    page = visitor.page
    they_come_by_the_menu_and_new_ones_by_surprise(page, visitor, app)
    by_keys_they_are_drawn_from_anywhere(page, visitor, app)
    the_negative_one_is_drawn_and_stays_open_after_a_reload(page, visitor, app)
    the_words_of_a_restored_picture_are_its_own(page, visitor, app)


def they_come_by_the_menu_and_new_ones_by_surprise(page, visitor, app):
    page.fill("#prompt", PROMPT)
    page.click("#recent")
    expect(page.locator(".recent-menu")).to_contain_text("in this browser")
    page.keyboard.press("Escape")
    visitor.draw()
    page.click("#surprise")
    expect(page.locator("#prompt")).not_to_have_value(PROMPT)
    surprise = page.input_value("#prompt")
    assert surprise and app.services.library.current.backbone.unknown_words(surprise) == []
    page.click("#recent")
    page.locator(".recent-menu button").first.click()
    expect(page.locator("#prompt")).to_have_value(PROMPT)
    expect(page.locator(".recent-menu")).to_be_hidden()


def by_keys_they_are_drawn_from_anywhere(page, visitor, app):
    """Control and Enter anywhere, Enter in a field of one line."""
    page.fill("#prompt", PROMPT)
    page.fill("#seed", "77")
    visitor.drawn(lambda: page.press("#seed", "Enter"))
    assert read_recipe(app.pictures[-1])["seed"] == 77
    before = len(app.pictures)
    page.get_by_text("What postcard can draw").click()
    click(page, "Time")
    visitor.drawn(lambda: page.get_by_role("button", name="Time").press("Control+Enter"))
    assert len(app.pictures) == before + 1
    page.press("#prompt", "Enter")
    assert page.input_value("#prompt") == f"{PROMPT}\n"


def the_negative_one_is_drawn_and_stays_open_after_a_reload(page, visitor, app):
    page.fill("#prompt", PROMPT)
    visitor.unfold("details.negative")
    page.fill("#negative", "a boat")
    visitor.draw()
    assert read_recipe(app.pictures[-1])["negative"] == "a boat"
    page.reload()
    visitor.ready()
    expect(page.locator("#negative")).to_have_value("a boat")
    expect(page.locator("#negative")).to_be_visible()


def the_words_of_a_restored_picture_are_its_own(page, visitor, app):
    page.fill("#negative", "")
    page.fill("#prompt", "a red house")
    visitor.draw()
    words = drawn_words(read_recipe(app.pictures[-1])).prompt
    entry = app.services.history.entries(1)[0]
    page.evaluate("""async (id) => {
      const token = sessionStorage.getItem("ssd-studio-visitor");
      const answer = await fetch(`/api/restore?id=${encodeURIComponent(id)}`,
        { headers: { "x-ssd-visitor": token } });
      const { settings } = await answer.json();
      localStorage.setItem("ssd-studio-settings", JSON.stringify(settings));
    }""", entry.id)
    page.reload()
    visitor.ready()
    expect(page.locator("#prompt")).to_have_value("a red house")
    expect(filled(page).first).to_be_visible()
    assert all(text in words for text in filled(page).all_inner_texts())


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_prompt_with_all_that_can_be_said_of_it(visit, violations, scheme):
    page = visit(color_scheme=scheme).page
    page.fill("#prompt", "a {red|blue} hous and a zzxq, no trees")
    expect(page.locator("#prompt-notes p").first).to_be_visible()
    expect(page.locator("#draw-all")).to_be_visible()
    page.get_by_text("What postcard can draw").click()
    click(page, "Colour")
    page.click("details.negative > summary")
    assert violations(page) == []
