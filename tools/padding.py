"""New widgets in the workflows, behind what is saved there with the values of the schemas; notes.

ComfyUI's page does the same when it opens and saves a workflow. It finds saved values by their
position, so a new widget must be the last of its node; knob_pages.py refuses any other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from knob_pages import ROOT, read, schemas
from workflow_graphs import GRAPHS

WORKFLOWS, API_FORMS = ROOT / "workflows", ROOT / "tests" / "workflows"
OPTIONAL = 7  # the shape of an optional input's dot


def padded(workflow: dict, api: dict, widgets: dict[str, list[dict]]) -> None:
    """Append to a workflow and to its API form what their nodes lack."""
    for node in workflow["nodes"]:
        known = node.get("widgets_values_named", {})
        for widget in widgets.get(node["type"], ()):
            if widget["name"] not in known:
                append(node, widget)
                saved = api[str(node["id"])]["inputs"]
                saved[widget["name"]] = as_saved(widget["default"])


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
    """As JavaScript writes a number: 1.0 is 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(content: dict) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def pages() -> dict[Path, str]:
    """Every workflow and its API form, as they should be."""
    widgets, found = schemas()["widgets"], {}
    for path in sorted(WORKFLOWS.glob("*.json")):
        other = API_FORMS / path.name
        workflow, api = read(path), read(other)
        padded(workflow, api, widgets)
        if path.stem in GRAPHS:
            write_note(workflow, GRAPHS[path.stem]().nodes["note"][2]["text"])
        found |= {path: text_of(workflow), other: text_of(api)}
    return found
