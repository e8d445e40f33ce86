"""Gives saved workflows and blueprints the widgets of today's schemas, and their Chinese texts.

ComfyUI's page finds a saved node's values by their position, so they are put in the order of its
widgets; a new widget has its default.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from knob_pages import ROOT, read, schemas
from workflow_graphs import GRAPHS, texts_of

WORKFLOWS, SUBGRAPHS = ROOT / "workflows", ROOT / "subgraphs"
REGISTRY_ID = "ssd-decoding"  # by which ComfyUI-Manager finds this pack
OPTIONAL = 7  # the shape of an optional input's dot
CONTROL = "control_after_generate"  # the page's own widget behind a seed


def fit(node: dict, widgets: list[dict]) -> None:
    """Give a saved node exactly these widgets, in their order."""
    known = node.get("widgets_values_named", {})
    values: dict[str, Any] = {}
    left = list(widgets)
    while left:
        widget = left.pop(0)
        name = widget["name"]
        values[name] = known.get(name, as_saved(widget["default"]))
        left[:0] = widget.get("choices", {}).get(values[name], [])
        if name == "seed" and CONTROL in known:
            values[CONTROL] = known[CONTROL]
        if name not in {slot["name"] for slot in node["inputs"]}:
            node["inputs"].append(slot_of(widget))
    own = {widget["name"] for widget in widgets}
    node["inputs"] = [slot for slot in node["inputs"]
                      if "widget" not in slot or slot["name"] in values or slot["name"] in own]
    if values:
        node["widgets_values"], node["widgets_values_named"] = list(values.values()), values


def slot_of(widget: dict) -> dict:
    shape = {"shape": OPTIONAL} if widget["optional"] else {}
    return {"localized_name": widget["name"], "name": widget["name"], **shape,
            "type": widget["type"], "widget": {"name": widget["name"]}, "link": None}


def as_saved(value: Any) -> Any:
    """A number as JavaScript writes it: 1.0 becomes 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(content: dict) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def pages() -> dict[Path, str]:
    """Every workflow and every blueprint, with today's widgets and texts."""
    widgets, contents = schemas()["widgets"], {}
    for path in sorted([*WORKFLOWS.glob("*.json"), *SUBGRAPHS.glob("*.json")]):
        workflow = read(path)
        inside = [sub["nodes"] for sub in workflow.get("definitions", {}).get("subgraphs", ())]
        for node in (node for nodes in (workflow["nodes"], *inside) for node in nodes):
            if node["type"] in widgets:
                fit(node, widgets[node["type"]])
        if path.stem in GRAPHS:
            workflow["extra"]["ssd_texts"] = {"zh": texts_of(GRAPHS[path.stem]())}
        contents[path] = text_of(workflow)
    return contents
