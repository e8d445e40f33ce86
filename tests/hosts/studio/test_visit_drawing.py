"""Drawing on Create, on few visits: the gallery, the plan, the stage, its tools, stopping."""

import base64
import re

import pytest
from support.page_moments import laid_out

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from support.small_bundle import SIDE  # noqa: E402
from support.studio_visit import PROMPT, tokens_of  # noqa: E402

from ssd_core.output.recipe import read_recipe  # noqa: E402
from ssd_core.output.words import typed_words  # noqa: E402

HELD = re.compile(rf"row [3-9] of {SIDE}")  # where `app.holding` holds a run


def from_menu(page, tool):
    page.click("#more-tools")
    page.click(f"[data-tool={tool}]")


def seed_of(path):
    return read_recipe(path)["seed"]


def test_a_visit_from_the_gallery_to_a_picture(visit, app):
    visitor = visit()
    the_gallery_stands_there_until_a_click_draws_one_of_its_pictures(visitor, app)
    the_plan_follows_quality_and_method_and_says_what_is_wrong(visitor)
    a_picture_is_drawn_saved_and_shown_with_its_figures_in_words(visitor, app)
    the_tools_save_copy_mark_and_enlarge_it(visitor, app)


def test_a_visit_of_runs_that_are_refused_stopped_and_reloaded(visit, app):
    visitor = visit()
    a_refused_one_is_told_and_the_next_one_goes_well(visitor, app)
    one_goes_on_through_a_reload_and_is_shown_again(visitor, app)
    a_stopped_one_keeps_its_rows_which_are_then_redone(visitor, app)


def the_gallery_stands_there_until_a_click_draws_one_of_its_pictures(visitor, app):
    page = visitor.page
    example = page.locator("#gallery .example").nth(1)
    prompt = example.inner_text()
    expect(page.locator("#gallery .example")).to_have_count(6)
    visitor.drawn(example.click)
    assert page.input_value("#prompt") == prompt
    assert typed_words(read_recipe(app.pictures[-1])).prompt == prompt
    assert page.locator("#gallery").count() == 0
    expect(page.locator("#filmstrip button").first).to_have_attribute("aria-pressed", "true")


def the_plan_follows_quality_and_method_and_says_what_is_wrong(visitor):
    page = visitor.page
    expect(page.locator("#plan")).to_have_attribute("title", re.compile(f"{SIDE**2}"))
    visitor.unfold("#more", ".expert")
    page.check("#reference")
    expect(page.locator("#plan")).to_have_attribute("title", re.compile(
        f"{SIDE**2} forward passes, one for each token"))
    page.select_option("#method", label=page.locator("#method option").all_inner_texts()[2])
    page.select_option("#method", "ssd")
    expect(page.locator("#quality-about")).to_contain_text("Your own settings")
    assert page.locator("#quality :checked").count() == 0
    heads = page.locator("[data-knob=k_h] input")
    heads.fill("64")
    heads.press("Tab")
    expect(page.locator("#plan")).to_have_class("small plan bad")
    page.click("#reset")
    expect(page.get_by_role("radio", name="Faithful")).to_be_checked()


def a_picture_is_drawn_saved_and_shown_with_its_figures_in_words(visitor, app):
    page, before = visitor.page, len(app.pictures)
    page.fill("#prompt", PROMPT)
    seed = page.input_value("#seed")
    visitor.draw()
    assert len(app.pictures) == before + 1
    assert str(seed_of(app.pictures[-1])) == seed
    assert page.input_value("#seed") != seed, "the next picture is another one"
    assert visitor.is_painted()
    expect(page.locator("#status")).to_contain_text("exactly as the model draws it")
    assert "passes instead" not in visitor.figures()
    from_menu(page, "details")
    expect(page.locator("#create-stage .ssd-details")).to_contain_text(f"AR needs {SIDE**2}")


def the_tools_save_copy_mark_and_enlarge_it(visitor, app):
    page = visitor.page
    path = app.pictures[-1]
    named = f"one-red-house-on-the-left-on-a-lake-hills-behind-{seed_of(path)}"
    assert sent(page, "PNG with its settings", f"{named}.png") == path.read_bytes()
    assert base64.b64encode(path.read_bytes()) in sent(page, "Postcard (HTML)", f"{named}.html")
    shared_by_the_sheet_of_the_browser(page, f"{named}.png", path.stat().st_size)
    page.click("[data-tool=favourite]")
    expect(page.locator("[data-tool=favourite]")).to_have_attribute("aria-pressed", "true")
    page.wait_for_timeout(500)  # shown before the server has it
    assert app.services.history.favourites.ids
    page.click("[data-tool=full]")
    expect(page.locator("dialog img").first).to_be_visible()
    expect(page.locator("dialog .viewer-label")).to_contain_text(f"Faithful · seed {seed_of(path)}")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    from_menu(page, "sharp")
    assert page.locator(".on-stage.sharp").count() == 1
    from_menu(page, "sharp")


def sent(page, kind, named):
    """What the menu Send saves as this kind, under this name."""
    page.click("[data-tool=send]")
    with page.expect_download() as saved:
        page.get_by_role("link", name=kind, exact=True).click()
    assert saved.value.suggested_filename == named
    return saved.value.path().read_bytes()


