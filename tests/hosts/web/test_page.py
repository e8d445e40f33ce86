"""The preview on a page in a real browser: pixels of the canvas, sizes, text, the button."""

import pytest
from PIL import Image
from support.layout_rules import faults
from support.page_moments import LAID_OUT, decoded, laid_out
from support.preview_run import base64_png, opening

RED, GREEN, BLUE, WHITE = "#ff0000", "#00ff00", "#0000ff", "#ffffff"

FEED = """async ([options, style, messages]) => {
  window.preview ??= mount(options, style);
  for (const message of messages) preview.feed(message);
  await preview.settled();
  await (""" + LAID_OUT + """)();
}"""
COLOUR = """([canvas, x, y]) => {
  const data = document.querySelectorAll(canvas[0])[canvas[1]].getContext("2d")
    .getImageData(x, y, 1, 1).data;
  return data[3] ? "#" + [...data.slice(0, 3)].map((n) => n.toString(16).padStart(2, "0")).join("")
    : "clear";
}"""


def feed(page, *messages, style="width: 300px", **options):
    page.evaluate(FEED, [options, style, list(messages)])


def colour(page, y, x=3, picture=0, canvas=".ssd-pixels"):
    """The colour of one px of a canvas at its own resolution, "clear" where nothing is."""
    return page.evaluate(COLOUR, [[canvas, picture], x, y])


def tinted(page, picture=0):
    """Px of the overlay that are not clear."""
    return page.evaluate(
        """(i) => { const canvas = document.querySelectorAll(".ssd-marks")[i];
        return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
          .filter((value, byte) => byte % 4 === 3 && value > 0).length; }""", picture)


def text(page, part, panel=0):
    return page.locator(f".ssd-{part}").nth(panel).inner_text()


@pytest.fixture(scope="module")
def one_page(chromium, address):
    with opening(chromium, address) as open_one:
        yield open_one()


@pytest.fixture
def page(one_page):
    """The page, on which no test before has left anything."""
    yield one_page
    one_page.evaluate("""() => {
      delete window.preview;
      localStorage.clear();
      document.querySelectorAll("body > div").forEach((box) => box.remove());
    }""")


def test_rows_appear_where_they_belong_and_nowhere_else(page, run):
    feed(page, run.started(), run.rows(0, RED), run.rows(1, GREEN, BLUE))
    assert [colour(page, y) for y in (0, 7, 8, 15, 16, 23, 24)] == [
        RED, RED, GREEN, GREEN, BLUE, BLUE, "clear"]
    assert text(page, "figures").startswith("row 3 of 4")


def test_rows_that_are_not_decoded_are_soft_and_end_where_they_end(page, run):
    feed(page, run.started(), run.rows(0, RED, refined=False), run.rows(1, BLUE, refined=False))
    assert colour(page, 1) == RED and colour(page, 16) == "clear"
    between = colour(page, 8)
    assert between not in (RED, BLUE, "clear") and between[3:5] == "00"
    feed(page, run.rows(0, GREEN))
    assert [colour(page, y) for y in (0, 7)] == [GREEN, GREEN]


def cells(run, first, *rows, **changes):
    """A message of cells from row `first` on; each row is a list of colours, None if unknown."""
    image = Image.new("RGBA", (32, 8 * len(rows)))
    for y, row in enumerate(rows):
        for x, shade in enumerate(row):
            if shade:
                image.paste(shade, (8 * x, 8 * y, 8 * x + 8, 8 * y + 8))
    return {**run.envelope, "kind": "cells", "first": first, "last": first + len(rows),
            "top": 8 * first, "strips": [base64_png(image)], **changes}


def test_cells_in_flight_are_painted_in_their_place_and_the_pen_stays_above_them(page, run):
    feed(page, run.started(), run.rows(0, RED), cells(run, 1, [BLUE, BLUE, None, None]))
    assert [colour(page, y, x) for y in (13, 15) for x in (3, 15, 16, 31)] == [
        BLUE, BLUE, "clear", "clear"] * 2
    assert [colour(page, y) for y in (7, 16)] == [RED, "clear"]
    assert page.locator(".ssd-pen").evaluate("e => e.style.top") == "25%"


