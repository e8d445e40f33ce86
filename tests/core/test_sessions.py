"""Graphs and buffers outlive a run: later pictures replay them, and draw what a fresh run draws."""

import gc
import random
import weakref
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard, tokens
from support.rehearsal import Rehearsal
from test_methods import UNDER_TEST

from ssd_core import Finished, Grid, Sampling, generate, methods
from ssd_core.backbones.sessions import KeptSession, release_all
from ssd_core.engine import decode, graphs
from ssd_core.engine.decode import prepare
from ssd_core.engine.graphs import MOST, CudaRecorder, GraphRunner
from ssd_core.engine.sessions import RunSession
from ssd_core.model.noise import NoiseField, Purpose, Variation
from ssd_core.output.pixels import pixels
from ssd_core.weights.catalogue import CATALOGUE
from ssd_core.weights.fit import fit

CPU = torch.device("cpu")
EVERY = [*UNDER_TEST.values()]


class Counting(Rehearsal):
    """Replays without watching."""

    def record(self, work):
        self.recorded += 1
        return work


@pytest.fixture
def record(monkeypatch):
    """Lets all runs have graphs by a recorder of this kind; the recorders made."""
    def recording(kind=Rehearsal):
        made = []
        monkeypatch.setattr(decode, "runner", lambda backbone: made.append(kind())
                            or GraphRunner(made[-1]))
        return made
    return recording


def recorded(made) -> int:
    return sum(recorder.recorded for recorder in made)


# What later pictures capture


@pytest.fixture
def narrow(monkeypatch):
    """Makes a backbone of the catalogue with its true grid and schedule, as narrow as can be."""
    with monkeypatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "lab" / "benchmarks")
        import random_backbones as made
    for name, value in {"SCALED_HEAD_DIM": 16, "SCALED_LAYERS": 1, "SCALED_CODES": 64}.items():
        monkeypatch.setattr(made, name, value)

    def of(row: str):
        backbone = made.random_backbone(made.scaled(CATALOGUE[row]), CPU, torch.float32)
        preset = backbone.preset
        return backbone, made.random_heads(backbone, preset.k_h, preset.k_v)
    return of


def new_graphs(made, subject, method, pictures) -> list[int]:
    """How many graphs each picture captures: (words of the prompt, seed, cfg) of each."""
    (backbone, heads), counts = subject, []
    for words, seed, cfg in pictures:
        before = recorded(made)
        *_, _ = generate(backbone, "a " * words, method, heads, Sampling(seed=seed, cfg=cfg))
        counts.append(recorded(made) - before)
    return counts


PICTURES = ((50, 1, None), (7, 2, None), (40, 3, None), (7, 4, 3.0))


@pytest.mark.parametrize("method", [
    pytest.param(methods.AR(), marks=pytest.mark.nightly), methods.SSD(), methods.Exact()], ids=str)
def test_a_second_picture_of_janus_captures_nothing(method, record, narrow):
    subject = narrow("Janus-Pro-7B-hf")
    first, second, other_cfg = new_graphs(record(Counting), subject, method,
                                          (PICTURES[0], PICTURES[1], PICTURES[3]))
    assert first > 0 and second == 0
    assert other_cfg < first  # judges alone


@pytest.mark.nightly
def test_rolling_windows_differ_so_a_second_picture_captures_a_few(record, narrow):
    subject = narrow("Janus-Pro-7B-hf")
    first, second, third, _ = new_graphs(record(Counting), subject, methods.Rolling(), PICTURES)
    assert first > 0 and second <= 8 and third <= 1


@pytest.mark.nightly
@pytest.mark.parametrize("row", ["Lumina-mGPT-7B-768", "Emu3-Gen"])
@pytest.mark.parametrize("method", [methods.AR(), methods.SSD()], ids=str)
def test_large_grids_capture_at_most_three_more_and_then_none(row, method, record, narrow):
    first, second, third = new_graphs(record(Counting), narrow(row), method, PICTURES[:3])
    assert first > 0 and second <= 3 and third == 0


def test_another_guidance_captures_judges_and_no_pass(record, monkeypatch):
    made, captured = record(), []
    own = graphs.CapturedGraph.__init__
    monkeypatch.setattr(graphs.CapturedGraph, "__init__", lambda self, recorder, fn, first: (
        captured.append(fn.__name__), own(self, recorder, fn, first))[1])
    backbone = MockBackbone()
    for sampling in (Sampling(cfg=2.0), Sampling(cfg=3.0), Sampling(cfg=3.0, temperature=0.5)):
        tokens(backbone, methods.AR(), ("sun",), sampling=sampling)
    assert recorded(made) == len(captured) and captured.count("_pass") == 1
    assert captured.count("sample_at") == 3


# What they draw


