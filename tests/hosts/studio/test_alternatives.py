"""`{a|b}` in a prompt: what a seed draws of it, and all of it."""

import pytest
from support.drawings import wished

from ssd_core import SSDError
from ssd_core.backbones.postcard import Postcard
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.prompts.alternatives import (
    MOST_ALTERNATIVES,
    every_prompt,
    has_alternatives,
    resolved,
)
from ssd_core.output.recipe import read_recipe
from studio import orders, runs
from studio.additions import filled
from studio.alternatives import with_alternative, with_each_alternative
from studio.settings import as_json, asked

NESTED = "a {red|{dark |}blue|} house{, at night|}"


def test_all_alternatives_without_blanks_left_over():
    assert every_prompt("{1|2} {a|b}") == ["1 a", "1 b", "2 a", "2 b"]
    assert sorted(every_prompt(NESTED)) == sorted(
        f"a {colour}house{time}" for colour in ("red ", "dark blue ", "blue ", "")
        for time in (", at night", ""))


def test_a_seed_draws_the_same_one_again_and_seeds_draw_all_of_them():
    drawn = [resolved(NESTED, seed).text for seed in range(64)]
    assert drawn == [resolved(NESTED, seed).text for seed in range(64)]
    assert set(drawn) == set(every_prompt(NESTED))


def test_seeds_draw_alternatives_equally_often():
    reds = sum(resolved("{red|blue}", seed).text == "red" for seed in range(2000))
    assert 900 < reds < 1100


@pytest.mark.parametrize("prompt", ["", "a house", "a {red} house", "a {red house", "red|blue",
                                    "a  house }|{"])
def test_other_prompts_are_drawn_as_typed(prompt):
    assert not has_alternatives(prompt)
    assert resolved(prompt, 3).text == prompt and every_prompt(prompt) == [" ".join(prompt.split())]


def test_characters_know_where_they_were_typed():
    own = resolved(NESTED, 5)
    assert "".join(NESTED[at] for at in own.origin) == own.text


def test_too_many_alternatives_are_refused_in_one_line():
    many = wished(prompt="{1|2|3|4|5|6|7|8|9}" * 3)
    with pytest.raises(SSDError, match=f"^prompt: more than {MOST_ALTERNATIVES} pictures"):
        with_each_alternative(many)
    most = with_each_alternative(asked({"prompt": "{1|2|3|4|5|6|7|8}" * 2}, many))
    assert len(most) == MOST_ALTERNATIVES


def test_a_picture_is_drawn_from_the_alternative_of_its_seed(library, history, worker, settings,
                                                             ended):
    settings = asked({"prompt": "a {red|blue|green} house"}, settings)
    order = orders.DrawOrder(settings)
    picture, = ended(runs.draw(library, history, order.drawn)).result.entries
    assert read_recipe(picture.path)["prompt"] == with_alternative(settings).prompt


@pytest.mark.parametrize("prompt", ["a {red|blue} house", "{a red|a blue} house", "house, {night|}",
                                    "a {house|boat}", "{一座红色的房子|蓝色的小船}"])
def test_what_is_filled_in_is_written_beside_the_alternatives(library, monkeypatch, prompt):
    monkeypatch.setattr(Postcard, "expand", lambda self, *args: expand(*args))
    backbone = library.current.backbone
    for seed in range(6):
        settings = wished(prompt=prompt, seed=seed)
        shown = filled(settings, backbone, chinese=False)
        assert shown["prompt"] == prompt and shown["chips"]
        for chip in shown["chips"]:
            pinned = asked({**as_json(settings), "prompt": chip["pinned"]})
            assert "|" in pinned.prompt
            again = filled(pinned, backbone, chinese=False) or {"chips": []}
            assert chip["name"] not in [one["name"] for one in again["chips"]]
