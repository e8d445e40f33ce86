"""Maps and subjects: a tiny Lumina-mGPT 2.0 draws the lower of two panels, on a small grid."""

import shutil
from pathlib import Path

import pytest
import torch
from support.tiny_checkpoints import lumina2


@pytest.fixture
def omni(loaded, pack):
    """The backbone, with panels of 32 x 32 pixels: 4 x 4 cells."""
    folder = Path(loaded.stubs.folders.paths("ssd_backbones")[-1]) / "Lumina-mGPT-2.0-Omni"
    model, = pack.run("SSD_LoadModel", model=lumina2(folder).name, dtype="fp32")
    model.module.two_panels = (32, 64)
    model.module.sizes = (*model.module.sizes, (32, 64))
    yield model
    pack.module("nodes.weights").LOADED.clear()
    shutil.rmtree(folder)


def drawn_below(pack, omni, image, prompt, use, **values):
    run, _, rows = pack.run("SSD_Encode", model=omni, image=image, use=use)
    return *pack.run("SSD_Sampler", model=omni, picture=run, prompt=prompt, preview=False,
                     **values), rows


def test_the_picture_is_drawn_below_the_map_and_cut_out(pack, omni):
    edges = torch.rand(2, 100, 200, 3, generator=torch.Generator().manual_seed(1))
    images, run, rows = drawn_below(pack, omni, edges, "a red ball", "canny", batch_size=2)
    assert images.shape == (2, 32, 32, 3) and run.tokens.pixels.shape == (2, 64, 32, 3)
    assert images.equal(run.tokens.pixels[:, 32:])
    scaled, *_ = pack.module("nodes.fitting").fitted_to(edges[:1], (32, 32), 4, "scale and crop")
    assert torch.allclose(run.tokens.pixels[:, :24], scaled[:, :24].expand(2, -1, -1, -1),
                          atol=1 / 128)
    upper, lower = run.tokens.tokens.chunk(2, dim=1)
    assert upper[0].equal(upper[1]) and not lower[0].equal(lower[1])
    recipe = run.recipes[0]
    assert (recipe["keep_rows"], recipe["size"], recipe["method"]) == (rows, "32x64", "exact")
    assert "displays a <canny edge map>" in recipe["prompt"] and recipe["top_k"] == 4096
    assert recipe["prompt"].endswith("comparison:\na red ball")


def test_a_subject_is_drawn_by_its_own_words(pack, omni):
    glass = torch.rand(1, 32, 32, 3, generator=torch.Generator().manual_seed(2))
    use = {"use": "subject", "subject": "a glass"}
    run = drawn_below(pack, omni, glass, "on a roof", use)[1]
    assert "displays: a glass, while the <lower half> shows" in run.recipes[0]["prompt"]
    with pytest.raises(pack.error, match="subject: empty: say in a few words"):
        drawn_below(pack, omni, glass, "on a roof", "subject")


def test_other_backbones_draw_no_panels(pack, model):
    with pytest.raises(pack.error, match="draws no panels: load Lumina-mGPT-2.0-Omni"):
        pack.run("SSD_Encode", model=model, image=torch.rand(1, 64, 64, 3), use="depth")
