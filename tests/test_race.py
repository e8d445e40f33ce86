"""Runs side by side: fair by their own clocks, complete, and closed when nobody looks on."""

from __future__ import annotations

import time

import pytest
import torch
from support.mock_backbone import MockBackbone, tokens

from ssd_core import Finished, generate, methods
from ssd_core.front.race import race, timed


def ticks(names: str, seconds: float):
    for name in names:
        time.sleep(seconds)
        yield name


def test_the_one_behind_moves_next():
    """Of steps that take four and a half times as long, one comes for every five of the others."""
    order = [panel for panel, *_ in race([ticks("abc", 0.09), ticks("abcdefgh", 0.02)])]
    assert order.count(0) == 3 and order.count(1) == 8
    assert order[0] == 0 and 3 <= order.index(0, 1) - 1 <= 5


def test_time_spent_outside_is_not_counted():
    clocks = []
    for seconds, _ in timed(ticks("abc", 0.01)):
        clocks.append(seconds)
        time.sleep(0.05)
    assert 0.03 <= clocks[-1] < 0.1


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
            yield from ticks("abc", 0)
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
            yield from ticks("abcdef", 0.01)
        finally:
            closed.append("good")

    def bad():
        yield "a"
        raise ValueError

    with pytest.raises(ValueError):
        list(race([good(), bad()]))
    assert closed == ["good"]
