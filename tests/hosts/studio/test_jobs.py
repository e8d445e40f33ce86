"""The queue: order, cancelling, pausing, faults, late questions."""

from __future__ import annotations

import threading
import time

import pytest

from ssd_core import SSDError
from studio import jobs
from studio.jobs import Cancelled


class Gate:
    """A work that runs until it is let through, or cancelled."""

    def __init__(self):
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self, job):
        self.begun.set()
        while not self.open.wait(0.002):
            job.check()
        return "through"


@pytest.fixture
def gate():
    return Gate()


def occupied(worker, gate, owner="first"):
    job = worker.submit("gate", gate, owner)
    assert gate.begun.wait(5)
    return job


def test_jobs_run_one_at_a_time_in_the_order_they_came(worker):
    running, seen = [], []

    def work(name):
        def run(job):
            running.append(name)
            assert len(running) == 1
            seen.append(name)
            running.remove(name)
            return name
        return run

    submitted = [worker.submit(str(n), work(n)) for n in range(20)]
    assert all(job.wait(5) for job in submitted)
    assert seen == list(range(20)) and [job.result for job in submitted] == seen


def test_a_visitor_who_waits_is_told_the_position(worker, gate):
    first = occupied(worker, gate)
    waiting = [worker.submit("next", lambda job: None) for _ in range(3)]
    assert [worker.position(job) for job in (first, *waiting)] == [0, 1, 2, 3]
    waiting[0].cancel()
    assert [worker.feed(job.id)["position"] for job in waiting] == [0, 1, 2]
    gate.open.set()
    assert waiting[2].wait(5) and worker.position(waiting[2]) == 0


def test_visitors_take_turns_and_the_jobs_of_each_keep_their_order(worker, gate):
    occupied(worker, gate)
    ran = []
    jobs = [worker.submit(name, lambda job: ran.append(job.title), owner=name[0])
            for name in ("a1", "a2", "a3", "b1", "b2", "c1")]
    told = sorted(jobs, key=worker.position)
    gate.open.set()
    assert all(job.wait(5) for job in jobs)
    assert ran == [job.title for job in told] == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_waiting_job_that_is_cancelled_never_runs(worker, gate):
    occupied(worker, gate)
    ran = []
    job = worker.submit("never", ran.append)
    job.cancel()
    assert job.state == "cancelled" and job.over
    gate.open.set()
    worker.submit("after", lambda job: None).wait(5)
    assert not ran and job.state == "cancelled"


def test_a_running_job_ends_when_it_next_looks_and_keeps_what_it_left(worker):
    begun = threading.Event()

    def work(job):
        job.result = "half"
        begun.set()
        while True:
            job.check()

    job = worker.submit("long", work)
    assert begun.wait(5)
    job.cancel()
    assert job.wait(5) and job.state == "cancelled" and job.result == "half"


def test_cancelling_what_is_over_changes_nothing(worker):
    job = worker.submit("quick", lambda job: "result")
    assert job.wait(5)
    job.cancel()
    assert job.state == "done" and not job.cancelled


def test_a_visitor_finds_his_own_jobs_again_until_they_are_forgotten(worker, gate):
    mine = occupied(worker, gate, "me")
    other, late = (worker.submit("draw", lambda job: None, o, "7") for o in ("you", "me"))
    assert worker.of("me", "draw") == [late] and late.tag == "7"
    assert worker.of("me", mine.title, "draw") == [mine, late]
    worker.forget(mine, late)
    assert worker.of("me", mine.title, "draw") == [mine, late], "they are not over"
    gate.open.set()
    assert late.wait(5)
    worker.forget(mine, late)
    assert worker.of("me", mine.title, "draw") == [] and worker.of("you", "draw") == [other]


