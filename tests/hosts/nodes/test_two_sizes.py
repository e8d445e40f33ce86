"""Nodes with a model that decodes its tokens at two sizes: which one a picture has."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from support.small_bundle import PIXELS, READERS, SIDE, write_small_bundle

SMALL, LARGE = f"{PIXELS}x{PIXELS}", f"{2 * PIXELS}x{2 * PIXELS}"
SIZES = pytest.mark.parametrize(("size", "side"), [(SMALL, PIXELS), (LARGE, 2 * PIXELS)])


@pytest.fixture(scope="module")
def assets(tmp_path_factory):
    return write_small_bundle(tmp_path_factory.mktemp("twice"), double=True)


@pytest.fixture(autouse=True)
def bundle(pack, assets, monkeypatch):
    for name in READERS:
        monkeypatch.setattr(pack.module(f"ssd_core.{name}"), "ASSETS", assets)


def sample(pack, model, **values):
    return pack.run("SSD_Sampler", model=model, complete_prompt=False, **values)


def lower_half():
    mask = torch.zeros(1, SIDE, SIDE)
    mask[:, SIDE // 2 :] = 1
    return mask


def test_the_sampler_draws_the_larger_size_unless_told_otherwise(pack, model):
    large, small = sample(pack, model), sample(pack, model, size=SMALL)
    assert large[0].shape == (1, 2 * PIXELS, 2 * PIXELS, 3)
    assert small[0].shape == (1, PIXELS, PIXELS, 3)
    assert large[1].tokens.tokens.equal(small[1].tokens.tokens)
    assert [each[1].recipes[0]["size"] for each in (large, small)] == [LARGE, SMALL]


def test_the_list_of_sizes_has_those_of_the_postcard(pack):
    sizes = next(i for i in pack.schemas["SSD_Sampler"].inputs if i.id == "size").options
    assert {"384x384", "512x288", "288x512", "768x768", "1024x576", "576x1024"} <= set(sizes)


@SIZES
def test_a_part_that_stays_keeps_its_pixels_and_its_size(pack, model, size, side):
    images, run = sample(pack, model, size=size)
    redrawn, own = sample(pack, model, picture=run, mask=lower_half(), seed=9)
    assert redrawn.shape == images.shape and own.recipes[0]["size"] == size
    rows = (SIDE // 2 - 1) * side // SIDE
    assert redrawn[:, :rows].equal(images[:, :rows])


def test_a_part_that_stays_is_scaled_to_another_size(pack, model):
    images, run = sample(pack, model, size=SMALL)
    redrawn, _ = sample(pack, model, picture=run, mask=lower_half(), seed=9, size=LARGE)
    scaled = F.interpolate(images.movedim(-1, 1), scale_factor=2.0, mode="bilinear").movedim(1, -1)
    rows = (SIDE // 2 - 1) * 2 * PIXELS // SIDE
    assert redrawn.shape == scaled.shape
    assert torch.allclose(redrawn[:, :rows], scaled[:, :rows], atol=1e-6)


@SIZES
def test_tokens_become_a_picture_of_the_size_that_they_were_drawn_at(pack, model, size, side):
    images, run = sample(pack, model, size=size)
    bare = pack.module("nodes.types").Run(replace(run.tokens, pixels=None))
    assert pack.run("SSD_Finish", model=model, run=bare)[0].equal(images)
    image = torch.rand(1, side, side, 3)
    encoded, mask, rows = pack.run("SSD_Encode", model=model, image=image, use="a picture")
    assert encoded.tokens.tokens.shape == (1, SIDE, SIDE) and rows == SIDE
    assert mask.shape == (1, side, side) and encoded.tokens.pixels.equal(image)
    decoded, finished = pack.run("SSD_Finish", model=model, run=encoded)
    assert decoded.shape == image.shape and finished.tokens.pixels.equal(decoded)


@SIZES
def test_words_edit_a_picture_at_its_own_size(pack, model, size, side):
    images, run = sample(pack, model, size=size, prompt="a red house")
    edited, own, mask, change, *_ = pack.run(
        "SSD_EditByWords", model=model, picture=run, prompt="a blue house", mask=lower_half())
    assert edited.shape == change.shape == images.shape and mask.shape == (1, side, side)
    assert own.recipes[0]["size"] == size
    stays = mask[0] == 0
    near = F.max_pool2d(mask[None], 2 * side // SIDE + 1, 1, side // SIDE)[0, 0] > 0
    assert (stays & ~near).any() and edited[0][~near].equal(images[0][~near])
