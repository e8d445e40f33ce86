"""MuLo-SD: samplers, local expansion, and the two ends of its threshold."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, events, mock_drafter, tokens

from ssd_core import Grid, Pass, Sampling, SSDError, load_backbone, methods
from ssd_core.backbones import drafter as drafters
from ssd_core.backbones.drafter import Downsampler, Upsampler
from ssd_core.engine.methods.baselines.mulo import expanded, turns
from ssd_core.engine.state import DecodeState

PEOPLE = ("cat", "a dog", "two red birds")


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("cfg", [1.0, 3.0])
def test_when_nothing_stands_a_row_is_ars_and_the_next_follows_one_cell_behind(row_end, cfg):
    backbone, sampling = MockBackbone(Grid(4, 6, row_end)), Sampling(seed=3, cfg=cfg)
    mulo, ar = (events(backbone, method, PEOPLE, sampling=sampling)[-1]
                for method in (methods.MuLo(tau=1, similar=1), methods.AR()))
    assert mulo.tokens[:, 0].equal(ar.tokens[:, 0])
    assert mulo.stats["passes"] == 1 + 2 * (6 + 2)  # two blocks of two rows


@given(st.integers(1, 4), st.integers(1, 7), st.booleans(), st.integers(0, 999))
def test_cells_that_touch_are_sampled_in_raster_order_and_islands_together(rows, columns, row_end,
                                                                           seed):
    grid, generator = Grid(rows, columns, row_end), np.random.default_rng(seed)
    again = generator.random((2, rows, grid.width)) < 0.4
    again[..., columns:] = False
    for turn, marks in zip(turns(again.reshape(2, -1), rows, grid), again, strict=True):
        turn = dict(zip(np.ndindex(marks.shape), turn.tolist(), strict=True))
        for (y, x), own in turn.items():
            before = [turn.get(cell, 0) for cell in (
                (y, x - 1), (y - 1, x - 1), (y - 1, x), (y - 1, x + 1))]
            assert own == (1 + max(before) if marks[y, x] else 0)


def test_when_everything_stands_the_picture_is_the_drafters():
    backbone = MockBackbone(Grid(4, 6))
    told = events(backbone, methods.MuLo(tau=0), PEOPLE)[-1]
    assert told.stats["passes"] == 1 + 2
    assert told.stats["acceptance"] == {"verify/1": 1.0}
    assert told.stats["drafter_passes"] == 2 + 1 + 2  # row 0, its correction, row 1
    own = mock_drafter(backbone)
    rows = [own.upsampled(own.downsampled(told.tokens))[:, :2], told.tokens[:, :2]]
    assert rows[0].shape == rows[1].shape


def test_a_higher_threshold_takes_more_passes():
    backbone = MockBackbone(Grid(6, 6))
    passes = [events(backbone, methods.MuLo(tau=tau, similar=2), ("cat",))[-1].stats["passes"]
              for tau in (0, 0.1, 0.3, 1)]
    assert passes == sorted(passes) and len(set(passes)) > 2


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("tau, radius", [(0.06, 0), (0.025, 1)])
def test_what_is_sampled_again_is_ars_choice_behind_the_final_tokens(row_end, tau, radius):
    """MuLo-SD Algorithm 1, line 20, for cells before which none is sampled in the same turn."""
    backbone, sampling = MockBackbone(Grid(6, 8, row_end), codes=16), Sampling(seed=3, cfg=1.0)
    told = events(backbone, methods.MuLo(tau, radius, similar=1), 3 * PEOPLE, sampling=sampling)
    again = torch.zeros(9, 6, 8 + row_end, dtype=torch.bool)
    for event in told:
        if isinstance(event, Pass) and event.accepted is not None:
            fed = event.cells[0].unbind(-1)
            again[:, fed[0], fed[1]] |= ~event.accepted
    assert 0.2 < again.float().mean() < 0.8
    state = DecodeState(backbone, [backbone.tokenize(one) for one in 3 * PEOPLE], 9,
                        sampling, None)
    state.prefill()
    slots = torch.nn.functional.pad(told[-1].tokens, (0, int(row_end))).flatten(1)
    state.write(slice(0, slots.shape[1]), slots)
    state.feed(state.slots)
    chosen = state.sampled_at(state.slots_between(0, state.slots))
    turn = turns(again.view(9 * 3, -1).numpy(), 2, backbone.grid)  # blocks of two rows
    latest = np.maximum.accumulate(np.pad(turn, ((0, 0), (1, 0))), axis=1)[:, :-1]
    sees_final = torch.from_numpy((turn > latest).reshape(9, -1))
    assert sees_final.sum() > 0.3 * again.sum()
    assert chosen[sees_final].equal(slots[sees_final]) and not chosen.equal(slots)


@pytest.mark.parametrize("one, other", [
    ({"tau": 0.1}, {"tau": 0.3}), ({"radius": 0}, {"radius": 2}),
    ({"similar": 1}, {"similar": 4}), ({"delta": 0.0}, {"delta": 0.9})], ids=str)
def test_knobs_are_live(one, other):
    backbone = MockBackbone(Grid(6, 6))
    base = {"tau": 0.15, "radius": 1, "similar": 3, "delta": 0.5}
    one, other = (tokens(backbone, methods.MuLo(**{**base, **knobs}), PEOPLE)
                  for knobs in (one, other))
    assert not one.equal(other)


@given(st.integers(1, 4), st.integers(1, 7), st.booleans(), st.integers(0, 3),
       st.integers(0, 999))
def test_local_expansion_is_equations_6_and_7(rows, columns, row_end, radius, seed):
    grid, generator = Grid(rows, columns, row_end), torch.Generator().manual_seed(seed)
    rejected = torch.rand(2, rows, grid.width, generator=generator) < 0.2
    rejected[..., columns:] = False
    found = expanded(rejected.flatten(1), rows, grid, radius)
    for one, marks in zip(found, rejected, strict=True):
        cells = [(y, x) for y in range(rows) for x in range(columns) if marks[y, x]]
        wanted = {(i, j) for i in range(rows) for j in range(columns) for y, x in cells
                  if abs(i - y) <= radius and abs(j - x) <= radius and (i, j) >= cells[0]}
        marked = one.unflatten(0, (rows, grid.width)).nonzero().tolist()
        assert {(i, j) for i, j in marked} == wanted


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_samplers_are_row_causal_and_start_from_plain_resizing(ratio):
    up, down = Upsampler(3, ratio, 8, 2), Downsampler(3, ratio, 8, 2)
    small = torch.randn(2, 3, 4, 5)
    large = up(small)
    assert torch.allclose(large, small.repeat_interleave(ratio, 2).repeat_interleave(ratio, 3))
    assert torch.allclose(down(large), small, atol=1e-6)
    for sampler in (up, down):
        for weight in sampler.parameters():
            torch.nn.init.normal_(weight, std=0.2)
    for sampler, x in ((up, small), (down, torch.randn(2, 3, 4 * ratio, 5 * ratio))):
        rows = x.shape[2] // 4
        changed = x.clone()
        changed[:, :, 2 * rows :] += 1
        before, after = sampler(x), sampler(changed)
        kept = before.shape[2] // 2
        assert torch.equal(before[:, :, :kept], after[:, :, :kept])
        assert not torch.equal(before[:, :, kept:], after[:, :, kept:])


def test_samplers_survive_their_file_and_refuse_other_backbones(tmp_path):
    target = MockBackbone(Grid(4, 6))
    drafter, path = mock_drafter(target), tmp_path / "samplers.safetensors"
    for sampler in (drafter.up, drafter.down):
        sampler.half().float()  # the file's precision, which may decide a close choice
    drafters.save_samplers(drafter, target, path, "small", {})
    again = drafters.read_drafter(path, drafter.backbone, target)
    picture = torch.randint(target.codes, (2, 2, 3))
    assert again.upsampled(picture).equal(drafter.upsampled(picture))
    target.sha256 = "0" * 64
    with pytest.raises(SSDError, match="were made for another backbone, not for mock"):
        drafters.read_drafter(path, drafter.backbone, target)


def test_a_backbone_without_a_drafter_is_refused_in_one_line():
    backbone = MockBackbone(Grid(4, 6))
    backbone.find_drafter = None
    with pytest.raises(SSDError, match="mock has none: make one"):
        events(backbone, methods.MuLo())


def test_a_drafter_for_another_grid_is_refused():
    backbone = MockBackbone(Grid(4, 6))
    other = mock_drafter(MockBackbone(Grid(6, 6)))
    backbone.find_drafter = lambda target: other
    with pytest.raises(SSDError, match="3x3 cells and its samplers enlarge 2 times, mock draws"):
        events(backbone, methods.MuLo())


def test_postcard_brings_a_drafter_whose_samplers_fit():
    """Its codes say the same picture at both sizes: reduced after enlarging, most come back."""
    backbone = load_backbone("postcard", "cpu", "fp32")
    drafter = backbone.find_drafter(backbone)
    drafter.require(backbone)
    assert drafter.backbone.grid == Grid(12, 12)
    picture = tokens(drafter.backbone, methods.AR(), ("a red house , by the sea",))
    shown = drafter.backbone.decode(picture)
    again = drafter.backbone.decode(drafter.downsampled(drafter.upsampled(picture)))
    other = drafter.backbone.decode(picture.roll(1, dims=1))
    assert (again - shown).abs().mean() < 0.5 * (other - shown).abs().mean()
