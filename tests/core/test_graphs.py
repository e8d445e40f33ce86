"""Passes and judges are static: a stand-in for CUDA graphs replays them, and tokens stay the same.

`Rehearsal` fails if any replay differs from the first in more than the contents of its buffers.
"""

import json
from types import SimpleNamespace

import pytest
import torch
from support.every_method import one_of_each
from support.layouts import LAYOUTS
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard, tokens
from support.rehearsal import NotStatic, Rehearsal
from test_methods import UNDER_TEST, WORDS

from ssd_core import Edit, Grid, Sampling, SSDError, generate, load_backbone, methods
from ssd_core.engine import decode, graphs
from ssd_core.engine.first_replay import WrongReplay, checked
from ssd_core.engine.graphs import EagerRunner, GraphRunner
from ssd_core.runs.diagnostics import attention_line, graphs_line, usable_kernels


@pytest.fixture
def rehearse(monkeypatch):
    """Switches graphs on for a call; returns what it returned, and the recorder.

    Its replays have the call's own bits, so that no check may find a difference.
    """
    def equal(*of_a_check):
        result, apart = checked(*of_a_check)
        assert apart == 0
        return result, apart

    def rehearsed(call, *given, **options):
        recorder = Rehearsal()
        with monkeypatch.context() as patch:
            patch.setattr(graphs, "checked", equal)
            patch.setattr(decode, "runner", lambda backbone: GraphRunner(recorder))
            return call(*given, **options), recorder
    return rehearsed


def same_tokens(rehearse, backbone, method, prompts, **options) -> Rehearsal:
    options |= {"heads": random_heads(backbone, row=True), "sampling": Sampling(seed=7, cfg=2.0)}
    expected = tokens(backbone, method, prompts, **options)
    found, recorder = rehearse(tokens, backbone, method, prompts, **options)
    backbone.session.release()
    assert found.equal(expected) and recorder.closed
    return recorder


@pytest.mark.parametrize("name", UNDER_TEST)
@pytest.mark.by_day(10)
def test_replays_give_the_tokens_of_eager_passes(name, rehearse):
    """Rows that end with a token, three prompts of different lengths."""
    backbone = MockBackbone(Grid(4, 4, True), codes=12)
    recorder = same_tokens(rehearse, backbone, UNDER_TEST[name], WORDS)
    assert recorder.replayed >= recorder.recorded > 0


def test_every_method_replays_passes_of_a_postcard(rehearse):
    for number, method in enumerate(one_of_each()):
        prompts = ("a red house", "a sun")[: 1 + number % 2]
        recorder = same_tokens(rehearse, tiny_postcard(grid=Grid(4, 4)), method, prompts)
        assert recorder.replayed >= recorder.recorded > 0, method


@pytest.mark.parametrize("name", [name for name in UNDER_TEST if "mulo" not in name])
@pytest.mark.by_day(8)
def test_passes_around_pinned_cells_are_replayed(name, rehearse):
    """A mask of its own for each picture is a buffer of the run."""
    backbone = MockBackbone(Grid(4, 4, True), codes=12)
    mask = torch.rand(len(WORDS), 4, 4, generator=torch.Generator().manual_seed(2)) < 0.4
    recorder = same_tokens(rehearse, backbone, UNDER_TEST[name], WORDS, keep_mask=mask,
                           keep=torch.arange(16).view(1, 4, 4) % 12)
    assert recorder.replayed >= recorder.recorded > 0


@pytest.mark.parametrize("method", [methods.AR(), methods.Exact(3)], ids=str)
def test_edits_by_words_are_replayed(method, rehearse, monkeypatch):
    monkeypatch.setattr("ssd_core.engine.edits.rule.CHANGED", 0.05)
    backbone = MockBackbone(Grid(4, 4, True), codes=12)
    recorder = same_tokens(rehearse, backbone, method, WORDS, edit=Edit(WORDS[0], reach=0.6),
                           keep=torch.arange(16).view(1, 4, 4) % 12)
    assert recorder.replayed >= recorder.recorded > 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.by_day(2)
