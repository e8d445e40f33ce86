"""The stage that teaches the head of the decoder to draw twice the size."""

import pytest
import torch

from ssd_core import SSDError, load_backbone
from ssd_core.backbones import postcard
from ssd_lab.postcards import FRAMES, WORDS
from ssd_lab.train import upsample
from ssd_lab.train.data import HELD_OUT, pictures
from ssd_lab.train.upsample import UpsampleRecipe


@pytest.fixture(scope="module")
def enlarged(tmp_path_factory):
    """A random postcard before and after some steps, and what the stage returned."""
    folder = tmp_path_factory.mktemp("upsample")
    fresh = postcard.Postcard(WORDS)
    fresh.initialise(torch.Generator().manual_seed(0))
    postcard.save(fresh, folder / "before" / "backbone.safetensors")
    told = upsample.train(UpsampleRecipe(folder / "after", backbone=str(folder / "before"),
                                         pictures=2, shapes=0, steps=12, batch=2, held_out=1))
    return (*(load_backbone(folder / name, "cpu") for name in ("before", "after")), told)


def test_only_the_head_is_new(enlarged):
    before, after, told = enlarged
    old, new = before.state_dict(), after.state_dict()
    assert all(torch.equal(new[name], weight) for name, weight in old.items())
    added = set(new) - set(old)
    assert added and all(name.startswith("picture_codec.upsample.") for name in added)
    assert (told["stage"], told["steps"]) == ("upsample", 12)
    assert told["psnr_db_head"] > 0 and told["gradient_head"] > 0
    assert before.size == (384, 384) and after.size == (768, 768)
    tokens = torch.randint(after.codes, (1, 24, 24))
    assert after.decode(tokens).shape == (1, 768, 768, 3)


def test_crops_show_the_same_place_at_both_sizes(tmp_path, enlarged):
    large = pictures(2, tmp_path, HELD_OUT, scale=2)
    codec = enlarged[0].picture_codec
    codec.encode, codec.decode = lambda block: block, lambda block: block  # keep what was painted
    pairs = upsample.pairs_of(codec, large, FRAMES[0])
    small, shown, near = upsample.crops(pairs, UpsampleRecipe(tmp_path, batch=3, crop=64),
                                        torch.Generator().manual_seed(0))
    assert small.shape == (3, 3, 64, 64) and near.shape == (3, 128, 128)
    assert torch.allclose(torch.nn.functional.avg_pool2d(shown, 2), small, atol=2e-3)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"crop": 100}, {"crop": 304}, {"held_out": 0}])
def test_numbers_that_make_no_sense_are_refused(tmp_path, wrong):
    with pytest.raises(SSDError, match=next(iter(wrong))):
        upsample.train(UpsampleRecipe(tmp_path, **wrong))
