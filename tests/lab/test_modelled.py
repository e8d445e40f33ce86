"""The stand-in has the stated entropy and sees its neighbours; the model of a card is as described.
"""

import pytest
import torch
from support.script_modules import script

from ssd_core.engine.methods import AR, Exact
from ssd_core.model.grid import Grid
from ssd_core.weights.catalogue import known
from ssd_core.weights.model_size import ModelSize


@pytest.fixture(scope="module")
def stand_in():
    return script("lab/benchmarks", "stand_in")


@pytest.fixture(scope="module")
def modelled():
    return script("lab/benchmarks", "modelled")


@pytest.mark.parametrize("grid", [Grid(8, 12), Grid(8, 12, True)], ids=str)
@torch.inference_mode()
def test_the_stand_in_sees_the_tokens_above_and_has_the_stated_entropy(stand_in, grid):
    backbone = stand_in.StandIn(grid, 1.7, 0.3)
    draw = torch.Generator().manual_seed(1)
    codes = torch.randint(backbone.codes, (1, grid.slots), generator=draw)
    prompt = torch.tensor([backbone.tokenize("a")])
    hidden = backbone(torch.cat((backbone.embed_prompt(prompt), backbone.embed(codes)), 1))
    slots, term = torch.arange(grid.width, grid.slots), stand_in.TERM
    tokens = backbone.code_embedding[:, 1 : 1 + term]
    for place, back in enumerate((grid.width - 1, grid.width, grid.width - 2), 1):
        seen = hidden[0, slots + prompt.shape[1], 1 + place * term :][:, :term]
        assert torch.allclose(seen, tokens[codes[0, slots - back]], atol=2e-2)
    log = backbone.logits(hidden)[0, grid.width + prompt.shape[1] :].log_softmax(-1)
    assert float(-(log.exp() * log).sum(-1).mean()) == pytest.approx(1.7, abs=0.35)


def test_more_entropy_takes_more_passes_and_ar_takes_one_a_cell(modelled):
    grid = Grid(6, 8)
    few, many = (modelled.passes(grid, Exact(16), entropy) for entropy in (0.2, 3.0))
    assert few < many <= grid.cells == modelled.passes(grid, AR(), 1.7)


def test_a_wide_pass_costs_its_products_and_a_narrow_one_its_reads(modelled):
    model, card = ModelSize.of(known("Lumina-mGPT-2.0")), modelled.A100
    narrow, wide, wider = (modelled.pass_seconds(model, model.grid, card, cells)
                           for cells in (1, 400, 800))
    assert wider == pytest.approx(2 * wide) and narrow < wide
    weights = 2 * (model.matrices + model.image_head)
    assert narrow > weights / (modelled.REACHED * card.bandwidth)
