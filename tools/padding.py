"""Adds new widgets to workflows and blueprints with the schemas' values, and updates notes.

ComfyUI's page does the same when it opens and saves a workflow. It finds saved values by their
position, so a new widget must be the last of its node; knob_pages.py refuses any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from knob_pages import ROOT, read, schemas
from workflow_graphs import GRAPHS

WORKFLOWS, API_FORMS = ROOT / "workflows", ROOT / "tests" / "workflows"
SUBGRAPHS = ROOT / "subgraphs"
OPTIONAL = 7  # the shape of an optional input's dot


def padded(workflow: dict, api: dict, widgets: dict[str, list[dict]]) -> None:
    """Append the missing widgets of its nodes to a workflow and to its API form."""
    for node, widget in list(lacking(workflow["nodes"], widgets)):
        append(node, widget)
        saved = api[str(node["id"])]["inputs"]
        saved[widget["name"]] = as_saved(widget["default"])


def lacking(nodes: list[dict], widgets: dict[str, list[dict]]) -> Iterator[tuple[dict, dict]]:
    """(node, widget) for each widget that a saved node lacks."""
    for node in nodes:
        known = node.get("widgets_values_named", {})
        for widget in widgets.get(node["type"], ()):
            if widget["name"] not in known:
                yield node, widget


def append(node: dict, widget: dict) -> None:
    name, value = widget["name"], as_saved(widget["default"])
    shape = {"shape": OPTIONAL} if widget["optional"] else {}
    node["inputs"].append({"localized_name": name, "name": name, **shape, "type": widget["type"],
                           "widget": {"name": name}, "link": None})
    node["widgets_values"].append(value)
    node["widgets_values_named"][name] = value


def write_note(workflow: dict, text: str) -> None:
    """Set the text of the workflow's note."""
    note = next(node for node in workflow["nodes"] if node["type"] == "MarkdownNote")
    note["widgets_values"], note["widgets_values_named"] = [text], {"text": text}


def as_saved(value: Any) -> Any:
    """A number as JavaScript writes it: 1.0 becomes 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(content: dict) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def pages() -> dict[Path, str]:
    """Every workflow with its API form, and every blueprint, with all widgets."""
    widgets, contents = schemas()["widgets"], {}
    for path in sorted(WORKFLOWS.glob("*.json")):
        other = API_FORMS / path.name
        workflow, api = read(path), read(other)
        padded(workflow, api, widgets)
        if path.stem in GRAPHS:
            write_note(workflow, GRAPHS[path.stem]().nodes["note"][2]["text"])
        contents |= {path: text_of(workflow), other: text_of(api)}
    for path in sorted(SUBGRAPHS.glob("*.json")):
        blueprint = read(path)
        for subgraph in blueprint["definitions"]["subgraphs"]:
            for node, widget in list(lacking(subgraph["nodes"], widgets)):
                append(node, widget)
        contents[path] = text_of(blueprint)
    return contents