def wished(chance: random.Random) -> dict:
    """Settings of a picture."""
    some = chance.choice
    return {"prompts": some([("sun",), ("a red house",), ("ox",), ("sun", "a red house")]),
            "sampling": Sampling(seed=chance.randrange(99), cfg=some((1.0, 2.0, 3.5)),
                                 temperature=some((0.7, 1.0)), top_k=some((0, 0, 5)),
                                 variation=some((0.0, 0.0, 0.3)), variation_seed=some((1, 2)))}


BACKBONES = {"row ends": lambda: MockBackbone(Grid(4, 4, True), codes=12),
             "postcard": lambda: tiny_postcard(grid=Grid(4, 4)),
             "a field too large to keep": lambda: MockBackbone(Grid(4, 5), codes=16, seed=3)}


@pytest.mark.parametrize("kind", BACKBONES)
@pytest.mark.parametrize("pictures", [7, pytest.param(170, marks=pytest.mark.nightly)])
def test_pictures_in_any_order_are_those_of_fresh_runs(kind, pictures, record, monkeypatch):
    """Methods, prompts, seeds, guidance and filters change from picture to picture."""
    chance = random.Random(pictures)
    if "large" in kind:
        monkeypatch.setattr("ssd_core.model.noise.CACHED_NUMBERS", 1)
    backbone = BACKBONES[kind]()
    heads, drawn = random_heads(backbone, row=True), []
    settings = [(chance.choice(EVERY), wished(chance)) for _ in range(pictures)]
    expected = [tokens(backbone, method, heads=heads, **options) for method, options in settings]
    made = record()
    for (method, options), own in zip(settings, expected, strict=True):
        drawn.append(tokens(backbone, method, heads=heads, **options).equal(own))
    assert all(drawn) and sum(recorder.replayed for recorder in made) > 0
    assert len([recorder for recorder in made if recorder.recorded]) < pictures  # some are shared


class Stale(RunSession):
    """A session whose next run does not fill the buffers."""

    def suits(self, shape, prompts):
        self.state.again = lambda *given: None
        return super().suits(shape, prompts)


def test_buffers_that_are_not_filled_anew_are_found_out(record, monkeypatch):
    record()
    monkeypatch.setattr("ssd_core.engine.sessions.RunSession", Stale)
    backbone = MockBackbone()
    first, second = ("sun", Sampling(seed=1)), ("an ox", Sampling(seed=2))
    tokens(backbone, methods.AR(), first[:1], sampling=first[1])
    with pytest.raises(AssertionError):
        assert tokens(backbone, methods.AR(), second[:1], sampling=second[1]).equal(
            tokens(MockBackbone(), methods.AR(), second[:1], sampling=second[1]))


@given(st.integers(0, 2**64 - 1), st.booleans(), st.booleans(), st.booleans())
def test_a_field_that_begins_again_has_the_numbers_of_a_new_one(seed, before, after, at_once):
    grid = Grid(3, 4)

    def varied(seed: int, share: bool) -> Variation | None:
        return Variation.of(Sampling(seed=seed, variation=0.5 * share, variation_seed=seed ^ 5),
                            grid, 2)

    seeds, slots = [seed, (seed + 1) % 2**64], torch.arange(12)
    field = NoiseField([7, 8], 13, 9, CPU, at_once, varied(7, before))
    field.uniform(Purpose.ACCEPT, 0, slice(0, 12))
    held = field.held
    field.begin(seeds, varied(seed, after))
    new = NoiseField(seeds, 13, 9, CPU, at_once, varied(seed, after))
    assert field.held is held and held.equal(new.held)
    assert field.exponential(Purpose.SAMPLE, 0, slots).equal(
        new.exponential(Purpose.SAMPLE, 0, slots))
    assert field.uniform(Purpose.ACCEPT, 0, slice(0, 12)).equal(
        new.uniform(Purpose.ACCEPT, 0, slice(0, 12)))


# When they are kept, and when they are freed


def test_only_the_run_that_captures_says_that_it_prepares(record, monkeypatch):
    record()
    backbone = MockBackbone()

    def prepares(**options) -> bool:
        started, *_ = generate(backbone, "sun", methods.AR(), **options)
        return started.prepares

    assert not prepares(), "this machine has no graphs"
    backbone.session.release()
    monkeypatch.setattr(decode, "graphs_off_reason_of", lambda backbone: "")
    assert [prepares() for _ in range(2)] == [True, False]
    assert prepares(sampling=Sampling(cfg=2.0)), "other buffers"
    backbone.session.release()
    assert prepares()
    kept = {"keep": torch.zeros(1, 4, 5, dtype=torch.long), "keep_rows": 1}
    assert not prepares(**kept), "no other run replays its graphs"


