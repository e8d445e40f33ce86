"""Passes known in advance: the paper's table, our savings, and the JSON form."""

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone
from support.requests import requested

from ssd_core import Grid, Plan, Sampling, SSDError, methods, plan
from ssd_core.engine.methods import PAPER_PRESETS

JANUS, LUMINA, EMU = Grid(24, 24), Grid(48, 48, True), Grid(90, 90, True)
PAPER = [
    *[(JANUS, methods.SSD(5, 1, r), n) for r, n in ((0, 34), (1, 57), (2, 80))],
    *[(LUMINA, methods.SSD(5, k_v, 5, 4), n)
      for k_v, n in zip(range(1, 6), (304, 281, 273, 269, 267), strict=True)],
    *[(LUMINA, methods.SSD(5, 2, 5, i), n) for i, n in ((1, 212), (2, 235), (3, 258))],
    (LUMINA, methods.SSD(5, 2, 9, 0), 285),
    (EMU, methods.SSD(5, 1, 6), 661),
    (JANUS, methods.MTP(k_h=5), 231), (LUMINA, methods.MTP(k_h=5), 2112),
    (EMU, methods.MTP(k_h=5), 3420),
]


@pytest.mark.parametrize("grid, method, passes", PAPER, ids=str)
def test_step_counts_of_the_paper(grid, method, passes):
    planned = plan(grid, method)
    assert planned.paper_passes == passes
    assert planned.passes <= passes


def test_ar_passes():
    counts = {JANUS: (576, 576), LUMINA: (2304, 4704), EMU: (8100, 8190), Grid(3, 4): (12, None)}
    for grid, (ours, papers) in counts.items():
        for method in (methods.AR(), methods.SSD(), methods.Exact()):
            planned = plan(grid, method)
            assert (planned.ar_passes, planned.paper_ar_passes) == (ours, papers)
        assert plan(grid, methods.AR()).passes == ours
        assert plan(grid, methods.AR()).paper_passes == papers


def test_accelerations_of_the_paper():
    emu = plan(EMU, methods.SSD(5, 1, 6))
    assert round(emu.paper_ar_passes / emu.paper_passes, 2) == 12.39
    for grid, acceleration in ((JANUS, 2.49), (LUMINA, 2.23), (EMU, 2.39)):
        mtp = plan(grid, methods.MTP(k_h=5))
        assert round(mtp.paper_ar_passes / mtp.paper_passes, 2) == acceleration


def test_paper_presets_give_the_paper_counts():
    for name, grid, passes in (("Janus-Pro", JANUS, 80), ("Lumina-mGPT", LUMINA, 281),
                               ("Emu3", EMU, 661)):
        assert plan(grid, methods.SSD().resolve(PAPER_PRESETS[name])).paper_passes == passes


def paper_formula(grid: Grid, method: methods.SSD) -> int:
    """The paper's count of passes, written out block by block."""
    total, y = 1 + 2 * math.ceil((grid.columns - 1) / method.k_h) + (1 if grid.row_end else 0), 1
    while y < grid.rows:
        k = min(method.k_v, grid.rows - y)
        total += (method.rounds + 1) + (k - 1) * (method.incremental + 1)
        y += k
    return total


grids = st.builds(Grid, st.integers(1, 30), st.integers(1, 30), st.booleans())
schedules = st.builds(
    methods.SSD, k_h=st.integers(1, 9), k_v=st.integers(1, 6), rounds=st.integers(0, 9),
    incremental=st.integers(0, 5))


@given(grids, schedules)
def test_never_more_passes_than_the_paper(grid, method):
    planned = plan(grid, method)
    assert planned.paper_passes == paper_formula(grid, method)
    assert planned.passes == planned.passes_max <= planned.paper_passes


@given(grids.filter(lambda grid: grid.columns > 1),
       schedules.filter(lambda method: method.rounds > 0))
def test_a_fused_commit_saves_passes(grid, method):
    """In pictures of one column it may take more: each row is one cell, and a pass of its own."""
    fused = methods.SSD(method.k_h, method.k_v, method.rounds, method.incremental,
                        fused_commit=True)
    before, after = plan(grid, method).passes, plan(grid, fused).passes
    nothing_to_save = grid.rows == 1 or method.rounds >= grid.columns  # more rounds than cells
    lone = grid.columns % (method.k_h + 1) == 1  # row 0 ends in a cell that no round has fed
    assert after < before + lone or (after == before + lone and nothing_to_save)


