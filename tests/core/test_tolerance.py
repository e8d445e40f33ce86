"""Rounds that end early, once a round was expected to reject few cells."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, events, random_heads
from test_methods import PEOPLE

from ssd_core import Grid, Sampling, SSDError, methods, plan
from ssd_core.engine import accept

GRID = Grid(6, 8)
KINDS = {"ssd": methods.SSD, "rows": methods.Rows}
SCHEDULES = {"one": {"k_v": 1}, "two": {"k_v": 2}, "staged": {"k_v": 2, "incremental": 2},
             "coupled": {"k_v": 2, "acceptance": "coupled"},
             "prefix": {"k_v": 1, "acceptance": "prefix"}}


def drawn(method, row_end=False, words=PEOPLE[:1], seed=3):
    grid = Grid(GRID.rows, GRID.columns, row_end)
    backbone = MockBackbone(grid, codes=9)
    return events(backbone, method, words, heads=random_heads(backbone, row=True),
                  sampling=Sampling(seed=seed, cfg=3.0))


def round_numbers(told):
    return [event.round for event in told if getattr(event, "stage", "") == "vertical"]


@given(st.integers(0, 2**32), st.integers(2, 9))
def test_a_rejection_is_as_likely_as_said(seed, codes):
    """1 - sum of min(p, q), which is what rejecting with 1 - min(1, p / q) comes to."""
    generator = torch.Generator().manual_seed(seed)
    q, p = torch.rand(2, 3, 4, codes, generator=generator).softmax(-1)
    expected = (q * (1 - (p / q).clamp(max=1))).sum(-1)
    assert accept.rejection_probs(q, p).allclose(expected, atol=1e-6)
    assert accept.rejection_probs(p, p).eq(0).all()


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("schedule", [name for name in SCHEDULES if name != "staged"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.by_day(8)
def test_a_tolerance_of_a_whole_row_leaves_one_round(kind, schedule, row_end):
    knobs = {"k_h": 3, **SCHEDULES[schedule]}
    one = drawn(KINDS[kind](rounds=1, **knobs), row_end)
    many = drawn(KINDS[kind](rounds=4, tolerance=GRID.columns + 1, **knobs), row_end)
    assert many[-1].tokens.equal(one[-1].tokens)
    assert many[-1].stats["passes"] == one[-1].stats["passes"]
    assert set(round_numbers(many)) == {1}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_rounds_go_on_while_more_is_expected_and_no_longer(schedule, monkeypatch):
    """Judged by what was expected, written down where it is computed."""
    tolerance, seen = 2.0, []
    real = accept.rejection_probs
    monkeypatch.setattr(accept, "rejection_probs",
                        lambda q, p: seen.append(real(q, p)) or seen[-1])
    knobs = {"k_h": 3, "rounds": 6, "tolerance": tolerance, **SCHEDULES[schedule]}
    told = drawn(methods.SSD(**knobs))
    rounds = [event for event in told if getattr(event, "stage", "") in ("vertical", "staged")]
    # Staged rows are judged once more where they begin, on one cell: not a round.
    expected = [float(one.mean()) * GRID.width for one in seen if one.shape[1] > 1]
    assert len(expected) == len(rounds)
    ended_early = 0
    for here, after, left in zip(rounds, [*rounds[1:], None], expected, strict=True):
        goes_on = after is not None and after.round == here.round + 1
        if left <= tolerance:
            assert not goes_on
            ended_early += here.round < 6
        elif here.stage == "vertical":
            assert goes_on or here.round == 6 or bool(here.unchanged.all())
    assert 0 < ended_early < len(rounds)
    assert told[-1].stats["passes"] < drawn(methods.SSD(**{**knobs, "tolerance": 0}))[-1].stats[
        "passes"]


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.by_day(4)
def test_a_batch_draws_each_picture_as_it_is_drawn_alone(kind, schedule, row_end):
    method = KINDS[kind](k_h=3, rounds=5, tolerance=2.5, **SCHEDULES[schedule])
    batch = drawn(method, row_end, PEOPLE)
    alone = [drawn(method, row_end, (word,), 3 + n) for n, word in enumerate(PEOPLE)]
    for picture, own in zip(batch[-1].tokens, alone, strict=True):
        assert picture.equal(own[-1].tokens[0])
    assert len({own[-1].stats["passes"] for own in alone}) > 1, "some pictures are calmer"


def test_no_tolerance_is_no_change_and_the_plan_says_what_is_known():
    assert drawn(methods.SSD(3, 1, 3, tolerance=0))[-1].tokens.equal(
        drawn(methods.SSD(3, 1, 3))[-1].tokens)
    backbone = MockBackbone(GRID)
    plain, tolerant = (plan(backbone, methods.SSD(3, 1, 3, tolerance=one)) for one in (0, 1))
    assert (tolerant.passes, tolerant.passes_max) == (None, plain.passes)


def test_a_tolerance_and_fused_commits_exclude_each_other():
    with pytest.raises(SSDError, match="set tolerance to 0 or switch fused_commit off"):
        drawn(methods.SSD(rounds=2, fused_commit=True, tolerance=1))
