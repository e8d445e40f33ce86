"""The one list of methods: its knobs act when they are touched, and the line of passes tells so."""

from __future__ import annotations

import pytest
import torch

SSD = "SSD (k_h, k_v, r, b/i)"
PAPER = {"k_h": 5, "k_v": 1, "rounds": 2, "incremental": 0}
LUMINA = {**PAPER, "k_v": 2, "rounds": 5, "incremental": 4}


def option(pack, title, node="SSD_Sampler", name="method"):
    one = next(i for i in pack.schemas[node].inputs if i.id == name)
    return next(o.inputs for o in one.options if o.key == title)


def asked(pack, **knobs):
    method, _ = pack.module("nodes.schedules").chosen({"method": SSD, **knobs})
    return method


def line(pack, **knobs):
    values = {"method": SSD, **{f"method.{name}": value for name, value in knobs.items()}}
    return pack.module("nodes.facts").plan_of(values, "postcard")


def test_there_are_thirteen_nodes_and_none_is_a_method(pack):
    assert len(pack.nodes) == 13 and "SSD_Method" not in pack.nodes


def test_the_list_begins_with_the_speeds_and_ends_with_the_reference(pack):
    titles = list(pack.module("ssd_core.output.choices").choices())
    assert titles[:4] == ["Faithful", "Balanced", "Fast", SSD]
    assert titles[-1] == "Reference (AR)"


def test_every_method_can_be_chosen(pack):
    choices = pack.module("ssd_core.output.choices").choices()
    assert {each.name for each in choices.values()} == set(pack.module(
        "ssd_core.engine.methods").METHODS)


def test_ssd_shows_its_schedule_as_numbers_that_start_at_the_papers(pack):
    shown = [each for each in option(pack, SSD) if not each.advanced]
    assert {each.id: each.default for each in shown} == PAPER
    assert {each.io_type for each in shown} == {"INT"}
    assert option(pack, "Reference (AR)") == []


@pytest.mark.parametrize("knob, value", [("k_h", 3), ("k_v", 2), ("rounds", 1)])
def test_a_touched_knob_acts_and_the_line_of_passes_with_it(pack, knob, value):
    before, after = line(pack, **PAPER)["plan"], line(pack, **{**PAPER, knob: value})["plan"]
    assert before == "77 of 576 passes at these knobs" and after != before
    assert getattr(asked(pack, **{**PAPER, knob: value}), knob) == value


def test_b_and_i_of_a_staged_schedule_act(pack):
    blocks = {**PAPER, "k_v": 2, "incremental": 1}
    all_touched = ({}, {"rounds": 3}, {"incremental": 2})
    assert len({line(pack, **{**blocks, **touched})["plan"] for touched in all_touched}) == 3
    assert len({asked(pack, **{**blocks, **touched}) for touched in all_touched}) == 3


def test_a_bare_title_is_a_choice(pack, headless):
    for wrong, words in ((7, "method '7': choose one"), ("gone", "method 'gone': choose one")):
        with pytest.raises(pack.error, match=words):
            pack.nodes["SSD_Sampler"].execute(model=headless, prompt="a tent", method=wrong)
    asks = pack.module("nodes.limits").complete(pack.nodes["SSD_Sampler"], {"method": "Fast"})
    assert asks["method"] == {"method": "Fast"}


def test_knobs_that_are_left_out_are_the_models_own(pack):
    lumina = pack.module("ssd_core.backbones.presets").LUMINA
    assert asked(pack).resolve(lumina) == asked(pack, **LUMINA).resolve(lumina)
    assert line(pack)["own"] == PAPER


def test_compare_has_the_same_list_for_each_method(pack):
    for n in range(1, 7):
        own = [each.id for each in option(pack, SSD, "SSD_Compare", f"method_{n}")]
        assert own == [each.id for each in option(pack, SSD)]


def test_a_program_need_only_name_model_and_prompt(pack):
    for node in ("SSD_Sampler", "SSD_Compare", "SSD_EditByWords"):
        assert [i.id for i in pack.schemas[node].inputs if not i.optional] == ["model", "prompt"]


@pytest.mark.parametrize("node, values, words", [
    ("SSD_Sampler", {"model": "NaN"}, "model 'NaN': connect Load Model"),
    ("SSD_Sampler", {"picture": "aaa"}, "picture 'aaa': connect a node"),
    ("SSD_Sampler", {"method": "foo"}, "method 'foo': choose one of Faithful, "),
    ("SSD_Sampler", {"method": {"method": "Fast", "k_h": 3}}, "method Fast has no knob k_h"),
    ("SSD_Sampler", {"method": {"method": SSD, "k_h": "x"}}, "k_h 'x': must be a whole number"),
    ("SSD_SaveImage", {"images": {}}, "images: it is of type dict: connect a node"),
    ("SSD_RunInfo", {"run": {}}, "run: it is of type dict: connect a node"),
    ("SSD_Finish", {"run": 7}, "run '7': connect a node"),
    ("SSD_LoadHeads", {"model": None}, "model: nothing came by its link: connect Load Model"),
    ("SSD_Sampler", {"cfg": torch.zeros(2)}, "cfg: must be a number, not of type Tensor"),
])
def test_a_value_of_a_wrong_type_is_one_sentence(pack, headless, node, values, words):
    needs = {i.id for i in pack.schemas[node].inputs}
    with pytest.raises(pack.error) as told:
        pack.run(node, **{**({"model": headless} if "model" in needs else {}), **values})
    assert str(told.value).startswith(words) and "\n" not in str(told.value)


def test_an_input_that_the_choice_lacks_is_refused_though_comfyui_leaves_it_out(pack, headless,
                                                                               monkeypatch):
    hidden = pack.nodes["SSD_Sampler"].hidden
    monkeypatch.setitem(hidden.prompt, "5", {"inputs": {"method": "Fast", "method.k_h": 3}})
    with pytest.raises(pack.error, match="method Fast has no k_h: it has fewer"):
        pack.run("SSD_Sampler", model=headless, method="Fast")
