"""Runs side by side: fair by their own clocks, complete, and closed when nobody looks on."""

from __future__ import annotations

import pytest
import torch
from support.mock_backbone import MockBackbone, tokens
from support.requests import requested

from ssd_core import Sampling, methods
from ssd_core.runs.live import LiveRun
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


class Ticks:
    """A run of as many steps as names, each of so many seconds."""

    def __init__(self, names: str, seconds: float):
        self.names, self.step, self.seconds, self.closed = iter(names), seconds, 0.0, False

    def __iter__(self):
        return self

    def __next__(self):
        name = next(self.names)
        if name == "!":
            raise ValueError
        self.seconds += self.step
        return name

    def close(self):
        self.closed = True


def test_the_one_behind_moves_next():
    """Of steps that take four and a half times as long, one comes for every five of the others."""
    slow, quick = Ticks("abc", 9), Ticks("abcdefgh", 2)
    order = [run for run, _ in race([slow, quick])]
    assert order == [slow, *[quick] * 5, slow, *[quick] * 3, slow]


def test_in_turn_all_start_and_then_each_goes_to_its_end():
    a, b, c = runs = [Ticks("abc", 9), Ticks("xy", 2), Ticks("", 1)]
    steps = [(run, run.seconds, name) for run, name in in_turn(runs)]
    assert steps == [(a, 9, "a"), (b, 2, "x"), (a, 18, "b"), (a, 27, "c"), (b, 4, "y")]
    assert c.closed


@pytest.mark.parametrize("order", [race, in_turn])
def test_whoever_stops_looking_ends_all_runs(order):
    runs = [Ticks("abc", 9), Ticks("xy", 2)]
    steps = order(runs)
    next(steps)
    assert not any(run.closed for run in runs)
    steps.close()
    assert all(run.closed for run in runs)


@pytest.mark.parametrize("order", [race, in_turn])
def test_an_error_in_one_closes_all(order):
    runs = [Ticks("abcdef", 1), Ticks("a!", 1)]
    with pytest.raises(ValueError):
        list(order(runs))
    assert all(run.closed for run in runs)


def test_time_spent_outside_is_not_counted(clock):
    clocks = []
    for seconds, _ in timed(ticks(clock, "abc", 1), clock):
        clocks.append(seconds)
        clock.now += 5
    assert clocks == [1, 2, 3]


def test_racers_draw_what_they_draw_alone():
    backbone = MockBackbone()
    runs = [LiveRun(requested(backbone, None, method, Sampling(), "sun", named=True))
            for method in (methods.AR(), methods.Exact())]
    for _ in race(runs):
        pass
    for run in runs:
        assert torch.equal(run.result.tokens, tokens(backbone, run.request.method, ["sun"]))
