"""<ssd-stage> in a browser: rows while a job runs, the queue, errors, and when it stops asking."""

import pytest
from support.page_moments import asks_on, quiet

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
expect = playwright.expect

RED, GREEN = "rgb(255, 0, 0)", "rgb(0, 255, 0)"
COLOUR = """([panel, x, y]) => {
  const data = document.querySelectorAll(".ssd-pixels")[panel]?.getContext("2d")
    .getImageData(x, y, 1, 1).data;
  return data?.[3] ? `rgb(${data.slice(0, 3).join(", ")})` : "clear";
}"""


def colour(page, row, panel=0):
    return page.evaluate(COLOUR, [panel, 3, 8 * row])


def painted(page, row, shade, panel=0):
    """Wait until a row has this colour."""
    page.wait_for_function(f"(asked) => ({COLOUR})(asked[0]) === asked[1]",
                           arg=[[panel, 3, 8 * row], shade])


def status(page, run=0):
    return page.locator(".ssd-status[role=status]").nth(run)


def test_rows_are_painted_while_the_job_runs(studio, open_page, run):
    studio.say("a", "running", run.started(), run.rows(0, RED))
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    painted(page, 0, RED)
    assert colour(page, 1) == "clear"
    studio.say("a", "running", run.rows(1, GREEN))
    painted(page, 1, GREEN)
    asks_on(page)


def test_messages_are_asked_for_once(studio, open_page, run):
    studio.say("a", "running", run.started(), run.rows(0, RED))
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    painted(page, 0, RED)
    page.wait_for_function("() => window.asked > 1 && window.asking === 0")
    assert [query["after"] for query in studio.queries[:2]] == [["0"], ["2"]]


def test_the_place_in_the_queue_is_told_and_taken_back(studio, open_page, run):
    studio.say("a", "waiting", position=2)
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    expect(status(page)).to_have_text("Waiting: 2 runs are ahead of this one")
    studio.say("a", "running")
    expect(status(page)).to_have_text("Getting ready")
    studio.say("a", "running", run.started(), seconds_left=30)
    expect(page.locator("[aria-hidden=true].ssd-status")).to_have_text("about 30 s left")
    expect(status(page)).to_be_hidden()  # or it would be read aloud every second
    studio.say("a", "done", run.finished())
    expect(status(page)).to_be_hidden()


def test_a_failed_job_says_why_in_one_line_and_as_text_only(studio, open_page, run):
    studio.say("a", "failed", run.started(), run.cancelled("failed"), error="no <b>memory</b>")
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    expect(status(page)).to_have_text("Failed: no <b>memory</b>")
    expect(page.locator(".ssd-figures")).to_contain_text("failed at row 0")
    assert quiet(page)


def test_a_forgotten_job_says_where_its_pictures_are(studio, open_page):
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    expect(status(page)).to_contain_text("Finished pictures are in the history")
    assert quiet(page)


@pytest.mark.parametrize("state", ["done", "cancelled"])
def test_it_stops_asking_when_all_jobs_are_over(studio, open_page, run, new_run, state):
    studio.say("a", state, run.started(), run.rows(0, RED), run.cancelled())
    studio.say("b", "running", new_run("other").started())
    page = open_page('<ssd-stage jobs="a, b"></ssd-stage>')
    painted(page, 0, RED)
    for _ in range(2):  # the second time the server has had the first question
        asks_on(page)
    assert studio.queries[-1]["job"] == ["b"]
    studio.say("b", "done", new_run("other").finished())
    assert quiet(page)
    assert colour(page, 0) == RED


def test_it_stops_asking_when_it_leaves_the_page(studio, open_page, run):
    studio.say("a", "running", run.started())
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    page.locator(".ssd-panel").wait_for()
    page.evaluate("document.querySelector('ssd-stage').remove()")
    assert quiet(page)


def test_other_jobs_take_the_place_of_the_first(studio, open_page, run, new_run):
    studio.say("a", "running", run.started(), run.rows(0, RED))
    studio.say("b", "running", new_run("other").started(), new_run("other").rows(1, GREEN))
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    painted(page, 0, RED)
    page.evaluate("document.querySelector('ssd-stage').setAttribute('jobs', 'b')")
    painted(page, 1, GREEN)
    assert colour(page, 0) == "clear" and page.locator(".ssd-preview").count() == 1
    assert studio.queries[-1]["job"] == ["b"]


def test_a_race_is_one_job_with_two_panels_side_by_side(studio, open_page, new_run):
    left, right = new_run("left"), new_run("right", panel=1)
    studio.say("a", "running", left.started(label="ar"), right.started(label="ssd"),
               right.rows(0, GREEN), left.rows(0, RED))
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    painted(page, 0, RED, panel=0)
    painted(page, 0, GREEN, panel=1)
    left_at, right_at = (panel.bounding_box() for panel in page.locator(".ssd-panel").all())
    assert left_at["y"] == right_at["y"] and left_at["x"] < right_at["x"]


def test_two_stages_do_not_mix(studio, open_page, new_run):
    for name, shade in (("a", RED), ("b", GREEN)):
        studio.say(name, "running", new_run(name).started(), new_run(name).rows(0, shade))
    page = open_page('<ssd-stage jobs="a"></ssd-stage><ssd-stage jobs="b"></ssd-stage>')
    painted(page, 0, RED, panel=0)
    painted(page, 0, GREEN, panel=1)


def test_without_jobs_it_shows_where_the_picture_will_be(studio, open_page):
    page = open_page("<ssd-stage></ssd-stage>")
    expect(page.locator(".ssd-note")).to_contain_text("The picture appears here")
    assert page.get_by_role("button").count() == 0  # no overlay of nothing
    assert quiet(page) and studio.queries == []


def test_a_lost_server_is_told_and_forgotten_when_it_answers(studio, open_page, run):
    studio.say("a", "running", run.started())
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    page.locator(".ssd-panel").wait_for()
    page.evaluate("""() => { window.honest = fetch;
      window.fetch = () => Promise.reject(new Error("down")); }""")
    expect(status(page)).to_have_text("The server is not responding; trying again")
    page.evaluate("window.fetch = window.honest; 0")
    studio.say("a", "running", run.rows(0, RED))
    expect(status(page)).to_be_hidden()
    painted(page, 0, RED)


@pytest.mark.parametrize("options, attributes", [
    ({"locale": "zh-CN"}, ""), ({"locale": "en-GB"}, 'data-ssd-language="zh"')])
def test_it_speaks_the_page_s_language_before_the_browser_s(studio, open_page, run, options,
                                                            attributes):
    studio.root_attributes = attributes
    studio.say("a", "waiting", run.started(), position=1)
    page = open_page('<ssd-stage jobs="a"></ssd-stage>', **options)
    expect(status(page)).to_have_text("等待中：前面还有 1 个任务")
    expect(page.locator(".ssd-figures")).to_contain_text("第 0 行")


def test_pictures_of_a_batch_are_compared_by_their_seeds(studio, open_page, run, png):
    saved = [{"id": f"today/{seed}.png", "seed": str(seed), "label": None} for seed in (7, 8)]
    studio.pictures = {f"/studio/picture/{one['id']}": png("red", 8, 8) for one in saved}
    studio.say("a", "done", run.started(), run.rows(3, RED), run.finished(), saved=saved)
    page = open_page('<ssd-stage jobs="a"></ssd-stage>')
    page.locator(".ssd-number").nth(1).click()
    page.locator("[data-tool=compare]").click()
    divider = page.locator("dialog ssd-divider")
    expect(divider).to_have_attribute("left-label", "seed 7")
    expect(divider).to_have_attribute("right-label", "seed 8")