def test_weights_that_move_during_a_run_are_seen_by_the_next_one(record):
    made, backbone = record(Counting), MockBackbone()
    run = generate(backbone, "sun", methods.AR())
    for _ in range(6):
        next(run)
    backbone.angles = backbone.angles.clone()  # the graphs captured so far read the other ones
    *_, _ = run
    tokens(backbone, methods.AR(), ("sun",))
    assert made[0].closed and made[1].recorded


def test_runs_that_interleave_have_buffers_of_their_own(record):
    expected = tokens(MockBackbone(), methods.AR(), ("sun",))
    made, backbone = record(), MockBackbone()
    runs = [generate(backbone, "sun", methods.AR()) for _ in range(3)]
    last = [None] * 3
    for turn in range(40):
        for index, run in enumerate(runs):
            last[index] = next(run, last[index])
        if turn == 10:
            runs[1].close()
    assert all(isinstance(last[n], Finished) and last[n].tokens.equal(expected) for n in (0, 2))
    assert sum(not recorder.closed for recorder in made if recorder.recorded) == 1
    assert backbone.session.release() and not backbone.session.release()
    assert all(recorder.closed for recorder in made if recorder.recorded)


@pytest.mark.parametrize("moved", ["weight", "table", "heads", "other heads", "dtype"])
def test_a_session_is_not_used_once_what_its_graphs_read_has_moved(moved, record):
    made, backbone = record(), MockBackbone()
    heads = random_heads(backbone)
    method = methods.SSD(k_h=3, k_v=1, rounds=2)
    tokens(backbone, method, ("sun",), heads=heads)
    if moved == "weight":
        backbone.norm.data = backbone.norm.data.clone()
    elif moved == "table":
        backbone.angles = backbone.angles.clone()
    elif moved == "heads":
        heads.horizontal[0].load_state_dict(heads.horizontal[0].state_dict(), assign=True)
        for weight in heads.parameters():
            weight.data = weight.data.clone()
    elif moved == "other heads":
        heads = random_heads(backbone)
    else:
        backbone.half()
        heads.half()
    tokens(backbone, method, ("sun",), heads=heads)
    assert made[0].closed and made[1].recorded and not made[1].closed


def test_a_longer_prompt_than_the_buffers_hold_gets_larger_ones(record):
    made, backbone = record(), MockBackbone(prompt_limit=400)
    for prompt in ("sun", "x" * 300, "sun"):
        tokens(backbone, methods.AR(), (prompt,))
    assert made[0].closed and made[1].recorded and not made[2].recorded


def test_moving_a_backbone_frees_its_session(record):
    made, backbone = record(), MockBackbone()
    tokens(backbone, methods.AR(), ("sun",))
    assert backbone.session.nbytes > 0 and not made[0].closed
    backbone.to(torch.float64)
    assert backbone.session.nbytes == 0 and made[0].closed


class OutOfMemory(Rehearsal):
    """A card without room for the graphs of a second picture, once."""

    left = 2

    def warm_up(self, work):
        OutOfMemory.left -= 1
        if OutOfMemory.left == 0:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().warm_up(work)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_run_without_memory_gives_back_the_sessions_and_begins_again(elsewhere, record,
                                                                       monkeypatch):
    """The session is another backbone's, or the run's own of an earlier picture."""
    made, backbone = record(), MockBackbone()
    expected = tokens(backbone, methods.AR(), ("an ox",), sampling=Sampling(cfg=2.0))
    other = MockBackbone() if elsewhere else backbone
    if elsewhere:
        backbone.session.release()
    tokens(other, methods.AR(), ("sun",))
    made += record(OutOfMemory)
    monkeypatch.setattr(OutOfMemory, "left", 2)
    if not elsewhere:
        made[-1].warm_up = OutOfMemory().warm_up
    found = tokens(backbone, methods.AR(), ("an ox",), sampling=Sampling(cfg=2.0))
    assert found.equal(expected) and OutOfMemory.left < 0
    release_all()


def test_without_a_session_to_give_back_it_says_so(record, monkeypatch):
    record(OutOfMemory)
    monkeypatch.setattr(OutOfMemory, "left", 2)
    release_all()
    with pytest.raises(torch.OutOfMemoryError):
        tokens(MockBackbone(), methods.AR(), ("sun",))


def test_one_session_is_kept_for_all_sizes_of_a_backbone():
    class Held:
        nbytes, closed = 5, False

        def close(self):
            self.closed = True

    first, second, kept = Held(), Held(), KeptSession()
    kept.keep(first)
    kept.keep(second)
    assert first.closed and kept.nbytes == 5 and kept.take() is second
    assert kept.take() is None and not kept.release() and not second.closed


def test_a_session_of_too_many_kinds_is_not_kept():
    run, buffer = GraphRunner(Rehearsal()), torch.zeros(4)

    def add(x: torch.Tensor, number: int) -> None:
        buffer.copy_(x + number)

    lasted = []
    for number in range(MOST + 2):
        lasted.append(run.lasting)
        for _ in range(2):
            run(add, torch.ones(4), number, conditions="judged")
    assert lasted == [False] + [True] * (MOST - 1) + [False] * 2
    assert run.captured == MOST


