"""The model of a card is as described, and passes are counted on the stand-in."""

import pytest
from support.script_modules import script

from ssd_core.engine.methods import AR, Exact
from ssd_core.model.grid import Grid
from ssd_core.weights.cards import REACHED, pass_seconds
from ssd_core.weights.catalogue import known
from ssd_core.weights.model_size import ModelSize


@pytest.fixture(scope="module")
def modelled():
    return script("lab/benchmarks", "modelled")


def test_a_wider_window_takes_fewer_passes_and_ar_takes_one_a_cell(modelled):
    grid = Grid(6, 8)
    few, many = (modelled.passes(grid, Exact(window), 1.7) for window in (24, 3))
    assert few < many < grid.cells == modelled.passes(grid, AR(), 1.7)


def test_a_wide_pass_costs_its_products_and_a_narrow_one_its_reads(modelled):
    model, card = ModelSize.of(known("Lumina-mGPT-2.0")), modelled.A100
    narrow, wide, wider = (pass_seconds(model, model.grid, card, cells)
                           for cells in (1, 400, 800))
    assert wider == pytest.approx(2 * wide) and narrow < wide
    weights = 2 * (model.matrices + model.image_head)
    assert narrow > weights / (REACHED * card.bandwidth)
