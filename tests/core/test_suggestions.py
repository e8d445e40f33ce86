"""Suggestions for a region: those first under which the kept cells that follow are likeliest."""

import pytest
import torch
from support.mock_backbone import MockBackbone, tiny_postcard
from support.requests import requested

from ssd_core import Grid, Sampling, methods
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.edits import maps
from ssd_core.runs import suggestions
from ssd_core.runs.request import Request
from ssd_core.runs.suggestions import fit_of, following, likeliest_first

GRID = Grid(4, 5)
KEPT = torch.ones(4, 5, dtype=torch.bool)
KEPT[1:3, 1:3] = False


def probabilities(model: MockBackbone, prompt: str, tokens: torch.Tensor) -> torch.Tensor:
    """log p [R, C] of every cell, by a plain forward without cache."""
    grid = model.grid
    row_ends = torch.nn.functional.pad(tokens, (0, int(grid.row_end)), value=model.codes)
    letters = torch.tensor([model.tokenize(prompt)])
    x = torch.cat((model.embed_prompt(letters), model.embed(row_ends.flatten()[None])), dim=1)
    logits = model.logits(model(x)[:, letters.shape[1] - 1 : -1])[0]
    slots = torch.tensor([grid.slot(cell) for cell in range(grid.cells)])
    own = logits.log_softmax(-1)[slots].gather(-1, tokens.flatten()[:, None])
    return own.view(grid.rows, grid.columns)


@pytest.mark.parametrize("row_end", [False, True])
def test_likelihood_is_that_of_a_plain_forward(row_end, monkeypatch):
    model = MockBackbone(Grid(4, 5, row_end), codes=12)
    tokens = torch.randint(12, (2, 4, 5), generator=torch.Generator().manual_seed(1))
    branches = prompt_branches(model, ["sun", "a red house"], None, 1.0)
    monkeypatch.setattr(maps, "NUMBERS_AT_ONCE", 12 * 2 * 7)  # in several parts
    got = suggestions.log_likelihood(model, branches, Sampling(cfg=1.0), tokens, KEPT[None])
    for n, words in enumerate(("sun", "a red house")):
        wanted = probabilities(model, words, tokens[n])[KEPT].mean()
        assert got[n].item() == pytest.approx(wanted.item(), abs=1e-4)


def request(mask: torch.Tensor, pictures: int = 4) -> Request:
    model = tiny_postcard(grid=GRID)
    kept = (torch.arange(GRID.cells).view(1, 4, 5) * 7) % model.codes
    return requested(model, None, methods.AR(), Sampling(seed=5), "a red house", named=True,
                   pictures=pictures, keep=kept, keep_mask=mask)


def test_only_kept_cells_after_the_first_free_one_count():
    cells = following(request(KEPT))[0]
    assert not cells[0].any() and not cells[1, :3].any() and cells[1, 3:].all() and cells[3].all()


def test_the_likeliest_suggestions_come_first_in_one_batch_or_one_by_one():
    run = request(KEPT)
    together = run.run()
    fits = fit_of(together)
    order = likeliest_first([together])
    assert sorted(order) == [0, 1, 2, 3] and len(set(fits)) > 1
    assert [fits[n] for n in order] == sorted(fits, reverse=True)
    run.alone = True
    assert likeliest_first([part.run() for part in run.parts()]) == order


def test_without_cells_that_follow_suggestions_stay_as_they_were_drawn():
    mask = torch.zeros(4, 5, dtype=torch.bool)
    mask[:2] = True
    assert likeliest_first([request(mask).run()]) == [0, 1, 2, 3]
