"""Runs side by side: fair by their own clocks, complete, and closed when nobody looks on."""

from __future__ import annotations

import pytest
import torch
from support.mock_backbone import MockBackbone, tokens

from ssd_core import Finished, generate, methods
from ssd_core.runs.scheduling import in_turn, race, timed


class Clock:
    """Time that passes only where a test lets it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def ticks(clock, names: str, seconds: float):
    for name in names:
        clock.now += seconds
        yield name


def test_the_one_behind_moves_next(clock):
    """Of steps that take four and a half times as long, one comes for every five of the others."""
    runs = [ticks(clock, "abc", 9), ticks(clock, "abcdefgh", 2)]
    order = [panel for panel, *_ in race(runs, clock)]
    assert order == [0, *[1] * 5, 0, *[1] * 3, 0]


def test_in_turn_all_start_and_then_each_goes_to_its_end(clock):
    runs = [ticks(clock, "abc", 9), ticks(clock, "xy", 2), ticks(clock, "", 1)]
    told = list(in_turn(runs, clock))
    assert told == [(0, 9, "a"), (1, 2, "x"), (0, 18, "b"), (0, 27, "c"), (1, 4, "y")]


def test_in_turn_closes_all_runs_when_nobody_looks_on(clock):
    runs = [ticks(clock, "abc", 9), ticks(clock, "xy", 2)]
    steps = in_turn(runs, clock)
    next(steps)
    steps.close()
    assert [list(run) for run in runs] == [[], []]


def test_time_spent_outside_is_not_counted(clock):
    clocks = []
    for seconds, _ in timed(ticks(clock, "abc", 1), clock):
        clocks.append(seconds)
        clock.now += 5
    assert clocks == [1, 2, 3]


def test_racers_draw_what_they_draw_alone():
    backbone = MockBackbone()
    entries = [methods.AR(), methods.Exact()]
    ends = {panel: event.tokens for panel, _, event in race(
        [generate(backbone, "sun", method) for method in entries]) if isinstance(event, Finished)}
    for panel, method in enumerate(entries):
        assert torch.equal(ends[panel], tokens(backbone, method, ["sun"]))


def test_whoever_stops_looking_ends_all_runs():
    closed = []

    def run(name):
        try:
            yield from "abc"
        finally:
            closed.append(name)

    watched = race([run("left"), run("right")])
    next(watched), next(watched)
    watched.close()
    assert sorted(closed) == ["left", "right"]


def test_an_error_in_one_closes_the_other():
    closed = []

    def good():
        try:
            yield from "abcdef"
        finally:
            closed.append("good")

    def bad():
        yield "a"
        raise ValueError

    with pytest.raises(ValueError):
        list(race([good(), bad()]))
    assert closed == ["good"]
