"""Redo and Variations of a picture: a prompt that was typed since takes the place of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from inspect import unwrap
from types import SimpleNamespace

import pytest
from support.coroutines import result_of

gr = pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from ssd_core.output.words import Words  # noqa: E402
from studio import runs  # noqa: E402
from studio.downloads import Downloads  # noqa: E402
from studio.page import build  # noqa: E402
from studio.services import Services  # noqa: E402
from studio.settings import Settings  # noqa: E402
from studio.visits import LastWords  # noqa: E402
from studio.words import say  # noqa: E402

pytestmark = pytest.mark.slow

REQUEST = SimpleNamespace(session_hash="me", headers={})
HOUSE = Settings.of(prompt="a red house", seed=7, method="rows")
TYPED_WINS = escape(say("en", "typed_wins"))
SKIP = gr.skip()


@pytest.fixture
def tabs(library, history, parked_seeds, worker, models):
    """The tabs by name, after a visitor drew the house."""
    services = Services(worker, library, history, parked_seeds, Downloads(models))
    owners = (getattr(unwrap(fn.fn), "__self__", None) for fn in build(services).fns.values()
              if fn.fn)
    tabs = {type(one).__name__: one for one in owners}
    services.last_words.note("me", Words(HOUSE.prompt))
    return tabs


def visitor_drew(tabs, prompt):
    tabs["Controls"].services.last_words.note("me", Words(prompt))


@pytest.fixture
def house(library, history, ended):
    """Its picture."""
    return ended(runs.draw(library, history, HOUSE)).result.entries[0]


def test_redo_keeps_a_prompt_that_was_typed_since_and_says_so(tabs, house):
    for prompt, negative, words in (("a sun", "", [SKIP] * 3), ("a red house", "sun", [SKIP] * 3),
                                    ("a red house ", "", ["", "a red house"])):
        _, said, *rest = tabs["Redo"].show(house.id, prompt, negative, REQUEST)
        assert rest[-3:] == words or [rest[-3], rest[-1]] == words
        assert (TYPED_WINS in said) is (words[0] == SKIP)


@pytest.mark.parametrize("last", [
    lambda tabs: visitor_drew(tabs, "a sun"),
    lambda tabs: tabs["Controls"].restored(replace(HOUSE, prompt="a sun"), REQUEST)])
def test_redo_shows_the_words_of_its_picture_if_nothing_was_typed_since(tabs, house, last):
    last(tabs)
    wish = json.dumps({"value": house.id, "wish": 1})
    updates = tabs["Redo"].open_picture(wish, "a sun", "", REQUEST)
    *_, said, _, _, _, _, negative, _, prompt = updates
    assert (negative, prompt) == ("", "a red house")
    *_, prompt = tabs["HistoryTab"].to_redo(house.id, "a tree", "", REQUEST)
    assert prompt == SKIP, "typed after the house was shown"


async def varied(tabs, picture, prompt):
    wish = json.dumps({"value": {"id": picture.id, "seed": "7"}, "wish": 1})
    values = tabs["Controls"].values_of(HOUSE.changed(prompt=prompt, rounds=3))
    merged = {}
    async for one in tabs["Seeds"].vary(REQUEST, wish, 2, "third", {}, *values):
        merged |= one
    return merged


@pytest.mark.parametrize(("drawn_last", "wins"), [("a sun", "a red house"),
                                                  ("a red house", "a sun")])
def test_variations_draw_a_prompt_that_was_typed_since_with_the_settings_of_the_picture(
        tabs, house, parked_seeds, drawn_last, wins):
    visitor_drew(tabs, drawn_last)
    shown = result_of(varied(tabs, house, "a sun"))
    seeds = tabs["Seeds"]
    assert (TYPED_WINS in shown[seeds.status]) is (wins == "a sun")
    runs = [one.run.request for one in parked_seeds._parked.values()]
    assert [one.prompt for one in runs] == [wins] * 2
    assert {one.recorded.rounds for one in runs} == {HOUSE.knobs["rounds"] or 1}
    assert sorted(one.sampling.seed for one in runs) == [6, 7]


def test_a_page_begins_with_words_that_nobody_typed_unless_its_visitor_was_here():
    last = LastWords()
    assert not last.typed_since("me", Words("a sun"))
    last.note_first("me", Words("a sun"))
    assert last.typed_since("me", Words("a house")) and not last.typed_since("me", Words("a sun"))
    last.note_first("me", Words("a house"))
    assert last.typed_since("me", Words("a house"))
