"""The self-test finds graphs that replay, write or keep the wrong things, and switches them off.

On a CPU, recorders stand in for CUDA's: they call the work again, each with a fault of its own.
"""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard, tokens
from support.rehearsal import clearing

from ssd_core import Grid, SSDError, kept_files, load_backbone, machine_faults, methods
from ssd_core.cli import main
from ssd_core.cli import selftest as command
from ssd_core.engine import decode
from ssd_core.engine.first_replay import WrittenBuffers, checked, difference
from ssd_core.engine.graphs import GraphRunner, graphs_off_reason, graphs_off_reason_of, path_of
from ssd_core.engine.threads import under_way
from ssd_core.machine_faults import FULL, QUICK, Found, fault_of, found_on, note, note_fault
from ssd_core.model.transformer import Decoder
from ssd_core.output.guarantees import guarantee_holds
from ssd_core.runs.diagnostics import selftest_lines
from ssd_core.selftest import checks, drawing, suite
from ssd_core.selftest.drawing import Subject
from ssd_core.selftest.machine import Machine, held_bytes
from ssd_core.selftest.suite import LIMITS, RESERVE, SelfTest, is_due, run_if_due

CPU, CARD = torch.device("cpu"), torch.device("cuda")
MIB = 1 << 20


class Replays:
    """A recorder that does what it should: it calls the work again, into the same tensors."""

    pool = 0  # bytes that recorders hold
    nbytes = 0

    def warm_up(self, work):
        return work()

    def record(self, work):
        type(self).pool += 10 * MIB
        return work

    def close(self):
        type(self).pool = 0


class Stale(Replays):
    """Replays return the numbers of the capture."""

    def record(self, work):
        result = work()
        return lambda: result


class DropsInput(Replays):
    """The graph reads copies of the buffers into which its input is written."""

    def record(self, work):
        copies = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in work.args]
        return partial(work.func, *copies)


class DropsWrites(Replays):
    """Replays return the right numbers, but write none to the buffers of the run."""

    def record(self, work):
        return clearing(work)


class Raises(Replays):
    def record(self, work):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")


class Leaks(Replays):
    def close(self):
        pass


class LeaksLate(Replays):
    """Only the last of many runs leaves something behind."""

    closed = 0

    def close(self):
        type(self).closed += 1
        type(self).pool = 10 * MIB * (self.closed == 7)


class WrongLater(Replays):
    """Only the first replay computes, so that a whole picture alone shows the fault."""

    def record(self, work):
        replays = []

        def replay():
            if not replays:
                replays.append(work())
            return replays[0]

        return replay


@pytest.fixture(autouse=True)
def machine_file(monkeypatch, tmp_path):
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path))
    return tmp_path / machine_faults.FILE


def subject(device=CPU, dtype="fp32") -> Subject:
    backbone = tiny_postcard(grid=Grid(4, 4))
    return Subject(backbone, random_heads(backbone), dtype)


def selftest(recorder, level=QUICK, **options) -> SelfTest:
    recorder.pool = recorder.closed = 0
    machine = Machine(CPU, recorder, lambda: recorder.pool)
    test = SelfTest(machine, ["fp32"], level, lambda device, dtype: subject(), **options)
    list(test.findings())
    test.store()
    return test


def test_graphs_that_work_stay_on(machine_file):
    test = selftest(Replays, FULL)
    assert test.faults == {} and found_on(CPU).tested == FULL
    done = {finding.check for finding in test.done}
    for name in ("ar", "exact", "ssd", "rolling", "hawk"):
        assert {f"{name}, 1 picture, graphs", f"{name}, 2 pictures, graphs",
                *(f"{memory}{name}, 1 picture, graphs after {event}" for memory in ("", "memory: ")
                  for event in ("an interrupt", "weights were moved"))} <= done
    assert "exact, 2 pictures against ar" in done and machine_file.is_file()


@pytest.mark.parametrize(("recorder", "reason"), [
    (Stale, "the first replay of a graph differs by"),
    (DropsInput, "the first replay of a graph differs by"), (WrongLater, "differ"),
    (DropsWrites, "the first replay of a graph differs by"),
    (Raises, "a pass could not be captured: operation not permitted when stream is capturing"),
    (Leaks, "MiB more are held than after the first picture"),
    (LeaksLate, "memory: all pictures: 10 MiB more are held")])
