"""The shipped workflows against the schemas, without ComfyUI."""

from __future__ import annotations

import json
import re
from copy import copy
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.api_form import api_form

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "workflows").glob("*.json"))
# What the nodes with a seed do with it after a run, in their order.
AFTER_A_RUN = {"01_quick_start.app": ["randomize"], "01_quick_start": ["randomize"],
               "02_ar_beside_ssd": ["fixed"], "03_compare_methods": ["randomize"],
               "04_rounds": ["fixed"] * 2,
               "05_start_pick_finish": ["fixed", "randomize"],  # pictures are picked by number
               "06_keep_the_top": ["fixed", "randomize"],  # the first picture stays
               "07_redo_a_region": ["randomize"], "08_edit_by_words": ["fixed"] * 2,
               "09_variations": ["fixed"] * 2, "10_run_viewer": ["fixed"], "11_upscale": ["fixed"],
               "12_large_models": ["randomize"]}
CORE = {"PreviewImage", "PreviewAny", "MarkdownNote", "PrimitiveStringMultiline", "PrimitiveInt",
        "ImageScaleBy", "ImageSharpen", "SaveImage", "LoadImage"}
FORM = FILES[0]  # the quick start as ComfyUI's page shows an app
DYNAMIC = "COMFY_DYNAMICCOMBO_V3"
SHOWING = ("PreviewImage", "SaveImage")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(params=FILES, ids=lambda p: p.stem)
def path(request):
    return request.param


def own_nodes(workflow: dict) -> list[dict]:
    return [node for node in workflow["nodes"] if node["type"].startswith("SSD_")]


def slots(pack, node: dict) -> list:
    """The inputs of a node's schema that hold values, each with those of the choice made there."""
    named = node.get("widgets_values_named", {})
    return [one for slot in pack.schemas[node["type"]].inputs if slot.widget
            for one in (slot, *own_inputs(slot, named.get(slot.id)))]


def own_inputs(slot, choice) -> list:
    """What the choice of a list shows below it, by the names under which ComfyUI saves them."""
    options = slot.options if slot.io_type == DYNAMIC else []
    return [renamed(one, f"{slot.id}.{one.id}") for option in options if option.key == choice
            for one in option.inputs]


def renamed(slot, name: str):
    one = copy(slot)
    one.id = name
    return one


def widgets(pack, node: dict) -> list[str]:
    """Names of a node's saved values in order; the page puts its own control behind a seed."""
    names = []
    for slot in slots(pack, node):
        names.append(slot.id)
        if getattr(slot, "control_after_generate", None):
            names.append("control_after_generate")
    return names


def test_they_are_numbered_and_the_first_is_a_form_too():
    assert FORM.stem == f"{FILES[1].stem}.app"
    assert [path.stem[:3] for path in FILES[1:]] == [f"{n:02}_" for n in range(1, 13)]


def test_the_quick_start_is_three_nodes():
    kinds = [node["type"] for node in read(FILES[1])["nodes"]]
    assert sorted(kinds) == ["SSD_LoadModel", "SSD_Sampler", "SaveImage"]


def test_the_quick_start_is_a_form_of_five_inputs_words_to_click_and_one_picture():
    workflow = read(FORM)
    kinds = {node["id"]: node["type"] for node in workflow["nodes"]}
    form = workflow["extra"]["linearData"]
    assert workflow["extra"]["linearMode"] is True
    assert [(kinds[node], widget) for node, widget in form["inputs"]] == [
        ("SSD_Sampler", name) for name in (
            "prompt", "ssd_words", "seed", "size", "method", "complete_prompt")]
    assert [kinds[node] for node in form["outputs"]] == ["SaveImage"]


def test_every_template_has_a_form_of_widgets_and_results(path):
    workflow = read(path)
    nodes = {node["id"]: node for node in workflow["nodes"]}
    form = workflow["extra"]["linearData"]
    assert workflow["extra"]["linearMode"] is (path == FORM)
    assert len(form["inputs"]) >= 2 and form["outputs"]
    for node, widget in form["inputs"]:
        if widget == "ssd_words":  # words to click: an element of the page, not an input
            continue
        assert widget in nodes[node]["widgets_values_named"]
        slot = next(one for one in nodes[node]["inputs"] if one["name"] == widget)
        assert slot["link"] is None, f"{widget} takes its value from another node"
    assert all(nodes[node]["type"] in (*SHOWING, "SSD_SaveImage", "SSD_RunViewer")
               for node in form["outputs"])


def test_no_two_thumbnails_are_alike():
    """Sixteen by sixteen shades: pictures of one prompt and seed, larger or smaller, are equal."""
    small = [np.asarray(Image.open(path.with_suffix(".jpg")).convert("RGB").resize((16, 16)), float)
             for path in FILES]
    assert min(np.abs(a - b).mean() for a, b in combinations(small, 2)) > 12


def test_the_template_of_large_models_links_the_weights_of_its_first_choice():
    workflow = read(FILES[-1])
    loader = next(node for node in workflow["nodes"] if node["type"] == "SSD_LoadModel")
    name = loader["widgets_values_named"]["model"]
    [model] = loader["properties"]["models"]
    assert model["directory"] == "ssd_backbones" and model["name"] == f"{name}/model.safetensors"
    assert model["url"].startswith("https://huggingface.co/")


def test_the_template_of_large_models_names_models_that_can_be_chosen(pack):
    note = next(node for node in read(FILES[-1])["nodes"] if node["type"] == "MarkdownNote")
    named = re.findall(r"^- \*\*(.+?)\*\*", note["widgets_values"][0], re.MULTILINE)
    model = next(slot for slot in pack.schemas["SSD_LoadModel"].inputs if slot.id == "model")
    assert len(named) >= 5 and set(named) <= set(model.options)


