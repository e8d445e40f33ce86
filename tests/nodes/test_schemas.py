"""What the nodes promise: names that never change, ranges, tooltips, and the order of widgets."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GOLDEN, ROOT = HERE / "golden_inputs.json", HERE.parents[1]
IDS = ["SSD_LoadBackbone", "SSD_LoadHeads", "SSD_Schedule", "SSD_BaselineMethod", "SSD_Sampler",
       "SSD_StartSeeds", "SSD_Pick", "SSD_Finish", "SSD_UnfinishedRun", "SSD_Race",
       "SSD_CompareMethods", "SSD_DecodeTokens", "SSD_EncodeImage", "SSD_SaveImage", "SSD_Replay",
       "SSD_AcceptanceMap", "SSD_Doctor", "SSD_KeptRows", "SSD_LoadPicture",
       "SSD_EditByWords", "SSD_Control", "SSD_GlmDecode"]
OUTPUTS = {
    "SSD_LoadBackbone": ["SSD_BACKBONE"], "SSD_LoadHeads": ["SSD_HEADS"],
    "SSD_Schedule": ["SSD_METHOD", "INT", "STRING"],
    "SSD_BaselineMethod": ["SSD_METHOD", "INT", "STRING"],
    "SSD_Sampler": ["IMAGE", "SSD_TOKENS", "SSD_STATS", "STRING", "INT", "STRING"],
    "SSD_StartSeeds": ["SSD_STARTED", "IMAGE", "IMAGE"], "SSD_Pick": ["SSD_STARTED"],
    "SSD_Finish": ["IMAGE", "SSD_TOKENS", "SSD_STATS", "STRING"],
    "SSD_UnfinishedRun": ["SSD_STARTED", "STRING"], "SSD_Replay": ["IMAGE", "FLOAT"],
    "SSD_Race": ["IMAGE", "IMAGE", "IMAGE", "STRING", "INT", "STRING"],
    "SSD_CompareMethods": ["IMAGE", "STRING", "IMAGE"], "SSD_DecodeTokens": ["IMAGE"],
    "SSD_EncodeImage": ["SSD_TOKENS", "INT", "STRING", "MASK"], "SSD_SaveImage": ["IMAGE"],
    "SSD_AcceptanceMap": ["IMAGE"], "SSD_GlmDecode": ["IMAGE"],
    "SSD_Doctor": ["STRING"],
    "SSD_KeptRows": ["SSD_TOKENS", "INT", "MASK"],
    "SSD_LoadPicture": ["IMAGE", "SSD_TOKENS", "MASK", "STRING", "STRING", "INT", "COMBO"],
    "SSD_EditByWords": ["IMAGE", "SSD_TOKENS", "MASK", "IMAGE", "STRING", "SSD_STATS"],
    "SSD_Control": ["IMAGE", "IMAGE", "SSD_TOKENS", "SSD_STATS", "STRING"]}


def test_the_nodes_are_those_of_the_contract(pack):
    assert sorted(pack.schemas) == sorted(IDS)
    assert {s.category for s in pack.schemas.values()} == {"SSD"}
    assert len({s.display_name for s in pack.schemas.values()}) == len(IDS)


def test_outputs_keep_their_types_and_order(pack):
    assert {node: [output.io_type for output in schema.outputs]
            for node, schema in pack.schemas.items()} == OUTPUTS


def test_everything_says_what_it_is(pack):
    for node, schema in pack.schemas.items():
        assert len(schema.description) > 20, node
        for slot in (*schema.inputs, *schema.outputs):
            assert slot.tooltip, (node, slot)
        names = [i.id for i in schema.inputs] + [o.display_name for o in schema.outputs]
        assert all(names), node


def test_widgets_have_legal_ranges_and_defaults_inside_them(pack):
    for node, schema in pack.schemas.items():
        for widget in (i for i in schema.inputs if i.widget):
            if widget.io_type in ("INT", "FLOAT"):
                assert widget.min <= widget.default <= widget.max, (node, widget.id)
            elif widget.io_type == "COMBO" and not widget.upload:  # else: files of the user's
                assert widget.default in widget.options, (node, widget.id)
                assert len(set(widget.options)) == len(widget.options), (node, widget.id)


def test_saved_workflows_keep_their_widgets(pack):
    """Saved values are positional: what was there stays in place, new inputs come last."""
    for node, golden in json.loads(GOLDEN.read_text()).items():
        inputs = [[i.id, i.io_type] for i in pack.schemas[node].inputs if i.widget]
        links = [[i.id, i.io_type] for i in pack.schemas[node].inputs if not i.widget]
        assert inputs[: len(golden["widgets"])] == golden["widgets"], node
        assert links[: len(golden["links"])] == golden["links"], node


def test_the_inputs_of_every_node_are_remembered():
    assert set(json.loads(GOLDEN.read_text())) == set(IDS)


def test_execute_takes_exactly_the_inputs(pack):
    """By name, but for knobs and numbered inputs, which come as one mapping."""
    for node in IDS:
        taken = inspect.signature(inspect.unwrap(pack.nodes[node].execute.__func__)).parameters
        named = {name for name, one in taken.items() if one.kind is one.POSITIONAL_OR_KEYWORD}
        inputs = [i.id for i in pack.schemas[node].inputs]
        knobs = set()
        if "widgets" in taken:
            knobs = knob_widgets(pack) | {"numerics"}
            knobs |= {name for name in inputs if re.fullmatch(r"\w+_\d", name)}
        assert named - {"cls"} <= set(inputs) and not named & knobs, node
        assert set(inputs) - named == knobs & set(inputs), node


def knob_widgets(pack):
    """Names of the widgets of all knobs."""
    front, widgets = pack.module("ssd_core.output.knobs"), pack.module("nodes.widgets")
    return {widgets.name_of(one)
            for one in [*front.all_knobs().values(), *front.sampling_knobs()]}


@pytest.mark.parametrize("node", ["SSD_Schedule", "SSD_BaselineMethod"])
def test_every_knob_of_a_method_can_be_reached(pack, node):
    front, widgets = pack.module("ssd_core.output.knobs"), pack.module("nodes.widgets")
    others = [name for name in pack.module("ssd_core.engine.methods").METHODS if name != "ssd"]
    inputs = {i.id: i for i in pack.schemas[node].inputs}
    if node == "SSD_BaselineMethod":
        assert set(inputs["method"].options) == set(others)
    methods = ["ssd"] if node == "SSD_Schedule" else others
    assert {widgets.name_of(one) for one in front.all_knobs(methods).values()} <= set(inputs)


@pytest.mark.parametrize(("node", "slots", "left_out"), [
    ("SSD_BaselineMethod", ["method"], {"ssd"}),
    ("SSD_CompareMethods", [f"draw_{n}" for n in range(1, 7)], set())])
def test_lists_of_methods_have_all_and_say_what_each_promises(pack, node, slots, left_out):
    methods = pack.module("ssd_core.engine.methods").METHODS
    inputs = {i.id: i for i in pack.schemas[node].inputs}
    for slot in slots:
        assert set(inputs[slot].options) - {"none"} == set(methods) - left_out
        for name in set(methods) - left_out:
            promise = methods[name].verdict
            assert name in inputs[slot].tooltip.partition(f"{promise} (")[2].split(")")[0]


@pytest.mark.parametrize("node", ["SSD_Sampler", "SSD_Race", "SSD_CompareMethods"])
def test_every_sampling_knob_can_be_reached(pack, node):
    knobs = pack.module("ssd_core.output.knobs").sampling_knobs()
    assert {one.name for one in knobs} <= {i.id for i in pack.schemas[node].inputs}


@pytest.mark.parametrize("node", ["SSD_Sampler", "SSD_StartSeeds", "SSD_Race",
                                  "SSD_CompareMethods"])
def test_numerics_of_older_workflows_are_taken_without_being_shown(pack, node):
    numerics = next(slot for slot in pack.schemas[node].inputs if slot.id == "numerics")
    assert numerics.optional and numerics.options == ["fast", "matched"]
    assert numerics.extra_dict == {"hidden": True}
    sampling = pack.module("nodes.requests").sampling_of
    assert sampling({"cfg": 2.0, "numerics": "matched"}) == sampling({"cfg": 2.0})


def test_minus_one_is_the_own_value_in_every_numeric_widget(pack):
    """Each widget of a knob that may be left alone starts there and goes down to -1."""
    front, widgets = pack.module("ssd_core.output.knobs"), pack.module("nodes.widgets")
    own = {widgets.name_of(one) for one in [*front.all_knobs().values(), *front.sampling_knobs()]
           if one.optional}
    found = [slot for node in ("SSD_Schedule", "SSD_BaselineMethod", "SSD_Sampler", "SSD_Race")
             for slot in pack.schemas[node].inputs if slot.id in own]
    assert {slot.id for slot in found} == own
    for slot in found:
        assert slot.min == -1 == slot.default and "-1 =" in slot.tooltip, slot.id


def test_the_order_of_saved_values_names_every_knob(pack):
    """A new knob goes to the end of KNOB_WORDS, so that the next one comes after it."""
    front, widgets = pack.module("ssd_core.output.knobs"), pack.module("nodes.widgets")
    names = {one.name for one in [*front.all_knobs().values(), *front.sampling_knobs()]}
    assert set(widgets.ORDER) == names and set(widgets.FIRST) <= names
    later = [name for name in widgets.ORDER if name not in widgets.FIRST]
    assert later[:3] == ["fused_commit", "draft_choice", "draft_temperature"]


def test_importing_the_pack_asks_for_nothing(pack):
    """No node, no torch, no host at the root: only the folder and a function."""
    assert pack.stubs.root.__all__ == ["WEB_DIRECTORY", "comfy_entrypoint"]
    assert not hasattr(pack.stubs.root, "NODE_CLASS_MAPPINGS")


def test_links_of_every_type_have_a_colour(pack):
    colours = (ROOT / "web" / "comfy" / "link_colors.js").read_text(encoding="utf-8")
    used = {slot.io_type for schema in pack.schemas.values()
            for slot in (*schema.inputs, *schema.outputs) if slot.io_type.startswith("SSD_")}
    assert set(re.findall(r"^  (SSD_\w+): ", colours, re.MULTILINE)) == used


def test_the_search_finds_the_sampler_by_what_it_does(pack, monkeypatch):
    newer = pack.module("nodes.newer")
    monkeypatch.setattr(newer, "_SCHEMA", {*newer._SCHEMA, "search_aliases"})
    monkeypatch.setattr(pack.module("nodes.sampler").io, "Schema", dict)
    assert "speculative decoding" in pack.nodes["SSD_Sampler"].define_schema()["search_aliases"]
