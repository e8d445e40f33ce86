"""Models as they are found, loaded and downloaded, and what some of them add to the page."""

from shutil import rmtree
from threading import Event

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")

from PIL import Image  # noqa: E402
from support.fake_hub import FakeHub  # noqa: E402
from support.page_moments import laid_out  # noqa: E402
from support.small_bundle import small_bundle  # noqa: E402
from support.studio_page import drawn, places  # noqa: E402
from support.studio_visit import PROMPT, served, visits  # noqa: E402
from support.tiny_glm_image import glm_image  # noqa: E402
from support.tiny_glm_pipeline import glm_pipeline  # noqa: E402
from support.tiny_image_models import janus_port  # noqa: E402
from test_downloaded import published  # noqa: E402

from ssd_core import load_backbone  # noqa: E402
from ssd_core.backbones.prompts.two_panels import CONTROLS  # noqa: E402
from ssd_core.output.picture_files import opened  # noqa: E402
from ssd_core.output.recipe import read_recipe  # noqa: E402
from ssd_core.weights import downloads  # noqa: E402
from ssd_core.weights.catalogue import CATALOGUE  # noqa: E402
from studio import paints  # noqa: E402

expect = playwright.expect
ROW = CATALOGUE["Janus-Pro-1B-hf"]
ASK = f"[data-ask='{ROW.name}']"


@pytest.fixture(scope="module")
def app(small_assets, tmp_path_factory):
    """The app beside another model, and a folder that is none."""
    expect.set_options(timeout=90_000)
    folder = tmp_path_factory.mktemp("app")
    janus_port(folder / "models" / "ssd_backbones" / "my-janus")
    broken = folder / "models" / "ssd_backbones" / "broken"
    broken.mkdir()
    (broken / "model.safetensors").write_bytes(b"nothing")
    with small_bundle(small_assets), served(folder) as running:
        yield running


