"""Plans stay the same while other programs come and go, from made timings; in few digits."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone
from support.requests import requested

from ssd_core import Grid, Sampling, kept_files, methods
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.estimates import Estimates, StepTimes
from ssd_core.engine import step_times, threads
from ssd_core.engine.prior_passes import bundled
from ssd_core.engine.tuning import LADDER, duration, rounded
from ssd_core.runs.request import Request

CELLS = (1, 8, 16, 24, 48, 96)
JUMP = 1.5
QUICK, SLOW = 0.13, 1.0  # ms a cell: windows pay, and AR does not; the other way round
FREE, HELD = 1, 9  # threads of all programs that compute
GRID = Grid(24, 24)


def timing(load: float, each: float = QUICK) -> StepTimes:
    """What is measured if other programs stretch every pass."""
    return StepTimes({1: {cells: load * (1.1 + each * cells) for cells in CELLS}}, rest=40.0 * load)


class Machine:
    """A machine whose clock is made: `load` stretches whatever is timed or run on it."""

    def __init__(self, patch: pytest.MonkeyPatch, each: float = QUICK) -> None:
        self.load, self.busy, self.timed = 1.0, FREE, 0
        self.backbone = MockBackbone(GRID)
        self.backbone.name, self.backbone.sha256 = "postcard", bundled()["sha256"]
        self.backbone.estimates = Estimates()
        patch.setenv(kept_files.VARIABLE, "somewhere")
        patch.setattr(step_times, "APART", 0)
        patch.setattr(threads, "running", lambda: self.busy)
        patch.setattr(step_times, "cores_held", lambda: self.busy == HELD)
        patch.setattr(step_times, "measured", lambda *_: self._measured(each))

    def _measured(self, each: float) -> StepTimes:
        self.timed += 1
        return timing(self.load, each)

    def plan(self, **options) -> Request:
        return requested(self.backbone, None, methods.Exact(), Sampling(1), "a sun", **options)

    def run(self, asked: Request) -> None:
        """A run of `asked`, told to the estimates without running it."""
        cells = asked.method.for_device(GRID, "cpu").pass_width(GRID)
        passes = 100
        ms = self.load * (1.1 + QUICK * cells)
        step_times.note_step_times(self.backbone, asked.method, False, Sampling(), 1, {
            "threads": [1], "passes": passes + 1,
            "seconds": {"draft": 0.0, "verify": passes * ms / 1000, "commit": 0.0}})


SPELLS = st.lists(st.tuples(st.floats(0.8, 12.0), st.sampled_from((FREE, HELD)), st.booleans()),
                  min_size=2, max_size=12)


@example([(9.0, HELD, False), (1.0, FREE, True), (1.0, FREE, True), (12.0, HELD, True)])
@example([(1.0, FREE, True), (12.0, FREE, True), (1.0, FREE, True)])
@given(SPELLS)
def test_no_plan_jumps_whatever_other_programs_do(spells):
    """Plans of the same settings, with runs between them, on a machine whose load comes and goes.
    """
    with pytest.MonkeyPatch.context() as patch:
        machine, told = Machine(patch), []
        for machine.load, machine.busy, runs in spells:
            asked = machine.plan()
            told.append(asked.tuning.cost.seconds)
            assert not asked.tuning.stands_in, "AR takes three times as long whatever the load"
            if runs:
                machine.run(asked)
    for before, after in pairwise(told):
        assert 1 / JUMP <= after / before <= JUMP
        assert 1 / JUMP <= rounded(after) / rounded(before) * (1 - 1e-9) <= JUMP


def test_a_plan_is_known_while_a_picture_is_drawn_after_a_slow_run(monkeypatch):
    """A run under load made the figures forgotten, and the plan told passes instead of seconds."""
    machine = Machine(monkeypatch)
    before = machine.plan()
    machine.load = 12.0
    machine.run(before)
    with threads.under_way():
        during = machine.plan()
    assert during.tuning.cost.seconds == pytest.approx(before.tuning.cost.seconds, rel=0.1)


def test_ar_takes_the_place_of_exact_only_when_two_timings_agree(monkeypatch):
    machine = Machine(monkeypatch, SLOW)
    assert not machine.plan().tuning.stands_in, "a single timing"
    by_ar = machine.plan()
    assert by_ar.tuning.stands_in and machine.timed == 2 and by_ar.method == methods.AR()
    assert by_ar.recorded == methods.Exact() and by_ar.label == "exact"
    assert machine.plan().tuning.stands_in and machine.timed == 2, "nothing more to learn"


def test_timings_beside_other_programs_are_not_believed_alone(monkeypatch):
    machine = Machine(monkeypatch, SLOW)
    machine.busy = HELD
    for _ in range(4):
        assert not machine.plan().tuning.stands_in
    machine.busy = FREE
    assert [machine.plan().tuning.stands_in for _ in range(3)] == [False, True, True]


def test_ar_never_takes_its_place_where_it_may_draw_another_picture(monkeypatch):
    machine = Machine(monkeypatch, SLOW)
    monkeypatch.setattr("ssd_core.runs.request.guarantee_holds", lambda backbone: False)
    assert not any(machine.plan().tuning.stands_in for _ in range(3))


def test_pixels_and_preparation_count(monkeypatch):
    machine = Machine(monkeypatch)
    cost = machine.plan().tuning.cost
    assert cost.seconds == pytest.approx(cost.passes * cost.ms / 1000 + 0.04)
    four = machine.plan(pictures=4).tuning.cost
    assert four.rest == pytest.approx(0.16)


def test_a_thread_that_waits_for_others_is_not_slower_for_it(monkeypatch):
    """The wall clock of a pass counts the time that other programs had the core."""
    own = iter([1.0, 1.020])
    monkeypatch.setattr(step_times.time, "thread_time", lambda: next(own))
    monkeypatch.setattr(step_times, "Stopwatch", lambda device: Waiting())
    monkeypatch.setattr(step_times, "window_pass", lambda *_: None)
    state = type("State", (), {"slots": 576, "tokens": type("T", (), {
        "device": step_times.torch.device("cpu")})})()
    assert step_times.pass_ms(state, 8) == pytest.approx(20.0)


class Waiting:
    """The wall clock of a pass that waited for most of its time."""

    seconds = {"verify": 0.5}

    def lap(self, stage: str) -> None:
        pass


@given(st.floats(0.01, 1e5))
def test_estimates_are_told_in_one_or_two_digits(seconds):
    told = rounded(seconds)
    assert abs(math.log(told / seconds)) <= math.log(1.25) / 2 + 0.01
    digits = f"{told:.2g}"
    assert float(digits) == pytest.approx(told) and LADDER[0] == 1
    assert duration(seconds).endswith((" s", " min"))


@pytest.mark.parametrize(("seconds", "words"), [
    (0.04, "0.04 s"), (0.998, "1 s"), (1.31, "1.2 s"), (2.46, "2.5 s"), (17.47, "18 s"),
    (63, "60 s"), (130, "2 min"), (3000, "50 min")])
def test_estimates_in_words(seconds, words):
    assert duration(seconds) == words


def test_the_figures_of_a_real_run_include_what_it_took_beside_its_passes(monkeypatch, tmp_path):
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path))
    backbone = MockBackbone(Grid(6, 8))
    monkeypatch.setattr(Backbone, "estimates", Estimates.stored_in(tmp_path))
    asked = requested(backbone, None, methods.Exact(), Sampling(1), "a sun")
    known, = backbone.estimates.step_times.entries.values()
    assert known.rest > 0 and asked.tuning.cost.rest == known.rest / 1000
    result = asked.run()
    step_times.note_rest(backbone, False, 1, 1, result.stats, pixels=30.0)
    moved, = Estimates.stored_in(tmp_path).step_times.entries.values()
    assert known.rest < moved.rest <= 1.06 * known.rest
