"""The nodes say what a prompt leaves open, show it, and pass the words on with the picture."""

from __future__ import annotations

import json

import pytest
import torch
from PIL import Image

pytestmark = pytest.mark.usefixtures("small_bundle")

DRAWING = ("SSD_Sampler", "SSD_StartPictures", "SSD_Compare")
PROMPT = "a red house by a lake"


@pytest.fixture
def sample(pack, model):
    """Run a sampler by `exact`: AR's picture in few passes."""
    def run(**values):
        return pack.run("SSD_Sampler", **{"model": model, "prompt": PROMPT, "cfg": 1.0,
                                          "method": pack.run("SSD_Method",
                                                             method="exact", window=24)[0],
                                          **values})[:4]
    return run


@pytest.fixture
def words_of(pack):
    return pack.module("ssd_core.output.words").drawn_words


def started(pack):
    return [message for message in pack.preview() if message["kind"] == "started"]


@pytest.mark.parametrize("node", DRAWING)
def test_the_switch_is_on(pack, node):
    switch = next(one for one in pack.schemas[node].inputs if one.id == "complete_prompt")
    assert switch.default is True


def test_the_words_are_told_before_the_first_row_and_in_the_report(pack, sample, words_of):
    *_, stats, report = sample(seed=3)
    drawn = words_of(stats.recipes[0]).prompt
    first = pack.preview()[0]
    assert first["kind"] == "started" and "".join(text for text, _ in first["words"][0]) == drawn
    typed = "".join(text for text, added in first["words"][0] if not added)
    assert typed == PROMPT and f"drawn from: {drawn}" in report
    assert len(drawn) > len(PROMPT) and stats.recipes[0]["prompt"] == PROMPT


def test_each_picture_of_a_batch_has_its_seed_s_words(pack, sample, words_of):
    *_, stats, report = sample(seed=3, batch_size=2)
    assert len(started(pack)[0]["words"]) == 2
    alone = words_of(sample(seed=4)[2].recipes[0])
    assert words_of(stats.recipes[1]) == alone
    assert f"seed 4 is drawn from: {alone.prompt}" in report


def test_switched_off_the_prompt_is_drawn_as_typed(pack, sample):
    _, plain, stats, report = sample(complete_prompt=False)
    assert "prompt_expanded" not in stats.recipes[0] and "drawn from" not in report
    assert not torch.equal(plain.tokens, sample()[1].tokens)


def test_negations_move_and_the_node_says_so(pack, model, sample):
    report = sample(prompt=f"{PROMPT}, no trees", cfg=2.0)[3]
    assert "negative prompt: trees" in report
    assert "'no trees' was moved to the negative prompt" in started(pack)[0]["notes"]


def test_a_thing_that_is_not_known_is_left_out_and_said_before_the_first_row(pack, sample):
    sample(prompt="a zebra by a lake")
    first = pack.preview()[0]
    assert "postcard does not know, and leaves out: a zebra" in first["notes"]
    words = "".join(text for text, _ in first["words"][0])
    assert words.startswith("by a lake") and "zebra" not in words


def test_of_unknown_words_alone_the_node_draws_nothing(pack, sample):
    with pytest.raises(Exception, match="cannot draw a zebra, and the prompt names nothing else"):
        sample(prompt="a zebra")
    assert not started(pack)


def test_without_a_preview_the_words_are_told_as_text(pack, sample):
    sample(preview=False)
    assert any(text.startswith("drawn from: ") for text, *_ in pack.server.texts)


def test_all_runs_of_a_comparison_draw_the_same_words(pack, model):
    table = pack.run("SSD_Compare", model=model, prompt=PROMPT, cfg=1.0)[2]
    first, second = started(pack)
    assert first["words"] == second["words"] and table.count("drawn from: ") == 1


# Earlier pictures


def test_kept_rows_are_continued_with_their_own_words(pack, sample, words_of):
    parent = sample(seed=3)
    child = sample(seed=99, picture=parent[1], keep_rows=4)
    assert words_of(child[2].recipes[0]) == words_of(parent[2].recipes[0])
    assert "words of that one" in child[3]
    again = sample(seed=5, picture=child[1], keep_rows=4)
    assert words_of(again[2].recipes[0]) == words_of(parent[2].recipes[0])


