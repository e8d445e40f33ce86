"""Milliseconds of a pass: measured by a made clock, kept, filled from runs and forgotten."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from support.mock_backbone import MockBackbone
from support.rehearsal import Rehearsal, clearing
from support.requests import requested

from ssd_core import Grid, Sampling, kept_files, methods, openmp
from ssd_core.backbones.base import Backbone, Preset
from ssd_core.backbones.estimates import DOWN, STEP, UP, Estimates, StepTimes, StoredStepTimes
from ssd_core.engine import step_times, threads
from ssd_core.engine.graphs import GraphRunner
from ssd_core.engine.step_times import timed
from ssd_core.runs.request import Result

KNOWN = StepTimes({1: {1: 1.0, 8: 4.0, 24: 12.0}, 4: {1: 2.0, 8: 2.0, 24: 6.0}})


@pytest.fixture
def record(monkeypatch, tmp_path):
    """The step times of this process, kept in a folder, as if nothing was switched off."""
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path))
    monkeypatch.setattr(step_times, "free_now", lambda most: most)
    monkeypatch.setattr(Backbone, "estimates", Estimates(step_times=StoredStepTimes(tmp_path)))
    return Backbone.estimates.step_times


@pytest.mark.parametrize(("cells", "count", "ms"), [
    (8, 1, 4.0), (16, 1, 8.0), (48, 1, 24.0), (4, 4, 2.0), (48, 4, 12.0), (8, 8, None),
    (8, 2, 4.0 - 2.0 * 2 / 3)])
def test_between_known_passes_it_lies_on_a_line(cells, count, ms):
    told = KNOWN.of(cells, count)
    assert told == (None if ms is None else pytest.approx(ms))


def test_a_single_known_width_tells_of_no_other():
    assert StepTimes({1: {8: 4.0}}).of(8, 1) == 4.0
    assert StepTimes({1: {8: 4.0}}).of(9, 1) is None and StepTimes().best(1, 1) is None
    assert StepTimes({1: {8: 4.0, 16: 5.0}}).of(1, 1) is None


def test_one_thread_or_all_whichever_is_faster():
    assert KNOWN.best(1, 4) == (1.0, 1) and KNOWN.best(24, 4) == (6.0, 4)
    assert KNOWN.best(24, 1) == (12.0, 1)


def passes(ms_of, taken):
    def one(cells):
        taken.append((torch.get_num_threads(), cells))
        return ms_of(cells)
    return one


def test_widths_are_timed_in_turn_until_time_is_up(monkeypatch):
    monkeypatch.setattr(step_times, "free_now", lambda most: most)
    before, taken = torch.get_num_threads(), []
    told = timed(passes(lambda cells: 2.0 * cells, taken), (1, 8, 16), (1, 2), limit=60)
    assert told == StepTimes({count: {1: 2.0, 8: 16.0, 16: 32.0} for count in (1, 2)})
    assert taken[0] == (1, 1) and (2, 1) in taken and torch.get_num_threads() == before
    short = timed(passes(lambda cells: 2.0 * cells, []), (1, 8, 16), (1, 2), limit=0.02)
    assert short == StepTimes({count: {1: 2.0} for count in (1, 2)})


def test_memory_is_warm_before_passes_are_timed():
    taken = []
    step_times.warm_up(passes(lambda cells: 40.0 * cells, taken), (1, 2, 8, 16))
    assert [cells for _, cells in taken] == [1, 2]  # 0.12 s


def test_a_slow_pass_among_a_few_does_not_count(monkeypatch):
    monkeypatch.setattr(step_times, "free_now", lambda most: most)
    times = iter([90.0, 20.0, 60.0])  # the first pass warms up, work beside us delays the last
    assert timed(lambda cells: next(times), (8,), (1,), limit=60).ms == {1: {8: 20.0}}


def test_all_threads_are_not_timed_while_others_compute(monkeypatch):
    monkeypatch.setattr(step_times, "free_now", lambda most: 1)
    taken = []
    assert set(timed(passes(float, taken), (1, 8), (1, 2), limit=60).ms) == {1}
    assert {count for count, _ in taken} == {1}


def test_a_record_survives_the_process(tmp_path, record):
    both = replace(KNOWN, replays={1: 0.5}, captures={1: 9.0})
    record.put("a", KNOWN)
    record.put("b", both)
    assert StoredStepTimes(tmp_path).entries == {"a": KNOWN, "b": both}


@pytest.mark.parametrize("text", ["", "[]", '{"a": 3}', '{"a": {"x": {"1": 2}}}',
                                  '{"a": {"ms": {"1": {"1": -2}}, "replays": {}, "captures": {}}}',
                                  '{"a": {"ms": {}, "replays": {"1": NaN}, "captures": {}}}'])
def test_an_unreadable_record_counts_as_empty(tmp_path, text):
    (tmp_path / StoredStepTimes.file).write_text(text)
    assert StoredStepTimes(tmp_path).entries == {}


def test_runs_fill_gaps_and_move_all_figures_a_little(record):
    record.note("a", 1, 24, 100.0)
    assert record.entries["a"].of(24, 1) == 100.0
    record.put("a", StepTimes({1: {1: 10.0, 24: 100.0}}))
    record.note("a", 1, 24, 500.0)  # another program took the cores, presumably
    assert record.entries["a"].ms == {1: {1: 10.0 * UP, 24: 100.0 * UP}}
    record.note("a", 1, 24, 20.0)
    assert record.entries["a"].of(1, 1) == pytest.approx(10.0 * UP / DOWN)
    for _ in range(60):
        record.note("a", 1, 24, 300.0)
    assert record.entries["a"].of(24, 1) == pytest.approx(300.0), "it is so in the long run"


def test_a_replayed_run_moves_replays_and_their_captures(record):
    record.put("a", StepTimes({1: {24: 100.0}}, {24: 5.0}, {24: 50.0}))
    record.note("a", 1, 24, 9.0, share=0.1)
    moved = record.entries["a"]
    assert moved.ms == {1: {24: 100.0}} and moved.replays[24] / 5 == moved.captures[24] / 50 < 1
    record.entries.clear()
    record.note("a", 1, 24, 10.0, share=0.1)
    assert record.entries == {}, "a run alone does not tell replays from captures"


def test_the_least_of_several_timings_counts_and_none_is_believed_to_jump():
    first = StepTimes().timed_again(StepTimes({1: {1: 10.0, 24: 90.0}}, rest=50.0))
    slower = first.timed_again(StepTimes({1: {1: 30.0, 24: 300.0}}, rest=90.0))
    assert (slower.ms, slower.rest) == (first.ms, 50.0)
    assert slower.separate == [replace(slower, ms=each, timings=[]) for each in slower.timings]
    quicker = first.timed_again(StepTimes({1: {1: 9.0, 24: 30.0}, 2: {1: 2.0}}))
    assert quicker.ms == {1: {1: 9.0, 24: 90.0 / STEP}, 2: {1: 10.0 / STEP}}
    disturbed = StepTimes().timed_again(StepTimes({1: {1: 70.0}}), alone=False)
    assert disturbed.timings == [{}] and disturbed.timed_again(first).timings == [first.ms]


def test_a_card_is_timed_up_to_the_whole_picture():
    assert step_times.widths_of(576, "cuda")[-2:] == [384, 576]
    assert step_times.widths_of(8190, "cuda")[-2:] == [3072, 8190]
    assert step_times.widths_of(576, "cpu")[-1] == 96


def test_replays_are_timed_after_their_capture():
    times = {8: [30.0, 50.0, 2.0, 2.0, 9.0, *[2.0] * 9], 16: [40.0, 60.0, *[4.0] * 9],
             24: [torch.OutOfMemoryError()], 48: [1.0]}

    def one(cells):
        taken = times[cells].pop(0)
        if isinstance(taken, Exception):
            raise taken
        return taken

    replays, captures = step_times.replays_of(one, (8, 16, 24, 48), 60, lambda: False)
    assert replays == {8: 2.0, 16: 4.0} and captures == {8: 76.0, 16: 92.0}
    assert times[48] == [1.0], "wider passes need even more memory"
    assert step_times.replays_of(lambda cells: 1.0, (1, 8), 60, lambda: True) == ({}, {})


def test_passes_without_memory_are_left_out(monkeypatch):
    monkeypatch.setattr(step_times, "free_now", lambda most: most)

    def one(cells):
        if cells > 8:
            raise torch.OutOfMemoryError
        return 1.0

    assert timed(one, (1, 8, 16), (1,), 60) == StepTimes({1: {1: 1.0, 8: 1.0}})


def with_recorder(monkeypatch, recorder):
    """Graphs on this CPU, by a recorder."""
    monkeypatch.setattr(step_times, "graphs_off_reason_of", lambda *_: "")
    monkeypatch.setattr(step_times, "runner", lambda backbone: GraphRunner(recorder))


def test_where_graphs_are_both_ways_are_timed(record, monkeypatch):
    with_recorder(monkeypatch, Rehearsal())
    monkeypatch.setattr(step_times, "measured", partial(step_times.measured,
                                                        limit=60))  # on busy cores, too
    found = step_times.step_times_of(backbone(), 2, 1)
    assert found.replays.keys() == found.captures.keys() == found.ms[1].keys()
    assert min(found.captures.values()) > 0
    monkeypatch.undo()
    assert " with graphs" not in step_times.key_of(backbone(), 2, 1, False)


def test_a_wrong_replay_leaves_the_step_times_without_graphs(record, monkeypatch):
    class Wrong(Rehearsal):
        def record(self, work):
            return clearing(work)

    with_recorder(monkeypatch, Wrong())
    with pytest.warns(RuntimeWarning, match="first replay"):
        found = step_times.measured(backbone(), 1, 1, None, (1,))
    assert found.ms and not found.replays


def backbone():
    return MockBackbone(Grid(6, 8))


def test_a_small_backbone_is_measured_once_and_kept(record, tmp_path):
    told = step_times.step_times_of(backbone(), 1, 1)
    assert told.ms.keys() == {1} and sorted(told.ms[1]) == [1, 8, 16, 24, 48]
    assert step_times.step_times_of(backbone(), 1, 1) is told
    assert list(json.loads((tmp_path / StoredStepTimes.file).read_text())) == [
        step_times.key_of(backbone(), 1, 1, False)]
    assert step_times.step_times_of(backbone(), 2, 1) is not told, "another batch has its own"


def test_nothing_is_measured_where_it_is_unwanted_or_disturbs(record, monkeypatch):
    monkeypatch.setattr(step_times, "measured", lambda *_: 1 / 0)
    nameless = backbone()
    nameless.sha256 = ""
    assert step_times.step_times_of(nameless, 1, 1) is None
    elsewhere = torch.device("meta")
    assert step_times.step_times_of(backbone(), 1, 1, device=elsewhere) is None
    with threads.under_way():
        assert step_times.step_times_of(backbone(), 1, 1) is None
    monkeypatch.setenv(kept_files.VARIABLE, "off")
    assert step_times.step_times_of(backbone(), 1, 1) is None


@pytest.mark.parametrize("cfg", [1.0, 3.0])
@pytest.mark.parametrize("branches", [1, 2])
def test_passes_are_timed_with_or_without_guidance_as_they_will_run(cfg, branches):
    own = MockBackbone(Grid(6, 8), preset=Preset(k_h=3, cfg=cfg))
    assert step_times.measured(own, 1, branches, None, (1,)).ms[1]
    assert (step_times.sampling_with(branches, own).cfg == 1) == (branches == 1)


def test_long_passes_are_not_tried(record, monkeypatch):
    monkeypatch.setattr(step_times, "READS", 1.0)
    assert step_times.measured(backbone(), 1, 1, None, (1,)) is None
    assert step_times.step_times_of(backbone().to("meta"), 1, 1) is None


def test_all_threads_are_measured_later_if_others_computed_at_first(
        record, monkeypatch, tmp_path):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(step_times, "measured", lambda *_: StepTimes({1: {1: 1.0}}))
    step_times.step_times_of(backbone(), 1, 1)
    both = StepTimes({1: {1: 1.0}, 2: {1: 2.0}})
    monkeypatch.setattr(step_times, "measured", lambda *_: both)
    assert step_times.step_times_of(backbone(), 1, 1).ms == {1: {1: 1.0}}, "not again at once"
    monkeypatch.setattr(step_times, "APART", 0)
    assert step_times.step_times_of(backbone(), 1, 1).ms == both.ms
    assert openmp.stored_measurement() == {"spinning": {"one": 1.0, "all": 2.0}}
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path / "file"))
    step_times.keep_waiting(both, 2)  # cannot be written, which is no error
    assert openmp.stored_measurement() == {}


def test_a_finished_run_tells_what_its_passes_took(record):
    request = requested(backbone(), None, methods.Exact(12), Sampling(cfg=1.0), "a sun")
    record.entries.clear()
    result = Result(request)
    for event in request.events():
        result.take(event)
    (key, told), = record.entries.items()
    assert key == step_times.key_of(backbone(), 1, 1, False) and told.ms.keys() == {1}
    assert told.of(12, 1) > 0
    stats = {**result.stats, "threads": [1, 2]}
    record.entries.clear()
    step_times.note_step_times(backbone(), methods.AR(), False, Sampling(), 1, stats)
    step_times.note_step_times(backbone(), methods.SSD(), False, Sampling(), 1, result.stats)
    assert record.entries == {}, "with two numbers of threads, or for other work, it tells nothing"
