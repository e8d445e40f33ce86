"""The shipped workflows against the schemas and against their golden copies, without ComfyUI."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "workflows").glob("*.json"), key=lambda path: int(path.stem.split("_")[0]))
SEEDED = ("SSD_Sampler", "SSD_StartSeeds", "SSD_Race", "SSD_CompareMethods", "SSD_EditByWords",
          "SSD_GlmDecode", "SSD_Control")
# What the nodes with a seed do with it after a run, in their order.
AFTER_A_RUN = {"1_quick_start": ["randomize"], "2_race_ar_vs_ssd": ["randomize"],
               "3_keep_the_top_redo_the_rest": ["fixed", "randomize"],  # the kept picture stays
               "4_start_seeds_and_finish": ["fixed"],  # its pictures are picked by number
               "5_schedules_compared": ["fixed"] * 3,  # one seed for all, from a node of its own
               "6_janus_pro": ["randomize"], "7_compare_methods": ["randomize"],
               "8_finish_with_an_upscale": ["fixed"], "9_replay": ["fixed"],
               "10_edit_by_words": ["fixed"] * 2, "11_redo_a_region": ["fixed", "randomize"],
               "12_variations": ["fixed"] * 4,
               **dict.fromkeys(("13_simplear", "14_lumina_mgpt_2", "15_emu3_5"), ["randomize"]),
               "16_glm_image": ["randomize", "fixed"], "17_control": ["randomize"]}
LARGE = [path for path in FILES if path.stem.split("_")[0] in ("6", "13", "14", "15", "16", "17")]
CORE = {"PreviewImage", "PreviewAny", "MarkdownNote", "PrimitiveStringMultiline", "PrimitiveInt",
        "ImageScaleBy", "ImageSharpen", "SaveImage", "SolidMask", "MaskComposite", "LoadImage"}
SHOWING = ("PreviewImage", "SaveImage")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def golden(path: Path) -> dict:
    """The API form that ComfyUI's page made of it: values by name."""
    return read(ROOT / "tests" / "workflows" / path.name)


@pytest.fixture(params=FILES, ids=lambda p: p.stem)
def path(request):
    return request.param


def own_nodes(workflow: dict) -> list[dict]:
    return [node for node in workflow["nodes"] if node["type"].startswith("SSD_")]


def widgets(pack, node: dict) -> list[str]:
    """Names of a node's saved values in order; the page puts its own control behind a seed."""
    names = []
    for slot in (i for i in pack.schemas[node["type"]].inputs if i.widget):
        names.append(slot.id)
        if getattr(slot, "control_after_generate", None):
            names.append("control_after_generate")
    return names


def test_they_are_numbered():
    assert [p.stem.split("_")[0] for p in FILES] == [str(n) for n in range(1, 18)]


def test_the_quick_start_is_a_form_of_five_inputs_words_to_click_and_one_picture():
    workflow = read(FILES[0])
    kinds = {node["id"]: node["type"] for node in workflow["nodes"]}
    form = workflow["extra"]["linearData"]
    assert workflow["extra"]["linearMode"] is True
    assert [(kinds[node], widget) for node, widget in form["inputs"]] == [
        ("SSD_Sampler", name) for name in (
            "prompt", "ssd_words", "seed", "size", "quality", "expand")]
    assert [kinds[node] for node in form["outputs"]] == ["SSD_SaveImage"]


def test_every_template_has_a_form_of_widgets_and_results(path):
    workflow = read(path)
    nodes = {node["id"]: node for node in workflow["nodes"]}
    form = workflow["extra"]["linearData"]
    assert workflow["extra"]["linearMode"] is (path == FILES[0])
    assert len(form["inputs"]) >= 2 and form["outputs"]
    for node, widget in form["inputs"]:
        if widget == "ssd_words":  # words to click: an element of the page, not an input
            continue
        assert widget in nodes[node]["widgets_values_named"]
        slot = next(one for one in nodes[node]["inputs"] if one["name"] == widget)
        assert slot["link"] is None, f"{widget} takes its value from another node"
    assert all(nodes[node]["type"] in (*SHOWING, "SSD_SaveImage", "SSD_Replay")
               for node in form["outputs"])


def test_no_two_thumbnails_are_alike():
    """Sixteen by sixteen shades: pictures of one prompt and seed, larger or smaller, are equal."""
    small = [np.asarray(Image.open(path.with_suffix(".jpg")).convert("RGB").resize((16, 16)), float)
             for path in FILES]
    assert min(np.abs(a - b).mean() for a, b in combinations(small, 2)) > 12