def test_soft_colours_never_cover_what_is_decoded_nor_clear_what_is_known(page, run):
    feed(page, run.started(), cells(run, 0, *[[BLUE] * 4] * 4), run.rows(0, RED),
         cells(run, 0, [GREEN] * 4, [GREEN, None, None, None]))
    assert [colour(page, 7, x) for x in (0, 31)] == [RED, RED]
    assert (colour(page, 11, 0), colour(page, 31, 31)) == (GREEN, BLUE)


def test_kept_cells_stand_with_their_own_pixels(page, run):
    kept = Image.new("RGBA", (32, 32))
    kept.paste(WHITE, (8, 0, 16, 8))
    kept.paste(RED, (8, 0, 12, 8))
    message = cells(run, 0, *[[None] * 4] * 4, known=True, strips=[base64_png(kept)])
    feed(page, run.started(), message, run.rows(0, BLUE, refined=False))
    assert [colour(page, 4, x) for x in (2, 9, 11, 12, 15, 30)] == [
        BLUE, RED, RED, WHITE, WHITE, BLUE]


def test_notes_stand_under_the_figures_and_take_no_room_where_there_are_none(page, run, new_run):
    feed(page, run.started(notes=["drawn by 'rows': no heads", "unknown: sea"]), run.rows(0, RED))
    assert text(page, "notes").splitlines() == ["drawn by 'rows': no heads", "unknown: sea"]
    below = page.locator(".ssd-notes").bounding_box()["y"]
    assert below >= page.locator(".ssd-figures").bounding_box()["y"]
    feed(page, run.finished(), new_run("next").started())
    assert not page.locator(".ssd-notes").is_visible()


def test_the_words_that_are_drawn_stand_above_the_picture_and_added_ones_are_lighter(
        page, run, new_run):
    words = [["a", False], [" lone", True], [" tent", False]]
    feed(page, run.started(words=[words]))
    assert text(page, "drawn") == "a lone tent" and text(page, "added") == " lone"
    lighter = "() => +getComputedStyle(document.querySelector('.ssd-added')).opacity < 1"
    assert page.evaluate(lighter)
    above = page.locator(".ssd-drawn").bounding_box()["y"]
    assert above <= page.locator(".ssd-pictures").bounding_box()["y"]
    feed(page, run.finished(), new_run("next").started())
    assert not page.locator(".ssd-drawn").is_visible()


def test_rows_are_painted_while_it_runs_not_only_at_the_end(page, run):
    feed(page, run.started())
    seen = []
    for row, shade in enumerate((RED, GREEN, BLUE, WHITE)):
        feed(page, run.rows(row, shade))
        seen.append([colour(page, 8 * y) for y in range(4)])
    assert seen[0] == [RED, "clear", "clear", "clear"]
    assert seen[1] == [RED, GREEN, "clear", "clear"]
    assert seen[3] == [RED, GREEN, BLUE, WHITE]


@pytest.mark.nightly
def test_later_strips_paint_over_earlier_ones_in_the_order_of_arrival(page, run, png):
    """A large strip decodes slower than a small one; the small one still comes out on top."""
    noise = png(Image.effect_noise((768, 768), 80).convert("RGB"))
    feed(page, run.started(width=768, height=768), run.rows(0, RED, last=4, strips=[noise]),
         run.rows(0, RED, refined=True))
    assert colour(page, 0) == RED and colour(page, 7) == RED
    assert colour(page, 100) not in (RED, "clear")


def test_late_rows_after_the_end_paint_nothing(page, run):
    feed(page, run.started(), run.rows(0, RED), run.finished(), run.rows(1, GREEN))
    assert [colour(page, 0), colour(page, 8)] == [RED, "clear"]
    assert "1.5 s, close to what the model draws" in text(page, "figures")


