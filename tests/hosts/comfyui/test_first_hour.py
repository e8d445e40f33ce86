"""What a newcomer meets on ComfyUI's page and by its API, on a laptop's screen."""

from __future__ import annotations

import json
import urllib.request
import uuid
from itertools import count
from pathlib import Path

import pytest
from support.layout_rules import faults

ROOT = Path(__file__).resolve().parents[3]
QUICK_START = ROOT / "workflows" / "01_quick_start.json"
SEEDS = count(70_000)
NODES = ".ssd-preview, .ssd-words, .ssd-message"  # what we add to nodes
SAMPLER = "app.graph._nodes.find((one) => one.type === 'SSD_Sampler')"
SET = """([kind, name, value]) => {
    const node = app.graph._nodes.find((one) => one.type === kind);
    const widget = node.widgets.find((one) => one.name === name);
    widget.value = value;
    widget.callback?.(value, app.canvas, node);
}"""
# A node below the loader, and the px between the two.
BELOW = """() => {
    const loader = app.graph._nodes.find((one) => one.type === "SSD_LoadModel");
    const other = LiteGraph.createNode("SSD_LoadHeads");
    other.pos = [loader.pos[0], loader.pos[1] + loader.size[1] + 170];
    app.graph.add(other);
}"""
GAP = """() => {
    const [loader, other] = ["SSD_LoadModel", "SSD_LoadHeads"].map(
        (kind) => app.graph._nodes.find((one) => one.type === kind));
    return other.pos[1] - 30 - loader.pos[1] - loader.size[1];
}"""
WIDTHS = f"""() => {SAMPLER}.widgets.filter((one) => one.element?.offsetParent)
    .map((one) => [one.name, Math.round(one.element.getBoundingClientRect().width)])"""


def quick_start(**values) -> dict:
    workflow = {**json.loads(QUICK_START.read_text(encoding="utf-8")), "id": str(uuid.uuid4())}
    sampler = next(node for node in workflow["nodes"] if node["type"] == "SSD_Sampler")
    for name, value in {"seed": next(SEEDS), **values}.items():
        sampler["widgets_values"][list(sampler["widgets_values_named"]).index(name)] = value
        sampler["widgets_values_named"][name] = value
    return workflow


@pytest.fixture
def laptop(page):
    """The page on a laptop's screen."""
    page.page.set_viewport_size({"width": 1366, "height": 768})
    yield page
    page.page.set_viewport_size({"width": 1280, "height": 800})
    assert page.errors == []


def test_nothing_is_wrong_with_a_node_before_within_and_after_a_run(laptop):
    page = laptop.page
    laptop.open(quick_start(prompt="a red house, a dragon", batch_size=3))
    laptop.look_at("SSD_Sampler")
    page.locator(".ssd-kind").first.wait_for()
    laptop.rest()
    assert faults(page, root=NODES) == []
    laptop.queue()
    page.wait_for_function("""() => /row ([5-9]|1\\d) of/.test(
        document.querySelector(".ssd-figures")?.innerText ?? "")""", polling=50)
    within = [fault for fault in faults(page, root=NODES)
              if not fault.startswith("picture")]  # those that wait for their turn are empty
    assert within == []
    page.wait_for_function("""() => document.querySelectorAll('.ssd-panel[data-end=finished]')
        .length === document.querySelectorAll('.ssd-panel').length""")
    laptop.rest()
    assert [fault for fault in faults(page, root=NODES) if "ssd-marks" not in fault] == []


def test_the_properties_panel_leaves_the_node_as_it_was(laptop):
    page = laptop.page
    laptop.open(quick_start())
    laptop.look_at("SSD_Sampler")
    page.locator(".ssd-kind").first.wait_for()
    laptop.rest()
    before = page.evaluate(WIDTHS)
    page.evaluate(f"() => {{ app.canvas.selectNode({SAMPLER}); app.canvas.setDirty(true, true); }}")
    page.get_by_test_id("info-button").first.dispatch_event("click")
    page.get_by_text("Parameters", exact=True).first.click()
    laptop.rest()
    page.evaluate("() => { app.canvas.deselectAll(); app.canvas.setDirty(true, true); }")
    laptop.rest()
    assert page.evaluate(WIDTHS) == before
    assert faults(page, root=NODES) == []


