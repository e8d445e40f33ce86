"""How many threads a run takes: those that find a free core, and afterwards as before."""

import pytest
import torch
from support.mock_backbone import MockBackbone

from ssd_core import Grid, SSDError, generate, methods
from ssd_core.engine import threads
from ssd_core.engine.threads import Fixed, Threads, free_now, spare, using_threads

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr(threads, "affinity", lambda: 4)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_number_is_set_inside_and_restored_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="inside"), using_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise ValueError("inside")
    assert torch.get_num_threads() == before
    with using_threads(None):
        assert torch.get_num_threads() == before


@pytest.mark.parametrize(("found", "own", "count"), [
    (None, 1, 4), (1, 1, 4), (2, 1, 3), (5, 1, 1), (90, 1, 1), (4, 4, 4), (6, 4, 2), (1, 4, 4)])
def test_a_thread_needs_a_core_that_nobody_else_uses(found, own, count):
    assert spare(4, found, own) == count


def test_affinity_and_the_quota_of_a_container_limit_the_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 32)
    monkeypatch.setattr(threads, "affinity", lambda: 3)
    assert Threads.of(None, CPU).most == threads.most_threads() == 3
    told = tmp_path / "cgroup"
    told.write_text("1:cpu:/\n0::/a/b\n")
    for group, limit in (("a/b", "max 100000"), ("a", "250000 100000"), ("", "400000 100000")):
        (tmp_path / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / group / "cpu.max").write_text(limit)
    assert threads.quota(tmp_path, told) == 2, "the least of its groups, in whole cores"
    monkeypatch.setattr(threads, "quota", lambda: 2)
    assert Threads.of(None, CPU).most == 2


def test_before_a_run_only_what_stays_counts_as_other_work():
    looks = iter([5, 1])
    assert free_now(4, lambda: next(looks), lambda seconds: None) == 4
    assert free_now(4, lambda: 3, lambda seconds: None) == 2


def test_a_run_gives_way_at_once_and_spreads_out_again_when_it_is_sure():
    clock, found = Clock(), [1]
    run = Threads(4, lambda: found[0], clock)
    assert run() == 4
    found[0] = 4 + 3  # its own four, and three others
    assert run() == 4, "a look costs time: not at every step"
    clock.now += 1.01 * threads.AGAIN
    assert run() == 1
    found[0] = 1
    for look in range(threads.TRUSTED):
        assert run() == 1, look
        clock.now += 1.01 * threads.AGAIN
    assert run() == 4
    assert run.used == {1, 4}


def test_one_thread_looks_at_nothing_and_a_wanted_number_is_kept(monkeypatch):
    monkeypatch.setattr(threads, "running", lambda: 1 / 0)
    with using_threads(1):
        assert isinstance(Threads.of(None, CPU), Fixed)
    assert Threads.of(3, CPU)() == 3
    assert Threads.of(None, torch.device("meta"))() is None


def test_the_running_count_is_read_where_there_is_one(tmp_path, monkeypatch):
    path = tmp_path / "loadavg"
    path.write_text("0.20 0.18 0.12 3/80 11206\n")
    monkeypatch.setattr(threads, "LOADAVG", str(path))
    assert threads.running() == 3
    path.write_text("0.20\n")
    assert threads.running() is None
    path.unlink()
    assert threads.running() is None


def events(count: int):
    return generate(MockBackbone(Grid(3, 4)), "a sun", methods.AR(), threads=count)


def test_the_caller_s_number_holds_between_events_and_after_a_cancelled_run():
    before = torch.get_num_threads()
    run = events(before + 1)
    for _ in range(3):
        next(run)
        assert torch.get_num_threads() == before
    run.close()
    assert torch.get_num_threads() == before


def test_the_number_is_restored_after_an_error_inside_the_run(monkeypatch):
    before, run = torch.get_num_threads(), events(torch.get_num_threads() + 1)
    seen = []

    def fails(self, stop):
        seen.append(torch.get_num_threads())
        raise SSDError("broken")

    monkeypatch.setattr("ssd_core.engine.state.DecodeState.feed", fails)
    with pytest.raises(SSDError, match="broken"):
        list(run)
    assert seen == [before + 1] and torch.get_num_threads() == before


def test_the_statistics_tell_the_numbers_that_were_used():
    *_, finished = events(2)
    assert finished.stats["threads"] == [2]
