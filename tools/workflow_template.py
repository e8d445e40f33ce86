"""The workflow inside PNGs: a copy of the quick start, and the node that it may need besides."""

from __future__ import annotations

import json
from pathlib import Path

from knob_pages import ROOT, read, schemas
from padding import REGISTRY_ID, WORKFLOWS, fit

from ssd_core.output import comfyui_workflow
from ssd_core.output.comfyui_workflow import NOTE, PICTURE, SAMPLER, node_of

TEMPLATE = ROOT / "ssd_core" / "assets" / "workflow.json"
QUICK_START = "01_quick_start"
SIZE = [340, 260]  # px of a new node; the page enlarges it where its widgets need more


def node_alone(kind: str) -> dict:
    """A node of ours without links, as the page saves it."""
    slots = schemas()["slots"][kind]
    node = {"type": kind, "size": SIZE, "flags": {}, "mode": 0,
            "inputs": [{"localized_name": name, "name": name, "type": type_, "link": None}
                       for name, type_ in slots["inputs"]],
            "outputs": [{"localized_name": name, "name": name, "type": type_, "links": None}
                        for name, type_ in slots["outputs"]],
            "properties": {"Node name for S&R": kind, "cnr_id": REGISTRY_ID}}
    fit(node, schemas()["widgets"][kind])
    return node


def note_alone() -> dict:
    """ComfyUI's own node for a note."""
    return {"type": NOTE, "size": SIZE, "flags": {}, "mode": 0, "inputs": [], "outputs": [],
            "properties": {}, "widgets_values": [""], "widgets_values_named": {"text": ""}}


def template() -> dict:
    quick_start = read(WORKFLOWS / f"{QUICK_START}.json")
    extra = quick_start["extra"]
    extra.pop("linearMode", None)  # a picture opens as the graph that drew it
    extra.pop("ssd_texts", None)
    quick_start["groups"] = []
    # It is drawn again with the same seed.
    comfyui_workflow.fill(node_of(quick_start, SAMPLER), control_after_generate="fixed")
    return {"quick_start": quick_start, NOTE: note_alone(),
            PICTURE: node_alone(PICTURE)}


def pages() -> dict[Path, str]:
    text = json.dumps(template(), ensure_ascii=False, separators=(",", ":"))
    return {TEMPLATE: text + "\n"}
