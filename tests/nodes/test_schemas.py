"""What the nodes promise: names that never change, ranges, tooltips, and the order of widgets."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden_inputs.json"
IDS = ["SSD_LoadBackbone", "SSD_LoadHeads", "SSD_Schedule", "SSD_BaselineMethod", "SSD_Sampler",
       "SSD_Race", "SSD_DecodeTokens", "SSD_EncodeImage", "SSD_SaveImage", "SSD_AcceptanceMap",
       "SSD_Doctor"]
OUTPUTS = {
    "SSD_LoadBackbone": ["SSD_BACKBONE"], "SSD_LoadHeads": ["SSD_HEADS"],
    "SSD_Schedule": ["SSD_METHOD", "INT", "STRING"],
    "SSD_BaselineMethod": ["SSD_METHOD", "INT", "STRING"],
    "SSD_Sampler": ["IMAGE", "SSD_TOKENS", "SSD_STATS", "STRING"],
    "SSD_Race": ["IMAGE", "IMAGE", "IMAGE", "STRING"], "SSD_DecodeTokens": ["IMAGE"],
    "SSD_EncodeImage": ["SSD_TOKENS", "INT", "STRING"], "SSD_SaveImage": [],
    "SSD_AcceptanceMap": ["IMAGE"], "SSD_Doctor": ["STRING"]}


def test_the_nodes_are_those_of_the_contract(pack):
    assert sorted(pack.schemas) == sorted(IDS)
    assert {s.category for s in pack.schemas.values()} == {"SSD"}
    assert len({s.display_name for s in pack.schemas.values()}) == len(IDS)


@pytest.mark.parametrize("node", IDS)
def test_outputs_keep_their_types_and_order(pack, node):
    assert [output.io_type for output in pack.schemas[node].outputs] == OUTPUTS[node]


@pytest.mark.parametrize("node", IDS)
def test_everything_says_what_it_is(pack, node):
    schema = pack.schemas[node]
    assert len(schema.description) > 20
    for slot in (*schema.inputs, *schema.outputs):
        assert slot.tooltip, slot
    names = [i.id for i in schema.inputs] + [o.display_name for o in schema.outputs]
    assert all(names)


@pytest.mark.parametrize("node", IDS)
def test_widgets_have_legal_ranges_and_defaults_inside_them(pack, node):
    for widget in (i for i in pack.schemas[node].inputs if i.widget):
        if widget.io_type in ("INT", "FLOAT"):
            assert widget.min <= widget.default <= widget.max, widget.id
        elif widget.io_type == "COMBO":
            assert widget.default in widget.options, widget.id
            assert len(set(widget.options)) == len(widget.options)


@pytest.mark.parametrize("node", IDS)
def test_saved_workflows_keep_their_widgets(pack, node):
    """Saved values are positional: what was there stays in place, new inputs come last."""
    golden = json.loads(GOLDEN.read_text())[node]
    inputs = [[i.id, i.io_type] for i in pack.schemas[node].inputs if i.widget]
    links = [[i.id, i.io_type] for i in pack.schemas[node].inputs if not i.widget]
    assert inputs[: len(golden["widgets"])] == golden["widgets"]
    assert links[: len(golden["links"])] == golden["links"]


@pytest.mark.parametrize("node", IDS)
def test_execute_takes_exactly_the_inputs(pack, node):
    code = inspect.unwrap(pack.nodes[node].execute.__func__).__code__
    taken = code.co_varnames[1 : code.co_argcount]
    assert sorted(taken) == sorted(i.id for i in pack.schemas[node].inputs)


def test_importing_the_pack_asks_for_nothing(pack):
    """No node, no torch, no host at the root: only the folder and a function."""
    assert pack.stubs.root.__all__ == ["WEB_DIRECTORY", "comfy_entrypoint"]
    assert not hasattr(pack.stubs.root, "NODE_CLASS_MAPPINGS")
