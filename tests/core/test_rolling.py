"""A budget of passes is kept, and a generous one gives AR's picture."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, events, random_heads, tokens

from ssd_core import Grid, Sampling, SSDError, methods, plan
from ssd_core.engine.methods.rolling import LEAST_SHARE, Schedule, Schedules
from ssd_core.engine.region import cells_on

BACKBONE = MockBackbone(Grid(5, 6, True), codes=12)
HEADS = random_heads(BACKBONE)
WORDS = ("a sun", "two houses")


def ran(method, heads=None, seed=3):
    return events(BACKBONE, method, WORDS, heads=heads, sampling=Sampling(seed=seed))[-1]


@pytest.mark.parametrize("heads", [None, HEADS])
@pytest.mark.parametrize("budget", [BACKBONE.grid.cells, BACKBONE.grid.slots, 900])
def test_a_pass_for_every_cell_gives_ars_picture(heads, budget):
    ar = tokens(BACKBONE, methods.AR(), WORDS, sampling=Sampling(seed=3))
    assert (ran(methods.Rolling(budget=budget), heads).tokens == ar).all()


@given(st.integers(2, 40), st.integers(0, 99), st.booleans())
def test_a_budget_is_kept(budget, seed, with_heads):
    method = methods.Rolling(budget=budget)
    most = plan(BACKBONE, method).passes_max
    assert most <= min(budget, BACKBONE.grid.cells)
    assert (method.guarantee_on(BACKBONE.grid) == "approximate") == (budget < BACKBONE.grid.cells)
    assert ran(method, HEADS if with_heads else None, seed).stats["passes"] <= most


def test_a_larger_budget_comes_nearer_to_ar():
    ar = tokens(BACKBONE, methods.AR(), WORDS, sampling=Sampling(seed=3))
    equal = [float((ran(methods.Rolling(budget=budget)).tokens == ar).float().mean())
             for budget in (2, 12, 30)]
    assert equal[0] < equal[1] <= equal[2] == 1


@given(st.integers(2, 90), st.integers(1, 89), st.integers(0, 60))
def test_a_pace_ends_with_the_last_cell_and_never_asks_for_more_than_it_says(cells, passes, slack):
    schedule = Schedule(list(range(0, 2 * cells, 2)), min(passes, cells - 1), slack)
    must = [schedule.must(done) for done in range(schedule.passes + 3)]
    assert must[0] == schedule.due(0) == 0 and must[schedule.passes] == must[-1] == cells - 1
    steps = [after - before for before, after in itertools.pairwise(must)]
    assert min(steps) >= 0 and max(steps) <= schedule.most
    assert all(own <= schedule.due(done) for done, own in enumerate(must))


def test_the_further_behind_the_less_probable_a_token_may_be_to_stay():
    schedule = Schedule(list(range(101)), 20, 50)
    tables = Schedules([schedule], 1, 101, torch.device("cpu"))
    shares = [share(tables, frontier, 10) for frontier in (60, 50, 45, 40, schedule.must(10))]
    assert shares[:2] == [float("inf")] * 2 and shares[-1] == pytest.approx(LEAST_SHARE)
    assert 1 > shares[2] > shares[3] > shares[4]
    one_a_pass = Schedules([Schedule(list(range(101)), 100, 50)], 1, 101,
                           torch.device("cpu"))
    assert all(share(one_a_pass, done, done) == float("inf") for done in range(101))


def share(tables: Schedules, frontier: int, done: int) -> float:
    return float(tables.share(torch.tensor([frontier]), done))


@given(st.lists(st.lists(st.integers(0, 40), min_size=2, max_size=20, unique=True).map(sorted),
                min_size=1, max_size=3), st.integers(1, 12), st.integers(0, 9))
def test_tables_say_for_each_picture_what_its_own_schedule_says(cells, passes, slack):
    each = [Schedule(own, min(passes, len(own) - 1), slack) for own in cells]
    tables = Schedules(each, 2 * len(each), 41, torch.device("cpu"))
    for done in range(passes + 3):
        deadline = tables.deadline(done).tolist()
        assert deadline == [own.cells[own.must(done)] for own in [*each, *each]]
        for own, slot, found in zip([*each, *each], deadline,
                                    tables.share(torch.tensor(deadline), done), strict=True):
            behind = own.due(done) - own.cells.index(slot)
            room = max(own.due(done) - own.must(done), 1)
            expected = LEAST_SHARE ** (behind / room) if behind else float("inf")
            assert float(found) == pytest.approx(expected, rel=1e-6)


def test_a_window_too_narrow_for_the_budget_is_refused():
    with pytest.raises(SSDError, match="moves on 10 cells a pass; raise the window or the budget"):
        ran(methods.Rolling(window=9, budget=5))
    ran(methods.Rolling(window=10, budget=5))


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 9))
def test_every_pass_moves_on_by_cells_whatever_row_ends_lie_between(rows, columns, count):
    grid = Grid(rows, columns, True)
    slots = torch.arange(grid.slots)
    cells = [slot for slot in range(3 * grid.slots + 99) if not grid.is_row_end(slot)]
    expected = [[cell for cell in cells if cell > slot][count - 1] for slot in slots.tolist()]
    assert cells_on(grid, slots, count).tolist() == expected


def test_ars_passes_give_ars_picture_where_rows_end_with_a_token():
    grid = Grid(5, 3, True)
    backbone, sampling = MockBackbone(grid, codes=12), Sampling(seed=3)
    ar = events(backbone, methods.AR(), ("a sun",) * 16, sampling=sampling)[-1]
    for method in (methods.Rolling(budget=15), methods.Rolling(fewer=1, window=2)):
        told = events(backbone, method, ("a sun",) * 16, sampling=sampling)
        assert told[-1].tokens.equal(ar.tokens) and method.guarantee_on(grid) == "identical"
        assert told[-1].stats["passes"] <= told[0].plan.passes_max == ar.stats["passes"] == 15


@given(st.floats(1, 40), st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_without_a_budget_the_passes_are_a_share_of_ars(fewer, rows, columns, row_end):
    grid = Grid(rows, columns, row_end)
    told = plan(grid, methods.Rolling(fewer=fewer))
    assert told.passes_max <= max(2, told.ar_passes / fewer)
    own = plan(grid, methods.Rolling(fewer=fewer, budget=grid.cells + 1))
    assert own.passes_max == plan(grid, methods.AR()).passes_max
