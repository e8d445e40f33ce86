"""Known cells in every method: what stands, what AR would draw, and what is reported."""

import json
from functools import cache

import pytest
import torch
from support.every_method import one_of_each
from support.joint import SMALL, in_turn, joint, p_value
from support.mock_backbone import MockBackbone, events, random_heads, tiny_postcard, tokens
from support.requests import requested

from ssd_core import FinalRows, Finished, Grid, Pass, Sampling, SSDError, methods, plan
from ssd_core.engine import accept
from ssd_core.output.packed import pack, pack_mask, unpack, unpack_mask
from ssd_core.output.recipe import check
from ssd_core.runs.request import Request

GRID = Grid(6, 7)
WORDS = ("sun", "a red house")


def all_but(*boxes: tuple[slice, slice], grid: Grid = GRID) -> torch.Tensor:
    """A mask that keeps everything but these boxes."""
    mask = torch.ones(grid.rows, grid.columns, dtype=torch.bool)
    for box in boxes:
        mask[box] = False
    return mask


MASKS = {
    "box": all_but((slice(1, 4), slice(2, 5))),
    "one-cell": all_but((slice(2, 3), slice(3, 4))),
    "corners": all_but((slice(0, 1), slice(0, 2)), (slice(5, 6), slice(5, 7))),
    "column": ~all_but((slice(0, 6), slice(0, 2))),
    "middle-of-a-row": all_but((slice(3, 4), slice(3, 7)), (slice(4, 6), slice(0, 7))),
    "stripes": all_but(*((slice(y, y + 1), slice(0, 7)) for y in (0, 3, 5))),
    "dots": torch.rand(6, 7, generator=torch.Generator().manual_seed(4)) < 0.6,
}
KNOBS = {"k_h": 3, "k_v": 2, "rounds": 2, "incremental": 1, "window": 5, "tree_width": 2}
DRAWING = [method for method in one_of_each(**KNOBS) if method.name != "mulo"]
DRAWING += [methods.SSD(3, 1, 2, fused_commit=True), methods.SSD(3, 2, 3, acceptance="coupled"),
            methods.SSD(3, 2, 2, drafter="row"), methods.Exact(5, "row"), methods.SJD(4),
            methods.Wave(2, 3, "none"), methods.Wave(9, 4, "residual"), methods.Jacobi(window=30),
            methods.Exact(), methods.Rolling(budget=9), methods.Strict("vertical", k_h=2)]


@cache
def backbone(row_end: bool = False) -> MockBackbone:
    return MockBackbone(Grid(GRID.rows, GRID.columns, row_end), codes=12)


@cache
def heads(model: MockBackbone):
    return random_heads(model, row=True)


@cache
def ar(name: str, row_end: bool) -> list:
    """What AR tells of a run with this mask."""
    return told(backbone(row_end), methods.AR(), MASKS[name])


def parent(pictures: int = 1) -> torch.Tensor:
    return (torch.arange(pictures * GRID.cells).view(-1, GRID.rows, GRID.columns) * 7) % 12


def told(model: MockBackbone, method, mask: torch.Tensor, prompts=WORDS, **options) -> list:
    return events(model, method, prompts, heads=heads(model), keep_mask=mask,
                  **{"keep": parent(), "sampling": Sampling(seed=3, cfg=2.0), **options})


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("method", DRAWING, ids=str)
@pytest.mark.by_day(14)
def test_pinned_cells_stand_and_only_free_ones_are_reported(method, row_end):
    model = backbone(row_end)
    for name, mask in list(MASKS.items())[row_end::2]:
        run = told(model, method, mask)
        drawn, stats = run[-1].tokens, run[-1].stats
        assert drawn[:, mask].equal(parent()[:, mask].expand(2, -1)), name
        assert stats["passes"] <= run[0].plan.passes_max, name
        if run[0].plan.passes is not None:
            assert stats["passes"] <= run[0].plan.passes, name
        for event in run:
            if isinstance(event, Pass):
                y, x = event.cells.unbind(-1)
                assert not mask[y[x < GRID.columns], x[x < GRID.columns]].any(), name
        rows = [event for event in run if isinstance(event, FinalRows)]
        assert [y for one in rows for y in range(one.first, one.last)] == list(range(GRID.rows))
        assert all(one.tokens.equal(drawn[:, one.first : one.last]) for one in rows), name


ALIKE = [methods.Exact(), methods.Exact(window=3), methods.Jacobi(), methods.Jacobi(window=4),
         methods.Exact(4, "row"), methods.Wave(7, 2), methods.Rolling(budget=42)]