@pytest.fixture
def open_place(chromium, app):
    with places(chromium, app) as open_one:
        yield open_one


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Answers in place of the Hub, with one small model."""
    janus_port(tmp_path / "published")
    with FakeHub(published(ROW, tmp_path / "published")) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def row(page, name):
    return page.locator(f"[data-model='{name}']")


def test_a_visit_to_the_models(open_place, app, hub):
    page = open_place("models")
    they_are_listed_with_what_fits_and_what_is_wrong(page)
    one_is_downloaded_only_once_its_size_was_seen(page, app, hub)
    another_is_loaded_and_the_page_is_its_own(page, app)


def they_are_listed_with_what_fits_and_what_is_wrong(page):
    expect(row(page, "postcard")).to_contain_text("in use")
    expect(row(page, "postcard").locator(".fit")).to_contain_text("it fits")
    expect(row(page, "my-janus").locator(".fit")).to_contain_text("it fits")
    expect(row(page, "my-janus")).to_contain_text("1.1 MB")
    expect(row(page, "broken").locator(".bad")).not_to_be_empty()
    expect(row(page, "broken").locator("button")).to_have_count(0)
    page.select_option("#dtype", "int8")
    expect(row(page, "my-janus").locator(".fit")).to_contain_text("it fits")
    page.select_option("#dtype", "auto")


def one_is_downloaded_only_once_its_size_was_seen(page, app, hub):
    page.locator(ASK).wait_for()
    assert hub.requests == []
    page.click(ASK)
    quote = page.locator("dialog.quote")
    place = app.services.library.places()[0] / ROW.name
    expect(quote).to_contain_text(str(place))
    expect(quote).to_contain_text(ROW.licence.name)
    assert not place.exists()
    page.click("#download-start")
    expect(row(page, ROW.name)).to_be_visible()
    expect(page.locator("#download")).to_contain_text(f"{ROW.name} is here")
    assert load_backbone(place, "cpu").name
    rmtree(place)


def another_is_loaded_and_the_page_is_its_own(page, app):
    try:
        page.click("[data-use='my-janus']")
        expect(page.locator(".toast", has_text="no draft heads")).to_be_visible()
        expect(row(page, "my-janus")).to_contain_text("in use")
        expect(page.locator("#model-in-use")).to_have_text("my-janus")
        assert app.services.library.current.name == "my-janus"
    finally:
        app.services.library.use("postcard")


def test_visitors_of_a_shared_app_only_read(chromium, small_assets, tmp_path):
    with small_bundle(small_assets), served(tmp_path, users={"ann": "secret"}) as running, \
            places(chromium, running) as open_one:
        page = open_one("models", http_credentials={"username": "ann", "password": "secret"})
        expect(row(page, "postcard").locator(".fit")).to_contain_text("fits")
        expect(page.locator(".models")).to_contain_text("Only the person who started it")
        assert page.locator(".models button, .models select").count() == 0
        assert str(tmp_path) not in page.locator(".models").inner_text()


@pytest.mark.nightly
def test_a_visit_by_phone_reads_the_tables_without_scrolling_sideways(open_place):
    page = open_place("models", viewport={"width": 390, "height": 844}, has_touch=True,
                      is_mobile=True)
    expect(row(page, "postcard").locator(".fit")).to_contain_text("fits")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    row(page, "my-janus").locator("button").scroll_into_view_if_needed()
    page.evaluate("location.hash = 'doctor'")
    expect(page.locator("#doctor-report")).to_contain_text("loaded: postcard")
    laid_out(page)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.nightly
def test_a_visit_of_what_goes_wrong_and_to_the_doctor(open_place, app, monkeypatch):
    page = open_place("models", permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("[data-use='my-janus']")
    button.wait_for()
    with monkeypatch.context() as patch:
        patch.setattr(app.services.library, "use", lambda *_: 1 / 0)
        button.click()
        expect(page.locator(".toast.bad")).to_be_visible()
        expect(button).to_be_enabled()
    page.evaluate("location.hash = 'doctor'")
    report = page.locator("#doctor-report")
    expect(report).to_contain_text("loaded: postcard")
    page.click("#doctor-copy")
    expect(page.locator(".toast").last).to_have_text("Copied.×")
    assert page.evaluate("navigator.clipboard.readText()") == report.inner_text()
    report.evaluate("element => { element.textContent = ''; }")
    page.click("#doctor-refresh")
    expect(report).to_contain_text("loaded: postcard")


@pytest.mark.nightly
def test_a_download_goes_on_without_its_page_and_is_cancelled_by_another(
        open_place, hub, monkeypatch):
    gate = Event()

    def held_up(name, models_dir, progress, stop):
        progress(1_000_000, 2_000_000, "half of it")
        while not stop():
            gate.wait(0.02)
        raise downloads.hub.DownloadCancelled("cancelled")

    monkeypatch.setattr(downloads.hub, "download", held_up)
    page = open_place("models")
    page.evaluate("""async (name) => {
      const { Api } = await import("/studio/web/api.js");
      const { missing } = await new Api().post("models/quote", { name });
      await new Api().post("models/download", { name, bytes: missing });
    }""", ROW.name)
    page.close()
    again = open_place("models")
    expect(again.locator("#download")).to_contain_text("1.0 MB of 2.0 MB")
    again.click("#download-cancel")
    expect(again.locator("#download")).to_contain_text("cancelled")


# What some models add to the page


def test_a_chosen_map_is_drawn_below_and_only_the_lower_panel_is_saved(
        chromium, app, monkeypatch, violations, tmp_path):
    omni = app.services.library.current.backbone  # as one that draws below a picture
    monkeypatch.setattr(omni, "controls", CONTROLS, raising=False)
    monkeypatch.setattr(omni, "two_panels", omni.size, raising=False)
    with visits(chromium, app) as visit:
        page = (visitor := visit()).page
        page.fill("#prompt", PROMPT)
        a_map_is_chosen(page, tmp_path / "depth.png")
        assert violations(page) == []
        page.click("#control-kind label:first-of-type")
        expect(page.locator("#control-subject")).to_be_hidden()
        with page.expect_response("**/api/control") as answer:
            page.click("#draw")
        job = answer.value.json()["id"]
        page.wait_for_selector(f"#create-stage [data-job='{job}'][data-state=done]")
        recipe = read_recipe(app.pictures[-1])
        assert recipe["keep_rows"] == omni.grid.rows // 2 and PROMPT in recipe["prompt"]
        with opened(app.pictures[-1]) as image:
            assert image.size == (omni.size[0], omni.size[1] // 2)
        page.click("#control-remove")
        expect(page.locator(".control-picture")).to_be_hidden()
        assert visitor.plan()


def a_map_is_chosen(page, path):
    Image.radial_gradient("L").convert("RGB").save(path)
    page.click("#control > summary")
    shown = page.locator(".control-picture")
    expect(shown).to_be_hidden()
    page.set_input_files("#control input[type=file]", path)
    expect(shown).to_be_visible()
    expect(shown).to_have_js_property("complete", True)
    page.wait_for_function("() => document.querySelector('.control-picture').naturalWidth > 0")
    page.click("#control-kind label:last-of-type")
    expect(page.locator("#control-subject")).to_be_visible()


@pytest.fixture(scope="module")
def glm_app(tmp_path_factory):
    """An app of its own with a tiny GLM-Image and the parts that paint its pixels."""
    pytest.importorskip("diffusers", reason="diffusers paints GLM-Image's pixels")
    folder = tmp_path_factory.mktemp("glm")
    glm_pipeline(glm_image(folder / "models" / "ssd_backbones" / "GLM-Image"))
    with served(folder, models=folder / "models", backbone="GLM-Image") as app:
        yield app


@pytest.mark.nightly
def test_a_button_paints_the_pixels_and_opens_the_painted_picture(chromium, glm_app, monkeypatch):
    monkeypatch.setattr(paints, "STEPS", 2)
    codes = drawn(glm_app, prompt="a red", seed="7", size="256x256", method="ssd", k_v=8, rounds=0)
    with places(chromium, glm_app) as open_one:
        page = open_one("history")
        page.locator("#pictures li button").first.click()
        paint = page.locator("[data-action=paint]")
        expect(paint).to_be_visible()
        expect(page.locator("#picture-panel .button.main:visible")).to_have_count(1)
        paint.click()
        expect(page.locator("#pictures li")).to_have_count(2)
        expect(page.locator("#picture-panel .made")).to_be_visible()
        expect(paint).to_be_hidden()
    painted = glm_app.pictures[-1]
    assert painted != codes and read_recipe(painted)["painted"]["steps"] == 2
    assert read_recipe(painted)["tokens"] == read_recipe(codes)["tokens"]
