"""The golden set: names that stay from 0.1.0 on, as docs/contract.md promises.

Nodes with their inputs, widgets and outputs (name and type, in order), the keys of a recipe, and
the templates. Names may be added at the end. What was renamed, moved or removed is a complaint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from knob_pages import ROOT, read, schemas

from ssd_core.engine.edits.words import Edit
from ssd_core.engine.methods import METHODS
from ssd_core.output.drawing import READERS
from ssd_core.output.recipe import FIELDS, OPTIONAL
from ssd_core.output.words import FIELDS as DRAWN

PATH = ROOT / "tests" / "repository" / "golden.json"
WHAT_TO_DO = "changed on purpose? before 0.1.0 run python tools/make.py golden"


def golden() -> dict[str, dict[str, list[str]]]:
    """Lists of names by what has them, such as {"SSD_Sampler": {"widgets": ["seed INT"]}}."""
    nodes = {}
    for node, slots in schemas()["slots"].items():
        widgets = schemas()["widgets"][node]
        lists = {"inputs": slots["inputs"], "widgets": named(widgets), "outputs": slots["outputs"]}
        nodes[node] = {what: [" ".join(slot) for slot in found] for what, found in lists.items()}
        knobs = {" ".join(knob) for widget in widgets
                 for choice in widget.get("choices", {}).values() for knob in named(choice)}
        nodes[node]["knobs"] = sorted(knobs)
    knobs = {f.name for record in (Edit, *METHODS.values()) for f in fields(record)}
    return {**nodes, "recipe": {"keys": sorted({*FIELDS, *OPTIONAL, *READERS, *DRAWN, *knobs})},
            "workflows": {"files": sorted(path.name for path in
                                          (ROOT / "workflows").glob("*.json"))}}


def named(widgets: list[dict]) -> list[tuple[str, str]]:
    """(name, type) of widgets."""
    return [(widget["name"], widget["type"]) for widget in widgets]


def complaints(old: dict, new: dict) -> Iterator[str]:
    """A line for each list of `old` whose names `new` lacks, or has in another order."""
    for owner, lists in old.items():
        for what, names in lists.items():
            now = new.get(owner, {}).get(what, [])
            if gone := [name for name in names if name not in now]:
                yield f"{owner}: {what} without {', '.join(gone)}: {WHAT_TO_DO}"
            elif (owner in schemas()["slots"] and what != "knobs"  # these are alphabetical
                  and now[:len(names)] != names):
                yield f"{owner}: {what} in another order, new ones belong last: {WHAT_TO_DO}"


def pages(anew: bool = False) -> dict[Path, str]:
    """The file with what was added; as it is if something else changed, unless it is made anew."""
    new = golden()
    if not anew and list(complaints(read(PATH), new)):
        return {}
    return {PATH: json.dumps(new, indent=1) + "\n"}
