"""Visits to the pictures that are there: tools on the stage, Edit, History, files from outside."""

import base64
import shutil

import pytest
from PIL import Image

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")

from support.page_moments import laid_out  # noqa: E402
from support.small_bundle import PIXELS  # noqa: E402
from support.studio_page import drawn, fill_history  # noqa: E402
from support.studio_visit import HELD, PROMPT  # noqa: E402

expect = playwright.expect
SMALL = {"viewport": {"width": 1366, "height": 768}}
IN_SIGHT = """selector => {
  const { left, top, right, bottom } = document.querySelector(selector).getBoundingClientRect();
  return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
}"""
# What is seen of the editor in each frame: its width, and how many steps are in the strip.
WATCH = """() => {
  window.seen = new Set();
  const look = () => {
    const frame = document.querySelector(".edit-frame");
    window.seen.add(`${frame?.clientWidth} ${document.querySelectorAll("#steps button").length}`);
    requestAnimationFrame(look);
  };
  look();
}"""
DROP = """([base64, name]) => {
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name, { type: "image/png" }));
  document.body.dispatchEvent(
    new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def original(app, tmp_path_factory):
    made = drawn(app, prompt=PROMPT, seed="7", method="rolling", fewer=12, expand=False)
    return shutil.copy(made, tmp_path_factory.mktemp("original") / "0.png")


def more(page, tool):
    page.click("#more-tools")
    page.click(f"[data-tool={tool}]")


def undo(page):
    page.locator(".toast:last-child").get_by_role("button", name="Undo").click()


def is_replayed(page):
    """Whether a picture of some size is seen, with something painted on it, and its slider."""
    slider = page.get_by_role("slider", name="Moment of the run")
    expect(slider).to_be_visible()
    slider.fill("1000")
    page.wait_for_function("""() => {
      const canvas = document.querySelector(".replayed canvas.ssd-pixels");
      const at = canvas?.getContext("2d").getImageData(canvas.width / 2, 2, 1, 1).data[3];
      return at === 255;
    }""")
    laid_out(page)
    box = page.locator(".replayed .ssd-picture").first.bounding_box()
    return min(box["width"], box["height"]) > PIXELS


def test_the_picture_on_the_stage_is_replayed_and_its_settings_go_on(visit, app):
    visitor = visit(**SMALL)
    page = visitor.page
    for seed, prompt in (("21", PROMPT), ("22", PROMPT.replace("red", "blue"))):
        page.fill("#prompt", prompt)
        page.fill("#seed", seed)
        visitor.draw()
        expect(page.locator("#shown-seed")).to_have_text(f"seed {seed}")
    assert page.input_value("#seed") != "22"
    more(page, "replay")
    assert is_replayed(page)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save as WebP").click()
    assert saved.value.path().read_bytes()[8:12] == b"WEBP"
    page.locator("#filmstrip button").nth(1).click()
    expect(page.locator(".edit-picture")).to_be_visible()
    expect(page.locator("#shown-seed")).to_have_text("seed 21")
    more(page, "replay")
    assert is_replayed(page)
    more(page, "details")
    expect(page.locator(".replayed .ssd-details")).to_be_visible()
    page.locator("#filmstrip button").nth(1).click()
    expect(page.locator(".edit-picture")).to_be_visible()
    page.click("#tools [data-tool=full]")
    expect(page.locator(".viewer-label")).to_contain_text("red house")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".viewer-label")).to_contain_text("blue house")
    page.keyboard.press("Escape")
    page.click("[data-tool=keep]")
    expect(page.locator("#seed")).to_have_value("21")
    expect(page.locator("#keep-seed")).to_be_checked()
    undo(page)
    expect(page.locator("#keep-seed")).not_to_be_checked()
    page.fill("#prompt", PROMPT.replace("red", "blue"))
    page.click("[data-tool=use]")
    expect(page.locator("#prompt")).to_have_value(PROMPT)
    undo(page)
    expect(page.locator("#prompt")).to_have_value(PROMPT.replace("red", "blue"))


def test_a_run_that_ends_before_the_page_looks_is_shown(visit, app):
    def late(route):
        app.wait_idle(60)
        route.continue_()

    visitor = visit()
    visitor.page.fill("#prompt", PROMPT)
    visitor.draw()
    visitor.page.route("**/api/jobs", late)
    visitor.page.fill("#seed", "22")
    visitor.draw()
    expect(visitor.page.locator("#shown-seed")).to_have_text("seed 22")


def test_what_is_taken_out_of_the_queue_or_stopped_is_not_lost(visit, app):
    page = visit().page
    page.fill("#prompt", PROMPT)
    with app.holding():
        for seed in ("31", "32", "33"):
            page.fill("#seed", seed)
            page.keyboard.press("Tab")
            page.click("#draw")
            expect(page.locator("#seed")).not_to_have_value(seed)
            expect(page.locator("#queue .queued")).to_have_count(int(seed) - 31)
        seeds = page.locator("#queue .queued .hint")
        page.click("#queue-open")
        page.locator("#queue .queued").first.get_by_role("button", name="Remove").click()
        expect(seeds).to_have_text(["seed 33"])
        undo(page)
        expect(seeds).to_have_text(["seed 32", "seed 33"])
        page.click("#queue-open")
        page.click("#queue-clear")
        expect(seeds).to_have_count(0)
        undo(page)
        expect(seeds).to_have_text(["seed 32", "seed 33"])
        expect(page.locator(".run .ssd-summary")).to_contain_text(f"row {HELD}")
        page.click("#stop")
        expect(seeds).to_have_count(1)
        expect(page.locator("#toasts")).to_contain_text("These rows are in the History")
        kept = [path for path in app.pictures if "partial" in path.name]
        assert len(kept) == 1
        page.click("#queue-open")
        page.click("#queue-stop")
        expect(page.locator("#stop")).to_be_disabled()
        undo(page)
        expect(seeds).to_have_text(["seed 33"])
        expect(page.locator(".run .ssd-summary")).to_contain_text(f"row {HELD}")
        page.click("#queue-open")
        page.click("#queue-stop")
        page.click("#keep-top")
        expect(page.locator("#create-stage .edit")).to_be_visible()
    page.evaluate(WATCH)
    page.click("#edit-apply")
    expect(page.locator("#steps button")).to_have_count(2)
    expect(page.locator(".mask-field[data-busy]")).to_have_count(0)
    seen = page.evaluate("[...window.seen]")
    assert len(seen) == 2 and len({line.split()[0] for line in seen}) == 1, seen


def test_a_mask_outlives_another_picture_and_a_reload_and_suggestions_are_seen_at_once(
        visit, app, original):
    fill_history(app, [original, original])
    visitor = visit(**SMALL)
    page = visitor.page
    page.locator("#filmstrip button").first.click()
    expect(page.locator("#create-stage .edit")).to_be_visible()
    page.keyboard.press("b")
    box = page.locator(".mask-field").bounding_box()
    page.mouse.move(box["x"] + box["width"] * .3, box["y"] + box["height"] * .5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * .6, box["y"] + box["height"] * .5, steps=3)
    page.mouse.up()
    painted = page.locator("#status")
    expect(painted).to_contain_text("is redrawn")
    share = painted.inner_text().partition(".")[0]  # what it takes may be told, too
    page.locator("#filmstrip button").nth(1).click()
    expect(painted).to_contain_text("Select or drag a thing")  # the other one is shown
    page.locator("#filmstrip button").first.click()
    expect(painted).to_contain_text(share)
    looks = []
    page.route("**/api/look*", lambda route: looks.append(route))
    page.locator("#filmstrip button").nth(1).click()
    page.locator("#filmstrip button").first.click()  # the other one is not there yet
    with page.expect_response("**/api/look*"):
        looks[0].continue_()
    page.unroute("**/api/look*")
    page.wait_for_timeout(500)
    expect(painted).to_contain_text(share)
    page.reload()
    visitor.ready()
    expect(painted).to_contain_text(share)
    page.click("#edit-suggest")
    expect(page.locator(".edit-spread img")).to_have_count(4)
    page.locator(".edit-spread button").nth(2).click()
    expect(page.locator(".edit-spread")).to_be_hidden()
    expect(page.get_by_role("radio", name="3", exact=True)).to_be_checked()
    more(page, "replay")
    assert is_replayed(page)
    page.click("#tools [data-tool=vary]")
    page.click("#vary-subtle")
    expect(page.locator(".edit-spread img")).to_have_count(4)
    visitor.go("history")
    stacks = page.locator(".picture-count:visible")
    expect(stacks).to_have_text(["8"])
    expect(page.locator(".picture:visible")).to_have_count(3)
    stacks.click()
    expect(page.locator(".picture:visible")).to_have_count(10)


def test_keys_go_on_in_the_history_after_a_mouse_click_and_nothing_moves(visit, app, original):
    ids = fill_history(app, [original] * 24)
    visitor = visit(**SMALL)
    page = visitor.page
    visitor.go("history")
    tile = page.locator(".picture-open").nth(7)
    before = tile.bounding_box()
    tile.click()
    expect(page.locator("#picture-panel")).to_be_visible()
    assert tile.bounding_box() == before
    page.keyboard.press("ArrowRight")
    expect(page.locator(".picture-open").nth(8)).to_be_focused()
    expect(page.locator(".picture-open").nth(8)).to_have_attribute("aria-current", "true")
    page.keyboard.press("f")
    expect(page.locator(".picture.favourite")).to_have_count(1)
    page.keyboard.press("Delete")
    expect(page.locator(".picture")).to_have_count(23)
    expect(page.locator(f"[data-id='{ids[9]}'] .picture-open")).to_be_focused()
    undo(page)
    expect(page.locator(".picture")).to_have_count(24)
    page.goto(f"{app.address}#create")
    page.locator("#filmstrip button").first.click()
    page.click("#tools [data-tool=compare]")
    expect(page.locator(".compare-list button")).to_have_count(16)
    laid_out(page)
    assert page.evaluate(IN_SIGHT, ".menu:popover-open")


def test_a_file_from_outside_is_seen_and_what_it_replaced_comes_back(visit, app, original):
    page = visit().page
    page.fill("#prompt", "three yellow tents")
    page.wait_for_selector("#incoming", state="attached")
    png = original.read_bytes()
    page.evaluate(DROP, [base64.b64encode(png).decode(), "mine.png"])
    expect(page.locator(".of-file img")).to_be_visible()
    expect(page.locator("#prompt")).to_have_value(PROMPT)
    undo(page)
    expect(page.locator("#prompt")).to_have_value("three yellow tents")
    page.evaluate(DROP, [base64.b64encode(png[:900]).decode(), "half.png"])
    expect(page.locator(".toast.bad")).to_contain_text("half.png")
    expect(page.locator(".toast.bad").get_by_role("button", name="Edit")).to_have_count(0)
    page.click("#edit-file")
    expect(page.locator("#create-stage .edit")).to_be_visible()
    one_that_the_model_cannot_redraw_is_only_shown(page, app)


def one_that_the_model_cannot_redraw_is_only_shown(page, app):
    Image.new("RGB", (70, 30)).save(app.pictures[-1].with_name("235959.png"))
    page.goto("about:blank")
    page.goto(app.address)
    page.locator("#filmstrip button").first.click()
    expect(page.locator("#status")).to_contain_text("70x30")
    expect(page.locator(".edit-picture")).to_be_visible()
    expect(page.locator(".edit-tools")).to_be_hidden()
    expect(page.locator("#tools [data-tool=full]")).to_be_visible()
