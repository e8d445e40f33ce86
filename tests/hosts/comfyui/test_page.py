"""The pack in ComfyUI's own page: workflows open, rows are painted while they are decoded."""

from __future__ import annotations

import json
import time
from itertools import combinations
from pathlib import Path

import pytest
from support.api_form import api_form

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / "workflows").glob("*.json"), key=lambda path: path.stem)
BLUEPRINTS = sorted((ROOT / "subgraphs").glob("*.json"))
# The pictures of the previews: how many of their pixels are painted, and their size.
CANVASES = """() => [...document.querySelectorAll(".ssd-pixels")].map((canvas) => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    let painted = 0;
    for (let n = 3; n < data.length; n += 4) painted += data[n] > 0;
    return { width, height, painted };
})"""


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_a_workflow_opens_whole_and_queues_what_it_says(page, path):
    page.open(read(path))
    kinds = page.page.evaluate("() => app.graph._nodes.map((n) => [n.type, n.has_errors ?? false])")
    assert len(kinds) == len(read(path)["nodes"]) and not [k for k, bad in kinds if bad]
    assert ours(page.api_form()) == ours(api_form(read(path)))


def test_every_module_is_loaded_once_and_one_of_them_registers(whole_page):
    """ComfyUI imports every script below WEB_DIRECTORY, and our modules import each other."""
    page, loaded = whole_page.page, []
    page.on("request", lambda request: loaded.append(request.url))
    page.reload()
    whole_page.ready()
    modules = [path.relative_to(ROOT / "web").as_posix() for path in (ROOT / "web").rglob("*.js")]
    assert sorted(url.split("/ssd-decoding/")[1] for url in loaded
                  if "/ssd-decoding/" in url and url.endswith(".js")) == sorted(modules)
    assert page.evaluate("() => app.extensions.filter((e) => e.name === 'ssd.preview').length") == 1


# Boxes (x, y, width, height) of all nodes: Nodes 2.0's own elements, else what is drawn.
BOXES = """() => app.graph._nodes.map((node) => {
    const element = document.querySelector(`[data-node-id="${node.id}"]`);
    if (!element) return [node.type, ...node.getBounding()];
    const { x, y, width, height } = element.getBoundingClientRect();
    return [node.type, ...[x, y, width, height].map((value) => value / app.canvas.ds.scale)];
})"""
LEAST_GAP = 15  # px between two nodes
LEAST_ZOOM, SCREEN = 0.62, {"width": 1366, "height": 768}  # below, the canvas draws no letters


@pytest.fixture
def laptop(page):
    """The page on a laptop's screen."""
    usual = page.page.viewport_size
    page.page.set_viewport_size(SCREEN)
    page.page.wait_for_function("(width) => app.canvas.canvas.getBoundingClientRect().width "
                                "=== width", arg=SCREEN["width"])
    page.rest()
    yield page
    page.page.set_viewport_size(usual)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_a_workflow_opens_large_enough_to_be_read(laptop, path):
    laptop.open(read(path))
    assert laptop.page.evaluate("() => app.canvas.ds.scale") >= LEAST_ZOOM


