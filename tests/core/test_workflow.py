"""The workflow inside a PNG: the quick start with the picture's own values, for every method."""

import json
from dataclasses import asdict

import pytest
import torch
from PIL import Image

from ssd_core import SSDError, methods
from ssd_core.backbones.postcard import Postcard
from ssd_core.output import kept_rows
from ssd_core.output.comfyui_workflow import PICTURE, node_of, workflow_of
from ssd_core.output.knobs import all_knobs
from ssd_core.output.packed import pack_mask
from ssd_core.output.recipe import pack, save_png

SSD = methods.SSD()


def recipe(method=SSD, **changes):
    return {"version": 1, "backbone": {"name": "postcard", "sha256": "ab" * 32},
            "dtype": "fp32", "heads": "cd" * 32, "method": method.name,
            **asdict(method.resolve(Postcard.preset)), "prompt": "a red house\nat night",
            "negative": None, "seed": 2**64 - 1, "cfg": 2.5, "temperature": 0.9, "top_k": 7,
            "top_p": 0.8, "min_p": 0.1, "size": "384x384", "keep_rows": 0,
            "passes": 69,
            "tokens": {"shape": [1, 1], "data": "AAAAAA=="}, "versions": {"ssd": "0"}, **changes}


def widgets(graph, kind):
    node = node_of(graph, kind)
    assert node["widgets_values"] == list(node["widgets_values_named"].values())
    return node["widgets_values_named"]


def whole(graph):
    """Every link has both its ends, and every end its link."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(graph["nodes"]) and graph["last_node_id"] >= max(nodes)
    for number, source, slot, target, into, kind in graph["links"]:
        assert number <= graph["last_link_id"]
        assert number in nodes[source]["outputs"][slot]["links"]
        assert nodes[source]["outputs"][slot]["type"] == kind
        assert nodes[target]["inputs"][into]["link"] == number
    ends = [slot["link"] for node in nodes.values() for slot in node["inputs"]
            if slot["link"] is not None]
    assert sorted(ends) == sorted(link[0] for link in graph["links"])
    return graph


def chosen(graph):
    """The sampler's choice of a method, and its knobs."""
    named = widgets(graph, "SSD_Sampler")
    return named["method"], {name.removeprefix("method."): value for name, value in named.items()
                             if name.startswith("method.")}


def test_the_picture_s_own_values_are_filled_in_by_name():
    graph = whole(workflow_of(recipe(negative="fog")))
    named = widgets(graph, "SSD_Sampler")
    assert {key: named[key] for key in (
        "prompt", "negative", "seed", "cfg", "temperature", "top_k", "top_p", "min_p",
        "size", "batch_size", "complete_prompt", "control_after_generate")} == {
        "prompt": "a red house\nat night", "negative": "fog", "seed": str(2**64 - 1), "cfg": 2.5,
        "temperature": 0.9, "top_k": 7, "top_p": 0.8, "min_p": 0.1,
        "size": "384x384", "batch_size": 1, "complete_prompt": False,
        "control_after_generate": "fixed"}
    loader = widgets(graph, "SSD_LoadModel")
    assert [loader[key] for key in ("model", "heads", "dtype")] == ["postcard", "auto", "fp32"]


SSD_CHOICE, ROWS_CHOICE = "SSD (k_h, k_v, r, b/i)", "Rows (SSD without heads)"


@pytest.mark.parametrize(("method", "title", "expected"), [
    (methods.SSD(k_h=4, k_v=2, rounds=3, incremental=1), SSD_CHOICE,
     {"k_h": 4, "k_v": 2, "rounds": 3, "incremental": 1}),
    (methods.SSD(rounds=0, acceptance="coupled"), SSD_CHOICE,
     {"rounds": 0, "acceptance": "coupled"}),
    (methods.Exact(), "Faithful", {}), (methods.Rolling(fewer=8.0), "Balanced", {"fewer": 8.0}),
    (methods.Rolling(fewer=12.0), "Fast", {"fewer": 12.0}), (methods.AR(), "Reference (AR)", {}),
    (methods.Exact(window=48), "Faithful", {"window": 48}),
    (methods.Strict("vertical"), "Leviathan (strict)", {"drafts": "vertical"}),
    (methods.MTP(k_h=3), "MTP", {"k_h": 3, "rounds": 1}),
    (methods.Rows(rounds=1, draft="copy", fused_commit=True), ROWS_CHOICE,
     {"rounds": 1, "draft": "copy", "fused_commit": True})], ids=str)
def test_a_method_is_the_sampler_s_choice_with_its_numbers(method, title, expected):
    graph = whole(workflow_of(recipe(method)))
    choice, knobs = chosen(graph)
    assert choice == title and expected.items() <= knobs.items()
    assert "No node has" not in widgets(graph, "MarkdownNote")["text"]


