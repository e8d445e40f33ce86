"""Build the ComfyUI workflow stored in a PNG: the quick start with the picture's values.

It knows the ids and widget names of the nodes, which tests/hosts/nodes checks, but imports neither
ComfyUI nor the nodes. The template holds the quick start, and the nodes that set a method and known
tokens.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache

from ..engine.methods import AR, METHODS, Rolling
from ..engine.methods.rolling import USUAL_FEWER
from ..files import ASSETS
from . import kept_rows
from .chinese import in_chinese
from .drawing import knobs_in
from .knobs import all_knobs, sampling_knobs
from .labels import SPEEDS
from .words import drawn_words

TEMPLATE = ASSETS / "workflow.json"
LOADER, SAMPLER, SAVER = "SSD_LoadModel", "SSD_Sampler", "SaveImage"
METHOD, PICTURE, NOTE = "SSD_Method", "SSD_LoadPicture", "MarkdownNote"
BUNDLED = "postcard"  # the model that includes its heads
CUSTOM = "custom"  # the quality that uses the sampler's own numbers
AUTO = "auto"  # a widget that leaves a number to the method or the model
GAP = 60  # px
MOST_EXACT = 2**53 - 1  # the largest number that JavaScript reads without rounding it


def workflow_of(recipe: Mapping) -> dict:
    """A workflow that draws a recipe's picture again."""
    graph = copy.deepcopy(template()["quick_start"])
    graph["id"] = str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(recipe, sort_keys=True)))
    name = recipe["backbone"]["name"]
    fill(node_of(graph, LOADER), model=name, dtype=recipe["dtype"],
         heads="none" if recipe.get("heads") is None else AUTO)
    fill(node_of(graph, SAVER), filename_prefix=f"SSD/{name}")
    sampler = node_of(graph, SAMPLER)
    words = drawn_words(recipe)
    drawn = {knob.name: recipe[knob.name] for knob in sampling_knobs() if knob.name in recipe}
    drawn["seed"] = exact(drawn["seed"])
    fill(sampler, prompt=words.prompt, negative=words.negative or "", size=recipe["size"],
         batch_size=1, **known(sampler, {**drawn, "complete_prompt": False}))
    lost = set_method(graph, recipe["method"], knobs_in(recipe))
    if "keep_mask" in recipe:
        keep(graph, recipe, "mask")
    elif recipe["keep_rows"]:
        keep(graph, recipe, "keep_rows")
        fill(sampler, keep_rows=recipe["keep_rows"])
    fill(add(graph, NOTE), text=note(recipe, lost))
    return graph


def exact(number: int) -> int | str:
    """An integer as ComfyUI's page stores it: a large one as text, which the server reads too."""
    return number if number <= MOST_EXACT else str(number)


def keep(graph: dict, recipe: Mapping, by: str) -> None:
    """Add a node with the rows or cells that the picture kept, and connect it to the sampler.

    by: the sampler's input that says which ones.
    """
    sampler = node_of(graph, SAMPLER)
    node, loader = add(graph, PICTURE), node_of(graph, LOADER)
    fill(node, image="", text=kept_rows.written(recipe))
    node["pos"] = [loader["pos"][0] - node["size"][0] - GAP, loader["pos"][1]]
    connect(graph, node, "tokens", sampler, "picture")
    if all(slot["name"] != by for slot in sampler["inputs"]):  # the page adds it if it is missing
        sampler["inputs"].append({"localized_name": by, "name": by, "shape": 7, "type": "MASK",
                                  "link": None})
    connect(graph, node, by, sampler, by)


@cache
def template() -> dict:
    return json.loads(TEMPLATE.read_text(encoding="utf-8"))


def set_method(graph: dict, method: str, knobs: Mapping) -> list[str]:
    """Set the sampler's widgets, or add a method node; return the knobs that neither has."""
    wanted = {knob: value for knob, value in knobs.items() if value is not None}
    sampler = node_of(graph, SAMPLER)
    if title := quality(method, knobs):
        fill(sampler, quality=title)
        return []
    if method == "ssd" and not missing(sampler, wanted):
        fill(sampler, quality=CUSTOM, **known(sampler, wanted))
        return []
    node = link_method(graph)
    fill(node, method=method, **known(node, wanted))
    return missing(node, wanted)


