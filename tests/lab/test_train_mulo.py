"""`train mulo` on tiny AR-DToks of 256 and 512 px, the setting of the paper."""

import json

import pytest
import torch
from support.mock_backbone import events
from support.tiny_image_models import tar

from ssd_core import SSDError, load_backbone, methods
from ssd_core.files import write_safetensors
from ssd_core.train.picture_files import FORMAT, of_prompts
from ssd_core.weights.load import SAMPLERS_FILE
from ssd_lab.train import mulo
from ssd_lab.train.mulo import MuloRecipe


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Both backbones side by side, and eight pictures as `train self-distill` leaves them."""
    root = tmp_path_factory.mktemp("tar")
    small, large = tar(root / "small"), tar(root / "large", cells=1024)
    backbone = load_backbone(large, "cpu", "fp32")
    tokens = torch.randint(backbone.codes, (8, 32, 32), dtype=torch.int16,
                           generator=torch.Generator().manual_seed(0))
    (large / "self-distill").mkdir()
    write_safetensors({"tokens": tokens, **of_prompts([[1] * 81] * 8)},
                      large / "self-distill" / "000000.safetensors",
                      {"format": FORMAT, "backbone_sha256": backbone.sha256,
                       "size": json.dumps(backbone.size)})
    return small, large


@pytest.fixture(scope="module")
def trained(folders):
    small, large = folders
    lines = []
    told = mulo.train(MuloRecipe(large, drafter=str(small), steps=6, batch=2, width=8, blocks=1,
                                 device="cpu"), lines.append)
    return told, lines, large


def test_it_reports_what_the_samplers_keep(trained):
    told, lines, _ = trained
    assert told["stage"] == "mulo" and told["pictures"] == 6 and told["held_out_pictures"] == 2
    assert all(0 <= told[name] <= 1 for name in ("up_codes", "down_codes", "up_pixels"))
    line, = lines
    assert "between 16x16 and 32x32 cells, 6 steps of 2 pictures out of 6" in line


def test_the_larger_backbone_then_draws_with_the_smaller(trained, tmp_path):
    backbone = load_backbone(trained[2], "cpu", "fp32")
    codes = tmp_path / "codes.json"
    codes.write_text(json.dumps([3] * 81))
    told = events(backbone, methods.MuLo(tau=0), (f"codes:{codes}",))[-1]
    assert told.stats["passes"] == 1 + 16 and told.stats["drafter_passes"] == 16 * 16 - 1
    assert told.tokens.shape == (1, 32, 32)
    assert backbone.find_drafter(backbone) is backbone.find_drafter(backbone)  # loaded once


def test_learning_lowers_the_loss(folders):
    _small, large = (load_backbone(path, "cpu", "fp32") for path in folders)
    sampler = mulo.Upsampler(large.picture_codec.code_vectors.shape[1], 2, 8, 1)
    generator = torch.Generator().manual_seed(0)
    codes = large.picture_codec.code_vectors.detach()
    source, goal = (codes[torch.randint(len(codes), (1, side, side), generator=generator)]
                    .permute(0, 3, 1, 2) for side in (4, 8))
    shown = large.picture_codec.pixels(goal).detach()
    optimizer, losses = torch.optim.AdamW(sampler.parameters(), 1e-2), []
    for _ in range(30):
        loss = mulo.loss_of(sampler, source, goal, large.picture_codec, codes, shown)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_a_drafter_elsewhere_or_of_another_shape_is_refused(folders, tmp_path):
    small, large = folders
    away = tar(tmp_path / "away" / "far")
    with pytest.raises(SSDError, match="put it into"):
        mulo.train(MuloRecipe(large, drafter=str(away)))
    with pytest.raises(SSDError, match="half, a third or a quarter"):
        mulo.ratio_of(*(load_backbone(large, "cpu", "fp32") for _ in range(2)))
    with pytest.raises(SSDError, match="steps 0: must be at least 1"):
        mulo.train(MuloRecipe(large, drafter=str(small), steps=0))


def test_samplers_whose_drafter_is_gone_say_where_it_was_looked_for(trained, tmp_path):
    alone = tar(tmp_path / "alone", cells=1024)
    (alone / SAMPLERS_FILE).write_bytes((trained[2] / SAMPLERS_FILE).read_bytes())
    backbone = load_backbone(alone, "cpu", "fp32")
    with pytest.raises(SSDError, match="its drafter 'small' is neither in"):
        backbone.find_drafter(backbone)
