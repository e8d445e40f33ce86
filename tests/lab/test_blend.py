"""The stage that teaches the tokenizer's decoder to draw sampled tokens."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssd_core import Sampling, SSDError, generate, load_backbone
from ssd_core.backbones import postcard
from ssd_core.backbones.codecs.vq import ByteTable, VQTokenizer
from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.engine.methods import Exact
from ssd_lab.postcards import FRAMES, WORDS
from ssd_lab.postcards.objects import cover_of
from ssd_lab.train import blend
from ssd_lab.train.blend import BlendRecipe, Examples
from ssd_lab.train.data import to_signed
from ssd_lab.train.tokenizer import PATCH

CAPTIONS = ["a red house , on a lake , at night", "two blue trees , in the snow"]


@pytest.fixture(scope="module")
def blended(tmp_path_factory):
    """A folder with a random postcard before and after two steps, and what the stage returned."""
    folder = tmp_path_factory.mktemp("blend")
    fresh = postcard.Postcard(WORDS)
    fresh.initialise(torch.Generator().manual_seed(0))
    postcard.save(fresh, folder / "before" / "backbone.safetensors")
    told = blend.train(BlendRecipe(folder / "after", backbone=str(folder / "before"), pictures=4,
                                   steps=2, batch=2, held_out=1, device="cpu", dtype="fp32"))
    return (*(load_backbone(folder / name, "cpu") for name in ("before", "after")), told)


def test_only_what_is_added_to_the_mosaic_changes(blended):
    before, after, told = blended
    assert before.picture_codec.residual is None
    weights = after.state_dict()
    changed = {name for name, weight in weights.items()
               if name not in before.state_dict()
               or not torch.equal(weight, before.state_dict()[name])}
    added = ("picture_codec.repair.", "picture_codec.residual.")
    assert changed and all(name.startswith(added) for name in changed)
    assert weights["picture_codec.residual.values"].dtype == torch.int8
    assert told["stage"] == "blend" and 0 <= told["claims_kept"] <= 1


def test_a_table_of_residuals_is_a_mean_that_leans_to_nothing():
    """Of a codec that draws every patch black: the painted patches themselves, summed and divided
    by their number and PRIOR more."""
    codec = VQTokenizer(3, 4, 8, 1).requires_grad_(False)
    for weight in (*codec.mosaic.parameters(), *codec.repair.parameters()):
        weight.zero_()
    painted = np.random.default_rng(0).integers(0, 256, (2, PATCH, 2 * PATCH, 3), dtype=np.uint8)
    own = torch.tensor([[[0, 1]], [[1, 1]]])
    table = blend.residual_of(codec, [Examples(painted, own, own)])
    patches = torch.nn.functional.pixel_unshuffle(to_signed(painted), PATCH)
    assert torch.allclose(table[0], patches[0, :, 0, 0] / (1 + blend.PRIOR), atol=1e-6)
    of_code = patches[0, :, 0, 1] + patches[1, :, 0, 0] + patches[1, :, 0, 1]
    assert torch.allclose(table[1], of_code / (3 + blend.PRIOR), atol=1e-6)
    assert not table[2].any()
    codec.residual = ByteTable.of(table)
    assert torch.allclose(blend.residual_of(codec, []), table, atol=0.005)


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
    examples = Examples(np.zeros(3), own, own + 10)
    pick, tokens = blend.mix(examples, count, torch.Generator().manual_seed(seed))
    assert torch.equal(tokens % 10, own[pick])


def test_some_pictures_keep_their_own_tokens_and_only_they_need_no_samples():
    own = torch.zeros(4, 8, 8, dtype=torch.long)
    examples = Examples(np.zeros(4), own, own[:1] + 1)
    pick, tokens = blend.mix(examples, 3000, torch.Generator().manual_seed(0))
    share = tokens.float().mean((1, 2))
    assert blend.UNTOUCHED - 0.05 < (share == 0).float().mean() < blend.UNTOUCHED + 0.1
    assert blend.MOST - 0.1 < share.quantile(0.99) < blend.MOST + 0.2
    assert not pick[share > 0].any() and pick.unique().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.name)
def test_near_is_at_most_so_many_px_from_a_thing(frame):
    near = blend.near_things(3, (frame.height, frame.width))
    cover = cover_of(scene_of(3), frame) > 0.5
    rows, columns = np.nonzero(cover)
    assert near.shape == cover.shape and near[torch.from_numpy(cover)].all()
    for y, x in ((50, 60), (200, 30), (270, 100), (230, 270)):
        if y < frame.height and x < frame.width:
            away = np.maximum(np.abs(rows - y), np.abs(columns - x)).min()
            assert bool(near[y, x]) == (away <= blend.NEAR)


def picture(seed: int) -> torch.Tensor:
    return torch.rand(1, 3, 3 * PATCH, 3 * PATCH, generator=torch.Generator().manual_seed(seed))


SIDE = 3 * PATCH
FAR = torch.zeros(1, SIDE, SIDE, dtype=torch.bool)
CLOSE = ~FAR
PLAIN = torch.zeros(1, 3, SIDE, SIDE)


def test_a_picture_that_is_right_loses_nothing():
    assert blend.loss_of(picture(0), picture(0), CLOSE) == 0


def test_an_error_counts_more_near_things():
    loss = [blend.loss_of(picture(0), picture(1), near) for near in (FAR, CLOSE)]
    assert loss[1] > (1 + blend.AROUND) * loss[0]


def test_a_step_between_cells_counts_more_than_one_within():
    across, within = PLAIN.clone(), PLAIN.clone()
    across[..., :PATCH], within[..., : PATCH + 1] = 0.5, 0.5
    even = torch.ones(1, 1, SIDE, SIDE)
    assert blend.slopes_of(across, even, PATCH) > 5 * blend.slopes_of(within, even, PATCH) > 0


def test_shades_of_cells_show_even_where_their_borders_are_soft():
    """A ramp of some px between two cells of different shade costs more than an even ramp."""
    soft, ramp = PLAIN.clone(), PLAIN.clone()
    soft[..., 2 * PATCH :] = 0.5
    soft[..., 2 * PATCH - 4 : 2 * PATCH + 4] = torch.linspace(0, 0.5, 8)
    ramp[..., :] = torch.linspace(0, 0.5, SIDE)
    losses = [blend.loss_of(drawn, ramp, FAR) for drawn in (soft, ramp)]
    fine = blend.slopes_of(soft - ramp, torch.ones(1, 1, SIDE, SIDE), PATCH)
    assert losses[1] == 0 and losses[0] > blend.COLOURS * (soft - ramp).abs().mean() + 2 * fine


def test_a_wrong_hue_counts_more_than_a_wrong_brightness():
    noise = torch.rand(SIDE, SIDE, generator=torch.Generator().manual_seed(0)) - 0.5
    grey = noise.expand(1, 3, SIDE, SIDE)
    hued = noise * torch.tensor([1.0, 0, -1])[None, :, None, None] * 1.5
    assert hued.abs().mean() == pytest.approx(grey.abs().mean().item())
    assert blend.loss_of(hued, PLAIN, FAR) > 1.4 * blend.loss_of(grey, PLAIN, FAR)


@pytest.mark.parametrize("wrong", ["pictures", "sampled", "steps", "batch"])
def test_numbers_that_make_no_sense_are_refused(tmp_path, wrong):
    with pytest.raises(SSDError, match=f"{wrong} 0: must be at least 1"):
        blend.train(BlendRecipe(tmp_path, **{wrong: 0}))