def test_runs_that_share_buffers_agree_in_shape():
    backbone = MockBackbone(Grid(4, 4))

    def shape(**options):
        method = options.pop("method", methods.AR())
        prompts = options.pop("prompts", ["sun"])
        return prepare(backbone, prompts, method, None,
                       options.pop("sampling", Sampling(cfg=2.0)), **options).shape

    same = shape()
    assert same is not None and hash(same) is not None
    assert same == shape(sampling=Sampling(seed=3, cfg=4.0, top_k=2)) == shape(prompts=["an ox"])
    assert same == shape(method=methods.Exact(3)) == shape(method=methods.Rolling())
    assert len({same, shape(prompts=["a", "b"]), shape(sampling=Sampling(cfg=1.0)),
                shape(method=methods.SJD(3, tree_width=2))}) == 4
    kept = torch.zeros(1, 4, 4, dtype=torch.long)
    assert shape(keep=kept, keep_rows=2) is None
    assert shape(method=methods.MuLo()) is None


# Before pixels


def test_a_session_stays_while_pixels_are_decoded_unless_they_do_not_fit(record, monkeypatch):
    record()
    backbone, free = tiny_postcard(grid=Grid(4, 4)), [1 << 40]
    monkeypatch.setattr("ssd_core.weights.fit.free_bytes", lambda device: free[0])
    codes = tokens(backbone, methods.AR(), ("a sun",))
    expected = [picture.clone() for picture in pixels(backbone, codes)]
    assert backbone.session.nbytes > 0
    free[0] = 1
    assert all(map(torch.equal, pixels(backbone, codes), expected))
    assert backbone.session.nbytes == 0


def test_pixels_without_memory_are_decoded_again_without_sessions(record, monkeypatch):
    record()
    backbone, other = tiny_postcard(grid=Grid(4, 4)), MockBackbone()
    codes = tokens(backbone, methods.AR(), ("a sun",))
    backbone.session.release()
    expected, = pixels(backbone, codes)
    tokens(other, methods.AR(), ("sun",))
    decode_, failed = backbone.decode, []

    def short_of_memory(codes: torch.Tensor) -> torch.Tensor:
        if other.session.nbytes:
            failed.append(codes)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return decode_(codes)

    monkeypatch.setattr(backbone, "decode", short_of_memory)
    found, = pixels(backbone, codes)
    assert len(failed) == 1 and found.equal(expected)


def test_fit_counts_what_a_run_has_left_as_free(record, monkeypatch):
    record()
    backbone = MockBackbone()
    monkeypatch.setattr("ssd_core.weights.fit.free_bytes", lambda device: 1000)
    before = fit(backbone, methods.AR(), device="cpu").free
    tokens(backbone, methods.AR(), ("sun",))
    after = fit(backbone, methods.AR(), device="cpu").free
    assert after == before + backbone.session.nbytes > before


@pytest.mark.parametrize(("stop", "keys"), [(1, 256), (256, 256), (1024, 1024), (1025, 1536),
                                            (2400, 2560), (2600, 2600)])
def test_long_grids_read_fewer_numbers_of_keys(stop, keys):
    assert graphs.rounded_keys(stop, 2600) == keys


def test_a_released_session_frees_its_buffers_at_once(record):
    record()
    backbone = MockBackbone()
    tokens(backbone, methods.AR(), ("sun",))
    session = backbone.session.latest
    buffers = [weakref.ref(buffer) for buffer in (session.state.hidden, session.state.tokens)]
    del session
    gc.disable()
    try:
        backbone.session.release()
        assert [buffer() for buffer in buffers] == [None, None]
    finally:
        gc.enable()


class Streams:
    """CUDA's streams, counted."""

    def __init__(self, device=None):
        Streams.made += 1


def test_streams_are_used_again_once_their_graphs_are_gone(monkeypatch):
    monkeypatch.setattr(Streams, "made", 0, raising=False)
    for name, stand_in in {"Stream": Streams, "synchronize": lambda device: None,
                           "empty_cache": lambda: None, "graph_pool_handle": lambda: (0, 1),
                           "device": lambda device: nullcontext()}.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(graphs, "idle_streams", defaultdict(list))
    recorders = [CudaRecorder(CPU) for _ in range(9)]
    assert Streams.made == 0, "none of them has captured anything"
    first, second = recorders[0].stream, recorders[1].stream
    assert first is not second and Streams.made == 2
    recorders[0].close()
    assert recorders[2].stream is first and Streams.made == 2
    recorders[3].close()
    assert recorders[4].stream is not second and Streams.made == 3
