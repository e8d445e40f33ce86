"""Choices that rounding may decide: found, made again as AR makes them, and AR's picture kept."""

from functools import cache

import pytest
import torch
from support.mock_backbone import MockBackbone, events, random_heads, tokens

from ssd_core import Grid, Sampling, load_backbone, methods
from ssd_core.backbones.invariance import rounding
from ssd_core.engine import decode, repeat_near_ties

PROMPTS = ("sun", "a red house")
OFF = 2e-2  # by which a pass of the unsteady mock differs from AR's
ENOUGH = 2.3  # more than its logits may move against each other
GREEDY = Sampling(cfg=2.0, temperature=0)


class Unsteady(MockBackbone):
    """Rounds by the width of a pass: all but single cells come out a little different."""

    def forward(self, x, cache=None):
        h = super().forward(x, cache)
        if x.shape[1] == 1:
            return h
        return h + OFF * torch.sin(37 * h * x.shape[1])


@cache
def unsteady_one(row_end):
    return Unsteady(Grid(5, 6, row_end), codes=64)


@pytest.fixture(params=[False, True], ids=["plain", "row-end"])
def unsteady(request):
    return unsteady_one(request.param)


def drawn(backbone, method, seed, count=2):
    return tokens(backbone, method, PROMPTS[:count], sampling=Sampling(seed=seed, cfg=2.0),
                  heads=random_heads(backbone))


@cache
def ars(backbone, seed, count):
    """AR's pictures; it decides one cell a pass, so no margin changes them."""
    return drawn(backbone, methods.AR(), seed, count)


def all_alike(backbone, method, seeds=range(6), count=2):
    """Whether all of the pictures are AR's."""
    return all(drawn(backbone, method, seed, count).equal(ars(backbone, seed, count))
               for seed in seeds)


ALIKE = {"exact": methods.Exact(window=9), "exact-narrow": methods.Exact(window=4),
         "rolling": methods.Rolling(budget=10_000, window=9), "jacobi": methods.Jacobi(window=5)}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.by_day(3)
def test_close_calls_are_made_as_ar_makes_them(unsteady, monkeypatch, name):
    """Of a picture alone and of a pair, by turns."""
    count = 1 + (list(ALIKE).index(name) + unsteady.grid.row_end) % 2
    monkeypatch.setattr(decode, "margin", lambda *_: ENOUGH)
    assert all_alike(unsteady, ALIKE[name], range(2), count)


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.by_day(4)
def test_around_pinned_cells_too_they_are_made_as_ar_makes_them(unsteady, monkeypatch, name):
    """AR feeds a masked cell and the known ones behind it in one pass, whose bits are others."""
    monkeypatch.setattr(decode, "margin", lambda *_: ENOUGH)
    for seed in (2, 12, 33):  # where cells fed alone give other pictures by `exact`
        chance = torch.Generator().manual_seed(seed)
        mask = torch.rand(5, 6, generator=chance) < 0.5
        codes = torch.randint(64, (1, 5, 6), generator=chance)
        ar, found = (tokens(unsteady, method, PROMPTS[:1], sampling=Sampling(seed=seed, cfg=2.0),
                            heads=random_heads(unsteady), keep=codes, keep_mask=mask)
                     for method in (methods.AR(), ALIKE[name]))
        assert found.equal(ar)


MANY = [f"sun {n}" for n in range(6)]


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("pictures", [1, 6])
@pytest.mark.by_day(4)
def test_repeats_take_no_more_passes_than_ar_and_the_plan_counts_them(unsteady, monkeypatch, name,
                                                                      pictures):
    """Even where every choice is close, and in batches, whose pictures advance one by one."""
    monkeypatch.setattr(decode, "margin", lambda *_: 1e6)
    monkeypatch.setattr(Unsteady, "rounding", 1e-6)
    took, found = [], []
    for method in (methods.AR(), ALIKE[name]):
        run = events(unsteady, method, MANY[:pictures], sampling=Sampling(seed=5, cfg=2.0))
        took.append(run[-1].stats["passes"])
        found.append(run[-1].tokens)
    plan = run[0].plan
    cells, slots = unsteady.grid.cells, unsteady.grid.slots
    assert took[1] <= plan.passes_max <= cells + slots and took[0] == plan.ar_passes == cells
    assert found[0].equal(found[1])


def test_without_a_limit_a_batch_takes_more_passes(unsteady, monkeypatch):
    """Proof that the test above can fail."""
    monkeypatch.setattr(decode, "margin", lambda *_: 1e6)
    monkeypatch.setattr(repeat_near_ties, "beyond_ar", lambda *_: False)
    run = events(unsteady, ALIKE["exact-narrow"], MANY, sampling=Sampling(seed=5, cfg=2.0))
    assert run[-1].stats["passes"] > 2 * unsteady.grid.cells


