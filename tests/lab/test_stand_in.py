"""The stand-in sees the tokens that it says, and has the figures published of large models."""

import json

import pytest
import torch
from support.script_modules import ROOT, script

from ssd_core import Grid, Sampling, generate
from ssd_core.engine.events import finished
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
    backbone = stand_in.StandIn(grid, shares=stand_in.LUMINA_SHARES)
    codes = torch.randint(backbone.codes, (1, 8, 12), generator=torch.Generator().manual_seed(1))
    hidden, own = (states.unflatten(1, (8, 12)) for states in teach(backbone, [[0, 0]], codes))
    material, vector = stand_in.OWN.start, stand_in.OWN.start + stand_in.MATERIALS
    for number, (row, column) in enumerate(backbone.shares):
        at = vector + number * stand_in.TERM
        seen = hidden[0, 1:, 4:8, at : at + stand_in.TERM]
        around = own[0, 1 + row : 8 + row, 4 + column : 8 + column]
        assert torch.allclose(seen, around[..., vector : stand_in.OWN.stop], atol=2e-2)
    both = own[0, 1:, 3:7] + own[0, :-1, 4:8]
    assert torch.allclose(hidden[0, 1:, 4:8, material:vector], both[..., material:vector],
                          atol=2e-2)


@torch.inference_mode()
def test_tokens_have_the_stated_entropy_and_keep_to_materials(stand_in, tables):
    backbone = stand_in.StandIn(Grid(16, 16), entropy=1.7)
    tokens, passes = tables.draw(backbone, None, tables.AR(), 8)
    assert passes == [256] * 8
    assert float(tables.nll(backbone, tokens).mean()) == pytest.approx(1.85, abs=0.3)
    materials = tokens % stand_in.MATERIALS
    assert float((materials[:, 1:] == materials[:, :-1]).float().mean()) > 0.8
    assert len(tokens.unique()) > 200


def test_sjd_takes_as_many_passes_as_on_janus_pro(stand_in, tables):
    backbone = stand_in.janus_like()
    run = generate(backbone, ["a"] * 4, tables.FIRST, sampling=Sampling(seed=1))
    passes = finished(run).stats["passes_each"]
    assert 4 * 576 / sum(passes) == pytest.approx(tables.PUBLISHED["janus"]["sjd"], rel=0.15)


def test_the_kept_figures_are_those_that_are_published(tables):
    found = json.loads((RESULTS / "stand_in.json").read_text(encoding="utf-8"))
    for name, rows in found.items():
        here = tables.difficulty(rows)
        for key, figure in tables.PUBLISHED[name].items():
            if key == "sjd-pac":  # it was not set by this one, and takes fewer passes than theirs
                assert here[key] > figure
                continue
            assert here[key] == pytest.approx(figure, rel=0.1), (name, key)