@pytest.mark.by_day(3)
def test_a_faulty_graph_is_found_and_switched_off(recorder, reason, monkeypatch):
    monkeypatch.setattr(checks, "METHODS", (methods.AR(), methods.Exact()))
    test = selftest(recorder)
    assert list(test.faults) == ["graphs in fp32"] and reason in test.faults["graphs in fp32"]
    assert reason in fault_of("graphs in fp32", CPU) and "failed" in found_on(CPU).summary
    switched_off = [line for line in selftest_lines(CPU) if line.startswith("switched off: graphs")]
    assert len(switched_off) == 1 and reason in switched_off[0]
    assert selftest(Replays).faults == {} and fault_of("graphs in fp32", CPU) == ""


@pytest.mark.parametrize("recorder", [Stale, DropsInput, DropsWrites])
def test_a_run_begins_again_without_graphs_if_a_replay_is_wrong(recorder, monkeypatch):
    """Its events are those of a run without graphs, none of them twice."""
    backbone = MockBackbone(Grid(4, 5))
    options = {"heads": random_heads(backbone)}
    for method in (methods.AR(), methods.SSD(k_v=2, rounds=2)):
        expected = tokens(backbone, method, **options)
        monkeypatch.setattr(decode, "runner", lambda backbone: GraphRunner(recorder()))
        with pytest.warns(RuntimeWarning, match="began again without graphs"):
            run = list(decode.generate(backbone, "a sun", method, **options))
        assert run[-1].tokens.equal(expected)
        passes = [event.index for event in run if hasattr(event, "stage")]
        assert passes == list(range(1, len(passes) + 1)) and len(passes) == run[-1].stats["passes"]
        monkeypatch.undo()
    assert "first replay" in fault_of(f"graphs of {backbone.name} in fp32", CPU)
    assert fault_of("graphs in fp32", CPU) == ""


def test_the_first_replay_restores_what_the_call_reads_and_writes():
    held = torch.zeros(3)

    def work():
        held.add_(1)
        return held.clone()

    with WrittenBuffers() as written:
        work()
    assert [tensor.data_ptr() for tensor in written.tensors] == [held.data_ptr()]
    result, apart = checked(work, work, written.tensors)
    assert result.tolist() == [2, 2, 2] and held[0] == 2 and apart == 0
    assert checked(lambda: torch.zeros(3), work, written.tensors)[1] == 1 and held[0] == 3


def test_watching_writes_does_not_import_torch_s_compiler():
    """That took seconds of the first picture; torch wraps the method to do so."""
    assert not hasattr(WrittenBuffers.__torch_dispatch__, "__wrapped__")


def test_a_difference_is_a_share_of_each_vector():
    a = torch.tensor([[1.0, 1.0], [1000.0, 1000.0]])
    assert difference(a, a) == 0 and difference(a, a.clone()[:1]) == float("inf")
    assert difference(a + torch.tensor([[0.5], [0.0]]), a) == pytest.approx(0.5)
    assert difference(torch.tensor([1, 2]), torch.tensor([1, 3])) == 0.5
    assert difference(torch.ones(0, dtype=torch.long), torch.ones(0, dtype=torch.long)) == 0
    nan = torch.tensor([float("nan"), 1.0])
    assert difference(nan, nan) == 0 and difference(nan, torch.ones(2)) > 1
    assert difference(torch.ones(()), torch.zeros(())) == float("inf")
    assert difference(torch.ones(0), torch.ones(0)) == 0