def test_a_window_is_as_greedy_as_ar(unsteady, monkeypatch):
    monkeypatch.setattr(decode, "margin", lambda *_: ENOUGH / 8)
    expected, found = (tokens(unsteady, method, PROMPTS, sampling=GREEDY)
                       for method in (methods.AR(), methods.Exact(window=9)))
    assert found.equal(expected)


def passes(backbone, method, sampling=GREEDY):
    return events(backbone, method, PROMPTS[:1], sampling=sampling)[-1].stats["passes"]


@pytest.mark.parametrize("method", [methods.Exact(window=9), methods.Jacobi(window=5)], ids=str)
def test_at_temperature_0_only_near_ties_are_repeated(monkeypatch, method):
    backbone = MockBackbone(Grid(5, 6), codes=64)
    monkeypatch.setattr(decode, "margin", lambda *_: 0.0)
    fewest = passes(backbone, method)
    monkeypatch.undo()
    backbone.rounding = 1e-7
    assert passes(backbone, method) == fewest
    monkeypatch.setattr(decode, "margin", lambda *_: 100.0)  # all is close
    assert passes(backbone, method) > 1.5 * fewest
    monkeypatch.undo()
    likeliest = tokens(backbone, methods.AR(), PROMPTS[:1], sampling=GREEDY).flatten().mode()[0]
    for table in (backbone.head, backbone.code_embedding):  # a twin ties wherever it wins
        table[likeliest - 1] = table[likeliest]
    assert passes(backbone, method) > fewest


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.by_day(4)
def test_without_a_second_judgement_pictures_differ(unsteady, name):
    """Proof that the test above can fail; the mock was not probed, so its margin is 0."""
    assert not all_alike(unsteady, ALIKE[name])


def test_a_margin_that_is_too_small_misses_some(unsteady, monkeypatch):
    monkeypatch.setattr(decode, "margin", lambda *_: 1e-6)
    assert not all_alike(unsteady, ALIKE["exact"])


def test_the_margin_follows_rounding_and_guidance():
    backbone = MockBackbone()
    assert repeat_near_ties.margin(backbone, Sampling(cfg=2.0)) == 0  # never measured
    backbone.rounding = 1e-5
    plain = repeat_near_ties.margin(backbone, Sampling(cfg=1.0))
    assert 1e-5 < plain < repeat_near_ties.margin(backbone, Sampling(cfg=2.0)) < 1e-3
    backbone.rounding = 0.0
    assert repeat_near_ties.margin(backbone, Sampling(cfg=2.0)) == 0
    half = MockBackbone().to(torch.bfloat16)
    half.rounding = 1e-3
    assert repeat_near_ties.margin(half, Sampling(cfg=2.0)) == 0


def test_the_probe_sees_a_backbone_that_rounds_by_width(monkeypatch):
    backbone = MockBackbone(Grid(6, 7), codes=64)
    steady = rounding(backbone)
    layer = type(backbone.decoder.layers[0])
    plain = layer.forward

    def unsteady(self, x, rows, *rest):
        y = plain(self, x, rows, *rest)
        return y if len(x) == rows else y + OFF

    monkeypatch.setattr(layer, "forward", unsteady)
    assert rounding(backbone) > max(1e-3, 100 * steady)


def test_a_near_tie_of_postcard_goes_as_ar_decides_it():
    """Seed 1733: two tokens within rounding, which a window decided the other way before."""
    backbone = load_backbone("postcard", "cpu", "fp32")
    assert backbone.batch_invariant or backbone.rounding > 0
    ar, *exact = (tokens(backbone, method, ["a house by the sea"], sampling=Sampling(seed=1733))
                  for method in (methods.AR(), methods.Exact(window=24), methods.Exact(window=48)))
    assert [one.equal(ar) for one in exact] == [True, True]


@pytest.mark.parametrize("method", [methods.Jacobi(window=24), methods.Jacobi(window=7),
                                    methods.SSD(rounds=30, acceptance="coupled", k_v=1),
                                    methods.Exact(window=24)], ids=str)
@pytest.mark.by_day(2)
def test_a_batch_with_many_near_ties_takes_no_more_passes_than_promised(monkeypatch, method):
    """Every tie that AR decides otherwise begins new rounds, and a batch has many of them."""
    monkeypatch.setattr(decode, "margin", lambda *_: ENOUGH)
    backbone, prompts = Unsteady(Grid(4, 6), codes=64), ["a red house"] * 24
    backbone.rounding = 1e-5
    run = decode.prepare(backbone, prompts, method, random_heads(backbone),
                         Sampling(seed=1, cfg=2.0))
    done = list(run.events())[-1]
    assert done.stats["passes"] <= run.plan.passes_max
    if method.guarantee == "identical":
        assert done.tokens.equal(tokens(backbone, methods.AR(), prompts,
                                        sampling=Sampling(seed=1, cfg=2.0)))
