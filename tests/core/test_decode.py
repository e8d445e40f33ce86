"""The one loop: cancelling, statistics, prompts of different length, and every bad argument."""

import gc
import inspect
import sys
import weakref
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.every_method import one_of_each
from support.mock_backbone import MockBackbone, events, random_heads, tokens
from support.requests import requested

from ssd_core import Finished, Grid, Pass, Sampling, SSDError, Started, generate, methods
from ssd_core.engine.region import Region
from ssd_core.engine.state import DecodeState
from ssd_core.files import sum_of, write_sums
from ssd_core.runs.live import LiveRun

every_method = pytest.mark.parametrize("method", one_of_each(), ids=lambda m: m.name)
GRID = Grid(4, 5, True)


def backbone(grid: Grid = GRID) -> MockBackbone:
    return MockBackbone(grid, codes=9)


# Cancelling


@pytest.fixture
def made(monkeypatch):
    """Weak references to the caches and the states of runs from now on."""
    caches, states = [], []
    new_cache, start = MockBackbone.new_cache, DecodeState.__init__

    def cache_made(*given):
        cache = new_cache(*given)
        caches.append(weakref.ref(cache.keys))
        return cache

    def state_made(state, *given, **named):
        states.append(weakref.ref(state))
        start(state, *given, **named)

    monkeypatch.setattr(MockBackbone, "new_cache", cache_made)
    monkeypatch.setattr(DecodeState, "__init__", state_made)
    return caches, states


@every_method
@pytest.mark.by_day(7)
def test_cancelling_frees_everything_and_the_next_run_is_as_before(method, made):
    model, (caches, states) = backbone(), made
    heads = random_heads(model)
    expected = tokens(model, method, heads=heads)
    for taken in (1, 2, 6):
        before = len(caches), len(states)
        run = generate(model, ["a sun"], method, heads=heads)
        for _ in range(taken):
            next(run)
        run.close()
        del run
        if taken == 1:  # nothing is allocated before the first pass
            assert (len(caches), len(states)) == before
        else:
            assert len(caches) > before[0] and len(states) > before[1]
    gc.collect()
    assert {thing() for thing in (*caches, *states)} == {None}
    assert tokens(model, method, heads=heads).equal(expected)


def test_nothing_runs_before_the_first_event_is_asked_for(monkeypatch):
    model = backbone()
    monkeypatch.setattr(model, "forward", None)
    run = generate(model, ["a sun"], methods.AR())
    assert isinstance(next(run), Started)


@every_method
@pytest.mark.by_day(7)
def test_two_runs_at_once_do_not_meet(method):
    model = backbone()
    heads = random_heads(model)
    a, b = (generate(model, [prompt], method, heads=heads, sampling=Sampling(seed=seed))
            for prompt, seed in (("sun", 1), ("a boat", 2)))
    told: tuple[list, list] = [], []
    for run, events_ in ((a, told[0]), (b, told[1])) * 200:
        events_.extend(event for event in [next(run, None)] if event is not None)
    for prompt, seed, events_ in (("sun", 1, told[0]), ("a boat", 2, told[1])):
        assert events_[-1].tokens.equal(tokens(model, method, [prompt], heads=heads,
                                               sampling=Sampling(seed=seed)))


# Prompts and branches


@given(st.lists(st.text("abc ", min_size=1, max_size=9).filter(str.strip), min_size=1, max_size=4),
       st.integers(0, 3), st.sampled_from([1.0, 3.0]))
def test_prefill_equals_a_forward_of_prompt_and_kept_rows(prompts, keep_rows, cfg):
    """Whatever the lengths: each row's h for the first free slot is that of its own sequence."""
    model = backbone()
    branches = [model.tokenize(prompt) for prompt in prompts]
    branches += [ids[:1] for ids in branches] if cfg != 1 else []
    kept = torch.arange(len(prompts) * GRID.cells).view(-1, GRID.rows, GRID.columns) % model.codes
    state = DecodeState(model, branches, len(prompts), Sampling(cfg=cfg), None,
                        region=Region.below(GRID, keep_rows), keep=kept)
    state.prefill()
    stop = keep_rows * GRID.width
    slots = torch.nn.functional.pad(kept, (0, 1), value=model.codes)[:, :keep_rows].flatten(1)
    for row, ids in enumerate(branches):
        x = torch.cat((model.embed_prompt(torch.tensor([ids])),
                       model.embed(slots[row % len(prompts)][None].long())), dim=1)
        expected = model(x)[0, len(ids) - 1 :]
        assert torch.allclose(state.hidden[row, : stop + 1], expected, rtol=1e-5, atol=1e-5)