def test_a_switched_off_path_is_not_taken(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", None)
    assert graphs_off_reason(CARD, dtype="bf16") == ""
    note_fault("graphs in bf16", "a reason", CARD)
    assert graphs_off_reason(CARD, dtype="bf16") == "a reason"
    assert graphs_off_reason(CARD, dtype="fp32") == ""
    backbone, other = MockBackbone(Grid(4, 5)), tiny_postcard()
    note_fault(path_of("fp32", backbone.name), "a wrong replay", CARD)
    assert graphs_off_reason_of(backbone, CARD) == "a wrong replay"
    assert graphs_off_reason_of(other, CARD) == ""
    assert guarantee_holds(tiny_postcard())
    note_fault("AR's picture in fp32", "a reason", CPU)
    assert not guarantee_holds(tiny_postcard())
    note_fault("dtype fp32", "a reason", CPU)
    with pytest.raises(SSDError, match=r"dtype fp32 is switched off.*\(a reason\): choose another"):
        load_backbone("postcard", "cpu", "fp32")
    with machine_faults.all_paths():
        load_backbone("postcard", "cpu", "fp32")


def test_an_update_tries_everything_again(monkeypatch):
    note(Found(QUICK, {"graphs in fp32": "a reason"}, "a line"), CPU)
    assert fault_of("graphs in fp32", CPU) == "a reason"
    monkeypatch.setattr(torch, "__version__", "99.0")
    assert found_on(CPU) == Found() and "not done yet" in selftest_lines(CPU)[0]


def test_an_unreadable_file_counts_as_empty_and_no_folder_as_memory(machine_file, monkeypatch):
    for text in ("", "[]", '{"a": 3}', '{"a": {"tested": "full", "faults": [], "summary": ""}}'):
        machine_file.write_text(text)
        assert found_on(CPU) == Found()
    monkeypatch.setenv(kept_files.VARIABLE, "off")
    monkeypatch.setattr(machine_faults._kept, "in_memory", {})
    note_fault("graphs in fp32", "a reason", CPU)
    assert fault_of("graphs in fp32", CPU) == "a reason"


def test_wrong_numbers_switch_a_dtype_off_and_time_ends_a_test(monkeypatch):
    def load(device, dtype):
        if dtype == "fp8":
            raise SSDError("dtype fp8 needs torchao")
        found = subject(dtype=dtype)
        if dtype == "bf16":
            found.backbone.norm.data.fill_(float("nan"))
            found.backbone.decoder.layers[0].down.data.fill_(float("nan"))
        return found

    test = SelfTest(Machine(CPU, None, lambda: 0), ["fp32", "bf16", "fp8"], load=load)
    monkeypatch.setattr(checks, "METHODS", (methods.AR(),))
    list(test.findings())
    assert list(test.faults) == ["dtype bf16"] and "overflowed" in test.faults["dtype bf16"]
    assert test.left_out == {"fp8": "dtype fp8 needs torchao"}


@pytest.mark.parametrize("pass_seconds", [0.3, 0.9, 1.9])
def test_a_quick_test_gives_up_the_picture_that_would_end_too_late(pass_seconds, monkeypatch):
    """A machine on which all 15 pictures of 16 cells would take a minute to ten minutes."""
    seconds, passes = [0.0], []

    def load(device, dtype):
        found, feed = subject(dtype=dtype), Decoder.forward

        def slow(self, *args, **options):
            seconds[0] += pass_seconds
            passes.append(seconds[0])
            return feed(self, *args, **options)

        monkeypatch.setattr(Decoder, "forward", slow)
        return found

    test = SelfTest(Machine(CPU, None, lambda: 0), ["fp32", "bf16"], QUICK, load,
                    lambda: seconds[0])
    found = len(list(test.findings()))
    assert LIMITS[QUICK] - RESERVE < passes[-1] <= LIMITS[QUICK] and test.seconds == passes[-1]
    assert test.unreached == ["fp32", "bf16"] and f"{found} checks in " in test.summary
    assert "no time for fp32, bf16" in test.summary and not test.unwanted


def test_without_graphs_pictures_are_drawn_again_too(monkeypatch):
    monkeypatch.setattr(checks, "METHODS", (methods.AR(), methods.Exact()))
    moved = []
    monkeypatch.setattr(checks, "relocate", moved.append)
    test = SelfTest(Machine(CPU, None, lambda: 0), ["fp32"], QUICK, lambda *_: subject())
    done = {finding.check: finding.path for finding in test.findings()}
    assert done["exact, 1 picture after an interrupt"] == "dtype fp32" and len(moved) == 1
    assert "exact, 1 picture after weights were moved" in done and not test.faults
    assert not any("memory" in check for check in done), "nothing could be switched off"


@pytest.mark.parametrize(("backend", "held"), [("native", 1000 + 300), ("cudaMallocAsync", 7)])
def test_held_bytes_are_tensors_and_the_pools_of_graphs(monkeypatch, backend, held):
    segments = [{"device": device, "segment_pool_id": pool, "total_size": 1000,
                 "allocated_size": 300} for device, pool in ((0, (0, 0)), (0, (0, 4)), (1, (0, 0)))]
    calls = []
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: calls.append(1))
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: backend)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 7)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert held_bytes(CARD) == held_bytes(torch.device("cuda:0")) == held and len(calls) == 4
    assert held_bytes(CPU) == 0


