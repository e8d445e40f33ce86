"""A run in progress: result and preview follow it, it may pause, and it ends in order."""

from __future__ import annotations

import pytest
import torch
from support.mock_backbone import MockBackbone
from support.requests import requested

from ssd_core import Grid, Sampling, methods
from ssd_core.engine.events import FinalRows
from ssd_core.output import preview as preview_module
from ssd_core.runs.live import LiveRun

GRID = Grid(4, 5)


class Painter(MockBackbone):
    """Every code is a shade of grey, one pixel a cell."""

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        return (tokens.float() / (self.codes - 1))[..., None].expand(-1, -1, -1, 3)


@pytest.fixture(autouse=True)
def every_message(monkeypatch):
    monkeypatch.setattr(preview_module, "BUDGET", 1e6)


def live(**options) -> LiveRun:
    return LiveRun(requested(Painter(GRID), None, methods.AR(), Sampling(3), "a sun"), **options)


def until_row(run: LiveRun, row: int) -> None:
    for event in run:
        if isinstance(event, FinalRows) and event.last >= row:
            return


def test_a_paused_run_goes_on_where_it_stopped_and_speaks_to_whom_it_is_told():
    before, after = [], []
    run = live(send=before.append, panel=2)
    until_row(run, 2)
    assert run.result.rows == 2 and run.result.stopped_rows == 2 and run.seconds > 0
    run.send = after.append
    for _ in run:
        pass
    run.finish(next(run.result.pictures()).pixels[None])
    assert torch.equal(run.result.tokens, run.request.run().tokens)
    assert before[0]["kind"] == "started" and after[-1]["kind"] == "finished"
    assert max(message["last"] for message in before if message["kind"] == "rows") == 2
    assert {message["panel"] for message in before + after} == {2}


def test_a_run_without_preview_has_a_result():
    run = live()
    for _ in run:
        pass
    run.finish(None)
    run.cancel("failed")
    assert run.result.finished and run.preview is None


def test_a_run_that_stopped_early_is_shown_as_paused():
    messages = []
    run = live(send=messages.append)
    until_row(run, 1)
    run.finish(None)
    assert messages[-1]["kind"] == "cancelled" and messages[-1]["reason"] == "paused"


def test_a_cancelled_run_ends_and_says_why_once():
    messages = []
    run = live(send=messages.append)
    until_row(run, 1)
    run.cancel("interrupted")
    run.cancel("failed")
    assert list(run) == []
    assert [m["reason"] for m in messages if m["kind"] == "cancelled"] == ["interrupted"]


def test_rows_count_though_showing_them_was_interrupted():
    """A host's sender may raise an interrupt; the rows that were final can still be saved."""
    def send(message):
        if message["kind"] == "rows":
            raise KeyboardInterrupt

    run = live(send=send)
    with pytest.raises(KeyboardInterrupt):
        until_row(run, 4)
    assert run.result.rows == 1


def test_an_interrupted_result_has_the_rows_that_were_final():
    def stop(event):
        if isinstance(event, FinalRows) and event.last == 3:
            raise KeyboardInterrupt

    result = live().result
    with pytest.raises(KeyboardInterrupt):
        result.run(stop)
    assert result.stopped_rows == 3 and result.seconds > 0
