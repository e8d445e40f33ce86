"""The things of a sampler's picture on ComfyUI's page: a click on a word draws it."""

from __future__ import annotations

import json
import uuid
from itertools import count
from pathlib import Path

QUICK_START = Path(__file__).resolve().parents[3] / "workflows" / "01_quick_start.json"
SEEDS = count(5000)
PROMPT = "a red house on the left, a green tree on the right"
OPEN = ".touch-menu:popover-open"
UNDO = 300  # ms that a page may take for a step
UNDOS = 6  # three of words, and others: which node lies on top is a step of the page's, too
FIND = "kind => app.graph._nodes.filter((node) => node.type === kind)"
# The names of the things of a node's picture, once they are known.
THINGS = """(place) => {
    const lists = [...document.querySelectorAll(".touch-things")].filter((one) => one.offsetParent);
    const names = [...lists[place]?.querySelectorAll("button") ?? []].map((one) => one.textContent);
    return names.length ? names : false;
}"""
# The share of pixels that differ between the pictures of two nodes; null while one is drawn.
DIFFERENT = """() => {
    const canvases = [...document.querySelectorAll("[data-end=finished] .ssd-pixels")]
        .filter((one) => one.offsetParent);
    if (canvases.length < 2) return null;
    const [a, b] = canvases.map((one) =>
        one.getContext("2d").getImageData(0, 0, one.width, one.height).data);
    return a.filter((value, at) => Math.abs(value - b[at]) > 40).length / a.length;
}"""


def quick_start(seed: int) -> dict:
    """The quick start with a seed that changes after every run, as a new node's does."""
    workflow = {**json.loads(QUICK_START.read_text(encoding="utf-8")), "id": str(uuid.uuid4())}
    sampler = next(node for node in workflow["nodes"] if node["type"] == "SSD_Sampler")
    names = list(sampler["widgets_values_named"])
    for name, value in {"seed": seed, "control_after_generate": "randomize",
                        "prompt": PROMPT}.items():
        sampler["widgets_values"][names.index(name)] = value
        sampler["widgets_values_named"][name] = value
    return workflow


def widgets(page, kind: str, *names: str) -> list:
    """Values of the first node of a kind; seeds are too large for some pages' numbers as text."""
    return page.page.evaluate(
        f"""([kind, names]) => names.map((name) => ({FIND})(kind)[0].widgets
            .find((one) => one.name === name).value)""", [kind, list(names)])


def rest_on(page, place: int) -> list[str]:
    """Rest on the picture of a node, and wait until its things are known."""
    picture = page.page.locator(".ssd-picture:visible").nth(place)
    box = picture.bounding_box()
    page.page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.page.wait_for_function(THINGS, arg=place)
    return page.page.evaluate(THINGS, place)


def middle(page, name: str, place: int) -> tuple[float, float]:
    box = page.page.locator(".touch-things:visible").nth(place).get_by_text(name).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drawn(page, click) -> None:
    """Click what queues a run, and wait until it has run."""
    page.page.evaluate("""() => {
        const api = app.api ?? comfyAPI.api.api;
        window.ssdDone = new Promise((resolve, reject) => {
            api.addEventListener("execution_success", resolve, { once: true });
            api.addEventListener("execution_error", ({ detail }) =>
                reject(new Error(detail.exception_message)), { once: true });
        });
    }""")
    click()
    page.page.evaluate("() => window.ssdDone")
    page.page.wait_for_function(f"() => ({DIFFERENT})() !== null")
    page.rest()


def test_a_click_on_a_thing_draws_other_words_for_it(client, page):
    """First no Edit by Words is there, and one is offered; then it is used, also by its picture."""
    page.open(quick_start(seed := next(SEEDS)))
    page.frame()
    page.run()
    assert sorted(rest_on(page, 0)[:2]) == ["green tree, right", "red house, left"]
    page.page.mouse.move(*middle(page, "red house", 0))
    assert page.page.locator(".touch-tag:visible").inner_text() == "red house, left"
    place = page.page.evaluate(f"() => [...({FIND})('SSD_Sampler')[0].pos]")
    page.page.mouse.click(*middle(page, "red house", 0))
    page.page.locator(f"{OPEN} .touch-chip", has_text="blue").click()
    drawn(page, page.page.locator(".ssd-add").click)
    assert page.page.evaluate(f"() => [...({FIND})('SSD_Sampler')[0].pos]") == place
    assert widgets(page, "SSD_Sampler", "seed", "control_after_generate") == [seed, "fixed"]
    old, new, own = widgets(page, "SSD_EditByWords", "old_prompt", "prompt", "seed")
    assert new == old.replace("red house", "blue house") and own == seed
    assert 0.005 < page.page.evaluate(DIFFERENT) < 0.3
    kinds = page.page.evaluate("() => app.graph._nodes.map((node) => node.type).sort()")
    assert kinds == ["SSD_EditByWords", "SSD_LoadModel", "SSD_Sampler", "SaveImage", "SaveImage"]

    page.page.locator(".ssd-picture:visible").nth(0).focus()  # now it is connected
    page.page.locator(".touch-thing:visible", has_text="red house").first.focus()
    page.page.keyboard.press("Enter")
    chip = page.page.locator(f"{OPEN} .touch-chip", has_text="green")
    drawn(page, chip.click)
    assert widgets(page, "SSD_EditByWords", "old_prompt", "prompt") == [
        old, old.replace("red house", "green house")]

    rest_on(page, 1)  # the edit's own picture
    box = page.page.locator(".ssd-picture:visible").nth(1).bounding_box()
    page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 4)
    drawn(page, page.page.locator(f"{OPEN} .touch-chip", has_text="night").click)
    was, now = widgets(page, "SSD_EditByWords", "old_prompt", "prompt")
    assert was == old and "green house" in now and "night" in now
    assert page.page.evaluate(DIFFERENT) > 0.3

    for _ in range(UNDOS):  # back to before the node was added
        page.page.keyboard.press("Control+z")
        page.page.wait_for_timeout(UNDO)
        if len(kinds := page.page.evaluate("() => app.graph._nodes.map((node) => node.type)")) == 3:
            break
    assert sorted(kinds) == ["SSD_LoadModel", "SSD_Sampler", "SaveImage"]
    assert page.errors == []