def test_the_command_prints_each_check_and_one_json_object(monkeypatch, capsys):
    monkeypatch.setattr(checks, "METHODS", (methods.AR(),))
    monkeypatch.setattr(command, "SelfTest",
                        partial(SelfTest, load=lambda device, dtype: subject(dtype=dtype)))
    assert main(["selftest", "--device", "cpu", "--dtypes", "int8, fp32", "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert "dtype fp32: ar, 1 picture against fp32: passed" in err
    assert [check["path"] for check in result["checks"]] == ["dtype fp32"] * 4 + ["int8 kernel"] * 4
    assert result["switched_off"] == {} and result["summary"] in err
    monkeypatch.setattr(command, "auto_dtype", lambda name, device: "int8")
    assert main(["selftest", "--device", "cpu", "--quick", "--json"]) == 0
    quick = json.loads(capsys.readouterr().out)
    assert {check["path"] for check in quick["checks"]} == {"int8 kernel"}
    assert main(["selftest", "--device", "cpu", "--dtypes", "fp9"]) == 2
    assert "dtypes 'fp9': this device offers fp32, " in capsys.readouterr().err


@pytest.fixture
def by_itself(monkeypatch):
    """Runs the quick self-test as a host does, for a card that is this CPU; only AR is checked."""
    monkeypatch.setattr(checks, "METHODS", (methods.AR(),))

    def run(dtype, wanted=lambda: True, load=lambda device, dtype: subject(dtype=dtype)):
        machine = Machine(CPU, Replays, lambda: 0)
        return run_if_due(CARD, dtype, wanted, lambda device: replace(machine, device=device), load)

    return run


def test_a_host_runs_the_quick_test_once_while_it_is_idle(by_itself, monkeypatch):
    assert all(is_due(torch.device(kind)) for kind in ("cpu", "mps", "cuda"))
    asked = iter([True] * 20 + [False])
    assert by_itself("fp32", wanted=lambda: next(asked, True)) is None and is_due(CARD), (
        "somebody wanted to draw during a picture")
    assert next(asked, None) is None, "it was asked before every pass, and not after that"
    with under_way():
        assert by_itself("fp32") is None and is_due(CARD)
    assert by_itself("fp32").faults == {}
    assert is_due(CPU) and found_on(CARD).tested == QUICK and by_itself("fp32") is None
    monkeypatch.setattr(machine_faults, "version", lambda: "99.0")
    assert is_due(CARD), "an update is tested again"
    monkeypatch.setenv(kept_files.VARIABLE, "off")
    assert not is_due(CARD)


def test_a_quick_test_that_cannot_run_is_not_repeated(by_itself):
    def fail(device, dtype):
        raise errors.pop()

    errors = [RuntimeError("out of memory\nmore"), SSDError("out of memory")]
    while errors:
        note(Found(), CARD)
        assert by_itself("int4", load=fail) is None
        assert not is_due(CARD) and found_on(CARD).summary == "ended early: out of memory"


def test_by_itself_a_cpu_draws_fewer_rows_than_a_card(monkeypatch):
    rows = []
    monkeypatch.setattr(suite, "load_bundled", lambda device, dtype, count: rows.append(count))
    for device in (CPU, CARD, torch.device("mps")):
        suite.load_short(device, "fp32")
    assert rows == [suite.FEW_ROWS, drawing.ROWS, drawing.ROWS]
