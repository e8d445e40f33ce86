"""A budget of passes is kept, and a generous one gives AR's picture."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, events, random_heads, tokens

from ssd_core import Grid, Sampling, SSDError, methods, plan

BACKBONE = MockBackbone(Grid(5, 6, True), codes=12)
HEADS = random_heads(BACKBONE)
WORDS = ("a sun", "two houses")


def ran(method, heads=None, seed=3):
    return events(BACKBONE, method, WORDS, heads=heads, sampling=Sampling(seed=seed))[-1]


@pytest.mark.parametrize("heads", [None, HEADS])
@pytest.mark.parametrize("budget", [BACKBONE.grid.slots, 900])
def test_a_pass_for_every_cell_gives_ars_picture(heads, budget):
    ar = tokens(BACKBONE, methods.AR(), WORDS, sampling=Sampling(seed=3))
    assert (ran(methods.Rolling(budget=budget), heads).tokens == ar).all()


@given(st.integers(2, 40), st.integers(0, 99), st.booleans())
def test_a_budget_is_kept(budget, seed, with_heads):
    method = methods.Rolling(budget=budget)
    most = plan(BACKBONE, method).passes_max
    assert most <= min(budget, BACKBONE.grid.slots)
    assert ran(method, HEADS if with_heads else None, seed).stats["passes"] <= most


def test_a_larger_budget_comes_nearer_to_ar():
    ar = tokens(BACKBONE, methods.AR(), WORDS, sampling=Sampling(seed=3))
    equal = [float((ran(methods.Rolling(budget=budget)).tokens == ar).float().mean())
             for budget in (2, 12, 35)]
    assert equal[0] < equal[1] <= equal[2] == 1


def test_a_window_too_narrow_for_the_budget_is_refused():
    with pytest.raises(SSDError, match="moves on 9 cells a pass; raise the window or the budget"):
        ran(methods.Rolling(window=5, budget=5))


@given(st.floats(1, 40), st.integers(1, 12), st.integers(1, 12))
def test_without_a_budget_the_passes_are_a_share_of_ars(fewer, rows, columns):
    grid = Grid(rows, columns)
    told = plan(grid, methods.Rolling(fewer=fewer))
    assert told.passes_max <= max(2, told.ar_passes / fewer)
    own = plan(grid, methods.Rolling(fewer=fewer, budget=grid.cells + 1))
    assert own.passes_max == plan(grid, methods.Exact(1)).passes_max