def test_a_single_prompt_may_come_without_a_list():
    model = backbone()
    assert tokens(model, methods.AR(), "sun").equal(tokens(model, methods.AR(), ["sun"]))


def test_guidance_of_the_backbone_is_the_default():
    model = backbone()
    by_default = tokens(model, methods.AR())
    assert by_default.equal(tokens(model, methods.AR(), sampling=Sampling(cfg=1.0)))
    assert not by_default.equal(tokens(model, methods.AR(), sampling=Sampling(cfg=4.0)))


def test_guidance_mixes_the_branches():
    """cfg = 1 + epsilon is nearly the conditional branch; the negative prompt of itself is it."""
    model = backbone()
    plain = tokens(model, methods.AR(), ["sun"], sampling=Sampling(seed=3, cfg=1.0))
    nearly = tokens(model, methods.AR(), ["sun"], sampling=Sampling(seed=3, cfg=1.000001))
    itself = tokens(model, methods.AR(), ["sun"], negative="sun",
                    sampling=Sampling(seed=3, cfg=7.0))
    assert plain.equal(nearly) and plain.equal(itself)


def test_one_kept_picture_serves_the_whole_batch():
    model = backbone()
    kept = tokens(model, methods.AR())
    both = tokens(model, methods.AR(), ["sun", "boat"], keep=kept, keep_rows=2)
    assert both[:, :2].equal(kept[:, :2].expand(2, -1, -1))


# Statistics


@every_method
def test_statistics(method):
    model = backbone()
    told = events(model, method, ["sun", "boat"], heads=random_heads(model),
                  sampling=Sampling(cfg=2.0))
    stats = told[-1].stats
    assert stats["passes"] == sum(isinstance(event, Pass) for event in told)
    assert stats["ar_passes"] == GRID.cells
    assert stats["step_acceleration"] == stats["ar_passes"] / stats["passes"]
    seconds = dict(stats["seconds"])
    total = seconds.pop("total")
    assert set(seconds) == {"prefill", "draft", "verify", "commit"}
    assert total == pytest.approx(sum(seconds.values())) and min(seconds.values()) >= 0
    assert stats["tokens_per_second"] == pytest.approx(2 * GRID.cells / total)
    assert all(0 <= share <= 1 and "/" in key for key, share in stats["acceptance"].items())
    assert bool(stats["acceptance"]) == (method.name != "ar")
    slots = len("boat") + GRID.slots + method.resolve(model.preset).scratch(GRID)
    assert stats["cache_bytes"] == 2 * 2 * 4 * slots * 8 * 4  # k+v, layers, rows, slots, D, fp32


@every_method
def test_time_of_the_consumer_is_not_counted(method, monkeypatch):
    """On a clock that runs only while the consumer has an event in hand."""
    now = [0.0]
    monkeypatch.setattr("ssd_core.engine.run_statistics.time.perf_counter", lambda: now[0])
    model = backbone()
    told = []
    for event in generate(model, ["sun"], method, heads=random_heads(model)):
        told.append(event)
        now[0] += len(told)
    assert isinstance(told[-1], Finished)
    assert set(told[-1].stats["seconds"].values()) == {0.0}


def test_acceptance_is_the_mean_over_cells_without_row_ends():
    model = MockBackbone(Grid(3, 4, True), codes=9)
    told = events(model, methods.MTP(k_h=4), ["sun"], heads=random_heads(model))
    shares = [p.accepted[p.cells[..., 1] < 4][1:].float().mean() for p in told
              if isinstance(p, Pass) and p.accepted is not None]
    assert told[-1].stats["acceptance"]["horizontal/1"] == pytest.approx(
        torch.stack(shares).mean().item())


# What the user gets wrong