def test_a_second_run_begins_on_an_empty_canvas_and_the_first_cannot_paint_it(page, run, new_run):
    second = new_run("second")
    feed(page, run.started(), run.rows(0, RED), run.finished())
    page.evaluate("""([strip, start]) => { preview.feed(strip); preview.feed(start); }""",
                  [run.rows(1, RED), second.started()])
    feed(page, run.rows(2, RED), second.rows(1, GREEN))
    assert [colour(page, y) for y in (0, 8, 16)] == ["clear", GREEN, "clear"]
    assert page.locator(".ssd-panel").count() == 1


def test_strips_still_being_decoded_do_not_reach_the_next_run(page, run, new_run):
    second = new_run("second")
    feed(page, run.started(), run.rows(0, RED), run.rows(1, RED), second.started())
    decoded(page)
    assert [colour(page, y) for y in (0, 8)] == ["clear", "clear"]


def test_an_interrupt_leaves_what_was_drawn_and_says_where(page, run):
    feed(page, run.started(), run.rows(0, RED), run.cancelled())
    assert colour(page, 0) == RED
    assert text(page, "figures").startswith("stopped at row 1")


def test_a_run_seen_from_the_middle_gives_figures_and_no_error(page, run, new_run):
    feed(page, run.passed(), run.rows(2, RED))
    assert "started before this page was opened" in text(page, "heading")
    assert text(page, "figures").startswith("row 3")
    feed(page, run.finished(), new_run("next").started(), new_run("next").rows(0, BLUE))
    assert colour(page, 0) == BLUE


@pytest.mark.parametrize("width, side", [(300, 292), (24, 16)])
def test_a_picture_takes_the_width_there_is_but_no_little_more_than_its_own(page, run, width, side):
    feed(page, run.started(), run.rows(0, RED), style=f"width: {width}px")
    box = page.locator(".ssd-picture").bounding_box()
    assert (box["width"], box["height"]) == (side, side)
    rendering = page.locator(".ssd-pixels").evaluate("e => getComputedStyle(e).imageRendering")
    assert rendering == ("pixelated" if side >= 32 else "auto")


def test_the_scale_follows_the_box(page, run):
    feed(page, run.started(), style="width: 100px")
    page.evaluate("() => { preview.element.parentElement.style.width = '200px'; }")
    page.wait_for_function("() => document.querySelector('.ssd-picture').clientWidth === 192")


def test_long_text_wraps_inside_its_box(page, run):
    feed(page, run.started(label="x" * 80), run.passed(), style="width: 120px")
    sizes = page.locator(".ssd-preview").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert sizes[0] <= sizes[1] == 120


def test_a_thin_line_marks_the_pen_and_goes_when_the_picture_is_done(page, run):
    feed(page, run.started(), run.rows(0, RED), style="width: 72px")
    laid_out(page)
    picture, pen = (page.locator(f".ssd-{part}").bounding_box() for part in ("picture", "pen"))
    assert abs(pen["y"] + pen["height"] / 2 - picture["y"] - 16) <= 1 and pen["height"] <= 4
    feed(page, run.rows(1, GREEN, BLUE, WHITE))
    assert page.locator(".ssd-pen").is_hidden()


def test_kept_rows_put_the_pen_below_them(page, run):
    feed(page, run.started(first_row=2), run.rows(0, RED, RED, known=True))
    laid_out(page)
    assert page.locator(".ssd-pen").evaluate("e => e.style.top") == "50%"


def test_a_batch_is_a_grid_of_pictures(page, run, new_run):
    strips = [run.rows(0, shade)["strips"][0] for shade in (RED, GREEN, BLUE)]
    feed(page, run.started(pictures=3), run.rows(0, RED, strips=strips))
    assert [colour(page, 0, picture=i) for i in range(3)] == [RED, GREEN, BLUE]
    boxes = [page.locator(".ssd-picture").nth(i).bounding_box() for i in range(3)]
    assert boxes[0]["y"] == boxes[1]["y"] < boxes[2]["y"]
    names = [page.locator(".ssd-picture").nth(i).get_attribute("aria-label") for i in range(3)]
    assert names[2] == "ssd rounds=2, picture 3 of 3"


