"""What a visitor does on one page of the app, one thing after the other, in a real browser."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.small_bundle import PIXELS, SIDE  # noqa: E402
from support.studio_visit import PROMPT, solo, tokens_of, visits  # noqa: E402

from ssd_core import methods  # noqa: E402
from ssd_core.output.recipe import read_recipe, save_png  # noqa: E402
from ssd_core.postcards import claims  # noqa: E402
from studio.prompts import EXAMPLES  # noqa: E402


@pytest.fixture(scope="module")
def page(chromium, app):
    """Opened once: opening takes longer than most of what is done."""
    with visits(chromium, app) as open_one:
        yield open_one()


@pytest.fixture
def visitor(page, app):
    """On the first tab, with a prompt; all else is as the tests before have left it."""
    page.tab("Create")
    page.page.locator("#lock input").uncheck()
    page.fill("prompt", PROMPT)
    yield page
    app.drop_all()


def upload(visitor, box, path):
    """Give a file to an upload box, whatever is in it."""
    clear = visitor.page.locator(f"#{box} button[aria-label=Clear]")
    if clear.count():
        clear.click()
    visitor.page.set_input_files(f"#{box} input[type=file]", path)


def test_a_picture_is_drawn_saved_and_offered_byte_for_byte(visitor, app):
    visitor.lock(7)
    told = visitor.draw()
    assert f"instead of {SIDE * SIDE}" in visitor.text("create-stage")
    assert str(app.services.history.folder) in told
    saved = app.pictures[-1]
    recipe = read_recipe(saved)
    assert (recipe["seed"], recipe["prompt"], recipe["method"]) == (7, PROMPT, "exact")
    assert tokens_of(saved).equal(solo(methods.Exact(), 7))
    assert visitor.is_painted()
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == saved.name
    assert download.value.path().read_bytes() == saved.read_bytes()


def test_a_seed_that_was_set_is_used_and_an_unlocked_one_is_new_and_told_in_its_box(visitor, app):
    box = visitor.page.locator("#seed :is(input, textarea)")
    visitor.fill("seed", 5)
    visitor.draw()
    assert box.input_value() == "5" and read_recipe(app.pictures[-1])["seed"] == 5
    visitor.page.click("#dice")
    visitor.page.wait_for_function("() => document.querySelector('#seed textarea, #seed input')"
                                   ".value !== '5'")
    rolled = box.input_value()
    visitor.draw()
    assert read_recipe(app.pictures[-1])["seed"] == int(rolled)
    visitor.page.locator("#lock input").uncheck()
    visitor.draw()
    assert read_recipe(app.pictures[-1])["seed"] == int(box.input_value()) != int(rolled)


def test_a_prompt_can_be_had_from_the_dice_and_from_the_examples(visitor):
    page, box = visitor.page, visitor.page.locator("#prompt textarea")
    before = box.input_value()
    page.click("#surprise")
    value = "document.querySelector('#prompt textarea').value"
    page.wait_for_function(f"(before) => {value} !== before", arg=before)
    assert claims(box.input_value()) and not page.locator("#note .studio-problem").count()
    page.get_by_role("button", name="Example prompts").click()
    pictures = page.locator("#examples img")
    pictures.last.wait_for()
    assert pictures.count() == len(EXAMPLES) == 8
    page.wait_for_function("() => [...document.querySelectorAll('#examples img')]"
                           ".every((one) => one.naturalWidth)")
    pictures.nth(3).click()
    page.wait_for_function(f"(text) => {value} === text", arg=EXAMPLES[3])


def test_words_the_backbone_does_not_know_are_named_before_anything_runs(visitor):
    visitor.fill("prompt", "a zeppelin on a lake")
    visitor.page.wait_for_selector("#note .studio-problem")
    assert "zeppelin" in visitor.text("note")
    prompt, note = (visitor.page.locator(one).bounding_box() for one in ("#prompt", "#note"))
    assert 0 <= note["y"] - (prompt["y"] + prompt["height"]) < 40, "it stands under the prompt"


def test_a_refused_run_is_told_once_and_no_more_when_it_is_mended(visitor):
    page = visitor.page
    visitor.fill("prompt", "")
    page.wait_for_selector("#note .studio-problem")
    page.click("#draw")
    page.wait_for_selector("#trouble .studio-problem")
    assert page.locator("#note .studio-problem").count() == 0
    assert "the prompt is empty" in visitor.text("trouble")
    page.locator("#prompt textarea").press_sequentially("a tent")
    page.wait_for_selector("#trouble .studio-problem", state="detached")


def test_a_race_ends_with_a_verdict_and_a_divider_on_request(visitor, app):
    visitor.lock(9)
    visitor.tab("Race")
    visitor.page.get_by_role("button", name="Methods in the race").click()
    visitor.choose("race-2", "exact")
    visitor.page.click("#race")
    visitor.page.locator("#race-stage").get_by_role("button", name="Compare").click()
    handle = visitor.page.locator("dialog [role=slider]")
    handle.wait_for()
    assert "identical to normal decoding" in visitor.told("race-status")
    assert len(visitor.page.locator("#race-stage .ssd-panel").all()) == 2
    before = handle.get_attribute("aria-valuenow")
    handle.press("ArrowLeft")
    assert float(handle.get_attribute("aria-valuenow")) < float(before)
    visitor.page.get_by_role("button", name="Close").click()
    sheet = app.pictures[-1]
    assert "race" in sheet.name and Image.open(sheet).width > 2 * PIXELS
    assert tokens_of(app.pictures[-2]).equal(tokens_of(app.pictures[-3]))


def test_finish_without_paused_seeds_says_so_beside_its_button(visitor, app):
    visitor.tab("Seeds")
    visitor.fill("seeds-count", 2)
    visitor.page.click("#seeds-start")
    visitor.paused()
    visitor.page.locator("#seeds-grid input[type=checkbox]").first.check()
    visitor.page.wait_for_selector("#seeds-finish:not([disabled])")
    app.services.parked_seeds.drop_all()
    visitor.page.click("#seeds-finish")
    visitor.page.wait_for_selector("#seeds-status >> text=has expired")
    assert visitor.page.locator("#trouble").inner_text().strip() == ""


def test_delete_asks_and_means_the_picture_on_show(visitor, app):
    visitor.draw()
    old = app.pictures[-1]
    visitor.tab("History")
    visitor.page.locator("#history img").first.click()
    visitor.page.wait_for_selector(f".studio-details h3:has-text('{old.stem}')")
    visitor.tab("Create")
    visitor.draw()
    new = app.pictures[-1]
    visitor.tab("History")
    visitor.page.wait_for_selector(".studio-details", state="detached")
    visitor.page.locator("#history img").first.click()
    visitor.page.wait_for_selector(f".studio-details h3:has-text('{new.stem}')")
    visitor.page.click("#history-delete")
    sure = visitor.page.locator("#history-sure")
    sure.wait_for()
    assert new.name in sure.inner_text() and new.exists()
    sure.click()
    visitor.page.wait_for_function(
        "() => document.querySelector('#history-status').innerText.includes('Deleted')")
    assert old.exists() and not new.exists()


def test_a_png_saved_by_the_node_pack_restores_too(visitor, tmp_path, app):
    visitor.lock(12)
    visitor.draw()
    recipe = {**read_recipe(app.pictures[-1]), "prompt": "a tower", "seed": 77}
    path = tmp_path / "ComfyUI_00001_.png"
    save_png(path, torch.zeros(PIXELS, PIXELS, 3), recipe, {"workflow": "{}", "prompt": "{}"})
    visitor.tab("History")
    upload(visitor, "history-drop", path)
    visitor.told("history-status", "Settings restored from ComfyUI_00001_.png")
    assert visitor.page.locator("#prompt textarea").input_value() == "a tower"


def bad_files(folder):
    """Uploads that are no good, and a word of the line that says so."""
    text = folder / "letter.png"
    text.write_text("this is no picture")
    yield text, "not a whole PNG"
    plain = folder / "plain.png"
    Image.fromarray(np.zeros((PIXELS, PIXELS, 3), np.uint8)).save(plain)
    yield plain, "no settings in it"
    cut = folder / "cut.png"
    cut.write_bytes(plain.read_bytes()[:-60])
    yield cut, "PNG"
    hostile = folder / "hostile.png"
    save_png(hostile, torch.zeros(PIXELS, PIXELS, 3), None, {"ssd_recipe": json.dumps(
        {"version": 2, "noise_version": 3, "prompt": "<img src=x onerror=alert(1)>",
         "seed": "../../etc/passwd"})})
    yield hostile, "damaged"


def test_bad_uploads_get_one_line_and_the_app_goes_on(visitor, tmp_path):
    visitor.tab("History")
    for path, word in bad_files(tmp_path):
        upload(visitor, "history-drop", path)
        visitor.page.wait_for_function(
            "([name, word]) => { const text = document.querySelector('#history-status').innerText;"
            " return text.includes(name) && text.includes(word); }", arg=[path.name, word])
        assert "\n" not in visitor.text("history-status")
        assert str(path.parent) not in visitor.text("history-status")
    visitor.tab("Redo from a row")
    upload(visitor, "redo-upload", tmp_path / "letter.png")
    visitor.told("redo-told", "letter.png")
    visitor.tab("Create")
    visitor.draw()
    assert f"instead of {SIDE * SIDE}" in visitor.figures()


def test_an_upload_is_redone_below_the_line_that_was_dragged(visitor, tmp_path, app):
    path = tmp_path / "grey.png"
    Image.new("RGB", (PIXELS, PIXELS), (120, 140, 160)).save(path)
    visitor.tab("Redo from a row")
    upload(visitor, "redo-upload", path)
    visitor.told("redo-told", "encoded: it carries no recipe")
    line = visitor.page.locator("#redo-stage [role=slider]")
    line.press("Home")
    for _ in range(3):
        line.press("ArrowDown")
    rows = int(line.get_attribute("aria-valuenow"))
    visitor.page.wait_for_function(
        "rows => document.querySelector('#redo-rows input[type=number]').value == rows", arg=rows)
    visitor.page.click("#redo")
    visitor.told("redo-status", "Saved as")
    assert read_recipe(app.pictures[-1])["keep_rows"] == rows


def test_doctor_has_what_a_bug_report_needs(visitor):
    visitor.tab("Doctor")
    visitor.page.wait_for_function(
        "() => document.querySelector('#doctor-report textarea').value.includes('torch')")
    report = visitor.page.locator("#doctor-report textarea").input_value()
    assert "ssd-decoding" in report and "postcard" in report and "last error" in report
    assert PROMPT not in report


def test_backbones_are_listed_with_where_it_looked_and_whether_they_fit(visitor, app):
    visitor.tab("Models")
    visitor.page.wait_for_selector("#backbones-found table")
    found = visitor.text("backbones-found")
    assert "postcard" in found and str(app.services.library.places()[0]) in found
    visitor.page.click("#backbone-fit")
    assert "MiB" in visitor.told("backbone-status")
    assert "not" not in visitor.text("backbone-progress")


def test_rows_are_painted_while_the_run_goes_on(visitor, app):
    with app.holding():
        visitor.page.click("#draw")
        visitor.page.wait_for_function(
            """() => { const run = document.querySelector("#create-stage .ssd-run");
              const canvas = document.querySelector("#create-stage canvas.ssd-pixels");
              if (run?.dataset.state !== "running" || !canvas) return false;
              const pixel = (y) => canvas.getContext("2d").getImageData(9, y, 1, 1).data[3];
              return pixel(1) > 0 && pixel(canvas.height - 2) === 0; }""", polling=20)
        painted = visitor.painted_rows()
        assert painted == sorted(painted, reverse=True), "rows come from the top"
        visitor.page.click("#stop")
        visitor.until("cancelled")


def test_ticked_seeds_go_on_from_where_they_wait_and_equal_their_solo_runs(visitor, app):
    before = len(app.pictures)
    visitor.lock(40)
    visitor.tab("Seeds")
    visitor.fill("seeds-count", 4)
    visitor.page.click("#seeds-start")
    visitor.paused()
    visitor.told("seeds-status", "4 paused at row 4 of 12")
    assert len(app.pictures) == before, "nothing is finished yet"
    assert visitor.page.is_disabled("#seeds-finish"), "nothing is ticked yet"
    boxes = visitor.page.locator("#seeds-grid input[type=checkbox]")
    boxes.nth(1).check()
    boxes.nth(3).check()
    visitor.page.wait_for_function(
        "() => document.querySelectorAll('#seeds-ticks input:checked').length === 2")
    visitor.page.click("#seeds-finish")
    visitor.page.wait_for_function(
        "() => document.querySelector('#seeds-status').innerText.includes('2 finished')")
    made = app.pictures[before:]
    assert {read_recipe(path)["seed"] for path in made} == {41, 43}
    for path in made:
        assert tokens_of(path).equal(solo(methods.Exact(), read_recipe(path)["seed"]))
    cards = visitor.page.locator("#seeds-grid .ssd-seed")
    assert boxes.nth(0).is_visible() and not boxes.nth(1).is_visible(), "finished once"
    assert visitor.page.is_disabled("#seeds-finish"), "what was ticked is finished"
    cards.nth(1).locator("[data-tool=redo]").click()
    visitor.page.wait_for_selector("#redo-stage ssd-keep-line img")
    assert made[0].name in visitor.page.locator("#redo-stage ssd-keep-line").get_attribute("src")



def test_without_a_network_the_hub_is_one_line(visitor, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    visitor.tab("Models")
    visitor.told("backbone-quote")  # what the tab itself says comes first
    visitor.page.click("#backbone-ask")
    line = visitor.told("backbone-quote")
    visitor.page.wait_for_selector("#backbone-quote .studio-problem")
    assert visitor.page.locator("#backbone-download").is_disabled() and line


def test_nothing_is_asked_of_any_other_machine(visitor, app):
    visitor.draw()
    for name in ("Race", "Redo from a row", "Seeds", "History", "Models", "Doctor"):
        visitor.tab(name)
    assert len(visitor.asked) > 20
    ours = (app.address, "data:", "blob:")
    assert [url for url in visitor.asked if not url.startswith(ours)] == []
    answer = visitor.page.request.get(app.address)
    assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_one_click_restores_all_settings(visitor, app):
    visitor.lock(2**64 - 1)
    visitor.expert()
    visitor.fill("window", 24)
    visitor.fill("negative", "a boat")
    visitor.draw()
    fresh = {"prompt": "a sun", "seed": 1, "negative": "", "window": 30}
    for name, value in fresh.items():
        visitor.fill(name, value)
    visitor.tab("History")
    visitor.page.locator("#lock input").uncheck()
    visitor.page.locator("#history img").first.click()
    visitor.page.wait_for_selector(".studio-details img")
    visitor.page.click("#history-restore")
    visitor.page.wait_for_selector("#lock input:checked")
    visitor.page.wait_for_function(
        "(prompt) => document.querySelector('#prompt textarea').value === prompt", arg=PROMPT)
    assert "Settings restored" in visitor.told("history-status")
    values = {name: visitor.page.locator(f"#{name} :is(textarea, input)").first.input_value()
              for name in fresh}
    assert values == {"prompt": PROMPT, "seed": str(2**64 - 1), "negative": "a boat",
                      "window": "24"}


def chips(page):
    return page.locator("#filled .ssd-pin").all_inner_texts()


def test_what_is_filled_in_can_be_left_open_or_written_into_the_prompt(visitor, app):
    page, box = visitor.page, visitor.page.locator("#prompt textarea")
    visitor.lock(7)
    visitor.fill("negative", "")
    box.fill("a red house")
    page.wait_for_selector("#filled .ssd-pin >> text=lone")
    before = chips(page)
    gone, written = before[-2:]
    page.get_by_role("button", name=f"Leave open: {gone}").click()
    page.wait_for_selector("#filled .ssd-again")
    page.locator("#filled .ssd-pin").first.press("Delete")
    rest = [text for text in before if text not in (gone, "lone")]
    page.wait_for_function(
        "(count) => document.querySelectorAll('#filled .ssd-pin').length === count",
        arg=len(rest))
    assert chips(page) == rest and box.input_value() == "a red house"
    page.locator("#filled .ssd-pin", has_text=written).click()
    page.wait_for_selector(f"#filled .ssd-pin >> text={written}", state="detached")
    assert box.input_value() == f"a red house, {written}"
    assert sorted(chips(page)) == sorted(set(rest) - {written})
    visitor.draw()
    drawn = read_recipe(app.pictures[-1])["prompt_expanded"]
    assert f"Drawn from: {drawn}" in visitor.text("create-stage")
    assert gone not in drawn and "lone" not in drawn and all(text in drawn for text in rest)
    box.fill("a tent")
    page.wait_for_selector("#filled .ssd-again", state="detached")
    page.locator("#expand input").uncheck()
    page.wait_for_selector("#filled .ssd-pin", state="detached")
    page.locator("#expand input").check()