KEPT = torch.zeros(1, 4, 5, dtype=torch.long)
BAD = {
    "no prompt": ({"prompts": []}, "prompt"),
    "empty prompt": ({"prompts": [""]}, "prompt"),
    "blank prompt": ({"prompts": ["sun", "  \n"]}, "prompt"),
    "long prompt": ({"prompts": ["x" * 17]}, "17"),
    "long negative": ({"negative": "x" * 17, "sampling": Sampling(cfg=2.0)}, "17"),
    "negative without guidance": ({"negative": "rain"}, "cfg"),
    "size": ({"size": (7, 7)}, "7x7"),
    "keep_rows below": ({"keep_rows": -1, "keep": KEPT}, "keep_rows"),
    "keep_rows beyond": ({"keep_rows": 4, "keep": KEPT}, "keep_rows"),
    "nothing to keep": ({"keep_rows": 1}, "keep"),
    "keep of another grid": ({"keep_rows": 1, "keep": KEPT[:, :3]}, "keep"),
    "keep without a batch": ({"keep_rows": 1, "keep": KEPT[0]}, "keep"),
    "keep for three": ({"keep_rows": 1, "keep": KEPT.expand(3, -1, -1)}, "keep"),
    "keep beyond the codes": ({"keep_rows": 1, "keep": KEPT + 9}, "keep"),
    "keep below zero": ({"keep_rows": 1, "keep": KEPT - 1}, "keep"),
    "no heads": ({"heads": None, "method": methods.SSD()}, "heads"),
    "no heads for mtp": ({"heads": None, "method": methods.MTP()}, "heads"),
    "no heads for strict": ({"heads": None, "method": methods.Strict()}, "heads"),
    "k_h beyond the heads": ({"method": methods.MTP(k_h=6)}, "k_h 6"),
    "k_h of strict beyond the heads": ({"method": methods.Strict(k_h=9)}, "k_h 9"),
    "k_h 0": ({"method": partial(methods.SSD, k_h=0)}, "k_h 0"),
    "k_v 0": ({"method": partial(methods.SSD, k_v=0)}, "k_v 0"),
    "k_v -1": ({"method": partial(methods.Rows, k_v=-1)}, "k_v -1"),
    "rounds -1": ({"method": partial(methods.SSD, rounds=-1)}, "rounds -1"),
    "mtp rounds -1": ({"method": partial(methods.MTP, rounds=-1)}, "rounds -1"),
    "incremental -1": ({"method": partial(methods.SSD, incremental=-1)}, "incremental -1"),
    "acceptance": ({"method": partial(methods.SSD, acceptance="strict")}, "acceptance"),
    "draft_choice": ({"method": partial(methods.SSD, draft_choice="best")}, "draft_choice"),
    "draft_temperature": ({"method": partial(methods.SSD, draft_temperature=0)},
                          "draft_temperature"),
    "fused without rounds": ({"method": partial(methods.SSD, rounds=0, fused_commit=True)},
                             "fused_commit"),
    "draft of rows": ({"method": partial(methods.Rows, draft="heads")}, "draft"),
    "drafts of strict": ({"method": partial(methods.Strict, drafts="tree")}, "drafts"),
    "window 0": ({"method": partial(methods.Exact, window=0)}, "window 0"),
    "window beyond the picture": ({"method": methods.Exact(window=500)}, "window 500"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_in_one_line_before_anything_runs(case, monkeypatch):
    arguments, named = BAD[case]
    model = backbone()
    arguments = {"prompts": ["sun"], "method": methods.AR(), "heads": random_heads(model),
                 **arguments}
    monkeypatch.setattr(model, "forward", None)
    with pytest.raises(SSDError) as refused:
        made = {key: value() if isinstance(value, partial) else value
                for key, value in arguments.items()}
        generate(model, made.pop("prompts"), made.pop("method"), **made)
    assert named in str(refused.value) and "\n" not in str(refused.value)


def test_k_v_beyond_the_heads_is_refused():
    model = backbone(Grid(6, 5))
    with pytest.raises(SSDError, match="k_v 4"):
        generate(model, ["sun"], methods.SSD(k_v=4), heads=random_heads(model))


@every_method
@pytest.mark.by_day(7)
def test_heads_that_reach_just_as_far_as_asked_suffice(method):
    """k_h counts cells: a row end among the drafted slots asks for no further head."""
    for grid in (Grid(4, 5), GRID, Grid(5, 2, True)):
        model = backbone(grid)
        picture = tokens(model, method, heads=random_heads(model, k_h=3, k_v=1))
        assert picture.equal(tokens(model, method, heads=random_heads(model, k_h=3, k_v=1)))


def test_heads_that_a_small_grid_cannot_use_are_not_asked_for():
    model = backbone(Grid(2, 3))
    assert tokens(model, methods.SSD(k_h=9, k_v=9), heads=random_heads(model, 2, 1)).shape[0] == 1


@pytest.mark.parametrize("method", [methods.SSD(), methods.MTP(), methods.Strict(),
                                    methods.Exact()], ids=lambda m: m.name)
def test_heads_of_another_backbone_are_refused_by_generate_too(method):
    other = random_heads(MockBackbone(GRID, hidden=32))
    with pytest.raises(SSDError) as refused:
        generate(backbone(), ["sun"], method, heads=other)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("knobs", [{"seed": 1.5}, {"seed": "7"}, {"top_k": "many"}, {"cfg": "5"}])
def test_knobs_of_another_type_are_refused(knobs):
    with pytest.raises(SSDError):
        Sampling(**knobs)


@every_method
@pytest.mark.by_day(7)
def test_the_smallest_grids(method):
    for grid in (Grid(1, 1), Grid(1, 5), Grid(5, 1), Grid(1, 1, True), Grid(5, 1, True),
                 Grid(1, 3, True), Grid(2, 2)):
        model = backbone(grid)
        told = events(model, method, ["sun", "boat"], heads=random_heads(model),
                      sampling=Sampling(cfg=2.0))
        assert told[-1].tokens.shape == (2, grid.rows, grid.columns), str(grid)
        assert told[-1].stats["passes"] <= told[0].plan.passes_max, str(grid)


class Resizable(MockBackbone):
    """Two sizes, whose grids follow from them."""

    def __init__(self) -> None:
        super().__init__(Grid(4, 5))
        self.sizes = ((5, 4), (3, 6))

    def apply_size(self) -> None:
        width, height = self.size
        self.grid = Grid(height, width)


def test_another_size_is_another_grid_on_the_same_weights():
    backbone = Resizable()
    view = backbone.resized((3, 6))
    assert (view.grid, view.size, view.sizes) == (Grid(6, 3), (3, 6), ((3, 6), (5, 4)))
    assert (backbone.grid, backbone.size) == (Grid(4, 5), (5, 4))
    assert view.norm is backbone.norm and view.resized((5, 4)).grid == backbone.grid
    assert tokens(backbone, methods.AR(), size=(3, 6)).shape == (1, 6, 3)
    with pytest.raises(SSDError, match="9x9: .*nearest are 5x4, 3x6"):
        tokens(backbone, methods.AR(), size=(9, 9))


def test_a_backbone_may_refuse_negative_prompts():
    backbone = MockBackbone()
    backbone.takes_negative = False
    with pytest.raises(SSDError, match="mock takes no negative prompt"):
        tokens(backbone, methods.AR(), negative="rain", sampling=Sampling(cfg=2.0))


def test_hidden_prompt_slots_change_nothing_and_seen_ones_do():
    """Random letters in hidden slots leave the picture as it is."""
    class Hiding(MockBackbone):
        hides = 3

        def masked_prompt_slots(self, prompt_ids: list[int]) -> int:
            return self.hides

        def unconditional(self, prompt_ids: list[int]) -> list[int]:
            return [*prompt_ids[:-1], 7]

    for method in (methods.AR(), methods.Rows(rounds=2, acceptance="coupled"), methods.Exact()):
        backbone, sampling = Hiding(), Sampling(seed=3, cfg=2.0)
        one = tokens(backbone, method, ["abcdef"], sampling=sampling)
        assert one.equal(tokens(backbone, method, ["xyzdef"], sampling=sampling))
        backbone.hides = 0
        assert not one.equal(tokens(backbone, method, ["xyzdef"], sampling=sampling))


def test_numbers_that_are_not_finite_name_the_file_that_may_be_damaged():
    backbone = MockBackbone()
    backbone.decoder.layers[0].down.data[0, 0] = float("nan")
    backbone.files = (Path("mine.safetensors"),)
    with pytest.raises(SSDError, match="in float32, so .* damaged: .*mine.safetensors") as told:
        tokens(backbone, methods.AR())
    assert "bf16" not in str(told.value)
    assert "load the backbone with dtype bf16" in backbone.half().overflowed()


def test_a_file_without_its_known_checksum_is_named_as_damaged(tmp_path):
    backbone, file = MockBackbone(), tmp_path / "model.safetensors"
    file.write_bytes(b"weights")
    write_sums(tmp_path, {file.name: sum_of(file)})
    backbone.files = (file,)
    assert "is damaged" not in backbone.overflowed()
    file.write_bytes(b"weighty")
    assert f"{file} is damaged" in backbone.overflowed()


def test_few_generators_lie_between_a_method_and_its_host(monkeypatch):
    found, steps = [], methods.AR.steps

    def counting(method, state):
        for event in steps(method, state):
            found.append(len([frame for frame in callers(sys._getframe(1))
                              if frame.f_code.co_flags & inspect.CO_GENERATOR]))
            yield event

    monkeypatch.setattr(methods.AR, "steps", counting)
    list(LiveRun(requested(backbone(), None, methods.AR(), Sampling(), "a sun")))
    assert found and max(found) <= 4


def callers(frame):
    while frame is not None:
        yield frame
        frame = frame.f_back