def test_a_race_fills_two_panels_side_by_side(page, new_run):
    left, right = new_run("race", 0), new_run("race", 1)
    feed(page, left.started(label="ar"), right.started(), right.rows(0, GREEN, BLUE),
         left.rows(0, RED), right.finished(identical=0.38), style="width: 600px")
    assert [colour(page, 8, picture=i) for i in (0, 1)] == ["clear", BLUE]
    boxes = [page.locator(".ssd-panel").nth(i).bounding_box() for i in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    assert text(page, "figures", 0).startswith("row 1 of 4")
    ended = text(page, "figures", 1)
    for part in ("1.5 s", "close to what the model draws"):
        assert part in ended
    counted = page.locator(".ssd-summary").nth(1).get_attribute("title")
    for part in ("9 passes", "38% of the tokens are AR's"):
        assert part in counted


def test_six_panels_stand_in_full_lines_and_stay_legible(page, new_run):
    columns = 2
    runs = [new_run("race", n) for n in range(6)]
    feed(page, *(run.started(label=f"method {n}") for n, run in enumerate(runs)),
         *(run.finished() for run in runs), style="width: 340px")
    boxes = [page.locator(".ssd-panel").nth(i).bounding_box() for i in range(6)]
    lines = sorted({box["y"] for box in boxes})
    assert len(lines) == 6 // columns
    assert len({round(box["x"]) for box in boxes}) == columns
    for i, box in enumerate(boxes):
        assert lines.index(box["y"]) == i // columns and box["width"] >= 150
        figures = page.locator(".ssd-figures").nth(i)
        assert figures.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight > 0")
    for upper, lower in zip(boxes, boxes[columns:], strict=False):
        assert upper["y"] + upper["height"] <= lower["y"]


def test_panels_of_a_race_keep_their_sides_whichever_starts_first(page, new_run):
    feed(page, new_run("race", 1).started(label="ssd"), new_run("race", 0).started(label="ar"))
    at = {text(page, "heading", i): page.locator(".ssd-panel").nth(i).bounding_box()["x"]
          for i in (0, 1)}
    assert at["ar"] < at["ssd"]


def test_the_overlay_tints_cells_at_a_click_and_leaves_the_picture_alone(page, run):
    feed(page, run.started(), run.rows(0, RED), run.passed())
    toggle = page.get_by_role("button", name="Overlay")
    assert tinted(page) == 0 and toggle.get_attribute("aria-pressed") == "false"
    assert page.locator(".ssd-legend").is_hidden()
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "true"
    at = [colour(page, 8 + 3, 8 * cell + 3, canvas=".ssd-marks") for cell in range(4)]
    assert len(set(at)) == 3 and at[0] == at[3] and "clear" not in at
    assert colour(page, 3, canvas=".ssd-marks") == "clear"
    assert colour(page, 0) == RED
    assert text(page, "legend").split("\n") == ["accepted", "repaired", "still draft"]
    toggle.click()
    assert tinted(page) == 0


def test_the_overlay_follows_the_run(page, run):
    feed(page, run.started(), run.passed())
    page.get_by_role("button", name="Overlay").click()
    before = tinted(page)
    feed(page, run.passed(first=8, marks=["rrrr"]))
    assert tinted(page) > before > 0


def test_the_overlay_is_remembered_and_worked_by_the_keyboard(page, run):
    feed(page, run.started(), run.passed())
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert tinted(page) > 0
    page.reload()
    page.wait_for_function("() => window.mount")
    feed(page, run.started(), run.passed())
    assert tinted(page) > 0


def test_a_page_without_storage_still_has_its_overlay(open_page, run):
    page = open_page()
    page.evaluate("""() => Object.defineProperty(window, "localStorage",
      { get() { throw new DOMException("refused", "SecurityError"); } })""")
    feed(page, run.started(), run.passed())
    page.get_by_role("button", name="Overlay").click()
    assert tinted(page) > 0


def test_figures_are_text_and_told_politely(page, run):
    feed(page, run.started())
    told = page.locator("[role=status][aria-live=polite]")
    assert told.inner_text() == "ssd rounds=2: started, 4 rows"
    feed(page, run.rows(0, RED), run.rows(1, RED), run.finished())
    assert told.inner_text() == "ssd rounds=2: done in 1.5 seconds"


def test_before_any_run_it_says_what_will_be_here(page):
    feed(page)
    assert text(page, "note") == "The picture appears here, row by row, while it is drawn."
    assert page.locator(".ssd-panel").count() == 0


def test_it_speaks_the_host_s_language(page, run):
    feed(page, run.started(), run.rows(0, RED), language="zh-CN")
    laid_out(page)
    assert "第 1 行" in text(page, "figures")
    assert page.get_by_role("button", name="叠加层").count() == 1


@pytest.mark.parametrize("motion, duration", [("reduce", "0s"), ("no-preference", "0.12s")])
def test_the_pen_glides_only_where_motion_is_welcome(open_page, run, motion, duration):
    page = open_page(reduced_motion=motion)
    feed(page, run.started(), run.rows(0, RED))
    page.wait_for_load_state("networkidle")
    style = page.locator(".ssd-pen").evaluate("e => getComputedStyle(e).transitionDuration")
    assert style == duration


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_text_stands_out_in_both_themes(open_page, run, scheme):
    page = open_page(color_scheme=scheme)
    feed(page, run.started(), run.passed())
    ink, paper = page.evaluate("""() => [getComputedStyle(document.querySelector(".ssd-figures")),
      getComputedStyle(document.body)].map((style, i) => i ? style.backgroundColor : style.color)
      .map((text) => text.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3)""")
    assert abs(ink - paper) > 150


def test_the_host_s_colours_are_taken(open_page, run):
    page = open_page()
    page.add_style_tag(content=":root { --input-text: rgb(1, 2, 3); }")
    feed(page, run.started(), run.passed())
    for part in ("figures", "toggle"):
        style = page.locator(f".ssd-{part}").evaluate("e => getComputedStyle(e).color")
        assert style == "rgb(1, 2, 3)"


def test_a_cleared_preview_is_as_new_and_takes_an_older_run(page, run, new_run):
    feed(page, run.started(), run.rows(0, RED), run.finished())
    feed(page, new_run("second").started(), new_run("second").rows(0, BLUE))
    page.evaluate("() => preview.clear()")
    feed(page)
    assert page.locator(".ssd-panel").count() == 0
    assert text(page, "note").startswith("The picture appears here")
    feed(page, run.started(), run.rows(0, RED), run.finished())
    assert colour(page, 0) == RED


def test_after_disposal_nothing_is_left_and_nothing_happens(page, run):
    feed(page, run.started(), run.rows(0, RED))
    page.evaluate("([message]) => { preview.feed(message); preview.dispose(); }",
                  [run.rows(1, GREEN)])
    assert page.locator(".ssd-preview").count() == 0
    feed(page, run.rows(2, BLUE), run.finished())
    assert page.evaluate("() => preview.state.panels[0].row") == 2


def test_a_strip_in_flight_at_disposal_is_never_painted(page, run):
    feed(page, run.started())
    left = page.evaluate("""async (message) => {
      const canvas = document.querySelector(".ssd-pixels");
      preview.feed(message); preview.dispose();
      await Promise.allSettled(decoding);
      await new Promise(requestAnimationFrame);
      return canvas.getContext("2d").getImageData(0, 0, 1, 1).data[3];
    }""", run.rows(0, RED))
    assert left == 0


def test_several_previews_on_a_page_do_not_mix(page, run, new_run):
    other = new_run("other")
    page.evaluate("""async ([one, two]) => {
      const previews = [mount(), mount()];
      one.forEach((message) => previews[0].feed(message));
      two.forEach((message) => previews[1].feed(message));
      await Promise.all(previews.map((preview) => preview.settled()));
    }""", [[run.started(), run.rows(0, RED)], [other.started(), other.rows(0, BLUE)]])
    assert [colour(page, 0, picture=i) for i in (0, 1)] == [RED, BLUE]
    sheets = page.locator("link[rel=stylesheet]").evaluate_all("all => all.map((e) => e.href)")
    assert len(sheets) == len(set(sheets))


def test_a_recorded_like_burst_of_messages_ends_complete(page, run):
    """All of a run at once, as after a page was in the background."""
    messages = [run.started()]
    for row, shade in enumerate((RED, GREEN, BLUE, WHITE)):
        messages += [run.passed(index=row, first=4 * row, marks=["aard"], row=row)] * 20
        messages.append(run.rows(row, shade))
    feed(page, *messages, run.finished())
    assert [colour(page, 8 * y) for y in range(4)] == [RED, GREEN, BLUE, WHITE]


# The nodes, by the rules of layout


WIDE, NARROW = "width: 412px", "width: 280px"
LONG = "backbone Janus-Pro-7B is not here: " + "get it, put it there, and choose it again; " * 12
WORDS = [["a", False], [" lone", True], [" red house", False], [" in the middle, at noon", True]]


def on_node(page):
    page.evaluate("() => { preview.element.classList.add('ssd-on-node') }")
    laid_out(page)


@pytest.mark.parametrize("style", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("pictures", [1, 2])
def test_nothing_is_wrong_with_a_node_in_any_moment(page, run, style, pictures):
    rows = [RED, GREEN, BLUE, WHITE]
    feed(page, run.started(pictures=pictures, words=[WORDS] * pictures,
                           notes=["not known, left out: dragon"]), style=style)
    on_node(page)
    drawn = [{**message, "strips": message["strips"] * pictures}
             for message in (run.rows(row, shade) for row, shade in enumerate(rows))]
    for messages in (drawn[:2], [*drawn[2:], run.finished()]):
        feed(page, *messages)
        assert faults(page, root=".ssd-preview") == []
    page.evaluate("(sentence) => preview.fail(sentence)", LONG)
    laid_out(page)
    assert faults(page, root=".ssd-preview") == []


def test_a_node_has_its_picture_first_in_all_its_width_and_every_word_below(page, run):
    feed(page, run.started(width=384, height=384, words=[WORDS]), run.rows(0, RED), style=WIDE,
         smooth=True)
    on_node(page)
    picture = page.locator(".ssd-picture").bounding_box()
    assert picture["width"] == picture["height"] == 412
    for part in ("heading", "drawn", "summary", "toggle"):
        assert page.locator(f".ssd-{part}").bounding_box()["y"] >= picture["y"] + 412, part


def test_a_message_is_read_whole_and_copied(page, run):
    feed(page, run.started(), style=WIDE)
    on_node(page)
    page.evaluate("(sentence) => preview.fail(sentence)", LONG)
    laid_out(page)
    page.get_by_role("button", name="Show all").click()
    whole = page.locator(".ssd-message-whole")
    assert whole.inner_text() == LONG.strip()
    assert whole.evaluate("(one) => one.scrollHeight <= one.clientHeight")
    page.keyboard.press("Escape")
    whole.wait_for(state="detached")
    page.evaluate("""() => Object.defineProperty(navigator, "clipboard", { configurable: true,
        value: { writeText: async (text) => { window.copied = text; } } })""")
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("window.copied") == LONG
    page.evaluate("() => preview.fail('short')")
    laid_out(page)
    assert not page.get_by_role("button", name="Show all").is_visible()


def half(*colours):
    """A strip of half the width and height, one band a colour."""
    image = Image.new("RGB", (16, 4 * len(colours)))
    for n, shade in enumerate(colours):
        image.paste(shade, (0, 4 * n, 16, 4 * n + 4))
    return base64_png(image)


def test_strips_of_half_the_width_cover_the_whole_picture(page, run):
    feed(page, run.started(), run.rows(0, RED, strips=[half(RED)]),
         run.rows(1, GREEN, BLUE, refined=False, strips=[half(GREEN, BLUE)]))
    assert [colour(page, y, x) for y in (0, 7) for x in (0, 31)] == [RED] * 4
    assert [colour(page, 23, x) for x in (0, 31)] == [BLUE] * 2
    assert (colour(page, 23, 31), colour(page, 24, 31)) == (BLUE, "clear")
    feed(page, run.rows(0, RED, GREEN, BLUE, WHITE))
    assert [colour(page, y, 31) for y in (7, 8, 16, 31)] == [RED, GREEN, BLUE, WHITE]
