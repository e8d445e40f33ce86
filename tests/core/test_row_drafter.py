"""The row drafter: what it sees, how it is trained and kept, and what it drafts."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, events, random_heads, tiny_postcard, tokens

from ssd_core import Grid, Sampling, SSDError, load_backbone, load_heads, methods
from ssd_core.backbones import postcard
from ssd_core.engine.heads import DraftHeads, read_heads, save_heads
from ssd_core.engine.row_drafter import ABOVE, LEFT, NEIGHBOURS, RowDrafter, neighbours
from ssd_core.train import heads, row, self_distill
from ssd_core.train.heads import HeadsRecipe
from ssd_core.train.picture_files import load_pictures
from ssd_core.train.self_distill import SelfDistillRecipe
from ssd_core.train.teacher import teach

WORDS = ("a sun", "two houses")
ROW_METHODS = (methods.SSD(drafter="row"), methods.Exact(drafter="row"),
               methods.Rolling(budget=9, drafter="row"))
GRIDS = (Grid(5, 6, True), Grid(4, 7), Grid(1, 5), Grid(3, 1))


def drafter_of(hidden: int) -> RowDrafter:
    """One that says something: its last matrix is not zero."""
    drafter = row.fresh_drafter(hidden, generator := torch.Generator().manual_seed(1))
    torch.nn.init.normal_(drafter.out, std=0.1, generator=generator)
    return drafter.requires_grad_(False)


def test_a_fresh_drafter_is_the_identity_on_h_of_the_cell_above():
    drafter = row.fresh_drafter(8, torch.Generator().manual_seed(0))
    h, e = torch.randn(2, 3, len(NEIGHBOURS), 8).unbind()
    known = torch.ones(3, len(NEIGHBOURS), dtype=torch.bool)
    assert torch.allclose(drafter(h, e, known), h[:, ABOVE])


def test_unknown_neighbours_say_nothing():
    drafter, generator = drafter_of(8), torch.Generator().manual_seed(2)
    h, e, other = torch.randn(3, 4, len(NEIGHBOURS), 8, generator=generator).unbind()
    known = torch.rand(4, len(NEIGHBOURS), generator=generator) < 0.5
    mixed = [torch.where(known[..., None], x, other) for x in (h, e)]
    assert torch.equal(drafter(h, e, known), drafter(*mixed, known))
    assert not torch.equal(drafter(h, e, known), drafter(h, e, torch.ones_like(known)))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_neighbours_lie_where_they_should(grid):
    around, inside = neighbours(grid, torch.arange(grid.slots))
    for slot, (row_, column) in enumerate(grid.coordinates.tolist()):
        for n, (down, right) in enumerate(NEIGHBOURS):
            y, x = row_ + down, column + right
            there = 0 <= y < grid.rows and 0 <= x < grid.columns
            assert bool(inside[slot, n]) == there
            assert not there or around[slot, n] == y * grid.width + x


@given(st.sampled_from(GRIDS), st.integers(1, 30), st.integers(0, 99), st.sampled_from([1.0, 2.0]))
def test_exact_draws_ars_picture_with_a_row_drafter(grid, window, seed, cfg):
    backbone = MockBackbone(grid, codes=12)
    sampling = Sampling(seed=seed, cfg=cfg)
    drawn = tokens(backbone, methods.Exact(min(window, grid.slots), "row"), WORDS,
                   heads=random_heads(backbone, row=True), sampling=sampling)
    assert drawn.equal(tokens(backbone, methods.AR(), WORDS, sampling=sampling))


@given(st.sampled_from(GRIDS[:2]), st.integers(1, 3), st.integers(0, 99), st.booleans())
def test_coupled_ssd_converges_to_ars_picture_with_a_row_drafter(grid, k_h, seed, alone):
    backbone, sampling = MockBackbone(grid, codes=12), Sampling(seed=seed)
    drafts = random_heads(backbone, *((0, 0) if alone else (5, 3)), row=True)
    method = methods.SSD(k_h=k_h, k_v=1, rounds=grid.columns, acceptance="coupled", drafter="row")
    assert tokens(backbone, method, WORDS, heads=drafts, sampling=sampling).equal(
        tokens(backbone, methods.AR(), WORDS, sampling=sampling))


@pytest.mark.parametrize("knobs", [
    {}, {"k_v": 2, "rounds": 1, "incremental": 1}, {"fused_commit": True, "rounds": 1},
    {"draft_choice": "argmax"}, {"draft_temperature": 0.5}, {"rounds": 0}], ids=str)
def test_ssd_takes_the_planned_passes_with_a_row_drafter(knobs):
    backbone = MockBackbone(Grid(5, 6, True), codes=12)
    method = methods.SSD(**{"k_v": 2, **knobs}, drafter="row")
    heads, sampling = random_heads(backbone, row=True), Sampling(seed=4)
    told = events(backbone, method, WORDS, heads=heads, sampling=sampling)
    assert told[-1].stats["passes"] <= told[0].plan.passes
    other = replace(method, drafter="heads")
    assert not told[-1].tokens.equal(tokens(backbone, other, WORDS, heads=heads, sampling=sampling))


def test_a_picture_does_not_depend_on_its_batch():
    backbone = MockBackbone(Grid(5, 6), codes=12)
    drafts, sampling = random_heads(backbone, row=True), Sampling(seed=3, cfg=2.0)
    for method in (methods.Exact(9, "row"), *ROW_METHODS):
        both = tokens(backbone, method, WORDS, heads=drafts, sampling=sampling)
        alone = tokens(backbone, method, WORDS[:1], heads=drafts, sampling=sampling)
        assert both[:1].equal(alone)


@pytest.mark.parametrize("method", ROW_METHODS, ids=lambda method: method.name)
def test_what_lacks_is_named(method):
    backbone = MockBackbone(Grid(4, 4))
    with pytest.raises(SSDError, match="train heads --kind row"):
        tokens(backbone, method, WORDS, heads=random_heads(backbone))
    with pytest.raises(SSDError, match="none are loaded"):
        tokens(backbone, method, WORDS)


def knowing_drafter(backbone) -> RowDrafter:
    """One that has learnt from pictures of this backbone."""
    pictures = tokens(backbone, methods.AR(), WORDS * 24, sampling=Sampling(seed=100))
    hidden, embedding = teach(backbone, [backbone.tokenize(word) for word in WORDS * 24], pictures)
    drafter = row.fresh_drafter(backbone.hidden_size, torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(drafter.parameters(), 4e-3)
    for _ in range(150):
        estimates = row.sweeps(drafter, backbone.grid, hidden, embedding,
                               torch.zeros(hidden.shape[:2], dtype=torch.bool))
        sum(torch.nn.functional.smooth_l1_loss(one, hidden) for one in estimates).backward()
        optimizer.step()
        optimizer.zero_grad()
    return drafter.requires_grad_(False)


def test_exact_foresees_what_a_change_does_to_the_next_cells():
    """A drafter that knows the backbone saves passes; one that guesses at random does not."""
    backbone = MockBackbone(Grid(6, 8), codes=12)
    heads = random_heads(backbone)
    passes = []
    for drafter in (knowing_drafter(backbone), drafter_of(backbone.hidden_size)):
        heads.row = drafter
        passes.append(sum(events(backbone, methods.Exact(16, "row"), WORDS, heads=heads,
                                 sampling=Sampling(seed=seed))[-1].stats["passes"]
                          for seed in range(3)))
    plain = sum(events(backbone, methods.Exact(16), WORDS, heads=heads, sampling=Sampling(
        seed=seed))[-1].stats["passes"] for seed in range(3))
    assert passes[0] < 0.95 * plain and passes[0] < 0.95 * passes[1]


@pytest.mark.parametrize("k", [0, 2])
def test_a_file_keeps_the_drafter_beside_the_heads_or_alone(tmp_path, k):
    backbone = MockBackbone(Grid(3, 4))
    drafts = random_heads(backbone, k, k, row=True)
    save_heads(drafts, tmp_path / "heads.safetensors", backbone, {})
    found = read_heads(tmp_path / "heads.safetensors", backbone)
    assert (found.k_h, found.k_v) == (k, k) and found.row is not None
    for name, weight in drafts.row.named_parameters():
        assert torch.allclose(found.row.get_parameter(name), weight, atol=1e-3)


def test_a_drafter_for_another_backbone_is_refused():
    drafts, backbone = DraftHeads(8, 0, 0, row=True), MockBackbone(Grid(4, 4))
    with pytest.raises(SSDError, match="made for another backbone"):
        tokens(backbone, methods.Exact(), WORDS, heads=drafts)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A tiny postcard and eight pictures of its own."""
    folder = tmp_path_factory.mktemp("drawn")
    postcard.save(tiny_postcard(grid=Grid(12, 12)), folder / "backbone.safetensors")
    self_distill.train(SelfDistillRecipe(folder, str(folder), pictures=8, batch=8, device="cpu"))
    return folder