def test_what_no_node_can_say_is_told_in_the_note():
    text = widgets(workflow_of(recipe(methods.Exact(guess="parent"))), "MarkdownNote")["text"]
    assert "guess = parent" in text and "没有节点带有此参数的控件：guess = parent" in text


def test_kept_rows_come_along_and_are_kept_again():
    tokens = torch.arange(12).view(4, 3)
    made = recipe(methods.AR(), keep_rows=2, tokens=pack(tokens))
    graph = whole(workflow_of(made))
    assert widgets(graph, "SSD_Sampler")["keep_rows"] == 2
    assert "top 2 rows" in widgets(graph, "MarkdownNote")["text"]
    top, backbone = kept_rows.read(widgets(graph, PICTURE)["text"])
    assert top.keep_rows == 2 and top.keep[0, :2].equal(tokens[:2]) and not top.keep[0, 2:].any()
    assert top.keep.shape == (1, 4, 3) and backbone == made["backbone"]
    sampler = node_of(graph, "SSD_Sampler")
    assert [slot["name"] for slot in sampler["inputs"] if slot["link"]] == ["model", "picture"]


def test_kept_cells_come_along_with_their_mask():
    tokens, mask = torch.arange(12).view(4, 3), torch.arange(12).view(4, 3) % 3 > 0
    made = recipe(methods.AR(), tokens=pack(tokens), keep=pack(tokens + 1),
                  keep_mask=pack_mask(mask))
    graph = whole(workflow_of(made))
    kept, _ = kept_rows.read(widgets(graph, PICTURE)["text"])
    assert kept.keep[0].equal(tokens + 1) and kept.keep_mask.equal(mask) and kept.keep_rows == 0
    linked = {slot["name"] for slot in node_of(graph, "SSD_Sampler")["inputs"] if slot["link"]}
    assert {"picture", "mask"} <= linked and "keep_rows" not in linked
    assert "*Load Picture* has them as text" in widgets(graph, "MarkdownNote")["text"]


@pytest.mark.parametrize("text", ["", "7", "{}", '{"keep": {"shape": [1, 1], "data": "AAAAAA=="}}',
                                  '{"keep": {"shape": [1, 1], "data": "AAAAAA=="}, "keep_rows": 2, '
                                  '"backbone": {"name": "a", "sha256": "b"}}'])
def test_other_text_is_no_text_of_tokens(text):
    with pytest.raises(SSDError, match="not the text of tokens"):
        kept_rows.read(text)


@pytest.mark.parametrize(("seed", "saved"), [(7, 7), (2**53 - 1, 2**53 - 1), (2**53, str(2**53))])
def test_a_seed_that_javascript_would_round_is_saved_as_text(seed, saved):
    assert widgets(workflow_of(recipe(seed=seed)), "SSD_Sampler")["seed"] == saved


@pytest.mark.parametrize("method", [
    methods.SSD(fused_commit=True, draft_choice="argmax", draft_temperature=0.5),
    methods.Rows(fused_commit=True, draft="copy"), methods.Exact(window=24),
    methods.Strict(drafts="vertical"), methods.MTP(rounds=2)], ids=str)
def test_every_knob_has_a_widget_somewhere(method):
    graph = workflow_of(recipe(method))
    assert "No node has a widget" not in widgets(graph, "MarkdownNote")["text"]
    named = chosen(graph)[1]
    for knob, value in asdict(method.resolve(Postcard.preset)).items():
        if knob in all_knobs():
            assert named[knob] == (-1 if value is None else value)


def test_without_heads_none_are_loaded():
    graph = whole(workflow_of(recipe(methods.Exact(), heads=None)))
    assert widgets(graph, "SSD_LoadModel")["heads"] == "none"


def test_two_pictures_are_two_workflows_and_the_template_stays_as_it_is():
    first, second = workflow_of(recipe(methods.AR())), workflow_of(recipe(seed=1))
    assert first["id"] != second["id"] and workflow_of(recipe(seed=1)) == second
    assert chosen(first)[0] == "Reference (AR)" and chosen(second)[0] == SSD_CHOICE


def test_a_png_carries_it_unless_it_brings_its_own_or_shall_tell_nothing(tmp_path):
    def chunks(*arguments):
        save_png(tmp_path / "x.png", torch.zeros(8, 8, 3), *arguments)
        return Image.open(tmp_path / "x.png").info

    named = json.loads(chunks(recipe())["workflow"])
    assert named == {**workflow_of(recipe()), "id": named["id"]}
    assert "workflow" not in chunks(None)
    assert chunks(recipe(), {"workflow": "{}"})["workflow"] == "{}"
    assert "workflow" not in chunks(recipe(), {"prompt": "{}"})
