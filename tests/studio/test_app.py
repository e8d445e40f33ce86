"""The app in a real browser: what a visitor does on every tab, with the bundled backbone."""

import json
from threading import Event

import pytest
from support.page_moments import AT_REST, laid_out
from support.preview_run import watched

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.fake_hub import FakeHub  # noqa: E402
from support.studio_visit import PROMPT, Visitor, answer, served, tokens_of  # noqa: E402
from support.tiny_image_models import janus_port  # noqa: E402
from test_downloaded import published  # noqa: E402

from ssd_core import load_backbone  # noqa: E402
from ssd_core.output.recipe import read_recipe, recipe_tokens  # noqa: E402
from ssd_core.weights.catalogue import CATALOGUE  # noqa: E402
from studio import downloads  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture
def visitor(visit):
    visitor = visit()
    visitor.fill("prompt", PROMPT)
    return visitor


# Create


def test_the_plan_follows_the_knobs(visitor):
    visitor.page.wait_for_function("() => /at most 144/i.test(plan.innerText)")
    assert visitor.page.get_by_role("radio", name="Faithful").is_checked()
    plain = visitor.page.get_by_role("radio", name="Normal decoding")
    plain.check(force=True)  # its label is what is seen
    # A page that is still busy with its first plan may put the choice back: then it is made again.
    visitor.page.wait_for_function("""radio => {
      if (plan.innerText.includes("144 forward passes, one for each token")) return true;
      if (!radio.checked) radio.click();
    }""", arg=plain.element_handle(), polling=200)
    visitor.expert()
    assert visitor.page.locator("#method input").input_value() == "ar (identical)"
    visitor.choose("method", "ssd")
    assert visitor.page.locator("#drafter input").input_value() == "heads"
    visitor.page.wait_for_function("() => plan.innerText.includes('37 forward passes instead')")
    assert plain.is_checked(), "ssd is no stop"
    assert "none of the choices" in visitor.text("plan")
    visitor.choose("method", "exact")
    visitor.page.wait_for_function("() => !plan.innerText.includes('none of the choices')")
    assert visitor.page.get_by_role("radio", name="Faithful").is_checked()
    visitor.choose("method", "ssd")
    visitor.fill("k_h", 64)
    visitor.page.wait_for_selector("#plan .studio-problem")
    assert "k_h" in visitor.text("plan")
    assert visitor.page.locator("#plan").get_attribute("aria-live") == "polite"


# Stopping


def test_stop_keeps_the_top_and_the_rest_is_redone_below_it(visitor, app):
    visitor.fill("pictures", 2)
    with app.holding():
        visitor.page.click("#draw")
        visitor.page.wait_for_function(
            """() => { const both = [...document.querySelectorAll("#create-stage .ssd-pixels")];
              const pixel = (canvas) => canvas.getContext("2d").getImageData(9, 40, 1, 1).data[3];
              return both.length === 2 && both.every(pixel); }""")
        visitor.page.click("#stop")
        visitor.until("cancelled")
    assert "Stopped at row" in visitor.told("create-status")
    visitor.page.click("#keep-top")
    visitor.page.wait_for_selector("#redo-stage ssd-keep-line .ssd-frame")
    assert "tokens from its recipe" in visitor.told("redo-told")
    top, rows = app.pictures[-1], int(visitor.page.locator(
        "#redo-rows input[type=number]").input_value())
    visitor.fill("pictures", 1)
    visitor.expert()
    visitor.choose("method", "ssd")
    picked = place_on_stage(visitor, ".ssd-field")
    visitor.page.click("#redo")
    assert "Saved as" in visitor.told("redo-status")
    redone = place_on_stage(visitor, ".ssd-picture")
    assert redone == pytest.approx(picked, abs=1), "it is redone in the same place"
    made = read_recipe(app.pictures[-1])
    assert made["keep_rows"] == rows > 0
    kept = max(app.pictures, key=lambda path: "partial" in path.name)
    assert "partial" in top.name or "partial" in kept.name
    assert recipe_tokens(made)[:rows].equal(tokens_of(kept)[:rows])


def place_on_stage(visitor, element):
    """x, y, width and height in px, from the corner of Redo's stage."""
    visitor.page.evaluate(AT_REST)
    laid_out(visitor.page)
    stage = visitor.page.locator("#redo-stage").bounding_box()
    box = visitor.page.locator(f"#redo-stage {element}").bounding_box()
    return [box["x"] - stage["x"], box["y"] - stage["y"], box["width"], box["height"]]


# More than one visitor, and none


def test_two_tabs_do_not_mix_and_the_second_waits_its_turn(visit, app):
    first, second = visit(), visit()
    for seed, one in ((101, first), (202, second)):
        one.fill("prompt", PROMPT)
        one.lock(seed)
    before = len(app.pictures)
    first.fill("pictures", 4)
    with app.holding():
        first.page.click("#draw")
        first.until("running")
        second.page.click("#draw")
        second.until("waiting")
        assert "Waiting" in second.text("create-stage")
    second.until("done")
    for seed, one in ((101, first), (202, second)):
        one.page.wait_for_selector("#stop[disabled]", state="attached")
        assert one.page.locator("#seed :is(input, textarea)").input_value() == str(seed)
    seeds = [read_recipe(path)["seed"] for path in app.pictures[before:]]
    assert sorted(seeds) == [101, 102, 103, 104, 202]
    assert len(first.page.locator("#create-stage canvas.ssd-pixels").all()) == 4
    assert len(second.page.locator("#create-stage canvas.ssd-pixels").all()) == 1


# Manners