def recipe(drawn, out, **knobs) -> HeadsRecipe:
    knobs = {"epochs": 20, "batch": 2, "rate": 4e-3, "held_out": 2, **knobs}
    return HeadsRecipe(out / "mine.safetensors", str(drawn), str(drawn), device="cpu", **knobs)


def test_it_learns_and_leaves_the_heads_in_the_file_alone(drawn, tmp_path):
    heads.train(recipe(drawn, tmp_path, k_h=2, k_v=1, epochs=1))
    backbone = load_backbone(drawn, "cpu")
    before = load_heads(tmp_path / "mine.safetensors", backbone)
    told: list[str] = []
    result = heads.train(recipe(drawn, tmp_path, kind="row"), told.append)
    after = load_heads(tmp_path / "mine.safetensors", backbone)
    assert "a row drafter of 0.0M parameters" in told[0]
    assert torch.equal(before.vertical[0].w0, after.vertical[0].w0)
    assert set(result["acceptance"]) == {"horizontal+1", "horizontal+2", "vertical+1", "row"}
    assert after.metadata["steps"] == before.metadata["steps"] and after.metadata["row_steps"]
    (tmp_path / "mine.ckpt").unlink()
    heads.train(recipe(drawn, tmp_path, k_h=1, k_v=1, epochs=1))  # and the other way round
    again = load_heads(tmp_path / "mine.safetensors", backbone)
    assert again.k_h == 1 and torch.equal(again.row.out, after.row.out)
    fresh = DraftHeads(backbone.hidden_size, 0, 0)
    fresh.row = row.fresh_drafter(backbone.hidden_size, torch.Generator().manual_seed(0))
    pictures = load_pictures(drawn, backbone).pick([6, 7])
    hidden, embedding = next(heads.teacher_parts(backbone, pictures))
    estimates = [row.last_estimate(one, backbone.grid, hidden, embedding) for one in (again, fresh)]
    errors = [float((estimate - hidden).abs().mean()) for estimate in estimates]
    assert errors[0] < 0.95 * errors[1]