def test_what_is_parked_is_freed_when_its_page_has_been_away_for_too_long(worker, monkeypatch):
    freed = []
    job = paused(worker, freed, "me")
    assert not job.forsaken
    monkeypatch.setattr(jobs, "GRACE_SECONDS", 0.2)
    time.sleep(0.3)
    assert job.forsaken
    worker.feed(job.id)
    assert not job.forsaken, "a page asks about it"
    time.sleep(0.3)
    assert worker.submit("next", lambda job: None).wait(5)
    assert job.wait(5) and job.state == "cancelled" and freed == [job.id]


def raising(error):
    def work(job):
        raise error
    return work


def test_what_the_user_got_wrong_is_one_line_and_the_queue_goes_on(worker, caplog):
    job = worker.submit("wrong", raising(SSDError("k_h 0: must be at least 1")))
    assert job.wait(5) and (job.state, job.error) == ("failed", "k_h 0: must be at least 1")
    assert worker.last_error == job.error and not caplog.records
    assert worker.submit("next", lambda job: 1).wait(5)


def test_a_fault_of_ours_is_logged_whole_and_told_in_one_line(worker, caplog):
    job = worker.submit("fault", raising(KeyError("first\nsecond")))
    assert job.wait(5) and job.state == "failed"
    assert "an error in this program: KeyError" in job.error and "\n" not in job.error
    assert "Traceback" in caplog.text
    assert worker.submit("next", lambda job: 1).wait(5)


def test_a_feed_tells_each_message_once_and_the_end_after_the_last(worker, gate):
    job = worker.submit("telling", lambda job: [job.tell({"n": n}) for n in range(5)] and gate(job))
    assert gate.begun.wait(5)
    first = worker.feed(job.id, 0)
    assert first["state"] == "running" and [m["n"] for m in first["messages"]] == [0, 1, 2, 3, 4]
    assert worker.feed(job.id, first["next"])["messages"] == []
    gate.open.set()
    assert job.wait(5)
    last = worker.feed(job.id, 3)
    assert last["state"] == "done" and [m["n"] for m in last["messages"]] == [3, 4]


@pytest.mark.parametrize("after", [-5, 0, 10**9])
def test_a_feed_from_anywhere_is_answered(worker, after):
    job = worker.submit("telling", lambda job: job.tell({"n": 1}))
    assert job.wait(5)
    told = worker.feed(job.id, after)
    assert told["next"] == max(1, after) and len(told["messages"]) == (after <= 0)


def test_an_unknown_job_is_gone(worker):
    assert worker.job("nothing") is None and worker.feed("nothing", 3) == {
        "state": "gone", "position": 0, "messages": [], "next": 3, "error": None, "progress": 0.0,
        "seconds_left": None}


def test_ended_jobs_are_forgotten_by_number(worker, monkeypatch):
    monkeypatch.setattr(jobs, "KEPT_JOBS", 3)
    ended = [worker.submit(str(n), lambda job: None) for n in range(6)]
    assert all(job.wait(5) for job in ended)
    worker.submit("one more", lambda job: None).wait(5)
    assert [worker.job(job.id) is None for job in ended] == [True] * 3 + [False] * 3


def test_ended_jobs_are_forgotten_by_age_but_not_those_that_run(worker, gate, monkeypatch):
    ended = worker.submit("ended", lambda job: None)
    assert ended.wait(5)
    running = occupied(worker, gate)
    monkeypatch.setattr(jobs, "KEPT_SECONDS", -1.0)
    worker.submit("one more", lambda job: None)
    assert worker.job(ended.id) is None and worker.job(running.id) is running


def paused(worker, freed, owner=""):
    job = worker.submit("pausing", lambda job: job.pause(lambda: freed.append(job.id)), owner)
    assert job.wait(5) and job.state == "paused" and job.over
    return job


def test_a_paused_job_that_is_cancelled_frees_what_it_parked_once(worker):
    freed = []
    job = paused(worker, freed, "me")
    job.cancel()
    job.cancel()
    assert job.state == "cancelled" and freed == [job.id] and not job.hand_over()
    assert job.freed and not job.seconds_parked


