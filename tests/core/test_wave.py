"""Rows in flight at once: what is fed, seen and final, and that a whole row's delay is AR."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.joint import SMALL, drawn, joint, p_value
from support.mock_backbone import MockBackbone, events, tokens

from ssd_core import FinalRows, Grid, Pass, Sampling, methods
from ssd_core.engine.methods.wave import Wavefront, passes_at_once
from ssd_core.engine.region import Region
from ssd_core.model.noise import NoiseField

PEOPLE = ("cat", "a dog", "two red birds", "ox")
GRIDS = st.builds(Grid, st.integers(1, 5), st.integers(1, 6), st.booleans())


# A delay of a whole row is AR's order


@pytest.mark.parametrize("cells, row_end, cfg", [
    (1, False, 1.0), (1, True, 3.0), (4, False, 3.0), (4, True, 1.0), (30, False, 1.0),
    (30, True, 3.0)])
@pytest.mark.by_day(4)
def test_a_delay_of_a_whole_row_is_ar(row_end, cfg, cells):
    backbone, sampling = MockBackbone(Grid(6, 9, row_end), codes=16), Sampling(seed=1000, cfg=cfg)
    ar = events(backbone, methods.AR(), PEOPLE, sampling=sampling)[-1]
    for delay, adaptive in ((9, False), (40, False), (9, True)):
        told = events(backbone, methods.Wave(delay, cells, adaptive=adaptive), PEOPLE,
                      sampling=sampling)
        assert told[-1].tokens.equal(ar.tokens)
        assert methods.Wave(delay, cells).guarantee_on(backbone.grid) == "same distribution"
        assert told[0].plan.passes_max == ar.stats["passes"]
        assert told[-1].stats["passes"] < ar.stats["passes"] or cells == 1


@pytest.mark.parametrize("row_end", [False, True])
def test_a_delay_of_a_whole_row_continues_kept_rows_as_ar_does(row_end):
    backbone = MockBackbone(Grid(5, 4, row_end), codes=16)
    options = {"keep": torch.arange(20).view(1, 5, 4) % 16, "keep_rows": 2,
               "sampling": Sampling(seed=77, cfg=2.0)}
    ar = tokens(backbone, methods.AR(), PEOPLE, **options)
    for method in (methods.Wave(4, 3), methods.Wave(4, 1, "none")):
        assert tokens(backbone, method, PEOPLE, **options).equal(ar)


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("cells", [1, 3, 8])
def test_temperature_0_keeps_the_first_row_and_a_single_row_is_ar(row_end, cells):
    backbone = MockBackbone(Grid(1, 9, row_end), codes=16)
    for verification in ("coupled", "residual"):
        sampling = Sampling(seed=3, temperature=0)
        assert tokens(backbone, methods.Wave(2, cells, verification), PEOPLE,
                      sampling=sampling).equal(tokens(backbone, methods.AR(), PEOPLE,
                                                      sampling=sampling))


@pytest.mark.parametrize("small", SMALL)
def test_verification_with_p_and_q_has_ars_distribution_at_a_whole_rows_delay(small):
    grid, codes, sampling = SMALL[small]
    backbone = MockBackbone(grid, codes, seed=4)
    counts = drawn(backbone, methods.Wave(9, 3, "residual"), sampling, 4_096)
    assert p_value(counts, joint(backbone, Sampling(**sampling))) > 1e-4
    assert methods.Wave(9, 3, "residual").guarantee_on(grid) == "same distribution"


@pytest.mark.parametrize("method", [methods.Wave(1, 3, "residual"), methods.Wave(9, 3, "none")],
                         ids=str)
def test_a_short_delay_and_cells_without_verification_have_not(method):
    backbone = MockBackbone(Grid(2, 3), 3, seed=4)
    assert p_value(drawn(backbone, method, {}, 4_096), joint(backbone, Sampling())) < 1e-4
    assert method.guarantee_on(backbone.grid) == "approximate"


@pytest.mark.parametrize("grid, kept", [
    (Grid(1, 1), 0), (Grid(1, 1, True), 0), (Grid(3, 1), 2), (Grid(3, 1, True), 2)], ids=str)
def test_one_cell_alone_takes_no_pass_and_its_row_is_told(grid, kept):
    backbone, keep = MockBackbone(grid, codes=16), torch.ones(1, grid.rows, 1, dtype=torch.long)
    told = events(backbone, methods.Wave(), ("cat",), keep=keep, keep_rows=kept)
    rows = [event for event in told if isinstance(event, FinalRows)]
    ar = tokens(backbone, methods.AR(), ("cat",), keep=keep, keep_rows=kept)
    assert torch.cat([event.tokens for event in rows], dim=1).equal(ar)
    assert rows[-1].last == grid.rows and told[-1].stats["passes"] == 1


# What a cell sees: the states of a run are those of one pass under the wave's own mask


def seen_in_a_wave(grid: Grid, delay: int) -> torch.Tensor:
    """[slots, slots] bool: which slots each slot sees if every row moves one cell a pass."""
    y, x = grid.coordinates.unbind(-1)
    begun = y * delay
    chosen = torch.where(x == grid.columns, begun + delay - 1, begun + x)  # the pass, from 0
    slot = torch.arange(grid.slots)
    return (chosen <= chosen[:, None]) & (slot <= slot[:, None])


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("delay", [1, 2, 4])
def test_every_token_is_chosen_from_what_the_wave_has_seen(row_end, delay):
    grid = Grid(5, 6, row_end)
    backbone, sampling = MockBackbone(grid, codes=16), Sampling(seed=5, cfg=1.0)
    picture = tokens(backbone, methods.Wave(delay, 1), ("cat",), sampling=sampling)
    slots = torch.nn.functional.pad(picture, (0, int(row_end)), value=16).flatten(1)
    prompt = backbone.embed_prompt(torch.tensor([backbone.tokenize("cat")]))
    mask = torch.ones(3 + grid.slots, 3 + grid.slots, dtype=torch.bool).tril()
    mask[3:, 3:] = seen_in_a_wave(grid, delay)
    cache = backbone.new_cache(1, len(mask))
    cache.seek_each(torch.arange(len(mask))[None], len(mask), mask[None])
    hidden = backbone(torch.cat((prompt, backbone.embed(slots)), 1), cache)
    probs = backbone.logits(hidden[:, 2:-1]).softmax(-1)
    noise = NoiseField(sampling.seeds(1), grid.slots, 16, torch.device("cpu"))
    chosen = (probs / noise.fixed(0, grid.slots)).argmax(-1)
    known = grid.coordinates[:, 1] != grid.columns
    if not row_end:  # what stood in for the end of a row was another token
        known &= (grid.coordinates[:, 1] > 0) | (grid.coordinates[:, 0] == 0)
    assert chosen[:, known].equal(slots[:, known])
    if delay < 4:
        assert not picture.equal(tokens(backbone, methods.AR(), ("cat",), sampling=sampling))


# The front itself, under any guarantee


def check_visible(front: Wavefront) -> None:
    """All final cells are seen, what else is fed of the own row, and no cell that is not final."""
    seen = torch.nn.functional.pad(front.visible(), (0, front.grid.slots - front.stop))
    for picture, line in enumerate(front.slots.tolist()):
        final, fed = front.final[picture], front.fed[picture]
        for n, slot in enumerate(line):
            own = front.y == front.y[slot]
            expected = (final | own & fed) & (front.place <= slot)
            cells = ~front.row_end
            assert seen[picture, n, cells].equal(expected[cells])
            known = front.seen[picture] | fed
            assert not (seen[picture, n] & ~known).any()


@given(GRIDS, st.integers(1, 7), st.integers(1, 4), st.integers(0, 3), st.integers(0, 999))
def test_a_front_moves_on_behind_its_delay_whatever_stands(grid, delay, cells, kept, seed):
    kept = min(kept, grid.rows - 1)
    generator = torch.Generator().manual_seed(seed)
    front = Wavefront(Region.below(grid, kept), 2, delay, cells, torch.device("cpu"))
    passes = 1
    while front.complete < grid.rows:
        assert (front.slots.min() >= 0) and (front.slots.max() < front.stop <= grid.slots)
        check_visible(front)
        before = front.done.clone()
        same = torch.rand(2, grid.slots, generator=generator) < 0.5
        front.advance(front.open & same, None)
        front.stored(same | front.final)
        above, row = before[:, :-1], front.done[:, 1:]
        reach = torch.where(above < grid.columns, above - min(delay, grid.columns) + 1,
                            grid.columns)
        assert (row <= reach.clamp(min=0)).all() and (front.done >= before).all()
        front.look_ahead()
        passes += 1
    rows = grid.rows - kept
    assert passes <= (rows - 1) * min(delay, grid.columns) + grid.columns


@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 9))
def test_one_cell_a_pass_takes_the_passes_of_the_formula(rows, columns, delay):
    grid = Grid(rows, columns)
    expected = (rows - 1) * min(delay, columns) + columns
    assert passes_at_once(grid, min(delay, columns), 1) == expected


WAVES = st.builds(methods.Wave, st.integers(1, 7), st.integers(1, 4),
                  st.sampled_from(["coupled", "residual", "none"]), st.booleans())


@given(GRIDS, WAVES, st.integers(0, 2))
def test_no_run_takes_more_passes_or_wider_ones_than_planned(grid, method, kept):
    kept = min(kept, grid.rows - 1)
    told = events(MockBackbone(grid, hidden=8), method, ("sun", "an ox"), keep_rows=kept,
                  keep=torch.zeros(1, grid.rows, grid.columns, dtype=torch.long))
    fed = [event.cells.shape[1] for event in told if isinstance(event, Pass)][1:]
    assert max(fed, default=0) <= method.pass_width(grid)
    assert told[-1].stats["passes"] <= told[0].plan.passes_max
    assert told[0].plan.passes in (None, told[-1].stats["passes"])


# What a run tells


def test_rows_in_flight_form_a_diagonal():
    backbone = MockBackbone(Grid(6, 8), codes=16)
    told = [event for event in events(backbone, methods.Wave(2, 1)) if isinstance(event, Pass)]
    assert told[7].cells[0].tolist() == [[0, 6], [1, 4], [2, 2], [3, 0]]
    assert told[7].accepted.all() and told[7].n_context == 4


def test_what_stands_in_for_a_rows_end_is_not_told():
    backbone = MockBackbone(Grid(3, 6), codes=16)
    told = [event for event in events(backbone, methods.Wave(2, 1)) if isinstance(event, Pass)]
    assert [1, 0] not in told[2].cells[0].tolist()
    assert all([0, 5] not in event.cells[0].tolist() for event in told[:6])


def test_a_row_is_told_when_it_is_complete():
    backbone = MockBackbone(Grid(4, 6), codes=16)
    passes, when = 0, []
    for event in events(backbone, methods.Wave(2, 1)):
        passes += isinstance(event, Pass)
        when += [passes] if isinstance(event, FinalRows) else []
    assert when == [6, 8, 10, 12]


def test_an_adaptive_start_takes_longer_and_no_longer_than_ar():
    backbone, sampling = MockBackbone(Grid(6, 9), codes=16), Sampling(seed=5, temperature=3)
    for verification in ("coupled", "residual", "none"):
        plain, adaptive = (events(backbone, methods.Wave(2, 1, verification, own), PEOPLE,
                                  sampling=sampling) for own in (False, True))
        assert plain[0].plan.passes == plain[-1].stats["passes"] == 19
        assert adaptive[0].plan.passes is None and adaptive[0].plan.passes_max == 54
        assert 19 + 5 <= adaptive[-1].stats["passes"] < 54
