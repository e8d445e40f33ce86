"""`{a|b}` in a prompt: what a seed draws of it, and all of it."""

import pytest

from ssd_core import SSDError
from ssd_core.output.recipe import read_recipe
from ssd_core.postcards.expansion import expand
from studio import runs
from studio.additions import filled
from studio.choices import MOST, chosen, every, how_many
from studio.settings import Settings, from_dict, to_dict

NESTED = "a {red|{dark |}blue|} house{, at night|}"


def test_all_alternatives_without_blanks_left_over():
    assert every("{1|2} {a|b}") == ["1 a", "1 b", "2 a", "2 b"]
    assert every("a {red|} house") == ["a red house", "a house"]
    assert how_many(NESTED) == len(set(every(NESTED))) == 8


def test_a_seed_draws_the_same_one_again_and_seeds_draw_all_of_them():
    drawn = [chosen(NESTED, seed) for seed in range(64)]
    assert drawn == [chosen(NESTED, seed) for seed in range(64)]
    assert set(drawn) == set(every(NESTED))


def test_seeds_draw_alternatives_equally_often():
    reds = sum(chosen("{red|blue}", seed) == "red" for seed in range(2000))
    assert 900 < reds < 1100


@pytest.mark.parametrize("prompt", ["", "a house", "a {red} house", "a {red house", "red|blue",
                                    "a  house }|{"])
def test_other_prompts_are_drawn_as_typed(prompt):
    assert chosen(prompt, 3) == prompt and every(prompt) == [prompt] and how_many(prompt) == 1


def test_too_many_alternatives_are_refused_in_one_line():
    with pytest.raises(SSDError, match=f"^prompt: its alternatives make more than {MOST} pictures"):
        every("{1|2|3|4|5|6|7|8|9}" * 3)
    assert len(every("{1|2|3|4|5|6|7|8}" * 2)) == MOST


def test_a_picture_is_drawn_from_the_alternative_of_its_seed(library, history, ended):
    settings = Settings.of(prompt="a {red|blue|green} house", seed=7)
    picture, = ended(runs.draw(library, history, settings)).result.entries
    assert read_recipe(picture.path)["prompt"] == settings.said


@pytest.fixture
def expanding(monkeypatch):
    """The tiny backbones fill in, too; of the words they know only few."""
    from ssd_core.backbones.postcard import Postcard
    monkeypatch.setattr(Postcard, "expand", lambda self, *args: expand(*args))


@pytest.mark.parametrize("prompt", ["a {red|blue} house", "{a red|a blue} house", "house, {night|}",
                                    "a {house|boat}", "{一座红色的房子|蓝色的小船}"])
def test_what_is_filled_in_is_written_beside_the_alternatives(library, expanding, prompt):
    backbone = library.current.backbone
    for seed in range(6):
        settings = Settings.of(prompt=prompt, seed=seed)
        shown = filled(settings, backbone, chinese=False)
        assert shown["prompt"] == prompt
        for chip in shown["chips"]:
            pinned = from_dict({**to_dict(settings), "prompt": chip["pinned"]})
            assert "|" in pinned.prompt
            again = filled(pinned, backbone, chinese=False)
            assert chip["name"] not in [one["name"] for one in (again or {"chips": []})["chips"]]