def test_nodes_are_ours_or_cores(pack, path):
    for node in read(path)["nodes"]:
        assert node["type"] in pack.schemas or node["type"] in CORE, node["type"]


def test_values_are_saved_in_the_order_of_the_widgets(pack, path):
    """ComfyUI's page finds them by their position."""
    for node in own_nodes(read(path)):
        names, named = widgets(pack, node), node.get("widgets_values_named", {})
        assert list(named) == names, node["type"]
        assert node.get("widgets_values", []) == list(named.values()), node["type"]


def test_every_note_title_and_box_has_its_chinese(path):
    workflow = read(path)
    chinese = workflow["extra"]["ssd_texts"]["zh"]
    shown = [group["title"] for group in workflow["groups"]]
    shown += [node["widgets_values"][0] for node in workflow["nodes"]
              if node["type"] == "MarkdownNote"]
    assert workflow["groups"] and set(shown) <= set(chinese)


def test_graphs_are_wide_rather_than_tall(path):
    boxes = [(*node["pos"], *node["size"]) for node in read(path)["nodes"]]
    wide = max(x + w for x, _, w, _ in boxes) - min(x for x, *_ in boxes)
    tall = max(y + h for _, y, _, h in boxes) - min(y for _, y, *_ in boxes)
    assert wide > tall


def test_values_are_legal(pack, path):
    for node in own_nodes(read(path)):
        linked = {slot["name"] for slot in node["inputs"] if slot.get("link") is not None}
        for slot in slots(pack, node):
            value = node["widgets_values_named"][slot.id]
            if slot.id in linked:
                continue
            if slot.io_type == "COMBO":
                assert value in slot.options
            elif slot.io_type == DYNAMIC:
                assert value in [option.key for option in slot.options]
            elif slot.io_type in ("INT", "FLOAT"):
                assert slot.min <= value <= slot.max


def test_links_join_equal_types(pack, path):
    api = api_form(read(path))
    for node in api.values():
        if node["class_type"] in CORE:
            continue
        inputs = {i.id: i for i in pack.schemas[node["class_type"]].inputs}
        needed = {name for name, slot in inputs.items() if not slot.optional}
        assert needed <= set(node["inputs"])
        for name, value in node["inputs"].items():
            source = api[value[0]]["class_type"] if isinstance(value, list) else None
            if source in pack.schemas:
                made = pack.schemas[source].outputs[value[1]].io_type
                assert made in inputs[name].io_type.split(",")


def test_a_run_changes_the_seed_unless_the_template_is_about_one_picture(path):
    """The first run draws the thumbnail in any case: the page changes a seed after a run."""
    named = [node.get("widgets_values_named", {}) for node in own_nodes(read(path))]
    kept = [values["control_after_generate"] for values in named if "seed" in values]
    assert kept == AFTER_A_RUN[path.stem]


def test_a_picture_dropped_on_the_page_keeps_its_seed():
    template = read(ROOT / "ssd_core" / "assets" / "workflow.json")["quick_start"]
    sampler = next(node for node in own_nodes(template) if node["type"] == "SSD_Sampler")
    assert "fixed" in sampler["widgets_values"] and "linearMode" not in template["extra"]


def test_manager_can_find_the_pack(path):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for node in own_nodes(read(path)):
        assert f'name = "{node["properties"]["cnr_id"]}"' in text


def test_every_workflow_has_a_thumbnail(path):
    with Image.open(path.with_suffix(".jpg")) as picture:
        assert picture.format == "JPEG" and max(picture.size) >= 384


def test_all_but_the_quick_start_have_a_note():
    noted = [path for path in FILES
             if any(node["type"] == "MarkdownNote" for node in read(path)["nodes"])]
    assert noted == FILES[2:]


BLUEPRINTS = sorted((ROOT / "subgraphs").glob("*.json"))


@pytest.mark.parametrize("path", BLUEPRINTS, ids=lambda p: p.stem)
def test_a_blueprint_is_one_node_around_nodes_of_ours(pack, path):
    whole = read(path)
    outside, = whole["nodes"]
    inside, = whole["definitions"]["subgraphs"]
    assert outside["type"] == inside["id"] and inside["description"] and inside["category"] == "SSD"
    assert whole["extra"]["BlueprintSearchAliases"] and inside["essentials_category"]
    nodes = {node["id"]: node for node in inside["nodes"]}
    for node in nodes.values():
        assert list(node.get("widgets_values_named", {})) == widgets(pack, node), node["type"]
    for link in inside["links"]:
        source, target = nodes.get(link["origin_id"]), nodes.get(link["target_id"])
        ends = [source and source["outputs"][link["origin_slot"]]["type"],
                target and target["inputs"][link["target_slot"]]["type"]]
        assert any(ends) and set(ends) <= {link["type"], None}
        if source is None and (shown := target["inputs"][link["target_slot"]]).get("widget"):
            name = inside["inputs"][link["origin_slot"]]["name"]
            assert outside["widgets_values_named"][name] == target["widgets_values_named"][
                shown["name"]]


def test_the_blueprints_draw_redo_and_finish():
    kinds = [{node["type"] for node in read(path)["definitions"]["subgraphs"][0]["nodes"]}
             for path in BLUEPRINTS]
    assert kinds == [{"SSD_LoadModel", "SSD_Sampler"}, {"SSD_LoadModel", "SSD_Sampler"},
                     {"SSD_LoadModel", "SSD_Sampler", "SSD_Finish"}]