def test_a_missing_model_is_told_whole_and_covers_no_other_node(laptop):
    page = laptop.page
    laptop.open(quick_start())
    page.evaluate(BELOW)
    page.evaluate(SET, ["SSD_LoadModel", "model", "Janus-Pro-1B"])
    laptop.look_at("SSD_LoadModel")
    with pytest.raises(Exception, match="is not here"):
        laptop.run()
    laptop.rest()
    assert faults(page, root=".ssd-message") == []
    assert page.evaluate(GAP) >= 0
    page.locator(".ssd-message button:visible").last.dispatch_event("click")
    whole = page.locator(".ssd-message-whole, .ssd-error").last.inner_text()
    assert whole.startswith("backbone Janus-Pro-1B is not here") and "no download" in whole
    page.keyboard.press("Escape")


def test_a_new_sampler_fits_a_laptop(laptop):
    page = laptop.page
    laptop.open(quick_start())
    height = page.evaluate("""() => {
        const node = LiteGraph.createNode("SSD_Sampler");
        app.graph.add(node);
        return node.size[1];
    }""")
    assert height <= 640


def test_a_size_of_a_saved_picture_stays_and_is_drawn(laptop):
    page = laptop.page
    laptop.open(quick_start(size="512x288"))
    page.wait_for_function(f"""() => {SAMPLER}.widgets.find((one) => one.name === "size")
        .options.values.join() === "auto,768x768,1024x576,576x1024,384x384,512x288,288x512" """)
    laptop.run()
    assert page.evaluate(f"() => {SAMPLER}.widgets.find((one) => one.name === 'size').value"
                         ) == "512x288"
    size = page.evaluate("""() => { const { width, height } = document.querySelector(".ssd-pixels");
        return [width, height]; }""")
    assert size == [512, 288]


def sampled(client, **inputs) -> dict:
    """A prompt in API form: a sampler of the bundled model, and its picture."""
    return {"1": client.node("SSD_LoadModel"),
            "2": client.node("SSD_Sampler", model=["1", 0],
                             **{"method": "Fast", "preview": False, **inputs}),
            "3": client.node("PreviewImage", images=["2", 0]),
            "4": client.node("PrimitiveInt", value=4096)}


def test_a_linked_batch_is_refused_in_one_line_and_the_server_lives(client):
    before = len(client.log.read_text())
    run = client.run(sampled(client, batch_size=["4", 0]))
    assert run.end == "execution_error"
    assert run.error.strip() == "batch_size 4096: must lie in 1 .. 64"
    log = client.log.read_text()[before:]
    assert "batch_size 4096" in log and "Traceback" not in log
    assert client.run(sampled(client)).end == "execution_success"


def test_nan_is_refused_before_it_reaches_the_history(client):
    assert "nan is not a number" in client.refused(sampled(client, variation=float("nan")))
    with urllib.request.urlopen(f"{client.url}/history") as answer:
        assert b"NaN" not in answer.read()


def test_progress_is_that_of_the_rows(client):
    run = client.run(sampled(client, method="Faithful", preview=True, seed=next(SEEDS)))
    steps = {(data["value"], data["max"]) for data in (
        message["data"] for message in run.messages if message["type"] == "progress")
        if data["node"] == "2"}
    assert {most for _, most in steps} == {24} and len(steps) > 3


def test_the_sampler_is_found_by_the_words_of_what_it_does(client):
    about = client.get("/object_info/SSD_Sampler")["SSD_Sampler"]
    words = " ".join([about["display_name"], *about["search_aliases"]]).lower().split()
    assert {"row", "variation", "postcard", "janus"} <= set(words)


def test_a_node_without_preview_has_its_models_sizes_once_it_is_connected(laptop):
    page = laptop.page
    laptop.open(quick_start())
    page.evaluate("""() => {
        const loader = app.graph._nodes.find((one) => one.type === "SSD_LoadModel");
        const node = LiteGraph.createNode("SSD_Encode");
        app.graph.add(node);
        loader.connect(0, node, node.inputs.findIndex((input) => input.name === "model"));
    }""")
    page.wait_for_function("""() => app.graph._nodes.find((one) => one.type === "SSD_Encode")
        .widgets.find((one) => one.name === "size")
        .options.values.join() === "auto,768x768,1024x576,576x1024,384x384,512x288,288x512" """)
