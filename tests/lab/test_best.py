"""Best against best: on a fake clock, no slower setting of AR can become the baseline."""

from itertools import permutations

import pytest
import torch
from support.mock_backbone import MockBackbone
from support.requests import requested

from ssd_core import Grid, Sampling
from ssd_core.engine.events import Finished
from ssd_core.engine.methods import AR, Rows
from ssd_core.engine.threads import using_threads
from ssd_core.measure.bench import (
    Entrant,
    Setting,
    bench,
    fastest,
    settings,
    take_turns,
    thread_counts,
)
from ssd_core.measure.machine import OtherWork
from ssd_core.runs.request import Request
from ssd_core.weights.model_size import stored_dtype

CPU = torch.device("cpu")
THREADS, DTYPES = (1, 2), ("fp32", "bf16", "fp16")
BACKBONES = {name: MockBackbone(Grid(10, 10)).to(dtype)
             for name, dtype in zip(DTYPES, (torch.float32, torch.bfloat16, torch.float16),
                                    strict=True)}
SLOW = 40.0


class Machine:
    """A clock that runs only in runs; seconds: {(method, dtype, threads): of a run}."""

    def __init__(self, monkeypatch, seconds, default=SLOW):
        self.now, self.runs, self.seconds, self.default = 0.0, [], seconds, default
        monkeypatch.setattr(Request, "events", lambda request: self.events(request))

    def clock(self):
        return self.now

    def events(self, request):
        method, dtype = request.method.name, stored_dtype(request.backbone)
        setting = method, dtype, torch.get_num_threads()
        self.runs.append(setting)
        self.now += self.seconds.get(setting, self.default)
        yield Finished(torch.zeros(1), {
            "passes": 100 if method == "ar" else 10, "acceptance": {},
            "step_acceleration": 1 if method == "ar" else 10, "seconds": {"total": self.now}})

    def bench(self, entrants, **options):
        return bench(entrants, counts=THREADS, clock=self.clock, **options)


def entrant(method, dtype="fp32", label=None):
    return Entrant(label or method.name, requested(BACKBONES[dtype], None, method, Sampling(), "a"))


SETTINGS = [(dtype, threads) for dtype in DTYPES for threads in THREADS]


@pytest.mark.parametrize("best", SETTINGS)
def test_a_slower_setting_of_ar_cannot_become_the_baseline(monkeypatch, best):
    """Whichever setting is the fastest, wherever it stands among the others."""
    seconds = {("ar", *setting): SLOW for setting in SETTINGS} | {("ar", *best): 4.0}
    machine = Machine(monkeypatch, {**seconds, ("rows", "fp32", 1): 8.0, ("rows", "fp32", 2): 2.0})
    rows = machine.bench([entrant(Rows()), *(entrant(AR(), dtype) for dtype in DTYPES[1:])])
    method = next(row for row in rows if row["method"] == "rows")
    assert method["ratio_to_ar"] == 4.0 / 2.0
    assert method["ratio_in_dtype"] == (4.0 if best[0] == "fp32" else SLOW) / 2.0
    assert max(row["ratio_to_ar"] for row in rows if row["method"] == "ar") == 1.0


@pytest.mark.parametrize("order", list(permutations((3.0, 5.0, 7.0))))
def test_ar_counts_with_the_fastest_of_several_rows(monkeypatch, order):
    """Also if it was asked for under several labels in one dtype."""
    taken = iter(order)
    machine = Machine(monkeypatch, {})
    machine.seconds = {}
    monkeypatch.setattr(Request, "events", lambda request: timed(request))

    def timed(request):
        machine.default = 1.0 if isinstance(request.method, Rows) else next(taken)
        return machine.events(request)

    rows = bench([*(entrant(AR(), label=f"ar {n}") for n in range(3)), entrant(Rows())],
                 repeats=1, warmup=0, counts=(1,), clock=machine.clock)
    assert rows[-1]["ratio_to_ar"] == rows[-1]["ratio_in_dtype"] == 3.0


def test_a_method_counts_with_its_own_best_setting_and_the_row_says_which(monkeypatch):
    machine = Machine(monkeypatch, {("ar", "fp32", 1): 3.0, ("rows", "fp32", 2): 1.5})
    ar, rows = machine.bench([entrant(Rows())])
    assert (ar["threads"], ar["median_seconds"], ar["ratio_to_ar"]) == (1, 3.0, 1.0)
    assert (rows["threads"], rows["median_seconds"], rows["ratio_to_ar"]) == (2, 1.5, 2.0)
    assert rows["seconds_by_threads"] == {1: SLOW, 2: 1.5}
    assert ar["dtype"] == rows["dtype"] == "fp32" and rows["seconds_per_pass"] == 0.15
    assert rows["tokens_per_second"] == pytest.approx(100 / 1.5)


def test_every_setting_of_every_method_takes_its_turn(monkeypatch):
    machine = Machine(monkeypatch, {}, 1.0)
    beside = Setting("plain", "fp32", 1, lambda: machine.runs.append("plain") or {})
    machine.bench([entrant(Rows()), entrant(AR(), "bf16")], repeats=2, warmup=1, beside=[beside])
    turn = [(method, dtype, threads) for method, dtype in
            (("ar", "fp32"), ("rows", "fp32"), ("ar", "bf16")) for threads in THREADS]
    assert machine.runs == [*turn, "plain"] * 3
    assert len(beside.seconds) == len(beside.outcomes) == 2


def test_the_median_of_the_measured_runs_counts_and_warm_up_does_not():
    now = iter([0, 100, 100, 101, 101, 110, 110, 112])  # 100 s, then 1, 9 and 2
    one = Setting("one", "fp32", 1, dict)
    take_turns([one], repeats=3, warmup=1, clock=lambda: next(now))
    assert one.seconds == [1, 9, 2] and one.median == 2
    assert str(one) == "fp32, 1 thread"


@pytest.mark.parametrize("order", list(permutations((1.0, 2.0, 3.0))))
def test_the_fastest_is_that_with_the_least_median(order):
    timed = settings("one", "fp32", (1, 2, 3), dict)
    for one, seconds in zip(timed, order, strict=True):
        one.seconds.append(seconds)
    assert fastest(timed).median == 1.0


def test_threads_are_set_for_a_run_and_restored_when_it_raises():
    before = torch.get_num_threads()
    with using_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    with pytest.raises(ZeroDivisionError), using_threads(before + 1):
        1 / 0  # noqa: B018
    assert torch.get_num_threads() == before
    with using_threads(None):
        assert torch.get_num_threads() == before


def test_a_cpu_is_tried_with_one_thread_and_with_all_and_a_card_as_it_is():
    with using_threads(3):
        assert thread_counts(CPU) == (1, 3)
        assert thread_counts(torch.device("cuda")) == (3,)
    with using_threads(1):
        assert thread_counts(CPU) == (1,)


@pytest.mark.parametrize(("busy", "own", "words"), [
    (2.0, 2.0, "idle"), (3.0, 2.5, "idle"), (5.0, 1.0, "busy (load 1.0)"), (1.0, 2.0, "idle")])
def test_other_programs_make_a_machine_busy_and_this_one_does_not(monkeypatch, busy, own, words):
    """Over two seconds on two cores."""
    moments = iter([(0.0, 0.0, 0.0), (2.0, busy, own)])
    monkeypatch.setattr(OtherWork, "now", staticmethod(lambda: next(moments)))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert OtherWork().words() == words


def test_where_the_system_does_not_tell_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr("ssd_core.measure.machine.busy_seconds", lambda: None)
    assert OtherWork().words() == "unknown load"
