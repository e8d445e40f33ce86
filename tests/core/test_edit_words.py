"""Edits by words: the rule in the loop of `exact`, its knobs, maps, phrases and recipes."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from support.every_method import one_of_each
from support.mock_backbone import MockBackbone, events, random_heads, tiny_postcard, tokens
from support.requests import requested

from ssd_core import Edit, Grid, Sampling, SSDError, change_map, methods, object_map, plan
from ssd_core.backbones.postcard.scenery import phrases_seen
from ssd_core.backbones.postcard.words.phrases import phrases_of, without_contradictions
from ssd_core.engine.edits import maps, rule
from ssd_core.engine.edits.words import unchanged_objects, without
from ssd_core.engine.state import DecodeState
from ssd_core.output.changed_words import completed_alike
from ssd_core.output.packed import unpack
from ssd_core.output.recipe import check
from ssd_core.runs.edited import Edited
from ssd_core.runs.request import Request
from ssd_lab.postcards import paint, sample_scene

GRID = Grid(6, 7)
OLD, NEW = "a sun,a hut,x", ("a moon,a hut,x", "a hut,z,x")
WINDOWS = (2, 5, 42)
SAMPLING = Sampling(seed=3, cfg=2.0, min_p=0.02)


class Named(MockBackbone):
    """A mock whose guide names things."""

    names_objects = True

    def objects(self, prompt: str) -> list[str]:
        return [part for part in prompt.split(",") if part.startswith("a ")]


@pytest.fixture
def loose(monkeypatch):
    """Random weights hardly listen to words: things in given places, and high thresholds."""
    monkeypatch.setattr(rule, "silhouettes", in_the_middle)
    monkeypatch.setattr(rule, "CHANGED", 0.05)
    monkeypatch.setattr(rule, "LIKELY", (0.5, 0.9))
    monkeypatch.setattr(rule, "LIKELY_IN_CORE", (0.2, 0.5))


def in_the_middle(gains: torch.Tensor) -> torch.Tensor:
    held = torch.zeros_like(gains, dtype=torch.bool)
    held[..., 1:5, 2:6] = True
    return held


@cache
def backbone(row_end: bool = False) -> MockBackbone:
    return Named(Grid(GRID.rows, GRID.columns, row_end), codes=12)


@cache
def parent(pictures: int = 1) -> torch.Tensor:
    return tokens(backbone(), methods.AR(), [OLD] * pictures, sampling=Sampling(seed=8))


def edited(model, method, prompts=NEW[:1], edit=Edit(OLD), **options):  # noqa: B008
    heads = random_heads(model, row=True) if method.needs_row_drafter() else None
    return events(model, method, prompts, edit=edit, heads=heads,
                  **{"keep": parent(), "sampling": SAMPLING, **options})[-1]


MASKS = {"free": None, "box": torch.ones(6, 7, dtype=torch.bool), "rows": None}
MASKS["box"][1:5, 2:6] = False
CASES = {"free": {}, "box": {"keep_mask": MASKS["box"]}, "rows": {"keep_rows": 2},
         "no-guidance": {"sampling": Sampling(seed=3, cfg=1.0)},
         "all-loose": {"edit": Edit(OLD, hold=False)}, "far": {"edit": Edit(OLD, reach=0.7)},
         "two": {"prompts": NEW, "keep": parent(2)}}


@pytest.mark.parametrize(("name", "row_end"), [
    *((name, False) for name in CASES), ("free", True), ("box", True), ("two", True)])
@pytest.mark.by_day(3)
def test_the_result_is_the_same_at_every_window_and_that_of_ar(name, row_end, loose):
    model = backbone(row_end)
    ar = edited(model, methods.AR(), **CASES[name])
    old = CASES[name].get("keep", parent())
    assert 0 < (ar.tokens != old).sum() < old.numel(), "the case tests nothing"
    assert ar.object_cells.any() == (name != "all-loose")
    for window in WINDOWS:
        run = edited(model, methods.Exact(window), **CASES[name])
        assert run.tokens.equal(ar.tokens) and run.object_cells.equal(ar.object_cells), window


@pytest.mark.parametrize(("name", "row_end"), [
    *((name, False) for name in CASES), ("free", True), ("box", True), ("two", True)])
@pytest.mark.by_day(3)
def test_sequences_fed_in_parts_draw_the_same(name, row_end, loose, monkeypatch):
    """As where the bits of a cell do not depend on its pass: fewer cells are fed."""
    model, rows, forward = backbone(row_end), [], MockBackbone.forward

    def counted(self, x, cache=None):
        rows.append(len(x) * x.shape[1])
        return forward(self, x, cache)

    monkeypatch.setattr(MockBackbone, "forward", counted)
    whole = edited(model, methods.Exact(5), **CASES[name])
    before = sum(rows)
    monkeypatch.setattr(model, "batch_invariant", True)
    for method in (methods.AR(), *map(methods.Exact, WINDOWS)):
        rows.clear()
        run = edited(model, method, **CASES[name])
        assert run.tokens.equal(whole.tokens) and run.object_cells.equal(whole.object_cells), method
        assert sum(rows) < before or method != methods.Exact(5) or name == "no-guidance"


@pytest.mark.parametrize("guess", ["parent", "usual"])
def test_first_guesses_change_no_token(guess, loose):
    assert edited(backbone(), methods.Exact(5, guess=guess)).tokens.equal(
        edited(backbone(), methods.AR()).tokens)


def test_the_row_drafter_only_guesses(loose):
    assert edited(backbone(), methods.Exact(5, "row")).tokens.equal(
        edited(backbone(), methods.Exact(12)).tokens)


def test_a_decision_that_looks_ahead_depends_on_the_window(loose, monkeypatch):
    """The control: the property above fails for a rule that reads tokens not decided yet."""
    judged = rule.Rule.sampled

    def ahead(self, state, slots):
        at = state.noise.slots[slots].expand(1, -1) if isinstance(slots, slice) else slots
        later = state.tokens.gather(1, (at + 1).clamp(max=state.slots))
        return torch.where(later % 2 == 0, judged(self, state, slots), 0)

    monkeypatch.setattr(rule.Rule, "sampled", ahead)
    model = backbone()
    ar = edited(model, methods.AR())
    assert any(not edited(model, methods.Exact(window)).tokens.equal(ar.tokens)
               for window in WINDOWS)


def test_pictures_of_a_batch_are_edited_as_alone(loose):
    model, pair = backbone(), parent(2)
    both = edited(model, methods.Exact(5), NEW, keep=pair)
    for n, words in enumerate(NEW):
        alone = edited(model, methods.Exact(5), (words,), keep=pair[n : n + 1],
                       sampling=SAMPLING.offset_seed(n))
        assert both.tokens[n].equal(alone.tokens[0])
        assert both.object_cells[n].equal(alone.object_cells[0])


def test_reach_0_frees_nothing_and_1_draws_the_new_words_anew():
    model = backbone()
    none = edited(model, methods.Exact(5), edit=Edit(OLD, reach=0))
    assert none.tokens.equal(parent()) and none.stats["passes"] == 2
    every = edited(model, methods.Exact(5), edit=Edit(OLD, reach=1, hold=False))
    assert every.tokens.equal(tokens(model, methods.AR(), NEW[:1], sampling=SAMPLING))


def test_reach_frees_more_and_more(loose):
    few, more, all_ = (int((edited(backbone(), methods.Exact(12), edit=Edit(OLD, reach, False))
                            .tokens != parent()).sum()) for reach in (0.01, 0.1, 1.0))
    assert few < more <= all_


def test_what_is_held_stays_even_where_all_else_is_freed(loose, monkeypatch):
    monkeypatch.setattr(rule, "floor", lambda share, *rest: torch.full_like(share, -torch.inf))
    run = edited(backbone(), methods.Exact(5), edit=Edit(OLD, reach=1))
    assert run.object_cells.any() and run.tokens[run.object_cells].equal(
        parent()[run.object_cells])
    assert (run.tokens != parent())[~run.object_cells].any()


def test_words_that_change_nothing_draw_nothing():
    model = backbone()
    run = events(model, methods.Exact(5), [OLD], keep=parent(), edit=Edit(OLD))
    assert run[-1].tokens.equal(parent()) and run[-1].stats["passes"] == 0 == run[0].plan.passes
    done = requested(model, None, methods.Exact(), Sampling(), OLD, keep=parent(), edit=Edit(OLD),
                     size=model.size).run()
    assert done.edit.kept_share == 1 and done.edit.notes == (
        "the new words mean what the old ones do: nothing was drawn",)


@pytest.mark.parametrize("method", [one for one in one_of_each(window=5, k_h=3)
                                    if not one.takes_words], ids=str)
def test_other_methods_refuse_in_one_line(method):
    with pytest.raises(SSDError, match=f"method {method.name} cannot edit by words") as error:
        edited(backbone(), method)
    assert "\n" not in str(error.value)


def test_wrong_edits_get_one_line():
    for make, said in (
            (lambda: edited(backbone(), methods.AR(), keep=None), "no picture to edit"),
            (lambda: Edit(OLD, reach=1.5), "reach 1.5: must lie in 0 .. 1"),
            (lambda: Edit(" "), "old_prompt is empty"), (lambda: Edit(3), "old_prompt"),
            (lambda: without(OLD, "a dog"), "the prompt does not contain it")):
        with pytest.raises(SSDError, match=said):
            make()


# Maps and phrases


def test_maps_are_tables_of_the_cells():
    model, picture = backbone(True), parent()[0]
    change = change_map(model, picture, OLD, NEW[0])
    assert change.shape == (6, 7) and change.dtype == torch.float32
    assert change.min() >= 0 and 0 < change.max() <= 1
    assert change_map(model, picture, OLD, OLD).max() == 0
    assert change_map(model, picture, OLD, NEW[0], guidance=6.0).mean() > change.mean()
    thing = object_map(model, picture[None], OLD, "a hut")
    assert thing.shape == (6, 7) and thing.abs().max() > 0
    with pytest.raises(SSDError, match="the prompt does not contain it"):
        object_map(model, picture, OLD, "a dog")


def drawn(*rows: str) -> torch.Tensor:
    return torch.tensor([[cell == "#" for cell in row] for row in rows])


def test_masks_lose_lone_cells_and_small_holes():
    assert maps.cleaned(drawn("#....", ".....", "..###", "..#.#", "..###")).equal(
        drawn(".....", ".....", "..###", "..###", "..###"))
    far = drawn(*["..."] * 6, ".#.", "...")
    assert maps.about_rows(far).equal(drawn("...", "...", *["###"] * 4, "##.", "..."))
    for rows in (1, 2, 3):  # fewer than the rows above that it adds
        few = maps.about_rows(torch.tensor([[False] * 3] * (rows - 1) + [[False, True, False]]))
        assert few.equal(torch.tensor([[True] * 3] * (rows - 1) + [[True, True, False]]))


def test_a_thing_is_compact():
    thing = drawn("......", "..##..", "..##..", ".#.#..", "......")
    scattered = drawn("#.....", "..#..#", "......", "#..#..", ".....#")
    assert maps.compact(torch.stack((thing, scattered, ~thing, thing & ~thing))).flatten(
        ).tolist() == [True, False, False, False]


def test_parts_of_a_prompt_without_a_guide_are_those_between_commas():
    plain = MockBackbone(GRID)
    assert plain.objects("a cat, on a sofa. at night") == ["a cat", "on a sofa", "at night"]
    assert unchanged_objects(plain, "a cat, a dog, a cat", "A  cat, a fox") == ["a cat"]


@pytest.mark.parametrize(("prompt", "found"), [
    ("a red house on the left and a green tree, at dusk", ["a red house on the left",
                                                           "a green tree"]),
    ("on the left stands a white tower, by a road", ["on the left stands a white tower"]),
    ("a blue boat sails to the right by night", ["a blue boat sails to the right"]),
    ("at night, on the sea", [])])
def test_postcards_guide_names_things_with_their_places(prompt, found):
    assert phrases_of(prompt) == found


@pytest.mark.parametrize(("prompt", "phrase", "left"), [
    ("a red house and a tree, at dusk", "a red house", "a tree, at dusk"),
    ("a red house and a tree, at dusk", "a tree", "a red house, at dusk"),
    ("a red house", "A red  house", ""), ("at dusk, a tree.", "a tree", "at dusk")])
def test_a_phrase_leaves_with_its_marks(prompt, phrase, left):
    assert without(prompt, phrase) == left


@pytest.mark.parametrize(("typed", "drawn", "new", "both"), [
    ("a red house", "a lone red house on the left, at dusk", "a blue house",
     "a lone blue house on the left, at dusk"),
    ("a red house", "a lone red house on the left, at dusk", "a red house and a tree",
     "a lone red house on the left and a tree, at dusk"),
    ("a house, at noon", "a red house, at noon, on a lake", "a house", "a red house, on a lake"),
    ("two houses", "a red house on the left and a red house on the right", "two tents", None)])
def test_new_words_are_completed_as_the_old_ones_were(typed, drawn, new, both):
    assert completed_alike(typed, drawn, new) == both


def test_what_was_filled_in_gives_way_to_typed_words():
    assert without_contradictions("a red house, at dusk, on a lake, at night",
                                  "a red house, at night") == "a red house, on a lake, at night"


def test_a_picture_names_the_weather_that_nobody_mentioned():
    scene = replace(sample_scene(np.random.default_rng(3)), sky="rain", time="day", ground="sand",
                    light="none")
    found = phrases_seen(paint(scene), ("a red house", "a red house, on a meadow"))
    assert "in the rain" in found and not any("sand" in phrase for phrase in found)


def test_areas_keep_their_pixels_and_single_cells_do_not():
    redrawn = drawn("####", "#.##", "####", "...#", "...#", "...#")
    edit = Edited(redrawn, redrawn, 0.0, ())
    assert edit.untouched.equal(drawn("....", "....", "....", "###.", "###.", "###."))


# Requests and recipes


def wanted(model=None, **options) -> Request:
    model = model or tiny_postcard(grid=GRID)
    return requested(model, None, methods.Exact(window=5), Sampling(seed=5), "a sun",
                     **{"edit": Edit("a red house", reach=0.5), "keep": parent(2)[:1], **options})


def test_a_result_says_what_was_kept_and_its_recipe_draws_it_again():
    request = wanted(expand=True)
    result = request.run()
    redrawn = result.tokens[0] != parent(2)[0]
    assert result.edit.redrawn.equal(redrawn) and result.edit.object_cells.shape == (6, 7)
    assert result.edit.kept_share == pytest.approx(1 - redrawn.float().mean().item())
    assert result.edit.notes[0].startswith("kept ")
    (recipe,) = result.recipes()
    check(recipe)
    assert (recipe["old_prompt"], recipe["reach"], recipe["hold"]) == ("a red house", 0.5, True)
    assert unpack(recipe["keep"]).equal(parent(2)[0])
    again = Request.of_recipe(json.loads(json.dumps(recipe)), request.backbone, None)
    assert again == request and again.run().tokens.equal(result.tokens)
    assert wanted(edit=Edit("a red house", reach=0.6)) != request
    assert request.plan.passes_max == 43 and request.bytes_needed > 0


@pytest.mark.parametrize("change", [{"old_prompt": 3}, {"reach": "x"}, {"reach": 2},
                                    {"hold": 1}, {"old_prompt": " "}])
def test_a_damaged_edit_is_refused(change):
    (recipe,) = wanted().run().recipes()
    with pytest.raises(ValueError):
        check({**recipe, **change})
    with pytest.raises(ValueError):
        check({key: value for key, value in recipe.items() if key != "keep"})


def test_a_plan_of_other_runs_stays_as_it_was():
    assert plan(backbone(), methods.AR()).passes == 42


def test_branches_that_a_pass_leaves_out_keep_what_they_have():
    """They are there again behind it, even if the run is closed inside."""
    branches = [[1, 2], [1, 2, 3], [4, 5]]
    state = DecodeState(backbone(), branches, 1, Sampling(cfg=2.0), None)
    state.prefill()
    before, keys = state.hidden.clone(), state.cache.keys.clone()
    with pytest.raises(GeneratorExit), state.only(1, 3):
        assert (state.branches, state.prompts, state.offset) == (2, branches[1:], None)
        state.feed(3)
        raise GeneratorExit
    assert (state.branches, state.prompts, len(state.hidden)) == (3, branches, 3)
    assert state.hidden[0].equal(before[0]) and state.cache.keys[:, 0].equal(keys[:, 0])
    assert not state.hidden[1, 1:4].equal(before[1, 1:4])
    assert not state.cache.keys[:, 2].equal(keys[:, 2])
