"""What was made with the postcard of 192 x 192 pixels is refused by name, or restored."""

import pytest
import torch
from safetensors.torch import save_file
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import SSDError, load_backbone
from ssd_core.backbones.postcard import EARLIER, EARLIER_FORMAT
from ssd_core.engine.heads import read_heads, save_heads
from ssd_core.engine.methods import AR
from ssd_core.front.recipe import make_recipe
from ssd_core.front.request import Request
from ssd_core.model.sampling import Sampling
from studio.settings import from_recipe


@pytest.fixture
def earlier():
    """A backbone that passes for the earlier one."""
    backbone = tiny_postcard()
    backbone.sha256 = EARLIER
    return backbone


@pytest.fixture
def recipe(earlier):
    tokens = torch.zeros(24, 24, dtype=torch.long)
    stats = {"passes": 576, "seconds": {}}
    made = make_recipe(earlier, None, AR(), Sampling(3), tokens, stats, index=0,
                       prompt="a red house")
    return {**made, "size": [192, 192]}


def test_the_earlier_backbone_is_refused_with_what_to_choose(tmp_path):
    names = ("word_embedding", "prompt_position", "row_position")
    save_file({name: torch.zeros(2, 2) for name in names}, tmp_path / "backbone.safetensors",
              {"format": EARLIER_FORMAT})
    with pytest.raises(SSDError, match="earlier postcard of 192x192 pixels.* choose 'postcard'"):
        load_backbone(tmp_path, device="cpu")


def test_heads_of_the_earlier_backbone_are_refused_with_what_to_do(tmp_path, earlier):
    save_heads(random_heads(earlier), tmp_path / "heads.safetensors", earlier, {})
    with pytest.raises(SSDError, match="earlier postcard of 192x192 pixels: remove them"):
        read_heads(tmp_path / "heads.safetensors", tiny_postcard())


def test_a_recipe_of_the_earlier_backbone_is_not_said_to_give_its_picture(recipe):
    with pytest.raises(SSDError, match="earlier postcard of 192x192 pixels.*draw its prompt anew"):
        Request.of_recipe(recipe, tiny_postcard(), None)


def test_the_app_restores_its_settings_at_the_present_size(recipe):
    restored = from_recipe(recipe)
    assert (restored.prompt, restored.seed, restored.size) == ("a red house", 3, None)
    assert from_recipe({**recipe, "backbone": {"sha256": "ab"}}).size == "192x192"
