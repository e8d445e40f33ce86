"""The stand-in sees the tokens that it says, and comes near what is published of large models."""

import json

import pytest
import torch
from support.script_modules import ROOT, script

from ssd_core import Grid
from ssd_core.train.teacher import teach

RESULTS = ROOT / "lab" / "benchmarks" / "results"


@pytest.fixture(scope="module")
def stand_in():
    return script("lab/benchmarks", "stand_in")


@pytest.fixture(scope="module")
def tables():
    return script("lab/benchmarks", "stand_in_table")


@pytest.mark.parametrize("grid", [Grid(8, 12), Grid(8, 12, True)], ids=str)
@torch.inference_mode()
def test_a_state_holds_the_tokens_around_its_cell_and_their_materials(stand_in, grid):
    backbone = stand_in.StandIn(grid, stand_in.LUMINA_WORLD)
    codes = torch.randint(backbone.codes, (1, 8, 12), generator=torch.Generator().manual_seed(1))
    hidden, own = (states.unflatten(1, (8, 12)) for states in teach(backbone, [[0, 0]], codes))
    material, vector = stand_in.OWN.start, stand_in.OWN.start + stand_in.MATERIALS
    for number, (row, column) in enumerate(backbone.world.shares):
        at = vector + number * stand_in.TERM
        seen = hidden[0, 1:, 4:8, at : at + stand_in.TERM]
        around = own[0, 1 + row : 8 + row, 4 + column : 8 + column]
        assert torch.allclose(seen, around[..., vector : stand_in.OWN.stop], atol=2e-2)
    row, column = stand_in.FROM
    left = backbone.world.left
    both = own[0, 1:, 3:7] + (1 - left) / left * own[0, :-1, 4 + column : 8 + column]
    assert row == -1 and torch.allclose(hidden[0, 1:, 4:8, material:vector],
                                        both[..., material:vector], atol=2e-2)


@torch.inference_mode()
def test_areas_of_easy_and_hard_tokens_lie_together(stand_in, tables):
    backbone = stand_in.janus_like()
    tokens, passes = tables.draw(backbone, None, tables.AR(), 4)
    assert passes == [576] * 4
    near = tables.correlation(backbone, tokens)
    published = tables.PUBLISHED["janus"]
    assert near["entropy, right"] == pytest.approx(published["entropy, right"], abs=0.15)
    assert near["entropy, right"] > near["entropy, below"]
    assert tables.apart(backbone, tokens) == pytest.approx(0, abs=0.01)
    assert tables.apart(backbone, tokens.roll(1, 0)) < 0.01, "they are its own pictures, too"
    assert tables.apart(backbone, tokens.flip(1)) > 0.3, "upside down"


def test_passes_are_those_of_janus_pro(stand_in, tables):
    backbone = stand_in.janus_like()
    for label, off in ((tables.SJD_LABEL, 0.2), ("exact, window 32", 0.25)):
        _, passes = tables.draw(backbone, None, tables.methods()[label], 4)
        assert 4 * 576 / sum(passes) == pytest.approx(tables.PUBLISHED["janus"][label], rel=off)


def test_the_kept_figures_are_near_those_that_are_published(tables):
    found = json.loads((RESULTS / "stand_in.json").read_text(encoding="utf-8"))
    assert set(found) == set(tables.MODELS)
    for name, published in tables.PUBLISHED.items():
        here = tables.difficulty(found[name])
        for key, figure in published.items():
            assert here[key] == pytest.approx(figure, rel=tables.NEAR), (name, key)
