"""The postcard in a browser, from a file and without a network: turned, read, played, printed."""

from datetime import datetime

import pytest
from support.preview_run import lent_page
from test_letter import picture

from ssd_core.output.letter import letter

SHOWN = "() => getComputedStyle(document.querySelector('.still')).opacity"
END = "() => document.getAnimations().forEach((one) => one.finish())"  # of what moves
TURNED = "() => document.querySelector('#turn').checked"
# Whether the words' place is on the card, and their lines are in it from edge to edge.
FITS = """() => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  const [words, place, card] = [".words", ".message", ".card"].map(box);
  return words.left >= place.left - 3 && words.right <= place.right + 3
    && words.height > 0 && place.height <= card.height && place.width < card.width
    && document.querySelector(".message").scrollTop === 0 && words.top >= place.top - 3
    && document.documentElement.scrollWidth <= innerWidth;
}"""
FRONT = "() => getComputedStyle(document.querySelector('.front')).visibility"


@pytest.fixture
def opened(chromium, tmp_path):
    """Opens a postcard of these words from a file; what it asked for and complained of."""
    def open_card(page, words="a red house", **how):
        path = tmp_path / "card.html"
        path.write_text(letter(picture(words, **how), "x.png", datetime(2026, 5, 7)),
                        encoding="utf-8")
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url[:5]))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        return asked, said

    return open_card


def test_a_card_is_turned_and_played_without_a_network(chromium, opened):
    with lent_page(chromium) as page:
        page.context.set_offline(True)
        asked, said = opened(page)
        assert page.title() == "a red house"
        assert page.evaluate("() => [...document.images].every((one) => one.naturalWidth)")
        assert page.evaluate("() => document.querySelector('.still').naturalWidth") == 48
        assert page.evaluate("() => document.fonts.load('20px Hand').then((all) => all.length)")
        assert page.evaluate("() => document.fonts.check('20px Hand')")
        assert page.evaluate(SHOWN) == "0", "the film is seen first"
        page.evaluate(END)
        assert page.evaluate(SHOWN) == "1"
        page.click(".card")
        page.evaluate(END)
        assert page.evaluate(TURNED) and page.evaluate(FRONT) == "hidden"
        assert page.locator(".words").inner_text() == "a red house"
        page.keyboard.press("Enter")
        assert not page.evaluate(TURNED)
        page.keyboard.press("Space")
        assert page.evaluate(TURNED), "the card has the focus since it was clicked"
        page.click("#play")
        assert not page.evaluate(TURNED), "the film is on the front"
        assert page.evaluate(SHOWN) == "0"
        page.evaluate("() => document.querySelector('.film').decode()")
        page.context.set_offline(False)
        assert said == [] and set(asked) <= {"file:", "data:", "blob:"}


@pytest.mark.parametrize(("size", "words"), [
    ((48, 32), "one two three " * 134), ((32, 48), "one two three " * 134),
    ((48, 48), "Donaudampfschifffahrtsgesellschaft" * 3), ((400, 40), "红色灯塔和两艘帆船，" * 40),
    ((48, 48), "منارة حمراء على شاطئ صخري")])
def test_words_stay_on_the_card_on_a_phone_and_on_a_desk(chromium, opened, size, words):
    for width, height in ((390, 844), (1280, 800)):
        with lent_page(chromium, viewport={"width": width, "height": height},
                       reduced_motion="reduce", color_scheme="dark") as page:
            _asked, said = opened(page, words, size=size)
            assert page.evaluate(FITS), (width, words)
            assert page.locator("#play").is_hidden(), "less motion is wished"
            page.click(".card")
            assert page.evaluate("() => document.getAnimations().length") == 0
            assert page.locator(".words").is_visible() and said == []


def test_without_scripts_the_card_is_seen_and_turned_too(chromium, opened):
    with lent_page(chromium, java_script_enabled=False) as page:
        opened(page)
        assert page.locator(".still").is_visible() and page.locator("#play").is_hidden()
        page.click(".card")
        page.locator(".words").wait_for(state="visible")
        assert page.locator("#turn").is_checked()
