"""Finish: GLM-Image's tokens become pixels by the diffusion model beside the model."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.tiny_glm_image import glm_image
from support.tiny_glm_pipeline import glm_pipeline

pytestmark = pytest.mark.skipif(not find_spec("diffusers"),
                                reason="diffusers paints GLM-Image's pixels")
SMALL = {"size": "256x256", "preview": False,
         "method": {"method": "SSD (k_h, k_v, r, b/i)", "k_h": 5, "k_v": 8, "rounds": 0,
                    "incremental": 0}}


@pytest.fixture(scope="module")
def folder(loaded):
    folder = Path(loaded.stubs.folders.paths("ssd_backbones")[-1]) / "GLM-Image"
    glm_image(folder)
    glm_pipeline(folder)
    yield folder
    shutil.rmtree(folder)


def test_tokens_of_the_sampler_become_pixels(pack, folder):
    assert list(pack.module("nodes.folders").registry().backbones()) == ["postcard", "GLM-Image"]
    model, = pack.run("SSD_LoadModel", model="GLM-Image")
    sketched, run = pack.run("SSD_Sampler", model=model, prompt="a red", **SMALL)
    assert sketched.shape == (1, 256, 256, 3) and "Finish paints their pixels" in run.report
    before = len(pack.manager.loads)
    images, _ = pack.run("SSD_Finish", model=model, run=run, steps=2)
    assert images.shape == sketched.shape and images.std() > 0
    moved = pack.manager.loads[before:]
    assert len(moved) == 1 and model.backbone.patcher not in moved[0][0]
    assert pack.stubs.bars[-1] == (2, 2)
    source = sketched[:, :128, :160]
    _, from_source = pack.run("SSD_Sampler", model=model, prompt="a red", source=source, **SMALL)
    assert not from_source.tokens.tokens.equal(run.tokens.tokens)
    assert from_source.recipes[0]["sources"][0]["shape"] == [4, 5]
    with pytest.raises(pack.error, match="from 1 source pictures, 0 are connected"):
        pack.run("SSD_Finish", model=model, run=from_source, steps=1)
    edited, _ = pack.run("SSD_Finish", model=model, run=from_source, steps=1,
                       source=source)
    assert edited.shape == images.shape
    typed, _ = pack.run("SSD_Finish", model=model, run=run, prompt="a red", steps=2)
    assert typed.equal(images)
    types = pack.module("nodes.types")
    bare = types.Run(types.TokenPictures.of(model.module, run.tokens.tokens))
    with pytest.raises(pack.error, match="the prompt is empty"):
        pack.run("SSD_Finish", model=model, run=bare)