def quality(method: str, knobs: Mapping) -> str | None:
    """The sampler's quality with this method and these knobs; None if there is none."""
    fixed = chosen(knobs)
    if method == Rolling.name and fixed.get("fewer") in USUAL_FEWER:
        del fixed["fewer"]  # what Balanced takes on one machine or another
    return next((speed.title for speed in SPEEDS.values()
                 if speed.method.name == method != AR.name
                 and fixed == chosen(asdict(speed.method))), None)


def chosen(knobs: Mapping) -> dict:
    """The knobs with a value, without hidden ones that have their default."""
    return {name: value for name, value in knobs.items()
            if value is not None and (name in all_knobs() or value != default_of(name))}


def known(node: Mapping, wanted: Mapping) -> dict:
    """The values for which the node has a widget; a field that may say "auto" takes text."""
    named = node["widgets_values_named"]
    return {name: str(value) if named[name] == AUTO else value
            for name, value in wanted.items() if name in named}


def missing(node: Mapping, wanted: Mapping) -> list[str]:
    """Knobs that have no widget on the node and differ from the value that the node uses."""
    return [f"{name} = {value}" for name, value in wanted.items()
            if name not in node["widgets_values_named"] and value != default_of(name)]


def default_of(knob: str) -> object:
    """The value that a node uses for a knob without a widget."""
    if knob in all_knobs():
        return all_knobs()[knob].default
    hidden = {f.name: f.default for method in METHODS.values() for f in fields(method)}
    return hidden.get(knob)


def note(recipe: Mapping, lost: list[str]) -> str:
    lines = [f"This picture was drawn outside ComfyUI, by `{recipe['method']}` on "
             f"**{recipe['backbone']['name']}**. Press **Run** to draw it again."]
    if recipe.get("keep_rows"):
        lines.append(f"Its top {recipe['keep_rows']} rows were kept from another picture: *Load "
                     "Picture* has them as text.")
    if "keep_mask" in recipe:
        lines.append("Some of its cells were kept from another picture: *Load Picture* has them as "
                     "text.")
    if "old_prompt" in recipe:
        lines.append("It was edited by its words, which *Edit by Words* does: here it is drawn "
                     "from its new words alone.")
    if recipe.get("heads") and recipe["backbone"]["name"] != BUNDLED:
        lines.append("Its draft heads were a file of their own: choose it in *Load Model*.")
    if lost:
        lines.append(f"No node has a widget for: {', '.join(lost)}.")
    return "\n\n".join([*lines, "---", *map(in_chinese, lines)])


# Graphs, as ComfyUI saves them


def node_of(graph: Mapping, kind: str) -> dict:
    return next(node for node in graph["nodes"] if node["type"] == kind)


def fill(node: dict, **values: object) -> None:
    """Set widgets by name."""
    named = node["widgets_values_named"]
    if unknown := set(values) - set(named):
        raise KeyError(f"{node['type']} has no widget {unknown}")
    named.update(values)
    node["widgets_values"] = list(named.values())


def link_method(graph: dict) -> dict:
    """Add the node that sets the method, and link it."""
    node = add(graph, METHOD)
    connect(graph, node_of(graph, LOADER), "model", node, "model")
    connect(graph, node, "method", node_of(graph, SAMPLER), "method")
    return node


def add(graph: dict, kind: str) -> dict:
    """Add a node of the template below the others on the left."""
    node = copy.deepcopy(template()[kind])
    node["id"] = graph["last_node_id"] = graph["last_node_id"] + 1
    loader = node_of(graph, LOADER)
    left = [other for other in graph["nodes"] if other["pos"][0] <= loader["pos"][0]]
    node["pos"] = [loader["pos"][0],
                   max(other["pos"][1] + other["size"][1] for other in left) + GAP]
    node["order"] = len(graph["nodes"])
    graph["nodes"].append(node)
    return node


def connect(graph: dict, source: dict, output: str, target: dict, name: str) -> None:
    number = graph["last_link_id"] = graph["last_link_id"] + 1
    slot = next(n for n, out in enumerate(source["outputs"]) if out["name"] == output)
    into = next(n for n, input_ in enumerate(target["inputs"]) if input_["name"] == name)
    source["outputs"][slot]["links"] = [*(source["outputs"][slot]["links"] or []), number]
    target["inputs"][into]["link"] = number
    graph["links"].append([number, source["id"], slot, target["id"], into,
                           source["outputs"][slot]["type"]])
