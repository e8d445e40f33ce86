"""What the nodes guarantee: ranges, tooltips, lists; their names are in the golden set."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = {"SSD/load": 4, "SSD/draw": 2, "SSD/edit": 3, "SSD/compare": 2, "SSD/tools": 2}
SAMPLING = ["SSD_Sampler", "SSD_Compare"]


def test_nodes_lie_in_five_folders_of_the_menu(pack):
    assert Counter(schema.category for schema in pack.schemas.values()) == FOLDERS
    assert len({schema.display_name for schema in pack.schemas.values()}) == len(pack.classes)


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


def test_execute_takes_exactly_the_inputs(pack):
    """By name, but for knobs, sizes and numbered inputs, which come as one mapping."""
    front = pack.module("ssd_core.output.knobs")
    together = {one.name for one in [*front.all_knobs().values(), *front.sampling_knobs()]}
    for node, schema in pack.schemas.items():
        taken = inspect.signature(inspect.unwrap(pack.nodes[node].execute.__func__)).parameters
        named = {name for name, one in taken.items()
                 if one.kind is one.POSITIONAL_OR_KEYWORD} - {"cls"}
        inputs = {i.id for i in schema.inputs}
        assert named <= inputs, node
        mapped = inputs - named
        assert not mapped or any(one.kind is one.VAR_KEYWORD for one in taken.values()), node
        assert all(name in together | {"size", "width", "height"} or re.fullmatch(r"\w+_\d", name)
                   for name in mapped), node


def test_every_knob_of_every_method_can_be_reached(pack):
    knobs = pack.module("ssd_core.output.knobs").all_knobs()
    for node, name in (("SSD_Sampler", "method"), ("SSD_Compare", "method_6")):
        options = next(i.options for i in pack.schemas[node].inputs if i.id == name)
        assert {each.id for option in options for each in option.inputs} == set(knobs)


@pytest.mark.parametrize("node", SAMPLING)
def test_every_sampling_knob_can_be_reached(pack, node):
    knobs = pack.module("ssd_core.output.knobs").sampling_knobs()
    assert {one.name for one in knobs} <= {i.id for i in pack.schemas[node].inputs}


@pytest.mark.parametrize("node", SAMPLING)
def test_prompt_negative_seed_and_size_come_first(pack, node):
    """As prompts do in KSampler's graphs; all else but a few comes with the advanced inputs."""
    widgets = [i.id for i in pack.schemas[node].inputs if i.widget]
    assert widgets[:6] == ["prompt", "negative", "seed", "size", "width", "height"]


def test_a_number_that_may_be_left_open_is_minus_one_and_says_what_that_means(pack):
    open_ = [one.name for one in pack.module("ssd_core.output.knobs").sampling_knobs()
             if one.optional]
    for node in SAMPLING:
        for slot in (i for i in pack.schemas[node].inputs if i.id in open_):
            assert slot.default == slot.min == -1 and "-1 = " in slot.tooltip, slot.id


def test_rounds_and_staged_rounds_are_labelled_as_in_the_paper(pack):
    options = next(i.options for i in pack.schemas["SSD_Sampler"].inputs if i.id == "method")
    labels = {one.id: one.display_name for option in options for one in option.inputs}
    assert labels["rounds"] == "r / b (rounds)" and labels["incremental"] == "i (staged rounds)"


def test_importing_the_pack_asks_for_nothing(pack):
    """No node, no torch, no host at the root: only the folder and a function."""
    assert pack.stubs.root.__all__ == ["WEB_DIRECTORY", "comfy_entrypoint"]
    assert not hasattr(pack.stubs.root, "NODE_CLASS_MAPPINGS")


def test_links_of_every_type_have_a_colour(pack):
    colours = (ROOT / "web" / "comfy" / "link_colors.js").read_text(encoding="utf-8")
    used = {slot.io_type for schema in pack.schemas.values()
            for slot in (*schema.inputs, *schema.outputs) if slot.io_type.startswith("SSD_")}
    assert set(re.findall(r"^  (SSD_\w+): ", colours, re.MULTILINE)) == used


def test_the_search_finds_the_sampler_by_what_it_does(pack):
    assert "speculative decoding" in pack.schemas["SSD_Sampler"].search_aliases