@pytest.mark.parametrize("method, name, row_end", [
    pytest.param(method, name, (m + n) % 2 == 1, id=f"{method}-{name}")  # by turns
    for m, method in enumerate(ALIKE) for n, name in enumerate(MASKS)])
@pytest.mark.by_day(16)
def test_the_guarantee_of_ars_picture_holds_with_a_mask(method, name, row_end):
    expected = ar(name, row_end)
    assert expected[-1].stats["passes"] == int((~MASKS[name]).sum()) == expected[0].plan.ar_passes
    found = told(backbone(row_end), method, MASKS[name])[-1].tokens
    assert found.equal(expected[-1].tokens)


def test_ar_with_a_mask_continues_in_raster_order_from_what_is_there():
    """Masked cells up to the first known one are those of a run without a mask."""
    mask, free = all_but((slice(0, 2), slice(0, 7)), (slice(2, 3), slice(0, 3))), 17
    drawn = told(backbone(), methods.AR(), mask)[-1].tokens
    plain = tokens(backbone(), methods.AR(), WORDS, sampling=Sampling(seed=3, cfg=2.0))
    assert drawn.flatten(1)[:, :free].equal(plain.flatten(1)[:, :free])


@pytest.mark.parametrize("method", [methods.AR(), methods.Exact(window=4), methods.Jacobi(window=6),
                                    methods.Exact(3, "row")], ids=str)
def test_pictures_of_a_batch_may_have_different_masks(method):
    model, pair = backbone(True), torch.stack((MASKS["box"], MASKS["corners"]))
    drawn = told(model, method, pair, keep=parent(2))[-1].tokens
    for n, words in enumerate(WORDS):
        alone = told(model, method, pair[n], (words,), keep=parent(2)[n : n + 1],
                     sampling=Sampling(seed=3 + n, cfg=2.0))
        assert drawn[n].equal(alone[-1].tokens[0])


@pytest.mark.parametrize("method", DRAWING, ids=str)
@pytest.mark.by_day(12)
def test_every_method_takes_different_masks_at_once(method):
    pair = torch.stack((MASKS["one-cell"], MASKS["dots"]))
    run = told(backbone(), method, pair, keep=parent(2))
    assert run[-1].tokens[pair].equal(parent(2)[pair])
    assert run[-1].stats["passes"] <= run[0].plan.passes_max


@pytest.mark.parametrize("method", [one for one in DRAWING if one.name != "mulo"], ids=str)
@pytest.mark.by_day(8)
def test_rows_kept_by_a_mask_are_rows_kept_by_number(method):
    mask = ~all_but((slice(0, 2), slice(0, 7)))
    masked = told(backbone(), method, mask)
    by_rows = events(backbone(), method, WORDS, heads=heads(backbone()),
                     keep=parent(), keep_rows=2, sampling=Sampling(seed=3, cfg=2.0))
    if method.name == "sjd":  # starts from the parent where a mask is given
        assert masked[0].plan == by_rows[0].plan
    elif method.name == "rolling":
        assert masked[-1].tokens[:, :2].equal(by_rows[-1].tokens[:, :2])
    else:
        assert masked[-1].tokens.equal(by_rows[-1].tokens)


