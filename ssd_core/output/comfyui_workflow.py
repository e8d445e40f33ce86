"""Build the ComfyUI workflow stored in a PNG: the quick start with the picture's values.

It knows the ids and widget names of the nodes, which tests/hosts/nodes checks, but imports neither
ComfyUI nor the nodes. The template holds the quick start, and the node that holds known tokens.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Mapping
from dataclasses import fields
from functools import cache

from ..engine.methods import METHODS
from ..files import ASSETS
from . import kept_rows
from .chinese import in_chinese
from .choices import knobs_of as shown_knobs
from .choices import title_of
from .drawing import knobs_in
from .knobs import UNSET_NUMBER, all_knobs, sampling_knobs
from .words import drawn_words

TEMPLATE = ASSETS / "workflow.json"
LOADER, SAMPLER, SAVER = "SSD_LoadModel", "SSD_Sampler", "SaveImage"
PICTURE, NOTE = "SSD_LoadPicture", "MarkdownNote"
LIST = "method"  # the sampler's widget; those of its choice are "method.k_h" ...
BUNDLED = "postcard"  # the model that includes its heads
AUTO = "auto"  # the heads of the model itself
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
    connect(graph, node, "run", sampler, "picture")
    if by != "mask":
        return
    if all(slot["name"] != by for slot in sampler["inputs"]):  # the page adds it if it is missing
        sampler["inputs"].append({"localized_name": by, "name": by, "shape": 7, "type": "MASK",
                                  "link": None})
    connect(graph, node, by, sampler, by)


@cache
def template() -> dict:
    return json.loads(TEMPLATE.read_text(encoding="utf-8"))


def set_method(graph: dict, method: str, knobs: Mapping) -> list[str]:
    """Choose the method on the sampler, with its knobs; return the knobs that it lacks."""
    wanted = {knob: value for knob, value in knobs.items() if value is not None}
    sampler, title = node_of(graph, SAMPLER), title_of(method, wanted)
    own = {spec.name: UNSET_NUMBER if spec.default is None else spec.default
           for spec in shown_knobs(title)}
    choose(sampler, title, {**own, **{knob: value for knob, value in wanted.items()
                                      if knob in own}})
    return missing(set(own), wanted)


def choose(node: dict, title: str, knobs: Mapping[str, object]) -> None:
    """Set a node's list of methods and the widgets of the choice, which follow it."""
    values: dict[str, object] = {}
    for name, value in node["widgets_values_named"].items():
        if name == LIST:
            values |= {LIST: title, **{f"{LIST}.{knob}": set_ for knob, set_ in knobs.items()}}
        elif not name.startswith(f"{LIST}."):
            values[name] = value
    node["widgets_values_named"], node["widgets_values"] = values, list(values.values())
    node["inputs"] = [slot for slot in node["inputs"]
                      if not slot["name"].startswith(f"{LIST}.")]  # the page adds the choice's


def known(node: Mapping, wanted: Mapping) -> dict:
    """The values for which the node has a widget."""
    named = node["widgets_values_named"]
    return {name: value for name, value in wanted.items() if name in named}


def missing(own: set[str], wanted: Mapping) -> list[str]:
    """Knobs that have no widget and differ from the value that the node uses."""
    return [f"{name} = {value}" for name, value in wanted.items()
            if name not in own and value != default_of(name)]


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
