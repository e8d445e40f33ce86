"""Nodes on ComfyUI's own page: what they show, how tall they are, what they say of an error."""

from __future__ import annotations

import json
import uuid
from itertools import count
from pathlib import Path

import pytest

from ssd_core.output.choices import SSD_CHOICE

ROOT = Path(__file__).resolve().parents[3]
QUICK_START = ROOT / "workflows" / "01_quick_start.json"
AR_BESIDE_SSD = QUICK_START.with_name("02_ar_beside_ssd.json")
FORM = QUICK_START.with_suffix(".app.json")
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


def quick_start(path: Path = QUICK_START, **values) -> dict:
    """The quick start as a workflow of its own, with values of the sampler's."""
    workflow = {**json.loads(path.read_text(encoding="utf-8")), "id": str(uuid.uuid4())}
    sampler = next(node for node in workflow["nodes"] if node["type"] == "SSD_Sampler")
    for name, value in {"seed": next(SEEDS), **values}.items():
        sampler["widgets_values"][list(sampler["widgets_values_named"]).index(name)] = value
        sampler["widgets_values_named"][name] = value
    return workflow


def fail(page) -> str:
    """Queue what Load Backbone refuses, wait until the page has heard so; returns the sentence."""
    page.page.evaluate(SET, ["SSD_LoadModel", "dtype", "fp8"])
    with pytest.raises(Exception, match="dtype fp8") as failed:
        page.run()
    return next(sentence for sentence in REFUSED if sentence in str(failed.value))


def test_the_quick_start_keeps_its_heights(page):
    page.open(quick_start())
    page.run()
    page.page.locator(".ssd-chip, .ssd-kind").first.wait_for()
    before = page.page.evaluate(HEIGHTS)
    for _ in range(2):
        page.page.evaluate(RELOAD)
        page.rest()
    assert page.page.evaluate(HEIGHTS)["SSD_Sampler"] == before["SSD_Sampler"]
    assert page.errors == []


# The labels of a node's visible widgets.
SHOWN = """(kind) => {
    const node = app.graph._nodes.find((one) => one.type === kind);
    const element = document.querySelector(`[data-node-id="${node.id}"]`);
    const isDrawn = (label, one) => (element ? element.innerText.split("\\n").includes(label)
        : node.isWidgetVisible(one));
    return node.widgets.filter((one) => !one.name.startsWith("ssd_"))
        .map((one) => [one.label ?? one.name, one])
        .filter(([label, one]) => isDrawn(label, one)).map(([label]) => label);
}"""
# A node of its own, placed at the left of the others.
ADD = """([kind, y = 0]) => {
    const node = LiteGraph.createNode(kind);
    node.pos = [-500, y];
    app.graph.add(node);
    return String(node.id);
}"""
PLAN = "() => document.querySelector('.ssd-plan')?.innerText ?? ''"


def test_a_method_shows_its_knobs_and_passes_and_they_act_when_touched(page):
    page.open(quick_start())
    shown = page.page.evaluate(SHOWN, "SSD_Sampler")
    assert "method" in shown and not {"window", "drafter"} & set(shown)
    page.page.evaluate(SET, ["SSD_Sampler", "method", SSD_CHOICE])
    page.rest()
    assert {"k_h", "k_v", "r / b (rounds)", "i (staged rounds)"} <= set(
        page.page.evaluate(SHOWN, "SSD_Sampler"))
    page.page.wait_for_function(f"() => /^\\d+ of 576 passes/.test(({PLAN})())")
    before = page.page.evaluate(PLAN)
    page.page.evaluate(SET, ["SSD_Sampler", "method.rounds", 1])
    page.page.wait_for_function(f"(before) => ({PLAN})() !== before", arg=before)
    passes = page.page.evaluate(PLAN)
    page.page.evaluate(RELOAD)
    page.rest()
    page.page.wait_for_function(f"(passes) => ({PLAN})() === passes", arg=passes)
    sampler, = (node["inputs"] for node in page.api_form().values()
                if node["class_type"] == "SSD_Sampler")
    assert sampler["method"] == SSD_CHOICE and sampler["method.rounds"] == 1
    page.run()
    assert page.page.locator(".ssd-heading:visible").inner_text().startswith("ssd rounds=1")
    assert page.errors == []