def test_only_names_of_this_machine_are_answered(app):
    assert answer(app, "", host="evil.example")[0] == 400
    for way_out in ("../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "nothing.png"):
        assert answer(app, f"studio/picture/{way_out}")[0] == 404


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_the_width(visit, width):
    visitor = visit(viewport={"width": width, "height": 844})
    visitor.draw()
    wide = visitor.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    box = visitor.page.locator("#create-stage canvas.ssd-pixels").first.bounding_box()
    assert box["width"] > 150 and box["x"] >= 0 and box["x"] + box["width"] <= width
    assert len([one for one in visitor.page.get_by_role("tab").all() if one.is_visible()]) == 7
    visitor.page.evaluate("scrollTo(0, 0)")
    assert visitor.page.locator("#draw").bounding_box()["y"] < 844 - 40


def test_it_speaks_the_language_of_the_browser(visit):
    visitor = visit(locale="zh-CN")
    assert visitor.page.locator("#draw").inner_text() == "绘制"
    visitor.fill("prompt", PROMPT)
    assert "已保存" in visitor.draw()
    assert "次前向" in visitor.text("create-stage") and "普通" in visitor.text("create-stage")


def test_a_language_can_be_forced(chromium, tmp_path):
    with served(tmp_path, "zh") as running, watched(chromium) as new_page:
        visitor = Visitor(new_page(locale="en-US"), running.address)
        assert visitor.page.locator("#draw").inner_text() == "绘制"
        assert "次前向" in visitor.text("plan")
        assert visitor.page.evaluate("document.documentElement.lang") == "zh"


def test_keyboard_alone_draws_a_picture(visit):
    visitor = visit()
    visitor.page.locator("#prompt textarea").focus()
    for _ in range(60):
        visitor.page.keyboard.press("Tab")
        if visitor.page.evaluate("document.activeElement.id") == "draw":
            break
    visitor.page.keyboard.press("Enter")
    visitor.until("done")


def test_endpoints_have_stable_names(app):
    info = json.loads(answer(app, "gradio_api/info")[1])
    assert {"/draw", "/race", "/seeds_start", "/seeds_finish", "/plan", "/restore",
            "/doctor", "/fit", "/use_backbone"} <= set(info["named_endpoints"])


def test_a_backbone_is_downloaded_only_by_its_button_which_says_how_much_and_where(
        chromium, tmp_path, monkeypatch):
    row = CATALOGUE["Janus-Pro-1B-hf"]
    janus_port(tmp_path / "published")
    with FakeHub(published(row, tmp_path / "published")) as hub, served(tmp_path) as running, \
            watched(chromium) as new_page:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        visitor = Visitor(new_page(), running.address)
        visitor.tab("Models")
        visitor.choose("known", row.title)
        visitor.page.wait_for_function(
            "name => document.querySelector('#backbone-quote').innerText.includes(name)",
            arg=row.licence.name)
        assert hub.requests == []
        visitor.page.click("#backbone-ask")
        button = visitor.page.locator("#backbone-download:not([disabled])")
        button.wait_for()
        place = running.services.library.places()[0] / row.name
        assert str(place) in button.inner_text() and "Download 1.1 MB" in button.inner_text()
        assert not place.exists()
        button.click()
        visitor.page.wait_for_selector(f"#backbones-found td:has-text('{row.name}')")
        assert "Downloaded to" in visitor.told("backbone-progress")
    assert load_backbone(place, "cpu").name


def test_a_download_goes_on_after_its_tab_was_closed_and_another_shows_it(
        chromium, tmp_path, monkeypatch):
    row, gate, download = CATALOGUE["Janus-Pro-1B-hf"], Event(), downloads.hub.download

    def held_up(name, models_dir, progress, stop):
        progress(1, 2, "half of it")
        assert gate.wait(60)
        return download(name, models_dir, progress, stop)

    monkeypatch.setattr(downloads.hub, "download", held_up)
    janus_port(tmp_path / "published")
    with FakeHub(published(row, tmp_path / "published")) as hub, served(tmp_path) as running, \
            watched(chromium) as new_page:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        visitor = Visitor(new_page(), running.address)
        visitor.tab("Models")
        visitor.choose("known", row.title)
        visitor.page.click("#backbone-ask")
        visitor.page.click("#backbone-download:not([disabled])")
        visitor.page.wait_for_selector("#backbone-progress :has-text('half of it')")
        visitor.page.close()
        again = Visitor(new_page(), running.address)
        again.tab("Models")
        again.page.wait_for_selector("#backbone-progress :has-text('half of it')")
        gate.set()
        again.page.wait_for_selector("#backbone-progress :has-text('Downloaded to')")
        assert again.page.locator("#backbone-download").is_disabled(), "it says no size"
    assert load_backbone(running.services.library.places()[0] / row.name, "cpu").name


def test_another_backbone_brings_its_own_schedule_and_sizes(chromium, tmp_path):
    janus_port(tmp_path / "models" / "ssd_backbones" / "my-janus")
    with served(tmp_path) as running, watched(chromium) as new_page:
        visitor = Visitor(new_page(), running.address)
        visitor.tab("Models")
        visitor.page.wait_for_selector("#backbones-found td:has-text('my-janus')")
        visitor.choose("backbone", "my-janus")
        visitor.page.click("#backbone-use")
        visitor.page.wait_for_function(
            "() => document.querySelector('#backbone-status').innerText.includes('no draft heads')")
        visitor.tab("Create")
        visitor.lock(3)
        visitor.draw()
        assert "Faithful" in visitor.text("create-stage")
        recipe = read_recipe(running.pictures[-1])
        assert recipe["backbone"]["name"] == running.services.library.current.backbone.name
        assert (recipe["method"], recipe["cfg"]) == ("exact", 5.0)
        assert tuple(recipe["size"]) == running.services.library.current.backbone.size
