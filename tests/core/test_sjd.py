"""SJD and GSD: drafts are the last pass's tokens, with continuation and with a tree."""

from functools import cache
from itertools import product

import pytest
import torch
from support.joint import SMALL, drawn, in_turn, joint, p_value
from support.mock_backbone import MockBackbone, events, tokens

from ssd_core import Grid, Sampling, SSDError, methods
from ssd_core.engine.methods.baselines import sjd

PEOPLE = ("cat", "a dog", "two red birds", "ox", "cat", "fly")
SJDS = [methods.SJD(window, init, continuation) for window, init, continuation in (
    (4, "random", False), (6, "resample-above", False), (3, "repeat-left", False),
    (4, "random", True), (6, "resample-above", True), (5, "resample-left", True),
    (6, "repeat-above", True))]
SJDS += [methods.SJD(window, init, continuation, width, depth)
         for window, init, continuation, width, depth in (
             (4, "random", False, 2, 1), (6, "resample-above", True, 2, 2),
             (5, "repeat-above", True, 3, 1), (3, "resample-left", True, 2, 3))]


@in_turn(SJDS)
def test_sjd_has_the_joint_distribution(small, method):
    grid, codes, sampling = SMALL[small]
    backbone = MockBackbone(grid, codes, seed=4)
    counts = drawn(backbone, method, sampling, 4_096)
    assert p_value(counts, joint(backbone, Sampling(**sampling))) > 1e-4


def test_gsd_does_not_have_it():
    backbone = MockBackbone(Grid(2, 3), 3, seed=4)
    method = methods.GSD(6, group=2, probability_distance=1, code_distance=9)
    assert p_value(drawn(backbone, method, {}, 4_096), joint(backbone, Sampling())) < 1e-4


@pytest.mark.parametrize("knobs", [{"group": 0}, {"code_distance": 0}, {
    "probability_distance": 0, "init": "resample-left", "continuation": False}], ids=str)
def test_gsd_with_groups_of_one_token_is_sjd(knobs):
    backbone = MockBackbone(Grid(6, 9, True), codes=16, seed=3)
    shared = {"window": 7, **{k: v for k, v in knobs.items() if k in ("init", "continuation")}}
    sampling = Sampling(seed=4, cfg=3.0)
    gsd, sjd = (events(backbone, method, PEOPLE, sampling=sampling)[-1]
                for method in (methods.GSD(**{**shared, **knobs}), methods.SJD(**shared)))
    assert gsd.tokens.equal(sjd.tokens) and gsd.stats["passes"] == sjd.stats["passes"]


@pytest.mark.parametrize("continuation", [False, True])
def test_sjd_with_a_wrong_draft_distribution_is_noticed(monkeypatch, continuation):
    """Tokens that count as drawn from a flat q pass too often: the test above would notice."""
    def remember(drafts, slots, probs):
        drafts.probs, drafts.first = torch.full_like(probs, 1 / probs.shape[-1]), slots[:, :1]

    monkeypatch.setattr(sjd.Drafts, "remember", remember)
    backbone = MockBackbone(Grid(2, 3), 3, seed=4)
    counts = drawn(backbone, methods.SJD(6, "random", continuation), {}, 4_096)
    assert p_value(counts, joint(backbone, Sampling())) < 1e-4


GREEDY = Sampling(seed=4, cfg=3.0, temperature=0)


@cache
def greedy_picture(row_end):
    """A backbone, and what AR draws at temperature 0."""
    backbone = MockBackbone(Grid(6, 9, row_end), codes=16, seed=3)
    return backbone, tokens(backbone, methods.AR(), PEOPLE, sampling=GREEDY)


@pytest.mark.parametrize("init, tree_width, continuation, row_end", [
    (init, width, continuation, (n + width // 2 + continuation) % 2 == 1)  # by turns
    for (n, init), width, continuation in product(
        enumerate(("random", "repeat-left", "resample-above")), (1, 3), (False, True))])
@pytest.mark.by_day(5)
def test_sjd_at_temperature_0_is_ar(row_end, init, tree_width, continuation):
    backbone, expected = greedy_picture(row_end)
    told = events(backbone, methods.SJD(7, init, continuation, tree_width), PEOPLE,
                  sampling=GREEDY)
    assert told[-1].tokens.equal(expected)
    assert told[-1].stats["passes"] <= told[0].plan.passes_max


def test_siblings_that_are_not_samples_are_noticed(monkeypatch):
    """The likeliest of what is left counts as drawn from what is left."""
    right = sjd.siblings

    def likeliest(*given):
        tokens, probs = right(*given)
        return torch.cat((tokens[:, :1], probs[:, 1:].argmax(-1)), dim=1), probs

    monkeypatch.setattr(sjd, "siblings", likeliest)
    backbone = MockBackbone(Grid(2, 3), 3, seed=4)
    counts = drawn(backbone, methods.SJD(6, "repeat-above", True, 2, 2), {}, 4_096)
    assert p_value(counts, joint(backbone, Sampling())) < 1e-4


def test_a_tree_takes_fewer_passes():
    backbone = MockBackbone(Grid(6, 9), codes=16, seed=3)
    chain, tree = (sum(events(backbone, methods.SJD(9, "resample-above", True, width), PEOPLE,
                              sampling=Sampling(temperature=0.7))[-1].stats["passes_each"])
                   for width in (1, 4))
    assert tree < chain


@pytest.mark.parametrize("init", ["resample-left", "resample-above"])
def test_a_tree_drafts_from_the_states_that_the_last_pass_drew_from(init, monkeypatch):
    """A neighbour's distribution is the one that the neighbour's own draft was drawn from."""
    plain, seen = sjd.Drafts._entering, []

    def entering(drafts, state, slots, last):
        probs = plain(drafts, state, slots, last)
        if drafts.probs is not None:
            back = state.grid.width if init == "resample-above" else 1
            near, front = torch.minimum(slots - back, last), state.frontier.device[:, None]
            inside = (near >= drafts.first) & (near > front)
            place = (near - drafts.first).clamp(min=0)[..., None].expand_as(probs)
            seen.extend((probs - drafts.probs.gather(1, place)).abs().amax(-1)[inside].tolist())
        return probs

    monkeypatch.setattr(sjd.Drafts, "_entering", entering)
    events(MockBackbone(Grid(6, 4), codes=16, seed=3), methods.SJD(9, init, True, 3), PEOPLE)
    assert len(seen) > 20 and max(seen) < 1e-5


def test_a_tree_too_wide_is_refused():
    with pytest.raises(SSDError, match="make 625 branches, at most 256"):
        methods.SJD(tree_width=5, tree_depth=4)