def shared_by_the_sheet_of_the_browser(page, name, size):
    """Only where the browser has a sheet; one that fails is told, one that is closed is not."""
    page.evaluate("() => (navigator.canShare = () => false)")
    page.click("[data-tool=send]")
    assert page.locator("[data-action=share]").count() == 0
    page.keyboard.press("Escape")
    page.evaluate("""() => {
      window.shared = [];
      navigator.canShare = ({ files }) => files[0].type === "image/png";
      navigator.share = async ({ files: [file] }) => {
        window.shared.push([file.name, file.size]);
        const name = [null, "AbortError", "NotAllowedError"][window.shared.length - 1];
        if (name) throw new DOMException("", name);
      };
    }""")
    for _ in range(3):
        expect(page.locator(".toast.bad")).to_have_count(0)
        page.click("[data-tool=send]")
        page.click("[data-action=share]")
    expect(page.locator(".toast.bad")).to_contain_text("could not be shared")
    assert page.evaluate("() => window.shared") == [[name, size]] * 3
    page.locator(".toast.bad").get_by_role("button").first.click()


def a_refused_one_is_told_and_the_next_one_goes_well(visitor, app):
    page = visitor.page
    visitor.type_half_a_character()
    page.click("#draw")
    expect(page.locator("#plan.bad")).to_be_visible()
    page.focus("#prompt")
    page.keyboard.press("Control+a")
    page.keyboard.type(PROMPT)
    visitor.drawn(lambda: page.keyboard.press("Control+Enter"))  # by the keyboard alone


def one_goes_on_through_a_reload_and_is_shown_again(visitor, app):
    page, before = visitor.page, len(app.pictures)
    with app.holding():
        page.click("#draw")
        expect(page.locator("#create-stage .ssd-summary")).to_contain_text(HELD)
        page.reload()
        visitor.ready()
        assert page.input_value("#prompt") == PROMPT
        expect(page.locator("#create-stage .ssd-summary")).to_contain_text(HELD)
    page.wait_for_selector("#create-stage [data-state=done]")
    assert len(app.pictures) == before + 1


def a_stopped_one_keeps_its_rows_which_are_then_redone(visitor, app):
    page, before = visitor.page, len(app.pictures)
    with app.holding():
        page.click("#draw")
        expect(page.locator("#create-stage .ssd-summary")).to_contain_text(HELD)
        page.click("#stop")
        page.click("#keep-top")
    page.wait_for_selector("#create-stage .ssd-slider input")
    assert len(app.pictures) == before + 1


@pytest.mark.nightly
def test_a_visit_of_more_runs(visit, app):
    visitor = visit()
    visitor.page.fill("#prompt", PROMPT)
    the_title_tells_the_share_that_is_done(visitor, app)
    a_seed_that_is_kept_draws_the_same_tokens_again(visitor, app)
    the_overlay_is_off_until_it_is_asked_for(visitor)
    a_click_in_the_filmstrip_shows_that_picture_at_most_at_twice_its_pixels(visitor)
    the_picture_to_compare_with_is_chosen(visitor)


def the_title_tells_the_share_that_is_done(visitor, app):
    page = visitor.page
    with app.holding():
        page.click("#draw")
        for _ in range(600):
            if "%" in page.title():
                break
            page.wait_for_timeout(50)
        assert "%" in page.title()
        page.click("#stop")
    expect(page).to_have_title("SSD Studio")


def a_seed_that_is_kept_draws_the_same_tokens_again(visitor, app):
    page = visitor.page
    page.fill("#seed", "11")
    page.check("#keep-seed")
    visitor.draw()
    first = tokens_of(app.pictures[-1])
    visitor.draw()
    assert (tokens_of(app.pictures[-1]) == first).all()
    page.uncheck("#keep-seed")


def the_overlay_is_off_until_it_is_asked_for(visitor):
    page = visitor.page
    assert page.get_attribute("[data-tool=overlay]", "aria-pressed") == "false"
    from_menu(page, "overlay")
    expect(page.locator(".ssd-legend")).to_be_visible()
    from_menu(page, "overlay")
    expect(page.locator(".ssd-legend")).to_be_hidden()


def a_click_in_the_filmstrip_shows_that_picture_at_most_at_twice_its_pixels(visitor):
    page = visitor.page
    page.locator("#filmstrip button").nth(1).click()
    picture = page.locator("#create-stage .edit-picture")
    expect(picture).to_be_visible()
    laid_out(page)
    box, natural = picture.bounding_box(), picture.evaluate("image => image.naturalWidth")
    assert 0 < box["width"] <= 2 * natural + 1
    visitor.draw()


def the_picture_to_compare_with_is_chosen(visitor):
    page = visitor.page
    for seed in ("21", "22", "23"):
        page.fill("#seed", seed)
        visitor.draw()
    page.click("[data-tool=compare]")
    page.locator(".compare-list button").nth(1).click()
    stamps = page.locator(".viewer-stamp")
    expect(stamps).to_have_text(["seed 21", "seed 23"])


@pytest.mark.nightly
def test_another_visitor_sees_no_run_that_is_not_theirs_and_waits_a_turn(visit, app):
    visitor = visit()
    visitor.page.fill("#prompt", PROMPT)
    with app.holding():
        visitor.page.click("#draw")
        expect(visitor.page.locator("#create-stage .ssd-summary")).to_contain_text(HELD)
        other = visit()
        expect(other.page.locator("#gallery")).to_be_visible()
        other.page.fill("#prompt", PROMPT)
        other.page.click("#draw")
        expect(other.page.locator("#status")).to_contain_text("one run is ahead")
        visitor.page.click("#stop")
        other.page.click("#stop")
        expect(other.page.locator("#stop")).to_be_disabled()