def never(tokens, *rest):
    """A rule that repairs every token but the known ones, which have probability 1."""
    known = rest[len(rest) // 4].amax(-1) == 1
    other = torch.where(known, tokens, (tokens + 1) % 12)
    return accept.AcceptResult(other, known)


@pytest.mark.parametrize("method", [
    methods.AR(), methods.MTP(k_h=3), methods.MTP(k_h=2, rounds=0), methods.SSD(3, 1, 2),
    methods.SSD(3, 2, 3, 1), methods.SSD(2, 3, 2, 2), methods.SSD(3, 2, 2, fused_commit=True),
    methods.Rows(3, 2, 2), methods.Rows(3, 3, 2, 1, fused_commit=True), methods.Wave(2, 1),
    methods.Wave(3, 3, "none")], ids=str)
@pytest.mark.by_day(6)
def test_a_plan_counts_the_passes_with_the_mask(method, monkeypatch):
    for rule in ("residual", "coupled"):
        monkeypatch.setattr(accept, rule, never)
    for n, (name, mask) in enumerate(MASKS.items()):
        model = backbone((n + method.name.startswith("s")) % 2 == 1)  # rows end by turns
        run = told(model, method, mask, sampling=Sampling(seed=3, cfg=1.0))
        assert run[-1].stats["passes"] == run[0].plan.passes, name
        assert plan(model, method, keep_mask=mask).passes == run[0].plan.passes


def test_a_long_stretch_of_pinned_cells_takes_one_pass():
    grid = Grid(30, 8)
    mask = all_but((slice(0, 1), slice(0, 1)), (slice(29, 30), slice(0, 1)), grid=grid)
    model, kept = MockBackbone(grid), torch.zeros(1, 30, 8, dtype=torch.long)
    for method in one_of_each(**KNOBS):
        if method.name != "mulo":
            run = events(model, method, heads=random_heads(model), keep=kept, keep_mask=mask)
            assert run[-1].stats["passes"] == 2, method


@pytest.mark.parametrize(("mask", "said"), [
    (torch.zeros(6, 7, dtype=torch.bool), "no cell is kept"),
    (torch.ones(6, 7, dtype=torch.bool), "nothing is left to draw"),
    (torch.stack((MASKS["box"], torch.ones(6, 7, dtype=torch.bool))), "nothing is left to draw"),
    (MASKS["box"][:5], r"\(5, 7\) does not fit"), (MASKS["box"].long(), "must be a tensor of bool"),
    (MASKS["box"].expand(3, -1, -1), "does not fit 2 pictures"), ([[True]], "tensor of bool")])
def test_bad_masks_get_one_line(mask, said):
    with pytest.raises(SSDError, match=said) as error:
        told(backbone(), methods.AR(), mask)
    assert "keep_mask" in str(error.value) and "\n" not in str(error.value)


def test_a_mask_needs_tokens_and_no_rows_beside_it():
    with pytest.raises(SSDError, match="nothing to keep"):
        told(backbone(), methods.AR(), MASKS["box"], keep=None)
    with pytest.raises(SSDError, match="give one of them"):
        told(backbone(), methods.AR(), MASKS["box"], keep_rows=1)


def test_mulo_keeps_whole_rows_only():
    with pytest.raises(SSDError, match="mulo draws whole rows"):
        told(backbone(), methods.MuLo(), MASKS["box"])


# The distribution: known cells are fixed, masked ones follow AR's conditional in raster order


def conditional(model: MockBackbone, kept: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """[codes ^ cells] probability of every picture: each masked cell by AR, given those before."""
    grid, codes = model.grid, model.codes
    pictures = torch.cartesian_prod(*[torch.arange(codes)] * grid.cells)
    full = joint(model, Sampling()).view([codes] * grid.cells)
    probs = torch.ones(len(pictures), dtype=torch.float64)
    before = torch.ones(1, dtype=torch.float64)
    for cell, pinned in enumerate(mask.flatten().tolist()):
        upto = full.sum(tuple(range(cell + 1, grid.cells))) if cell + 1 < grid.cells else full
        given = upto / before.clamp(min=1e-300)[..., None] if cell else upto
        index = tuple(pictures[:, : cell + 1].unbind(1))
        if pinned:
            probs *= pictures[:, cell] == kept.flatten()[cell]
        else:
            probs *= given[index]
        before = upto
    return probs


def counted(model: MockBackbone, method, kept, mask, total: int) -> torch.Tensor:
    cells = model.grid.cells
    weights = model.codes ** torch.arange(cells - 1, -1, -1)
    counts = torch.zeros(model.codes**cells, dtype=torch.long)
    for first in range(0, total, 4096):
        drawn = tokens(model, method, ["sun"] * 4096, heads=random_heads(model, row=True),
                       keep=kept, keep_mask=mask, sampling=Sampling(seed=first))
        counts += torch.bincount((drawn.flatten(1) * weights).sum(1), minlength=len(counts))
    return counts


SAME = [methods.AR(), methods.Exact(), methods.Strict(k_h=3), methods.Strict("vertical", k_h=2),
        methods.SJD(3), methods.SJD(3, guess="parent"), methods.SJD(3, tree_width=2),
        methods.SJD(3, continuation=False), methods.Hawk(3, 2, 1, 1, 9), methods.MTP(2, 2),
        methods.SSD(k_h=1, k_v=1, rounds=3), methods.Wave(9, 2), methods.Wave(9, 2, "residual")]
BROKEN = [methods.SSD(k_h=2, k_v=2, rounds=0), methods.Rows(k_h=1, k_v=1, rounds=0),
          methods.Wave(1, 3, "none")]
FIXED = torch.tensor([[False, True, False], [False, True, False]])


@in_turn(SAME, ("2x3", "2x2-row-end"))
@pytest.mark.by_day(5)
def test_free_cells_follow_ars_conditional(method, small):
    grid, codes, _ = SMALL[small]
    mask = FIXED[:, : grid.columns].clone()
    if grid.columns == 2:
        mask = torch.tensor([[False, True], [False, False]])
    model = MockBackbone(grid, codes, seed=4)
    kept = torch.full((1, grid.rows, grid.columns), codes - 1)
    counts = counted(model, method, kept, mask, 4_096)
    assert p_value(counts, conditional(model, kept, mask)) > 1e-4


@pytest.mark.parametrize("method", BROKEN, ids=str)
def test_the_enumeration_tells_methods_that_only_approximate(method):
    model, kept = MockBackbone(Grid(2, 3), 3, seed=4), torch.full((1, 2, 3), 2)
    counts = counted(model, method, kept, FIXED, 4_096)
    assert p_value(counts, conditional(model, kept, FIXED)) < 1e-4


# The parent as first guess


GUESSING = [methods.Exact(window=10), methods.Jacobi(window=10),
            methods.Rolling(window=14, budget=9), methods.SJD(10)]


def with_guess(method, guess: str, kept: torch.Tensor, mask: torch.Tensor,
               seed: int = 3) -> Finished:
    return told(backbone(), type(method)(**{**vars(method), "guess": guess}), mask, WORDS[:1],
                keep=kept, sampling=Sampling(seed=seed))[-1]


@pytest.mark.parametrize("method", GUESSING[:2], ids=str)
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.by_day(7)
def test_a_guess_never_changes_ars_picture(method, name):
    usual, auto, given = (with_guess(method, guess, parent(), MASKS[name])
                          for guess in ("usual", "auto", "parent"))
    assert usual.tokens.equal(given.tokens) and usual.tokens.equal(auto.tokens)
    assert auto.stats["passes"] == given.stats["passes"]  # with a mask


LARGE = MockBackbone(Grid(14, 12), codes=12)
BELOW = all_but((slice(1, 14), slice(0, 12)), grid=LARGE.grid)


def passes_with(method, guess: str, kept: torch.Tensor, seed: int, **sampling) -> int:
    method = type(method)(**{**vars(method), "guess": guess})
    return events(LARGE, method, keep=kept, keep_mask=BELOW,
                  sampling=Sampling(seed=seed, **sampling))[-1].stats["passes"]


@pytest.mark.parametrize(("method", "share", "sampling"), [
    (methods.Exact(window=24), 0.65, {}), (methods.Jacobi(window=24), 0.8, {}),
    (methods.Rolling(window=24, budget=60), 0.8, {}),
    (methods.SJD(24), 0.95, {"temperature": 0.1})],
    ids=["exact", "jacobi", "rolling", "sjd"])
def test_a_parent_that_is_right_saves_passes(method, share, sampling):
    usual = passes = 0
    for seed in range(2):
        kept = tokens(LARGE, methods.AR(), sampling=Sampling(seed=seed, **sampling))
        usual += passes_with(method, "usual", kept, seed, **sampling)
        passes += passes_with(method, "auto", kept, seed, **sampling)
    assert passes <= share * usual, (passes, usual)


def test_a_parent_that_is_wrong_costs_next_to_nothing():
    wrong = (torch.arange(LARGE.grid.cells).view(1, 14, 12) * 7) % 12
    usual, passes = (sum(passes_with(methods.Exact(window=24), guess, wrong, seed)
                         for seed in range(4)) for guess in ("usual", "parent"))
    assert passes <= 1.03 * usual, (passes, usual)


def test_rows_kept_by_number_start_from_the_usual_guess_unless_told():
    model = backbone()
    run = {guess: events(model, methods.SJD(10, guess=guess), keep=parent(), keep_rows=2)[-1]
           for guess in ("auto", "usual", "parent")}
    assert run["auto"].tokens.equal(run["usual"].tokens)
    assert not run["auto"].tokens.equal(run["parent"].tokens)


# Requests and recipes


@pytest.mark.parametrize("method", [methods.Exact(window=5), methods.SJD(5)], ids=str)
def test_a_recipe_carries_mask_and_parent_and_draws_the_same_again(method, tmp_path):
    model = tiny_postcard(grid=Grid(6, 7))
    mask = torch.stack((MASKS["box"], MASKS["corners"]))
    request = requested(model, None, method, Sampling(seed=5), "a red house", pictures=2,
                      keep=parent(2), keep_mask=mask, named=True)
    for index, (tokens_, recipe) in enumerate(zip(*drawn_by(request), strict=True)):
        assert tokens_[mask[index]].equal(parent(2)[index][mask[index]])
        check(recipe)
        assert unpack_mask(recipe["keep_mask"]).equal(mask[index])
        assert unpack(recipe["keep"]).equal(parent(2)[index])
        again = Request.of_recipe(json.loads(json.dumps(recipe)), model, None)
        assert again.drawing.keep_mask.equal(mask[index])
        assert again.plan.ar_passes == (~mask[index]).sum()
        if method.name == "exact":
            assert again.run().tokens[0].equal(tokens_)


def drawn_by(request: Request) -> tuple:
    result = request.run()
    return result.tokens, result.recipes()


def test_an_unfinished_edit_goes_on_below_its_rows():
    model = tiny_postcard(grid=Grid(6, 7))
    request = requested(model, None, methods.AR(), Sampling(seed=5), "a red house", named=True,
                      keep=parent(), keep_mask=MASKS["box"])
    tokens_, (recipe,) = drawn_by(request)
    rest = Request.of_recipe({**recipe, "keep_rows": 2}, model, None)
    mask = rest.drawing.keep_mask
    assert mask[:2].all() and mask[2:].equal(MASKS["box"][2:])
    assert rest.run().tokens.equal(tokens_)


@pytest.mark.parametrize("change", [
    {"keep_mask": {"shape": [6, 7], "data": ""}}, {"keep_mask": pack_mask(MASKS["box"][:5])},
    {"keep": None}, {"keep_mask": pack_mask(torch.ones(6, 7, dtype=torch.bool))},
    {"keep": pack(parent()[0][:5])}])
def test_a_damaged_mask_is_refused(change):
    request = requested(tiny_postcard(grid=Grid(6, 7)), None, methods.AR(), Sampling(seed=5),
                      "a red house", keep=parent(), keep_mask=MASKS["box"], named=True)
    _, (recipe,) = drawn_by(request)
    with pytest.raises(ValueError):
        check({**recipe, **change})


@pytest.mark.parametrize("method", DRAWING, ids=str)
@pytest.mark.by_day(8)
def test_rows_below_a_free_cell_at_the_end_of_its_row_are_reported(method):
    """The row ends with a token, which the run decides, too."""
    run = told(backbone(True), method, all_but((slice(1, 3), slice(5, 7))))
    reported = [(event.first, event.last) for event in run if isinstance(event, FinalRows)]
    assert [first for first, _ in reported] == [0, *(last for _, last in reported[:-1])]
    assert reported[-1][1] == GRID.rows


@pytest.mark.parametrize("grid", [Grid(6, 7), Grid(6, 1)], ids=str)
@pytest.mark.parametrize("fused", [False, True])
def test_a_group_of_one_free_cell_leaves_nothing_to_verify(grid, fused):
    model = MockBackbone(grid, codes=12)
    method = methods.SSD(3, 1, 2, fused_commit=fused)
    box = (slice(2, 4), slice(0, 1))
    codes = torch.arange(grid.cells).view(1, grid.rows, grid.columns) % 12
    drawn = tokens(model, method, WORDS, heads=random_heads(model), keep=codes,
                   keep_mask=all_but(box, grid=grid), sampling=Sampling(seed=3, cfg=2.0))
    kept = all_but(box, grid=grid)
    assert drawn[:, kept].equal(codes[:, kept].expand(2, -1))


@pytest.mark.parametrize("stay", [(17, 62), (20, 62), (31, 36)])
@pytest.mark.parametrize("cells", [2, 3])
def test_a_wave_feeds_pictures_whose_masks_differ_widely(stay, cells):
    """Together they feed more slots than a picture has. stay: bits of the cells that stay."""
    grid, codes = Grid(2, 3), torch.arange(6).view(1, 2, 3)
    masks = torch.tensor([[bits >> cell & 1 for cell in range(6)] for bits in stay]).bool()
    masks = masks.view(2, 2, 3)
    drawn = tokens(MockBackbone(grid, codes=12), methods.Wave(1, cells, "residual"), WORDS,
                   keep=codes, keep_mask=masks, sampling=Sampling(seed=3, cfg=2.0))
    assert drawn[masks].equal(codes.expand(2, -1, -1)[masks])
