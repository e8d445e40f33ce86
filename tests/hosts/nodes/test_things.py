"""The things of a picture that a node drew, as ComfyUI's page asks for them."""

from types import SimpleNamespace

import pytest
from support.small_bundle import SIDE

pytestmark = pytest.mark.usefixtures("small_bundle")

PROMPT = {"1": {"inputs": {"model": "postcard"}},
          "4": {"inputs": {"seed": 9, "model": ["1", 0]}},
          "5": {"inputs": {"model": ["1", 0], "picture": ["4", 1], "seed": 3, "variation_seed": 4,
                           "prompt": "a red house"}},
          "6": {"inputs": {"seed": 8, "images": ["5", 0]}}}


@pytest.fixture
def drawn(pack, model, monkeypatch):
    """Draw as node 5 of PROMPT; returns the outputs and the run's id in its messages."""
    def draw(node="SSD_Sampler", **values):
        hidden = SimpleNamespace(unique_id="5", extra_pnginfo=None, prompt=PROMPT)
        monkeypatch.setattr(pack.nodes[node], "hidden", hidden)
        if node == "SSD_Sampler":
            values["complete_prompt"] = False
        outputs = pack.run(node, model=model, **values)
        return outputs, pack.preview()[-1]["run"] if pack.preview() else None
    return draw


def asked(pack, run, language="en"):
    return pack.module("nodes.routes").things_of({"run": run, "language": language})


def test_the_page_hears_the_things_of_a_picture_and_what_they_may_become(pack, drawn):
    _, run = drawn(prompt="a red house by a river")
    told = asked(pack, run)
    assert (told["rows"], told["columns"], told["prompt"]) == (SIDE, SIDE, "a red house by a river")
    titles = {choices["kind"]: choices["title"] for choices in told["scene"]}
    assert titles["time"] == "Time of day"
    night = next(option["prompt"] for choices in told["scene"] if choices["kind"] == "time"
                 for option in choices["options"] if option["label"] == "night")
    assert "a red house" in night and "night" in night
    assert {c["title"] for c in asked(pack, run, "zh")["scene"]} != set(titles.values())


def test_the_seeds_of_all_that_it_depends_on_are_told(pack, drawn):
    """With them, ComfyUI takes its source from the cache."""
    assert asked(pack, drawn()[1])["seeds"] == {"4": {"seed": 9},
                                                "5": {"seed": 3, "variation_seed": 4}}


def test_an_edit_has_things_of_its_own_words(pack, drawn):
    outputs, _ = drawn(prompt="a red house by a river")
    _, run = drawn("SSD_EditByWords", picture=outputs[1], prompt="a blue house by a river")
    assert asked(pack, run)["prompt"] == "a blue house by a river"


def test_nothing_is_read_while_prompts_wait(pack, drawn, monkeypatch):
    run = drawn()[1]
    monkeypatch.setattr(pack.module("ssd_core.output.touchable"), "touchable",
                        lambda *_, **__: pytest.fail("a run was slowed down"))
    pack.server.waiting = 1
    assert asked(pack, run) == {"busy": True}


def test_nothing_is_moved_for_it_and_what_was_told_stays(pack, drawn, model):
    _, run = drawn()
    shell = model.backbone.patcher.model
    there, shell.device = shell.device, "elsewhere"
    assert asked(pack, run) == {"things": [], "scene": []}
    shell.device = there
    told = asked(pack, run)
    shell.device = "elsewhere"
    assert told["scene"] and asked(pack, run) is told
    shell.device = there


def test_a_picture_keeps_no_model_and_only_so_many_are_known(pack, drawn, monkeypatch):
    things = pack.module("nodes.things")
    monkeypatch.setattr(things, "MOST", 2)
    runs = [drawn(seed=seed)[1] for seed in range(3)]
    assert [bool(asked(pack, run)["scene"]) for run in runs] == [False, True, True]
    kept = things._drawn[runs[-1]]
    monkeypatch.setattr(kept, "backbone", lambda: None)  # as once it was dropped
    kept.answers.clear()
    assert asked(pack, runs[-1]) == {"things": [], "scene": []}


def test_several_pictures_and_those_without_a_preview_have_none(pack, drawn):
    things = pack.module("nodes.things")
    before = len(things._drawn)
    drawn(batch_size=2)
    drawn(preview=False)
    assert len(things._drawn) == before
