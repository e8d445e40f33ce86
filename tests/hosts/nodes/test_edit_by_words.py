"""Edit by Words: what is kept, what is told, and pictures of every kind."""

import pytest
import torch
from support.small_bundle import PIXELS, SIDE

pytestmark = pytest.mark.usefixtures("small_bundle")
CELL = 16


@pytest.fixture
def drawn(pack, model):
    """(images, run). Hot, as its edits are then, too: another seed gives other tokens."""
    return pack.run("SSD_Sampler", model=model, complete_prompt=False, temperature=2.0, min_p=0.0)


def edit(pack, model, **values):
    return pack.run("SSD_EditByWords", model=model, **values)


def corner() -> torch.Tensor:
    """A mask whose lower right quarter is white: random weights see changes everywhere."""
    mask = torch.zeros(1, SIDE, SIDE)
    mask[:, SIDE // 2 :, SIDE // 2 :] = 1
    return mask


def test_what_the_words_do_not_change_keeps_tokens_and_pixels(pack, model, drawn):
    words = "a red house in the snow, at night"
    everything = {"picture": drawn[1], "mask": corner(), "reach": 1.0, "hold": False,
                  "prompt": words, "seed": 99}
    images, run, mask, change = edit(pack, model, **everything)
    changed = run.tokens.tokens[0] != drawn[1].tokens.tokens[0]
    assert mask.shape == images.shape[:3] and change.shape == images.shape
    assert mask[0, ::CELL, ::CELL].bool().equal(changed)
    near = torch.nn.functional.max_pool2d(changed[None, None].float(), 3, 1, 1)[0, 0] > 0
    away = ~near.repeat_interleave(CELL, 0).repeat_interleave(CELL, 1)
    assert changed.any() and away.any() and images[0][away].equal(drawn[0][0][away])
    assert change.min() >= 0 and change.max() <= 1
    assert "note: kept " in run.report and run.stats.recipes[0]["prompt"] == words
    again = edit(pack, model, **everything)[1]
    assert again.tokens.tokens.equal(run.tokens.tokens)


def test_words_that_change_nothing_draw_nothing(pack, model, drawn):
    images, run, mask, _ = edit(pack, model, picture=drawn[1], prompt="a red house by a river")
    assert run.tokens.tokens.equal(drawn[1].tokens.tokens) and images.equal(drawn[0])
    assert not mask.any() and "nothing was drawn" in run.report


def test_a_mask_limits_where_words_act(pack, model, drawn):
    tokens = edit(pack, model, picture=drawn[1], mask=corner(), reach=1.0,
                  hold=False)[1].tokens.tokens
    black = corner()[0] == 0
    assert tokens[0][black].equal(drawn[1].tokens.tokens[0][black])


def test_of_unknown_words_alone_nothing_is_edited(pack, model, drawn):
    with pytest.raises(pack.error, match="cannot draw a dog, and the prompt names nothing else"):
        edit(pack, model, picture=drawn[1], prompt="a dog")


def test_any_image_needs_its_words(pack, model):
    photo = torch.rand(1, 100, 200, 3)
    with pytest.raises(pack.error, match="old prompt: the picture has no recipe"):
        edit(pack, model, image=photo)
    images = edit(pack, model, image=photo, old_prompt="a red house by a river")[0]
    assert images.shape == (1, PIXELS, PIXELS, 3)
    with pytest.raises(pack.error, match="connect a run to 'picture', or"):
        edit(pack, model)


def test_pictures_of_a_batch_are_edited_one_by_one(pack, model):
    pair = pack.run("SSD_Sampler", model=model, complete_prompt=False, batch_size=2)
    images, run, mask, change = edit(pack, model, picture=pair[1])
    assert len(images) == len(run.tokens.tokens) == len(mask) == len(change) == 2
    second = pack.module("nodes.types").Run(pair[1].tokens.picked(2))
    alone = edit(pack, model, picture=second)[1]
    assert alone.tokens.tokens[0].equal(run.tokens.tokens[1])