def test_a_paused_job_hands_over_once_and_frees_nothing(worker):
    freed = []
    job = paused(worker, freed)
    assert job.hand_over() and not job.hand_over()
    job.cancel()
    assert job.state == "done" and not freed and not job.freed


def test_what_is_parked_can_be_spared(worker, gate):
    freed = []
    job, runs = paused(worker, freed), occupied(worker, gate)
    for one in (job, runs):
        one.cancel(parked=False)
    assert runs.wait(5) and runs.state == "cancelled"
    assert job.state == "paused" and not freed and not job.cancelled


def test_a_job_cancelled_while_it_pauses_is_freed(worker):
    freed = []

    def work(job):
        job.cancel()
        job.pause(lambda: freed.append("it"))

    job = worker.submit("both", work)
    assert job.wait(5) and job.state == "cancelled" and freed == ["it"]


def test_paused_jobs_are_not_forgotten(worker, monkeypatch):
    monkeypatch.setattr(jobs, "KEPT_SECONDS", -1.0)
    job = paused(worker, [])
    worker.submit("one more", lambda job: None)
    assert worker.job(job.id) is job


def test_what_nobody_goes_on_with_is_freed_in_the_end(monkeypatch):
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.01)
    worker, freed = jobs.Worker(), []
    job = paused(worker, freed)
    assert not freed
    monkeypatch.setattr(jobs, "PARKED_SECONDS", 0.0)
    with job._resting:
        assert job._resting.wait_for(lambda: job.state == "cancelled", 5)
    worker.close()
    assert freed == [job.id] and job.freed


def test_closing_ends_what_runs_and_what_waits_and_takes_nothing_new(worker, gate):
    running = occupied(worker, gate)
    waiting = worker.submit("waiting", lambda job: None)
    worker.close()
    assert running.state == waiting.state == "cancelled"
    with pytest.raises(SSDError, match="closing"):
        worker.submit("late", lambda job: None)


def test_a_work_may_raise_cancelled_by_itself(worker):
    job = worker.submit("gives up", raising(Cancelled()))
    assert job.wait(5) and job.state == "cancelled" and job.error is None


def test_seconds_stand_still_when_a_job_is_over(worker):
    job = worker.submit("quick", lambda job: None)
    assert job.wait(5)
    assert job.seconds == job.seconds < 5


def test_idle_is_told_when_nothing_waits_any_more():
    told, gate = threading.Event(), threading.Event()
    worker = jobs.Worker(idle=told.set)
    first = worker.submit("a", lambda job: gate.wait(10))
    second = worker.submit("b", lambda job: told.is_set())
    gate.set()
    assert second.wait(10) and first.state == "done"
    assert second.result is False, "b was waiting when a ended"
    assert told.wait(10)
    worker.close()


class Panic(BaseException):
    """As Rust's, which libraries raise into Python."""


@pytest.mark.parametrize("error", [Panic, SystemExit, KeyboardInterrupt, GeneratorExit,
                                   MemoryError, RecursionError])
def test_whatever_a_job_raises_it_fails_in_one_line_and_the_next_runs(worker, error):
    def work(job):
        raise error("out of\nluck")

    failed, after = worker.submit("bad", work), worker.submit("good", lambda job: 7)
    assert after.wait(5) and after.result == 7
    assert failed.state == "failed" and f"{error.__name__}: out of;" in failed.error


def test_a_thread_that_ends_is_replaced_and_its_job_fails(worker, gate, monkeypatch):
    dying, first = occupied(worker, gate), worker._thread
    waiting = worker.submit("next", lambda job: 7)

    def end(job, work):
        monkeypatch.undo()
        raise Panic("gone")

    monkeypatch.setattr(worker, "_do", end)
    gate.open.set()
    last = worker.submit("last", lambda job: 8)
    assert last.wait(5) and last.result == 8 and dying.result == "through"
    assert waiting.state == "failed" and "Panic: gone" in waiting.error
    assert "Panic" in worker.last_error and worker._thread is not first