def test_each_kept_picture_of_a_batch_has_its_own_words(sample, words_of):
    parents = sample(seed=3, batch_size=2)
    children = sample(seed=50, batch_size=2, picture=parents[1], keep_rows=4)[2].recipes
    assert list(map(words_of, children)) == list(map(words_of, parents[2].recipes))


def test_another_prompt_is_expanded_anew(sample, words_of):
    parent = sample(seed=3)
    child = sample(seed=99, picture=parent[1], keep_rows=4, prompt="a tent by a lake")
    assert words_of(child[2].recipes[0]) == words_of(
        sample(seed=99, prompt="a tent by a lake")[2].recipes[0])
    assert "words of that one" not in child[3]


def test_a_parent_that_was_drawn_as_typed_is_continued_as_typed(sample):
    parent = sample(seed=3, complete_prompt=False)
    report = sample(seed=99, picture=parent[1], keep_rows=4)[3]
    assert "drawn from" not in report and "words of that one" not in report


def test_begun_seeds_are_finished_with_their_words(pack, model, sample, words_of):
    method = pack.run("SSD_Method", method="ar")[0]
    begun = pack.run("SSD_StartPictures", model=model, prompt=PROMPT, seed=3, count=3,
                     cfg=1.0, method=method)[0]
    picked, = pack.run("SSD_PickPictures", started=begun, pictures="2")
    _, tokens, stats, _ = pack.run("SSD_FinishPictures", model=model, started=picked)
    whole = sample(seed=4, method=method)
    assert words_of(stats.recipes[0]) == words_of(whole[2].recipes[0])
    assert torch.equal(tokens.tokens, whole[1].tokens)
    assert started(pack)[1]["words"] == started(pack)[0]["words"][1:2]


# Files


def values_in(graph, kind):
    """The widgets of the first node of a kind, as a page that opens the graph has them."""
    return next(node for node in graph["nodes"] if node["type"] == kind)["widgets_values_named"]


def test_the_workflow_in_the_app_s_png_draws_the_same_picture(pack, model, sample, tmp_path):
    """It has the words that were drawn, with the switch off."""
    images, tokens, stats, _ = sample(seed=3)
    recipe_module = pack.module("ssd_core.output.recipe")
    recipe_module.save_png(tmp_path / "a.png", images[0], stats.recipes[0])
    graph = json.loads(Image.open(tmp_path / "a.png").info["workflow"])
    told = values_in(graph, "SSD_Sampler")
    assert told["prompt"] == stats.recipes[0]["prompt_expanded"]
    assert told["complete_prompt"] is False
    told = {name: value for name, value in told.items() if name != "control_after_generate"}
    again = sample(**told)
    assert torch.equal(again[0], images) and torch.equal(again[1].tokens, tokens.tokens)


def test_a_saved_png_restores_the_same_pixels(pack, model, sample, monkeypatch):
    """What ComfyUI writes into it has the typed prompt, the seed and the switch on."""
    values = {"prompt": PROMPT, "seed": 3, "cfg": 1.0, "complete_prompt": True}
    images, tokens, stats, _ = sample(**values)
    monkeypatch.setattr(pack.nodes["SSD_SaveImage"].hidden, "prompt",
                        {"5": {"class_type": "SSD_Sampler", "inputs": values}})
    output = pack.nodes["SSD_SaveImage"].execute(images=images, tokens=tokens, stats=stats,
                                                 filename_prefix="expanded")
    entry, = output.ui["images"]
    file = pack.stubs.folders.output / entry["subfolder"] / entry["filename"]
    restored = json.loads(Image.open(file).info["prompt"])["5"]["inputs"]
    again = sample(**restored)
    assert torch.equal(again[0], images)
    recipe = pack.module("ssd_core.output.recipe").read_recipe(file)
    assert recipe["prompt_expanded"] == stats.recipes[0]["prompt_expanded"]
