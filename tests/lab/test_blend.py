"""The stage that teaches the tokenizer's decoder to join sampled tokens."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssd_core import Sampling, SSDError, generate, load_backbone
from ssd_core.backbones import postcard
from ssd_core.engine.methods import Exact
from ssd_lab.postcards import WORDS
from ssd_lab.train import blend
from ssd_lab.train.blend import BlendRecipe, Examples
from ssd_lab.train.tokenizer import PATCH

CAPTIONS = ["a red house , on a lake , at night", "two blue trees , in the snow"]


@pytest.fixture(scope="module")
def blended(tmp_path_factory):
    """A folder with a random postcard before and after two steps, and what the stage returned."""
    folder = tmp_path_factory.mktemp("blend")
    fresh = postcard.Postcard(WORDS)
    fresh.initialise(torch.Generator().manual_seed(0))
    postcard.save(fresh, folder / "before" / "backbone.safetensors")
    told = blend.train(BlendRecipe(folder / "after", backbone=str(folder / "before"), pictures=2,
                                   steps=2, batch=2, held_out=1, device="cpu", dtype="fp32"))
    return (*(load_backbone(folder / name, "cpu") for name in ("before", "after")), told)


def test_only_what_repairs_the_seams_changes(blended):
    before, after, told = blended
    changed = {name for name, weight in before.state_dict().items()
               if not torch.equal(weight, after.state_dict()[name])}
    assert changed and all(name.startswith("picture_codec.repair.") for name in changed)
    assert told["stage"] == "blend" and 0 <= told["claims_kept"] <= 1


@pytest.mark.nightly
def test_a_cell_is_sampled_from_what_the_backbone_expects_there():
    """With only the likeliest token left, a picture of greedy decoding is sampled as it is, but for
    the rounding of mixed precision; with the captions of other pictures it is not."""
    backbone = load_backbone("postcard", "cpu", "fp32")
    *_, drawn = generate(backbone, CAPTIONS, Exact(), sampling=Sampling(temperature=0))
    backbone.preset = replace(backbone.preset, min_p=1.0)
    same = [(blend.resampled(backbone, captions, drawn.tokens, torch.Generator().manual_seed(0))
             == drawn.tokens).float().mean().item() for captions in (CAPTIONS, CAPTIONS[::-1])]
    assert same[0] > 0.99 > same[1]


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_a_grid_mixes_a_pictures_own_tokens_with_its_sampled_ones(seed, count):
    own = torch.arange(3)[:, None, None].expand(3, 6, 6)
    things = torch.zeros(3, 6, 6, dtype=torch.bool)
    things[0, 2, 3] = True
    examples = Examples(np.zeros(3), own, own + 10, things)
    pick, tokens, known = blend.mix(examples, count, torch.Generator().manual_seed(seed))
    assert torch.equal(tokens % 10, own[pick])
    sampled = tokens >= 10
    for n, y, x in itertools.product(range(count), range(6), range(6)):
        around = sampled[n, max(0, y - 1) : y + 2, max(0, x - 1) : x + 2]
        assert known[n, y, x] == (things[pick[n], y, x] or not around.any())


def test_a_third_of_the_pictures_keep_their_own_tokens():
    own = torch.zeros(1, 8, 8, dtype=torch.long)
    examples = Examples(np.zeros(1), own, own + 1, own > 0)
    _, tokens, _ = blend.mix(examples, 3000, torch.Generator().manual_seed(0))
    share = tokens.float().mean((1, 2))
    assert 0.3 < (share == 0).float().mean() < 0.4 and share.max() > 0.95


def picture(seed: int) -> torch.Tensor:
    return torch.rand(1, 3, 3 * PATCH, 3 * PATCH, generator=torch.Generator().manual_seed(seed))


NOWHERE, EVERYWHERE = torch.zeros(1, 3, 3, dtype=torch.bool), torch.ones(1, 3, 3, dtype=torch.bool)


def test_a_picture_that_is_right_loses_nothing():
    assert blend.loss_of(picture(0), picture(0), picture(0), EVERYWHERE) == 0


def test_strokes_may_be_others_where_the_picture_is_not_known():
    """Strokes of the codes that were not painted cost something in known cells alone."""
    stripes = torch.zeros(1, 3, 3 * PATCH, 3 * PATCH)
    stripes[..., 2::PATCH, :], stripes[..., 9::PATCH, :] = 1, -1
    plain = torch.zeros_like(stripes)
    outside = blend.loss_of(stripes, plain, stripes, NOWHERE)
    inside = blend.loss_of(stripes, plain, stripes, EVERYWHERE)
    assert outside < 1e-6 < inside
    assert blend.loss_of(stripes, plain, plain, NOWHERE) > 0.1, "strokes that no code has"


def test_a_step_of_colour_between_cells_counts_twice():
    squares = torch.zeros(1, 3, 3 * PATCH, 3 * PATCH)
    squares[..., :PATCH] = 0.5
    plain = torch.zeros_like(squares)
    assert blend.loss_of(squares, plain, squares, NOWHERE) > blend.COLOURS * 0.05


@pytest.mark.parametrize("wrong", ["pictures", "steps", "batch"])
def test_numbers_that_make_no_sense_are_refused(tmp_path, wrong):
    with pytest.raises(SSDError, match="at least 1"):
        blend.train(BlendRecipe(tmp_path, **{wrong: 0}))
