"""What some models add to the page, in a real browser: a picture to draw below, pixels to paint."""

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from PIL import Image  # noqa: E402
from support.studio_page import drawn, places  # noqa: E402
from support.studio_visit import PROMPT, served  # noqa: E402
from support.tiny_glm_image import glm_image  # noqa: E402
from support.tiny_glm_pipeline import glm_pipeline  # noqa: E402

from ssd_core.backbones.prompts.two_panels import CONTROLS  # noqa: E402
from ssd_core.output.recipe import opened, read_recipe  # noqa: E402
from studio import paints  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture
def omni(app, monkeypatch):
    """The bundled backbone as one that draws below a picture."""
    backbone = app.services.library.current.backbone
    monkeypatch.setattr(backbone, "controls", CONTROLS, raising=False)
    monkeypatch.setattr(backbone, "two_panels", backbone.size, raising=False)
    return backbone


@pytest.fixture(scope="module")
def glm_app(tmp_path_factory):
    """An app of its own with a tiny GLM-Image and the parts that paint its pixels."""
    pytest.importorskip("diffusers", reason="diffusers paints GLM-Image's pixels")
    folder = tmp_path_factory.mktemp("glm")
    glm_pipeline(glm_image(folder / "models" / "ssd_backbones" / "GLM-Image"))
    with served(folder, models=folder / "models", backbone="GLM-Image") as app:
        yield app


def depth_map(path):
    Image.radial_gradient("L").convert("RGB").save(path)
    return path


def test_a_chosen_map_is_drawn_below_and_only_the_lower_panel_is_saved(
        visit, app, omni, violations, tmp_path):
    page = (visitor := visit()).page
    page.fill("#prompt", PROMPT)
    page.click("#control > summary")
    expect(page.locator(".control-picture")).to_be_hidden()
    page.set_input_files("#control input[type=file]", depth_map(tmp_path / "depth.png"))
    shown = page.locator(".control-picture")
    expect(shown).to_be_visible()
    expect(shown).to_have_js_property("complete", True)
    page.wait_for_function("document.querySelector('.control-picture').naturalWidth > 0")
    page.click("#control-kind label:last-of-type")
    expect(page.locator("#control-subject")).to_be_visible()
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
    expect(shown).to_be_hidden()
    assert visitor.plan()


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