@pytest.mark.nightly
@pytest.mark.parametrize("part", ["quick_start", "ar_beside", "compare_methods"])
def test_the_pictures_of_a_run_are_on_the_screen(laptop, part):
    laptop.open(read(named(part)))
    laptop.run()
    laptop.page.wait_for_function("() => document.querySelector('.ssd-panel[data-end=finished]')")
    laptop.rest()
    lowest = laptop.page.evaluate("""() => Math.max(...[...document.querySelectorAll(
        ".ssd-panel .ssd-summary")].map((one) => one.getBoundingClientRect().bottom))""")
    assert 0 < lowest <= SCREEN["height"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_no_node_hides_any_of_another(page, path):
    page.open(read(path))
    page.frame()
    boxes = page.page.evaluate(BOXES)
    assert len(boxes) == len(read(path)["nodes"])
    assert [f"{a[0]} and {b[0]}" for a, b in combinations(boxes, 2) if gap(a, b) < LEAST_GAP] == []


def gap(a: list, b: list) -> float:
    """Px between two boxes across or down, whichever is more; below 0 where they overlap."""
    return max(max(a[n], b[n]) - min(a[n] + a[n + 2], b[n] + b[n + 2]) for n in (1, 2))


def ours(api: dict) -> dict:
    """Our nodes; core's have inputs that come and go with its versions."""
    return {name: (node["class_type"], node["inputs"]) for name, node in api.items()
            if node["class_type"].startswith("SSD_")}


def named(part: str) -> Path:
    return next(path for path in WORKFLOWS if part in path.stem)


def set_widgets(workflow: dict, kind: str, **values) -> None:
    node = next(node for node in workflow["nodes"] if node["type"] == kind)
    for name, value in values.items():
        node["widgets_values"][list(node["widgets_values_named"]).index(name)] = value
        node["widgets_values_named"][name] = value


def test_rows_are_painted_while_they_are_decoded(page):
    """The canvas is seen empty, in part and full, in that order."""
    workflow = read(WORKFLOWS[0])
    # Six pictures: long enough to be watched.
    set_widgets(workflow, "SSD_Sampler", batch_size=6, seed=1000 + len(page.seen))
    page.seen.append(1)
    page.open(workflow)
    page.frame()
    page.queue()
    shares = watched(page)
    partial = sorted(share for share in shares if 0.02 < share < 0.98)
    assert len(partial) >= 3 and shares[-1] > 0.99
    assert shares == sorted(shares)
    assert page.errors == []


def watched(page) -> list[float]:
    """Painted shares of the first canvas, until it is full."""
    shares = []
    end = time.monotonic() + 120
    while time.monotonic() < end:
        page.page.wait_for_timeout(30)
        canvases = page.page.evaluate(CANVASES)
        if canvases and canvases[0]["width"] > 1:
            shares.append(canvases[0]["painted"] / canvases[0]["width"] / canvases[0]["height"])
            if shares[-1] > 0.99:
                break
    return shares


def test_pictures_are_begun_picked_by_a_click_and_finished(page):
    workflow = read(named("start_pick"))
    set_widgets(workflow, "SSD_Sampler", seed=3000 + len(page.seen), batch_size=3, part=0.15)
    set_widgets(workflow, "SSD_Finish", pictures="1")
    page.seen.append(1)
    page.open(workflow)
    page.frame()
    page.run()
    page.page.locator(".ssd-picks .ssd-picture").nth(2).dispatch_event("click")
    picked = page.page.evaluate("""() => [
        app.graph._nodes.find((n) => n.type === "SSD_Finish").widgets[0].value,
        document.querySelectorAll(".ssd-picked").length]""")
    assert picked == ["1, 3", 2]
    assert sum(node["class_type"] == "SSD_Finish" and node["inputs"]["pictures"] == "1, 3"
               for node in page.api_form().values()) == 1
    assert page.errors == []


def test_sizes_are_the_backbones_and_advanced_inputs_are_folded(page):
    page.open(read(WORKFLOWS[0]))
    page.page.wait_for_function("""() => app.graph._nodes.find((n) => n.type === "SSD_Sampler")
        .widgets.find((w) => w.name === "size").options.values.join()
        === "auto,768x768,1024x576,576x1024,384x384,512x288,288x512" """)
    tall = "() => app.graph._nodes.find((n) => n.type === 'SSD_Sampler').computeSize()[1]"
    button = "() => app.graph._nodes.find((n) => n.type === 'SSD_Sampler').widgets.find(" \
        "(w) => w.name === 'ssd_advanced')"
    before = page.page.evaluate(tall)
    page.page.evaluate(f"() => {{ ({button})().callback(); }}")
    assert page.page.evaluate(tall) > before  # in Nodes 2.0, too: it asks for the size at each load
    assert page.errors == []


def test_the_form_opens_in_app_mode_and_the_quick_start_does_not(page):
    page.open(read(named("quick_start.app")), app=True)
    page.page.get_by_text("Build an app").first.wait_for()
    for name in ("prompt", "seed", "size", "method", "complete prompt"):
        page.page.get_by_text(name, exact=True).locator("visible=true").first.wait_for()
    page.open(read(named("quick_start")), app=True)
    page.page.get_by_text("Build an app").locator("visible=true").first.wait_for(state="hidden")


def test_the_words_that_are_drawn_stand_on_the_node_before_the_first_row(page):
    workflow = read(WORKFLOWS[0])
    set_widgets(workflow, "SSD_Sampler", seed=4000 + len(page.seen), batch_size=2)
    page.seen.append(1)
    page.open(workflow)
    page.frame()
    page.queue()
    page.page.wait_for_function("""() => {
        const [drawn] = document.querySelectorAll(".ssd-drawn");
        return drawn?.children.length === 2 && drawn.innerText.includes("red house");
    }""")
    added = page.page.evaluate("""() => [...document.querySelectorAll(".ssd-added")]
        .map((one) => one.textContent).join()""")
    assert "lone" in added and "red house" not in added
    assert watched(page)[0] < 1
    assert page.errors == []


# What every panel of a preview shows: its box across and down, and how much of it is painted.
PANELS = f"""() => {{
    const painted = ({CANVASES})();
    return [...document.querySelectorAll(".ssd-panel")].map((panel, n) => {{
        const {{ left, right, top }} = panel.getBoundingClientRect();
        const {{ width, height, painted: pixels }} = painted[n];
        return [left, right, top, width > 1 ? pixels / width / height : 0];
    }});
}}"""


def test_compare_fills_its_panels_side_by_side_at_the_same_time(page):
    workflow = read(named("ar_beside"))
    set_widgets(workflow, "SSD_Compare", seed=2000 + len(page.seen))
    page.seen.append(1)
    page.open(workflow)
    page.frame()
    page.queue()
    moments = [[0.0]]
    end = time.monotonic() + 120
    while min(moments[-1]) < 1 and time.monotonic() < end:
        page.page.wait_for_timeout(30)
        panels = page.page.evaluate(PANELS)
        moments.append([share for *_, share in panels] if len(panels) == 2 else [0.0])
    assert moments[-1] == [1, 1]
    assert [shares for shares in moments if min(shares) > 0.02 and max(shares) < 0.98]
    (_, right, top, _), (left, _, other_top, _) = panels
    assert right <= left and top == other_top
    for guarantee in ("close to what the model draws", "exactly as the model draws it"):
        page.page.locator(".ssd-panel", has_text=guarantee).wait_for()
    assert page.errors == []


def speak(page, language: str) -> None:
    page.set("Comfy.Locale", language)
    page.page.reload(wait_until="domcontentloaded")
    page.ready()


def test_a_template_is_shown_in_the_language_of_the_page(whole_page):
    speak(whole_page, "zh")
    try:
        whole_page.open(read(named("ar_beside")))
        titles = whole_page.page.evaluate(
            "() => [...app.graph._groups, ...app.graph._nodes].map((one) => one.title)")
        assert {"模型", "比较", "图像", "说明"} <= set(titles) and "Compare" not in titles
        whole_page.look_at("MarkdownNote")
        whole_page.page.get_by_text("同一提示词、同一种子").locator("visible=true").first.wait_for()
    finally:
        speak(whole_page, "en")


def test_a_file_name_is_sent_filled_in_and_stays_as_typed(page):
    workflow = read(named("start_pick"))
    typed = "SSD/%date:yyyy%-%SSD Sampler.seed%-%width%"
    set_widgets(workflow, "SSD_SaveImage", filename_prefix=typed)
    set_widgets(workflow, "SSD_Sampler", seed=7)
    page.open(workflow)
    saver, = (one for one in page.api_form().values() if one["class_type"] == "SSD_SaveImage")
    assert saver["inputs"]["filename_prefix"] == f"SSD/{time.localtime().tm_year}-7-%width%"
    assert page.page.evaluate("""() => app.graph._nodes.find(
        (node) => node.type === "SSD_SaveImage").widgets[0].value""") == typed


def test_links_of_our_types_differ_in_colour(page):
    page.open(read(WORKFLOWS[0]))
    colours = page.page.evaluate("""() => ["IMAGE", "SSD_MODEL", "SSD_RUN"].map(
        (type) => [app.canvas.constructor.link_type_colors[type],
                   getComputedStyle(document.documentElement)
                       .getPropertyValue(`--color-datatype-${type}`)])""")
    assert len(set(map(str, colours))) == 3 and all(all(pair) for pair in colours[1:])


# Shows all pictures that the only node gives, and connects a picture if it takes one.
SHOWN = """() => {
    const [node] = app.graph._nodes, take = (name) => (input) => input.name === name;
    const picture = node.inputs.findIndex(take("picture"));
    if (picture >= 0) {
        const made = ["SSD_LoadModel", "SSD_Sampler"].map((kind) => LiteGraph.createNode(kind));
        made.forEach((one) => app.graph.add(one));
        made[0].connect(0, made[1], made[1].inputs.findIndex(take("model")));
        made[1].connect(1, node, picture);
    }
    node.outputs.forEach((output, n) => {
        if (output.type !== "IMAGE") return;
        const shown = LiteGraph.createNode("PreviewImage");
        app.graph.add(shown);
        node.connect(n, shown, 0);
    });
}"""


@pytest.mark.parametrize("path", BLUEPRINTS, ids=lambda p: p.stem)
def test_a_blueprint_is_listed_and_runs(client, whole_page, path):
    assert path.stem in {one["name"] for one in client.get("/global_subgraphs").values()}
    whole_page.open(read(path))
    whole_page.page.evaluate(SHOWN)
    whole_page.run()
    assert whole_page.errors == []


def test_templates_list_the_workflows(whole_page):
    whole_page.command("Comfy.BrowseTemplates")
    page = whole_page.page
    dialog = page.get_by_role("dialog").last
    dialog.get_by_text("ssd-decoding").first.click()
    for path in WORKFLOWS:
        dialog.get_by_text(path.stem).first.wait_for()
    places = [dialog.get_by_text(path.stem).first.bounding_box() for path in WORKFLOWS[:3]]
    assert sorted(places, key=lambda box: (box["y"], box["x"])) == places  # the quick start first
    page.wait_for_function("""() => [...document.querySelectorAll("[role=dialog] img")].filter(
        (image) => image.naturalWidth >= 384).length >= 2""")  # the others when scrolled to
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")


def test_help_opens_for_a_node(whole_page):
    whole_page.open(read(WORKFLOWS[0]))
    whole_page.frame()
    page = whole_page.page
    page.evaluate("""() => {
        app.canvas.selectNode(app.graph._nodes.find((n) => n.type === "SSD_Sampler"));
        app.canvas.setDirty(true, true);
    }""")
    page.get_by_test_id("info-button").first.dispatch_event("click")
    help_text = (ROOT / "web" / "docs" / "SSD_Sampler.md").read_text(encoding="utf-8")
    heading = [line for line in help_text.splitlines() if line.startswith("## ")][-1]
    page.get_by_role("heading", name=heading.removeprefix("## ")).first.wait_for()
