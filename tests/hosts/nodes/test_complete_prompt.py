"""The nodes say what a prompt leaves open, show it, and pass the words on with the picture."""

from __future__ import annotations

import json

import pytest
import torch
from PIL import Image

pytestmark = pytest.mark.usefixtures("small_bundle")

DRAWING = ("SSD_Sampler", "SSD_Compare")
PROMPT = "a red house by a river"


@pytest.fixture
def sample(pack, model):
    """(images, run) by `exact`: AR's picture in few passes."""
    def run(**values):
        return pack.run("SSD_Sampler", **{"model": model, "prompt": PROMPT, "cfg": 1.0,
                                          "method": {"method": "Faithful", "window": 24},
                                          **values})
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
    _, run = sample(seed=3)
    drawn = words_of(run.recipe()).prompt
    first = pack.preview()[0]
    assert first["kind"] == "started" and "".join(text for text, _ in first["words"][0]) == drawn
    typed = "".join(text for text, added in first["words"][0] if not added)
    assert typed == PROMPT and f"drawn from: {drawn}" in run.report
    assert len(drawn) > len(PROMPT) and run.recipe()["prompt"] == PROMPT


def test_each_picture_of_a_batch_has_its_seed_s_words(pack, sample, words_of):
    _, run = sample(seed=3, batch_size=2)
    assert len(started(pack)[0]["words"]) == 2
    alone = words_of(sample(seed=4)[1].recipe())
    assert words_of(run.recipes[1]) == alone
    assert f"seed 4 is drawn from: {alone.prompt}" in run.report


def test_switched_off_the_prompt_is_drawn_as_typed(pack, sample):
    _, plain = sample(complete_prompt=False)
    assert "prompt_expanded" not in plain.recipe() and "drawn from" not in plain.report
    assert not torch.equal(plain.tokens.tokens, sample()[1].tokens.tokens)


def test_negations_move_and_the_node_says_so(pack, model, sample):
    report = sample(prompt=f"{PROMPT}, no trees", cfg=2.0)[1].report
    assert "negative prompt: trees" in report
    assert "'no trees' was moved to the negative prompt" in started(pack)[0]["notes"]


def test_a_thing_that_is_not_known_is_left_out_and_said_before_the_first_row(pack, sample):
    sample(prompt="a dog by a river")
    first = pack.preview()[0]
    assert "postcard does not know, and leaves out: a dog" in first["notes"]
    words = "".join(text for text, _ in first["words"][0])
    assert words.startswith("by a river") and "dog" not in words


def test_of_unknown_words_alone_the_node_draws_nothing(pack, sample):
    with pytest.raises(Exception, match="cannot draw a dog, and the prompt names nothing else"):
        sample(prompt="a dog")
    assert not started(pack)


def test_without_a_preview_the_words_are_told_as_text(pack, sample):
    sample(preview=False)
    assert any(text.startswith("drawn from: ") for text, *_ in pack.server.texts)


def test_all_runs_of_a_comparison_draw_the_same_words(pack, model):
    table = pack.run("SSD_Compare", model=model, prompt=PROMPT, cfg=1.0)[-1]
    first, second = started(pack)
    assert first["words"] == second["words"] and table.count("drawn from: ") == 1


# Earlier pictures


def test_kept_rows_are_continued_with_their_own_words(pack, sample, words_of):
    _, parent = sample(seed=3)
    _, child = sample(seed=99, picture=parent, keep_rows=4)
    assert words_of(child.recipe()) == words_of(parent.recipe())
    assert "words of that one" in child.report
    _, again = sample(seed=5, picture=child, keep_rows=4)
    assert words_of(again.recipe()) == words_of(parent.recipe())


def test_each_kept_picture_of_a_batch_has_its_own_words(sample, words_of):
    _, parents = sample(seed=3, batch_size=2)
    _, children = sample(seed=50, batch_size=2, picture=parents, keep_rows=4)
    assert list(map(words_of, children.recipes)) == list(map(words_of, parents.recipes))


def test_another_prompt_is_expanded_anew(sample, words_of):
    _, parent = sample(seed=3)
    _, child = sample(seed=99, picture=parent, keep_rows=4, prompt="a tent by a river")
    assert words_of(child.recipe()) == words_of(
        sample(seed=99, prompt="a tent by a river")[1].recipe())
    assert "words of that one" not in child.report


def test_a_parent_that_was_drawn_as_typed_is_continued_as_typed(sample):
    _, parent = sample(seed=3, complete_prompt=False)
    report = sample(seed=99, picture=parent, keep_rows=4)[1].report
    assert "drawn from" not in report and "words of that one" not in report


def test_begun_seeds_are_finished_with_their_words(pack, model, sample, words_of):
    _, begun = sample(seed=3, batch_size=3, method="Reference (AR)", part=0.35)
    _, rest = pack.run("SSD_Finish", model=model, run=begun, pictures="2")
    _, whole = sample(seed=4, method="Reference (AR)")
    assert words_of(rest.recipe()) == words_of(whole.recipe())
    assert torch.equal(rest.tokens.tokens, whole.tokens.tokens)
    assert started(pack)[1]["words"] == started(pack)[0]["words"][1:2]


# Files


def values_in(graph, kind):
    """The widgets of the first node of a kind, as a page that opens the graph has them."""
    return next(node for node in graph["nodes"] if node["type"] == kind)["widgets_values_named"]


def as_sent(values):
    """Widgets as ComfyUI's server hands them to a node: the knobs of a choice lie beneath it."""
    knobs = {name.partition(".")[2]: value for name, value in values.items()
             if name.startswith("method.")}
    rest = {name: value for name, value in values.items() if not name.startswith("method.")}
    return {**rest, "method": {"method": rest["method"], **knobs}}


def test_the_workflow_in_the_app_s_png_draws_the_same_picture(pack, model, sample, tmp_path):
    """It has the words that were drawn, with the switch off."""
    images, run = sample(seed=3)
    recipe_module = pack.module("ssd_core.output.recipe")
    recipe_module.save_png(tmp_path / "a.png", images[0], run.recipe())
    graph = json.loads(Image.open(tmp_path / "a.png").info["workflow"])
    told = values_in(graph, "SSD_Sampler")
    assert told["prompt"] == run.recipe()["prompt_expanded"]
    assert told["complete_prompt"] is False and told["method.window"] == 24
    told = {name: value for name, value in told.items() if name != "control_after_generate"}
    again, same = sample(**as_sent(told))
    assert torch.equal(again, images) and torch.equal(same.tokens.tokens, run.tokens.tokens)


def test_a_saved_png_restores_the_same_pixels(pack, model, sample, monkeypatch):
    """What ComfyUI writes into it has the typed prompt, the seed and the switch on."""
    values = {"prompt": PROMPT, "seed": 3, "cfg": 1.0, "complete_prompt": True}
    images, run = sample(**values)
    monkeypatch.setattr(pack.nodes["SSD_SaveImage"].hidden, "prompt",
                        {"5": {"class_type": "SSD_Sampler", "inputs": values}})
    output = pack.nodes["SSD_SaveImage"].execute(images=images, run=run,
                                                 filename_prefix="expanded")
    entry, = output.ui["images"]
    file = pack.stubs.folders.output / entry["subfolder"] / entry["filename"]
    restored = json.loads(Image.open(file).info["prompt"])["5"]["inputs"]
    again, _ = sample(**restored)
    assert torch.equal(again, images)
    recipe = pack.module("ssd_core.output.recipe").read_recipe(file)
    assert recipe["prompt_expanded"] == run.recipe()["prompt_expanded"]