@given(grids, st.integers(1, 9), st.integers(0, 4))
def test_mtp_never_more_passes_than_the_paper(grid, k_h, rounds):
    planned = plan(grid, methods.MTP(k_h, rounds))
    assert 1 <= planned.passes <= planned.paper_passes


@given(grids.filter(lambda grid: grid.slots >= 5),
       st.sampled_from([methods.Strict(k_h=3), methods.Exact(), methods.Exact(5)]))
def test_passes_that_depend_on_the_data_are_not_guaranteed(grid, method):
    planned = plan(grid, method)
    assert planned.passes is planned.paper_passes is planned.step_acceleration is None
    assert planned.passes_max >= planned.ar_passes


@given(grids, schedules)
def test_keeping_rows_spares_passes(grid, method):
    counts = [plan(grid, method, rows).passes for rows in range(grid.rows)]
    assert all(a >= b for a, b in itertools.pairwise(counts))


@pytest.mark.parametrize("keep_rows, line", [
    (4, "keep_rows 4: must lie in 0 .. 3"), (-1, "keep_rows -1: must lie in 0 .. 3"),
    ("a", "keep_rows 'a': must be a whole number"), (1.5, "keep_rows '1.5': must be a whole")])
@pytest.mark.parametrize("planned", [
    lambda rows: plan(Grid(4, 6), methods.AR(), rows),
    lambda rows: plan(MockBackbone(Grid(4, 6)), methods.Exact(), rows),
    lambda rows: requested(MockBackbone(Grid(4, 6)), None, methods.AR(), Sampling(), "a sun",
                         keep_rows=rows).plan], ids=range(3))
def test_rows_that_cannot_be_kept_are_refused(planned, keep_rows, line):
    with pytest.raises(SSDError, match=f"^{line}"):
        planned(keep_rows)


def test_a_window_larger_than_the_picture_is_refused():
    with pytest.raises(SSDError, match="window 7: the picture has 6 cells"):
        plan(Grid(2, 3), methods.Exact(7))


def test_rows_have_no_paper_count():
    assert plan(JANUS, methods.Rows(5, 1, 2)).paper_passes is None
    assert plan(JANUS, methods.Rows(5, 1, 2)).passes == plan(JANUS, methods.SSD(5, 1, 2)).passes


def test_a_backbone_brings_its_own_preset():
    backbone = MockBackbone(Grid(4, 6))
    assert plan(backbone, methods.SSD()) == plan(Grid(4, 6), methods.SSD(k_h=3))


@pytest.mark.parametrize("method", [methods.AR(), methods.MTP(), methods.SSD(), methods.Strict(),
                                    methods.Rows(), methods.Exact()], ids=lambda m: m.name)
def test_json_form(method):
    planned = plan(JANUS, method)
    told = json.loads(json.dumps(planned.to_json()))
    assert list(told) == ["passes", "passes_max", "paper_passes", "ar_passes", "paper_ar_passes",
                          "tuning", "prior_passes", "prior_pictures", "stand_in",
                          "step_acceleration"]
    acceleration = told.pop("step_acceleration")
    assert Plan(**told) == planned
    assert acceleration == (None if planned.passes is None else 576 / planned.passes)


@pytest.mark.parametrize("grid, device, window", [
    (JANUS, "cuda", 96), (JANUS, "cpu", 48), (LUMINA, "cuda", 98), (LUMINA, "cpu", 49),
    (EMU, "cuda", 91), (Grid(2, 5), "mps", 10), (Grid(3, 200), "cpu", 200)], ids=str)
def test_the_default_window_is_whole_rows_by_class_of_device(grid, device, window):
    assert methods.Exact().for_device(grid, device) == methods.Exact(window)
    assert methods.Exact(7).for_device(grid, device) == methods.Exact(7)
    assert f"window {window}:" in plan(grid, methods.Exact(), device=device).tuning
    assert plan(grid, methods.Exact(7), device=device).tuning == ""


def test_the_plan_says_the_rule_in_words():
    measured = "; a run takes the quickest measured on yours"
    assert plan(JANUS, methods.Exact()).tuning == f"window 48: 2 rows, usual on a CPU{measured}"
    assert plan(LUMINA, methods.Exact(), device="cuda").tuning == (
        f"window 98: 2 rows, usual on a graphics card{measured}")


def test_the_default_of_every_host_is_exact():
    assert methods.default_method() == methods.Exact()
