"""The workflow inside PNGs: a copy of the quick start, and each kind of node that sets a method."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from ssd_core.output.comfyui_workflow import SAMPLER, fill, node_of

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS, TEMPLATE = ROOT / "workflows", ROOT / "ssd_core" / "assets" / "workflow.json"
QUICK_START = "1_quick_start"
METHOD_NODES = ("SSD_Schedule", "SSD_BaselineMethod")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def node_alone(kind: str) -> dict:
    """The first node of a kind in the workflows, without links and title."""
    every = (node for path in sorted(WORKFLOWS.glob("*.json")) for node in read(path)["nodes"])
    node = copy.deepcopy(next(node for node in every if node["type"] == kind))
    for slot in node["inputs"]:
        slot["link"] = None
    for slot in node["outputs"]:
        slot["links"] = None
    node.pop("title", None)
    return node


def template() -> dict:
    quick_start = read(WORKFLOWS / f"{QUICK_START}.json")
    quick_start["extra"].pop("linearMode", None)  # a picture opens as the graph that drew it
    fill(node_of(quick_start, SAMPLER), control_after_generate="fixed")  # and is drawn again
    return {"quick_start": quick_start,
            **{kind: node_alone(kind) for kind in METHOD_NODES}}


def pages() -> dict[Path, str]:
    text = json.dumps(template(), ensure_ascii=False, separators=(",", ":"))
    return {TEMPLATE: text + "\n"}