@pytest.mark.parametrize("path", LARGE, ids=lambda p: p.stem)
def test_a_template_of_a_large_model_links_its_weights(path):
    workflow = read(path)
    loader = next(node for node in workflow["nodes"] if node["type"] == "SSD_LoadBackbone")
    backbone = loader["widgets_values"][0]
    models = loader["properties"]["models"]
    assert models and f"ssd_backbones/{backbone}`" in workflow["nodes"][0]["widgets_values"][0]
    for model in models:
        assert model["directory"] == "ssd_backbones" and model["name"].startswith(f"{backbone}/")
        assert model["url"].startswith("https://huggingface.co/")
        assert model["url"].endswith(model["name"].split("/")[-1])


def test_nodes_are_ours_or_cores(pack, path):
    for node in read(path)["nodes"]:
        assert node["type"] in pack.schemas or node["type"] in CORE, node["type"]


def test_saved_values_mean_what_they_meant(pack, path):
    """Values are saved by position: by today's schemas they must still be the golden ones."""
    api = golden(path)
    for node in own_nodes(read(path)):
        names = widgets(pack, node)
        values = dict(zip(names, node.get("widgets_values", []), strict=True))
        values.pop("control_after_generate", None)
        linked = {name for name, value in api[str(node["id"])]["inputs"].items()
                  if isinstance(value, list)}
        given = api[str(node["id"])]["inputs"]
        assert {k: v for k, v in values.items() if k not in linked} == {
            k: v for k, v in given.items() if k not in linked}, node["type"]


def test_values_are_legal(pack, path):
    for node in golden(path).values():
        if node["class_type"] in CORE:
            continue
        for slot in (i for i in pack.schemas[node["class_type"]].inputs if i.widget):
            value = node["inputs"][slot.id]
            if isinstance(value, list):
                continue
            if slot.io_type == "COMBO":
                assert value in slot.options
            elif slot.io_type in ("INT", "FLOAT"):
                assert slot.min <= value <= slot.max


def test_links_join_equal_types(pack, path):
    api = golden(path)
    for node in api.values():
        if node["class_type"] in CORE:
            continue
        inputs = {i.id: i for i in pack.schemas[node["class_type"]].inputs}
        needed = {name for name, slot in inputs.items() if not slot.optional}
        assert needed <= set(node["inputs"])
        for name, value in node["inputs"].items():
            source = api[value[0]]["class_type"] if isinstance(value, list) else None
            if source in pack.schemas:
                assert pack.schemas[source].outputs[value[1]].io_type == inputs[name].io_type


def test_a_run_changes_the_seed_unless_the_template_is_about_one_picture(path):
    """The first run draws the thumbnail in any case: the page changes a seed after a run."""
    seeded = [node for node in own_nodes(read(path)) if node["type"] in SEEDED]
    assert [node["widgets_values_named"]["control_after_generate"]
            for node in seeded] == AFTER_A_RUN[path.stem]


def test_a_picture_dropped_on_the_page_keeps_its_seed():
    template = read(ROOT / "ssd_core" / "assets" / "workflow.json")["quick_start"]
    sampler = next(node for node in own_nodes(template) if node["type"] == "SSD_Sampler")
    assert "fixed" in sampler["widgets_values"] and "linearMode" not in template["extra"]


def test_manager_can_find_the_pack(path):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for node in own_nodes(read(path)):
        assert f'name = "{node["properties"]["cnr_id"]}"' in text


def test_every_workflow_has_a_thumbnail_and_a_note(path):
    with Image.open(path.with_suffix(".jpg")) as picture:
        assert picture.format == "JPEG" and max(picture.size) >= 384
    assert [n for n in read(path)["nodes"] if n["type"] == "MarkdownNote"]


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
        names = widgets(pack, node)
        values = dict(zip(names, node.get("widgets_values", []), strict=True))
        shown = {slot["name"] for slot in inside["inputs"]} & set(values)
        assert {name: values[name] for name in shown} == {
            name: outside["widgets_values_named"][name] for name in shown}, node["type"]
    for link in inside["links"]:
        source, target = nodes.get(link["origin_id"]), nodes.get(link["target_id"])
        ends = [source and source["outputs"][link["origin_slot"]]["type"],
                target and target["inputs"][link["target_slot"]]["type"]]
        assert any(ends) and set(ends) <= {link["type"], None}


def test_the_blueprints_draw_redo_and_finish():
    kinds = [{node["type"] for node in read(path)["definitions"]["subgraphs"][0]["nodes"]}
             for path in BLUEPRINTS]
    loaders = {"SSD_LoadBackbone", "SSD_LoadHeads"}
    assert kinds == [loaders | {"SSD_Sampler"}, loaders | {"SSD_Sampler"},
                     loaders | {"SSD_StartSeeds", "SSD_Pick", "SSD_Finish"}]
