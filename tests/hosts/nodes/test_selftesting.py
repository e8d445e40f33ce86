"""The nodes' quick self-test waits until nothing has been queued for a while."""

from types import SimpleNamespace


def test_it_runs_once_in_a_quiet_moment(pack, monkeypatch):
    selftesting = pack.module("nodes.selftesting")
    suite = pack.module("ssd_core.selftest.suite")
    queue = SimpleNamespace(get_tasks_remaining=lambda: next(queued, 0))
    monkeypatch.setattr(selftesting, "PromptServer",
                        SimpleNamespace(instance=SimpleNamespace(prompt_queue=queue)))
    slept, tested, queued = [], [], iter([0, 1])
    monkeypatch.setattr(selftesting.time, "sleep", slept.append)
    selftesting.after_a_run("bf16")
    assert not selftesting.waiting.cache_info().currsize, "the tests switch it off"
    monkeypatch.setattr(suite, "is_due", lambda device: not tested)
    monkeypatch.setattr(suite, "run_if_due",
                        lambda device, dtype, wanted: tested.append((dtype, wanted())))
    selftesting.after_a_run("bf16")
    selftesting.waiting("bf16").join(10)
    assert tested == [("bf16", True)]
    assert sum(slept) == 2 + selftesting.QUIET, "it counts again after something was queued"