def test_sweeps_of_training_are_those_of_decoding():
    """With all tokens held, what decoding estimates is what training shows."""
    backbone = MockBackbone(Grid(4, 5), codes=12)
    drafts, generator = random_heads(backbone, row=True), torch.Generator().manual_seed(3)
    hidden = torch.randn(1, 20, backbone.hidden_size, generator=generator)
    embedding = backbone.embed(torch.randint(12, (1, 20), generator=generator))
    estimate = row.last_estimate(drafts, backbone.grid, hidden, embedding)
    cell = 11  # row 2, column 1: from [h; e] above, and one estimate and token at its left
    around, inside = neighbours(backbone.grid, torch.tensor([10, 11]))
    left = hidden.clone()
    for sweep in range(2):
        known = inside.clone()
        known[1, LEFT] = sweep > 0
        seen = left[0, around]
        left[0, 10:12] = drafts.row(seen, embedding[0, around], known)
    assert torch.allclose(estimate[0, cell], left[0, cell], atol=1e-5)


@pytest.mark.parametrize(("knobs", "line"), [
    ({"kind": "rows"}, "kind 'rows': choose one of heads, row"),
    ({"kind": "row", "k_h": 3}, "k_h belongs to draft heads: leave it out with --kind row"),
    ({"kind": "row", "loss": "kl"}, "loss belongs to draft heads")])
def test_what_makes_no_sense_is_refused(tmp_path, knobs, line):
    with pytest.raises(SSDError, match=line):
        heads.train(HeadsRecipe(tmp_path, **knobs))