def test_compare_shows_the_methods_in_use_and_one_more(page):
    page.open(json.loads(AR_BESIDE_SSD.read_text(encoding="utf-8")))
    page.rest()
    for last in (3, 4):
        shown = [label for label in page.page.evaluate(SHOWN, "SSD_Compare")
                 if label.startswith("method_")]
        assert shown == [f"method_{n}" for n in range(1, last + 1)]
        page.page.evaluate(SET, ["SSD_Compare", f"method_{last}", "Fast"])
        page.page.wait_for_timeout(100)
        page.rest()
    assert page.errors == []


# Number nodes of ComfyUI, linked to inputs of the sampler.
NUMBERS = """(numbers) => {
    const sampler = app.graph._nodes.find((one) => one.type === "SSD_Sampler");
    numbers.forEach(([kind, value, name], n) => {
        const node = LiteGraph.createNode(kind);
        node.pos = [-500, 120 * n];
        app.graph.add(node);
        node.connect(0, sampler, sampler.inputs.findIndex((input) => input.name === name));
        node.widgets[0].value = value;
    });
}"""


def test_numbers_come_from_other_nodes(page):
    page.open(quick_start())
    page.page.evaluate(SET, ["SSD_Sampler", "method", SSD_CHOICE])
    page.rest()
    numbers = [["PrimitiveInt", 512, "width"], ["PrimitiveInt", 288, "height"],
               ["PrimitiveInt", 1, "method.rounds"], ["PrimitiveFloat", 2.5, "cfg"]]
    page.page.evaluate(NUMBERS, numbers)
    page.frame()
    sampler = next(node for node in page.api_form().values()
                   if node["class_type"] == "SSD_Sampler")
    assert all(isinstance(sampler["inputs"][name], list) for *_, name in numbers)
    shown = page.page.evaluate(SHOWN, "SSD_Sampler")
    assert {"width", "height", "r / b (rounds)"} <= set(shown) and "top_k" not in shown
    page.run()
    assert page.page.evaluate("""() => { const { width, height } = document.querySelector(
        ".ssd-pixels"); return [width, height]; }""") == [512, 288]
    assert "rounds=1" in page.page.locator(".ssd-heading:visible").inner_text()
    assert page.errors == []


def test_an_error_stands_on_its_node_until_the_next_run(page):
    page.open(quick_start())
    page.run()
    sentence = fail(page)
    assert page.page.evaluate(SENTENCES) == [sentence]
    page.page.evaluate(SET, ["SSD_LoadModel", "dtype", "auto"])
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


def test_the_form_shows_errors_and_notes_and_words_to_click(whole_page):
    page = whole_page
    page.open(quick_start(FORM, prompt="a house, a dragon"), app=True)
    page.run()
    note, = page.page.evaluate(TOASTS)
    assert "dragon" in note
    page.page.locator(".ssd-kind:visible").first.dispatch_event("click")
    page.page.locator(".ssd-chip:visible", has_text="castle").dispatch_event("click")
    assert page.page.evaluate("""() => app.graph._nodes.find((one) => one.type === "SSD_Sampler")
        .widgets[0].value""") == "a house, a castle, a dragon"
    sentence = fail(page)
    assert [toast for toast in page.page.evaluate(TOASTS) if sentence in toast]
    page.open(quick_start(FORM, prompt=" "), app=True)
    page.page.evaluate("() => app.queuePrompt(0, 1)")
    page.rest()
    outlined = page.page.evaluate("""() => [...document.querySelectorAll("[data-widget-key]")]
        .filter((one) => getComputedStyle(one.querySelector(".lg-node-widgets")).boxShadow
            .includes("2px inset")).map((one) => one.dataset.widgetKey.split(":").at(-1))""")
    assert outlined == ["prompt"]
    page.open(quick_start())  # not as a form
    assert page.errors == []
