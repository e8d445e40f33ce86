"""Nodes on ComfyUI's own page: what they show, how tall they are, what they say of an error."""

from __future__ import annotations

import json
import uuid
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK_START = ROOT / "workflows" / "1_quick_start.json"
SEEDS = count(9000)
HEIGHTS = "() => Object.fromEntries(app.graph._nodes.map((node) => [node.type, node.size[1]]))"
RELOAD = """async () => {
    const workflow = JSON.stringify(app.graph.serialize());
    await app.loadGraphData(JSON.parse(workflow));
}"""
SET = """([kind, name, value]) => {
    const node = app.graph._nodes.find((one) => one.type === kind);
    const widget = node.widgets.find((one) => one.name === name);
    widget.value = value;
    widget.callback?.(value, app.canvas, node);
}"""
SENTENCES = """() => [...document.querySelectorAll(".ssd-error")].filter((one) => one.offsetParent)
    .map((one) => one.textContent)"""
# What is said of fp8 on a CPU, by a Python that lacks torchao and by one that has it.
REFUSED = ("dtype fp8 needs torchao: pip install torchao",
           "dtype fp8 runs on NVIDIA cards, not on cpu: choose bf16, or int8 to save memory")
TOASTS = "() => [...document.querySelectorAll('.p-toast-message')].map((one) => one.innerText)"


def quick_start(**values) -> dict:
    """The quick start as a workflow of its own, with values of the sampler's."""
    workflow = {**json.loads(QUICK_START.read_text(encoding="utf-8")), "id": str(uuid.uuid4())}
    sampler = next(node for node in workflow["nodes"] if node["type"] == "SSD_Sampler")
    for name, value in {"seed": next(SEEDS), **values}.items():
        sampler["widgets_values"][list(sampler["widgets_values_named"]).index(name)] = value
        sampler["widgets_values_named"][name] = value
    return workflow


def fail(page) -> str:
    """Queue what Load Backbone refuses, wait until the page has heard so; returns the sentence."""
    page.page.evaluate(SET, ["SSD_LoadBackbone", "dtype", "fp8"])
    with pytest.raises(Exception, match="dtype fp8") as failed:
        page.run()
    return next(sentence for sentence in REFUSED if sentence in str(failed.value))


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1500, 950)])
def test_the_quick_start_keeps_its_heights_and_shows_all_of_its_sampler(page, width, height):
    page.page.set_viewport_size({"width": width, "height": height})
    try:
        page.open(quick_start())
        page.run()
        page.page.locator(".ssd-chip, .ssd-kind").first.wait_for()
        before = page.page.evaluate(HEIGHTS)
        for _ in range(2):
            page.page.evaluate(RELOAD)
            page.rest()
        assert page.page.evaluate(HEIGHTS)["SSD_Sampler"] == before["SSD_Sampler"]
        page.open(quick_start(prompt="a red house, a dragon"))  # as it opens, with a note
        page.run()
        for part in ("figures", "notes", "toggle", "picture"):
            box = page.page.locator(f".ssd-{part}:visible").bounding_box()
            assert box["y"] + box["height"] <= height, part
    finally:
        page.page.set_viewport_size({"width": 1280, "height": 800})
    assert page.errors == []


def test_baseline_method_shows_the_chosen_methods_knobs_and_keeps_all_values(client, page):
    page.open(quick_start())
    shown = """() => {
        const node = app.graph._nodes.find((one) => one.type === "SSD_BaselineMethod");
        const element = document.querySelector(`[data-node-id="${node.id}"]`);
        const names = node.widgets.map((one) => one.name).filter((name) => name !== "ssd_advanced");
        const isDrawn = (one) => (element ? element.innerText.split("\\n").includes(one.name)
            : node.isWidgetVisible(one));
        return [node.widgets.filter((one) => names.includes(one.name) && isDrawn(one))
            .map((one) => one.name), node.size[1]];
    }"""
    page.page.evaluate("() => { app.graph.add(LiteGraph.createNode('SSD_BaselineMethod')); }")
    page.rest()
    names, height = page.page.evaluate(shown)
    assert names == ["method"] and height < 200
    for name, value in (("method", "mtp"), ("k_h", 3), ("method", "sjd")):
        page.page.evaluate(SET, ["SSD_BaselineMethod", name, value])
    page.page.evaluate(RELOAD)
    page.rest()
    names, height = page.page.evaluate(shown)
    if client.is_old:  # and shows sjd's advanced knobs too
        assert names == ["method", "window", "init", "continuation", "tree_width", "tree_depth"]
        assert height < 250
    else:
        assert names == ["method", "window"] and height < 250
    saved = page.page.evaluate("""() => {
        const node = app.graph._nodes.find((one) => one.type === "SSD_BaselineMethod");
        const { widgets_values, widgets_values_named } = node.serialize();
        const names = node.widgets.map(({ name }) => name);
        return widgets_values_named // which ComfyUI 0.3 does not save
            ?? Object.fromEntries(widgets_values.map((value, n) => [names[n], value]));
    }""")
    assert (saved["method"], saved["k_h"], saved["window"]) == ("sjd", 3, -1)
    assert page.errors == []


def test_an_error_stands_on_its_node_until_the_next_run(page):
    page.open(quick_start())
    page.run()
    sentence = fail(page)
    assert page.page.evaluate(SENTENCES) == [sentence]
    page.page.evaluate(SET, ["SSD_LoadBackbone", "dtype", "auto"])
    page.run()
    assert page.page.evaluate(SENTENCES) == []
    page.open(quick_start(prompt=" "))
    page.page.evaluate("() => app.queuePrompt(0, 1)")
    sentence = "prompt: it is empty: say what the picture should show"
    assert page.page.evaluate(SENTENCES) == [sentence]
    assert page.page.locator(".ssd-failed:visible").count() == 1
    page.page.evaluate(SET, ["SSD_Sampler", "prompt", "a tent"])
    page.run()
    assert page.page.evaluate(SENTENCES) == []
    assert page.page.locator(".ssd-failed:visible").count() == 0
    assert page.errors == []


def test_the_form_shows_errors_and_notes_and_words_to_click(client, whole_page):
    page = whole_page
    if client.is_old:
        pytest.skip("this ComfyUI has no app mode")
    page.open(quick_start(prompt="a dragon"), app=True)
    page.run()
    note, = page.page.evaluate(TOASTS)
    assert "dragon" in note
    page.page.locator(".ssd-kind:visible").first.dispatch_event("click")
    page.page.locator(".ssd-chip:visible", has_text="castle").dispatch_event("click")
    assert page.page.evaluate("""() => app.graph._nodes.find((one) => one.type === "SSD_Sampler")
        .widgets[0].value""") == "a castle, a dragon"
    sentence = fail(page)
    assert [toast for toast in page.page.evaluate(TOASTS) if sentence in toast]
    page.open(quick_start(prompt=" "), app=True)
    page.page.evaluate("() => app.queuePrompt(0, 1)")
    page.rest()
    outlined = page.page.evaluate("""() => [...document.querySelectorAll("[data-widget-key]")]
        .filter((one) => getComputedStyle(one.querySelector(".lg-node-widgets")).boxShadow
            .includes("2px inset")).map((one) => one.dataset.widgetKey.split(":").at(-1))""")
    assert outlined == ["prompt"]
    page.open(quick_start())  # not as a form
    assert page.errors == []
