"""Variations: fair samples that share most of their noise with another picture."""

import json

import pytest
import torch
from support.joint import SMALL, joint, p_value
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard, tokens
from support.requests import requested

from ssd_core import Grid, Sampling, methods
from ssd_core.model.noise import STRENGTHS, NoiseField, Variation, chances, varied_cells
from ssd_core.output.drawing import sampling_of
from ssd_core.output.recipe import check, parameters
from ssd_core.runs.request import Request

CPU = torch.device("cpu")
GRID = Grid(24, 24, row_end=True)


def field(seed: int = 3, share: float = 0.0, other: int = 9, codes: int = 5) -> NoiseField:
    sampling = Sampling(seed=seed, variation=share, variation_seed=other)
    return NoiseField([seed], GRID.slots + 1, codes, CPU, variation=Variation.of(sampling, GRID, 1))


def varied(share: float, other: int = 9) -> torch.Tensor:
    """Which slots draw from the other field."""
    own, mixed = field(), field(share=share, other=other)
    fresh = mixed.held[0] != own.held[0]
    assert (fresh.all(-1) == fresh.any(-1)).all()
    other_field = field(seed=other).held[0]
    assert mixed.held[0][fresh.all(-1)].equal(other_field[fresh.all(-1)])
    return fresh.all(-1)[:-1].view(24, 25)[:, :24]


def test_a_share_of_the_cells_draws_from_the_other_seeds_field():
    for share in (*STRENGTHS.values(), 1.0):
        got = torch.stack([varied(share, other).float() for other in range(20, 40)])
        assert got.mean().item() == pytest.approx(share, abs=0.02)
    assert varied(1.0).all() and varied_cells(GRID, 9, 0.5).equal(varied(0.5))
    assert (chances(GRID, 0.0), chances(GRID, 1.0)[0]) == ([0] * 600, 1 << 24)


def test_a_larger_share_keeps_the_changes_of_a_smaller_one_and_the_top_changes_least():
    small, large = varied(0.15), varied(0.5)
    assert not (small & ~large).any()
    assert small[:8].sum() < small[16:].sum() / 2


def test_every_purpose_of_a_slot_has_the_same_seed():
    own, mixed, other = field(), field(share=0.5), field(seed=9)
    fresh = (mixed.held[0] != own.held[0]).all(-1)
    for purpose in (1, 2, 3):
        numbers = [one.uniform(purpose, 2, one.slots)[0] for one in (own, mixed, other)]
        assert numbers[1].equal(torch.where(fresh, numbers[2], numbers[0]))


def test_asking_for_some_slots_gives_the_fields_own_bits():
    one, whole = field(share=0.5), field(share=0.5).held
    index = torch.tensor([[599, 3, 77]])
    assert one.fixed_at(index)[0].equal(whole[0][index[0]])
    assert one.fixed_at(slice(4, 9)).equal(whole[:, 4:9])


def test_a_batch_varies_one_seed():
    some = Sampling(seed=7, variation=0.1, variation_seed=2**64 - 1)
    assert (some.seeds(2), some.variation_seeds(2)) == ([7, 7], [2**64 - 1, 0])
    assert some.offset_seed(1) == Sampling(seed=7, variation=0.1, variation_seed=0)
    assert Sampling(seed=7, variation_seed=4).seeds(2) == [7, 8]


# Every variation is a fair sample of AR


def counted(model: MockBackbone, method, share: float, total: int = 4_096) -> torch.Tensor:
    weights = model.codes ** torch.arange(model.grid.cells - 1, -1, -1)
    counts = torch.zeros(model.codes**model.grid.cells, dtype=torch.long)
    for first in range(0, total, 4096):
        pictures = tokens(model, method, ["sun"] * 4096, heads=random_heads(model, row=True),
                          sampling=Sampling(seed=first // 4096, variation=share,
                                            variation_seed=first))
        counts += torch.bincount((pictures.flatten(1) * weights).sum(1), minlength=len(counts))
    return counts


@pytest.fixture
def spread(monkeypatch):
    """Each picture of the batch varies a seed of its own, so that whole pictures are counted."""
    monkeypatch.setattr(Sampling, "seeds", lambda self, count: [
        self.seed * 65536 + 31 * n for n in range(count)])


@pytest.mark.parametrize("method", [methods.AR(), methods.Exact(), methods.SJD(3),
                                    methods.Strict(k_h=3)], ids=str)
@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.by_day(3)
def test_every_variation_is_a_fair_sample(method, share, spread):
    grid, codes, _ = SMALL["2x3"]
    model = MockBackbone(grid, codes, seed=4)
    assert p_value(counted(model, method, share), joint(model, Sampling())) > 1e-4


def test_the_count_tells_places_that_depend_on_the_noise(spread, monkeypatch):
    """Cells that chose a frequent token are varied: what remains is no fair sample."""
    def by_noise(field: NoiseField, other: Variation) -> None:
        own = field.seeds
        keen = field.exponential(0, 0, field.slots)[..., 0] < 0.5
        seeds = NoiseField(other.seeds, len(field.slots), field.codes, CPU).seeds
        field.places = torch.where(keen[..., None], seeds[:, None], own[:, None])

    monkeypatch.setattr(NoiseField, "_place", by_noise)
    grid, codes, _ = SMALL["2x3"]
    model = MockBackbone(grid, codes, seed=4)
    assert p_value(counted(model, methods.AR(), 0.5), joint(model, Sampling())) < 1e-4


# Recipes


def test_a_recipe_draws_its_variation_again():
    model = tiny_postcard(grid=Grid(6, 7))
    request = requested(model, None, methods.Exact(window=5), Sampling(seed=5, variation=0.5),
                      "a red house", pictures=2, named=True)
    result = request.run()
    plain = requested(model, None, methods.Exact(window=5), Sampling(seed=5), "a red house",
                    named=True).run()
    for n, recipe in enumerate(result.recipes()):
        check(recipe)
        assert (recipe["seed"], recipe["variation_seed"], recipe["variation"]) == (5, n, 0.5)
        assert f"Variation seed: {n}, Variation seed strength: 0.5" in parameters(recipe)
        again = Request.of_recipe(json.loads(json.dumps(recipe)), model, None)
        assert again.run().tokens[0].equal(result.tokens[n])
        assert not result.tokens[n].equal(plain.tokens[0])
    (recipe,) = plain.recipes()
    assert recipe["variation"] == 0
    assert sampling_of(recipe) == Sampling(seed=5, cfg=recipe["cfg"], min_p=recipe["min_p"],
                                             temperature=1.0, top_p=1.0, top_k=0)