def test_every_family_replays_its_passes(folders, layout, rehearse):
    """The last row, below random ones; three pictures, prompts of different lengths."""
    backbone, codes = load_backbone(folders[layout], "cpu", "fp32"), folders[layout] / "codes.json"
    if layout == "emu3":  # 90 x 90 cells otherwise
        backbone.sizes = ((64, 48),)
        backbone.apply_size()
    codes.write_text(json.dumps([1] * 81))
    prompts = {"llamagen": ("1", "3", "5"), "tar": (f"codes:{codes}",) * 3}.get(layout, WORDS)
    grid = backbone.grid
    kept = torch.randint(backbone.codes, (1, grid.rows, grid.columns),
                         generator=torch.Generator().manual_seed(1))
    for method in (methods.AR(), methods.SSD(k_v=1, rounds=5)):
        recorder = same_tokens(rehearse, backbone, method, prompts, keep=kept,
                               keep_rows=grid.rows - 1)
        assert recorder.replayed >= recorder.recorded > 0
    assert recorder.replayed > 1


class Buffers:
    """Work of all kinds on one buffer; only `static` may be replayed."""

    def __init__(self) -> None:
        self.held, self.calls = torch.zeros(8), 0

    def static(self, x: torch.Tensor, scale: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.held[:4] = x * scale
        return self.held.cumsum(0), x + 1

    def counts_on_the_host(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        self.calls += 1
        return x * self.calls

    def moves_its_view(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        self.calls += 1
        return self.held[self.calls : self.calls + 2] + x[:2]

    def reads(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        return x * int(x[0])

    def lists(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        return x + sum(x.tolist())

    def makes(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        return x * torch.tensor([1.0, 2.0, 3.0, float(scale)])

    def selects(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        return x[x > 1].sum()[None]


def called(run, work, times: int = 4) -> list:
    return [run(work, torch.arange(4.0) + i, 3) for i in range(times)]


def test_replays_return_what_the_work_would_and_belong_to_the_caller():
    recorder = Rehearsal()
    run = GraphRunner(recorder)
    found, expected = called(run, Buffers().static), called(EagerRunner(), Buffers().static)
    for one, other in zip(found, expected, strict=True):
        assert all(a.equal(b) for a, b in zip(one, other, strict=True))
    assert (recorder.warmed, recorder.recorded, recorder.replayed) == (1, 1, 3)
    run(Buffers().static, torch.arange(4.0), 3)  # other buffers are other work
    run.close()
    assert recorder.closed and called(run, Buffers().static, 1)
    assert recorder.recorded == 1


@pytest.mark.parametrize("name", ["counts_on_the_host", "moves_its_view", "reads", "lists", "makes",
                                  "selects"])
def test_the_rehearsal_refuses_work_that_is_not_static(name):
    with pytest.raises((NotStatic, WrongReplay)):
        called(GraphRunner(Rehearsal()), getattr(Buffers(), name))


class Refuses(Rehearsal):
    """A device that cannot capture."""

    def record(self, work):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")


def test_a_run_goes_on_without_graphs_if_capturing_fails(monkeypatch):
    backbone, recorder = MockBackbone(), Refuses()
    expected = tokens(backbone, methods.AR())
    monkeypatch.setattr(decode, "runner", lambda backbone: GraphRunner(recorder))
    with pytest.warns(RuntimeWarning, match=r"not permitted when stream.*SSD_GRAPHS=off") as told:
        assert tokens(backbone, methods.AR()).equal(expected)
    assert len(told) == 1 and recorder.closed


def test_graphs_are_freed_when_a_run_is_cancelled(monkeypatch):
    made = []
    monkeypatch.setattr(decode, "runner", lambda backbone: made.append(Rehearsal()) or GraphRunner(
        made[-1]))
    backbone = MockBackbone()
    cancelled = generate(backbone, "sun", methods.AR())
    for _ in range(6):
        next(cancelled)
    assert made[0].replayed and not made[0].closed
    cancelled.close()
    assert made[0].closed and backbone.session.take() is None


def test_a_run_has_few_sizes(monkeypatch):
    """Passes of one, two, eight cells and whole rows; multiples of 256 cache slots."""
    seen = set()

    class Noted(EagerRunner):
        def __call__(self, work, *args, conditions=None):
            if work.__name__ == "_pass":
                seen.add((args[0].shape[1], args[2]))
            return super().__call__(work, *args)

    backbone = MockBackbone(Grid(20, 20), prompt_limit=40)
    monkeypatch.setattr(decode, "runner", lambda backbone: Noted(padded=True))
    expected = (20, 40, 60, 80, 100)
    tokens(backbone, methods.Exact(window=100), heads=random_heads(backbone))
    assert {cells for cells, _ in seen} <= {1, 2, 8, *expected}
    assert {keys for _, keys in seen} == {256, 512}  # 400 cells, a prompt and a slot for surplus


def test_a_tensor_that_outlives_its_graph_is_found_out():
    """With cudaMallocAsync, freeing it before the graph has run ends the process."""
    kept = []

    def work(x):
        kept.append(x + 1)

    run = GraphRunner(Rehearsal())
    run(work, torch.ones(2))
    with pytest.raises(NotStatic, match="outlives"):
        run(work, torch.ones(2))


def test_where_graphs_run(monkeypatch):
    card, cpu = torch.device("cuda"), torch.device("cpu")
    assert graphs.graphs_off_reason(card) == "" or torch.version.hip
    monkeypatch.setattr(torch.version, "hip", None)
    assert graphs.graphs_off_reason(card) == ""
    assert "is mps" in graphs.graphs_off_reason(torch.device("mps"))
    assert "this backbone" in graphs.graphs_off_reason(card, "off")
    assert "take turns" in graphs.graphs_off_reason(card, offloads=True)
    assert "only on CUDA" in graphs_line(cpu) and "replayed" in graphs_line(card)
    monkeypatch.setenv("SSD_GRAPHS", "off")
    assert "SSD_GRAPHS=off" in graphs.graphs_off_reason(card)
    assert "SSD_GRAPHS=off" in graphs_line(card)
    monkeypatch.setenv("SSD_GRAPHS", "perhaps")
    with pytest.raises(SSDError, match="SSD_GRAPHS is 'perhaps'"):
        graphs.graphs_off_reason(card)
    assert "perhaps" in graphs_line(card)
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.delenv("SSD_GRAPHS")
    assert "ROCm" in graphs.graphs_off_reason(card)


def test_doctor_names_the_kernels_that_take_a_pass(monkeypatch):
    q = torch.zeros(1, 2, 4, 8)
    assert "cpu's own kernel" in attention_line(q.device)
    assert usable_kernels(q, q, None) == "math only, slow"  # none of the card's takes these
    for name in ("flash", "efficient"):
        monkeypatch.setattr(torch.backends.cuda, f"can_use_{name}_attention", lambda given: True)
    assert usable_kernels(q, q, torch.zeros(1, 1, 4, 4)) == "flash or memory-efficient"


def test_the_pool_grows_with_passes_and_distributions():
    assert graphs.pool_bytes(0, 1) > 0 and graphs.pool_bytes(10, 7) > 10 + 7


def test_the_loader_takes_the_mode_and_refuses_others():
    assert load_backbone("postcard", "meta").graphs == "auto"
    assert load_backbone("postcard", "meta", graphs="off").graphs == "off"
    with pytest.raises(SSDError, match="graphs 'on': choose auto or off"):
        load_backbone("postcard", "meta", graphs="on")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("name", UNDER_TEST)
def test_on_a_card_graphs_give_the_tokens_of_eager_passes(name, monkeypatch):
    backbone = MockBackbone(Grid(5, 6, True), codes=12).cuda()
    backbone.angles = backbone.angles.cuda()
    options = {"heads": random_heads(backbone, row=True).cuda(), "prompts": WORDS,
               "sampling": Sampling(seed=7, cfg=2.0)}
    monkeypatch.setenv("SSD_GRAPHS", "off")
    expected = tokens(backbone, UNDER_TEST[name], **options)
    monkeypatch.delenv("SSD_GRAPHS")
    before = None
    for _ in range(3):
        assert tokens(backbone, UNDER_TEST[name], **options).equal(expected)
        torch.cuda.synchronize()
        before = before or torch.cuda.memory_reserved()
    assert torch.cuda.memory_reserved() <= before


@pytest.mark.parametrize(("backend", "devices"), [("native", []), ("cudaMallocAsync", [1])])
def test_memory_of_graphs_is_given_back_with_either_allocator(backend, devices, monkeypatch):
    trimmed = []
    library = SimpleNamespace(cudaDeviceGraphMemTrim=trimmed.append)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: backend)
    monkeypatch.setattr(graphs.ctypes, "CDLL", lambda name: library)
    graphs.trim_graph_memory(torch.device("cuda:1"))
    assert trimmed == devices
