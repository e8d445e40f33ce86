"""How often a run waits for the device: once a pass at most, and once for rows that became final.

A read stops a graphics card until all that was queued is done, and so does a tensor made of the
host's numbers. On a CPU they cost nothing, so that only a count shows them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from support.mock_backbone import MockBackbone, random_heads
from test_methods import UNDER_TEST, WORDS

from ssd_core import Grid, Sampling, generate
from ssd_core.engine.run_statistics import Stopwatch

READS = ("item", "tolist", "__int__", "__float__", "__bool__", "__index__", "cpu", "numpy")
MORE = {  # reads a pass beyond the one
    "ssd-staged": 1, "ssd-coupled-staged": 1, "ssd-fused-staged": 1,  # the first cell of a row
    "mulo": 1, "mulo-far": 1}  # how many cells to sample again


@contextmanager
def counted(monkeypatch) -> Iterator[list[str]]:
    """The names of the reads that happen meanwhile."""
    found: list[str] = []
    with monkeypatch.context() as patch:
        for name in READS:
            own = getattr(torch.Tensor, name)

            def read(self, *args, own=own, name=name, **options):
                found.append(name)
                return own(self, *args, **options)

            patch.setattr(torch.Tensor, name, read)
        make = torch.tensor
        patch.setattr(torch, "tensor", lambda *args, **options: (
            found.append("torch.tensor"), make(*args, **options))[1])
        new = torch.Tensor.new_tensor
        patch.setattr(torch.Tensor, "new_tensor", lambda *args, **options: (
            found.append("new_tensor"), new(*args, **options))[1])
        yield found


def reads_of(told: Iterator, monkeypatch) -> Iterator[tuple[object, list[str]]]:
    """Every event with the reads that led to it."""
    while True:
        with counted(monkeypatch) as found:
            event = next(told, None)
        if event is None:
            return
        yield event, found


@pytest.mark.parametrize("row_end, prompts", [(False, WORDS[:1]), (True, WORDS)],
                         ids=["plain-alone", "row-end-batch"])
@pytest.mark.parametrize("name", UNDER_TEST)
@pytest.mark.by_day(14)
def test_a_pass_waits_for_the_device_once(name, prompts, row_end, monkeypatch):
    backbone = MockBackbone(Grid(5, 6, row_end), codes=12)
    told = generate(backbone, prompts, UNDER_TEST[name], random_heads(backbone, row=True),
                    Sampling(seed=7, cfg=2.0))
    events = list(reads_of(told, monkeypatch))
    for event, found in events[3:-1]:  # not the start, and not the statistics at the end
        most = 1 + MORE.get(name, 0)
        assert len(found) <= most, f"{event}: {found}"
    assert any(found for _, found in events) or name == "ar"


class FakeEvent:
    """A moment in the queue of a card that takes a second for everything."""

    recorded = 0
    waited = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        FakeEvent.recorded += 1
        self.at = FakeEvent.recorded

    def synchronize(self) -> None:
        FakeEvent.waited += 1

    def elapsed_time(self, end: "FakeEvent") -> float:
        return 1000.0 * (end.at - self.at)


def test_a_card_s_clock_waits_only_when_it_is_read(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    clock = Stopwatch(torch.device("cuda"))
    assert clock.seconds["draft"] == 0 and not FakeEvent.waited
    for stage in ("draft", "verify", "verify"):
        clock.lap(stage)
    clock.restart()  # the consumer's second
    clock.lap("commit")
    assert not FakeEvent.waited
    assert clock.seconds == {"prefill": 0, "draft": 1, "verify": 2, "commit": 1}
    assert FakeEvent.waited == 1
