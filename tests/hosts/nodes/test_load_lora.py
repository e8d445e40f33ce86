"""Load LoRA: the model that it gives draws what a checkpoint merged by PEFT draws."""

import shutil
from pathlib import Path

import pytest
from support.tiny_image_models import janus_original
from support.tiny_loras import merged_copy, peft_lora


@pytest.fixture(scope="module")
def models(loaded):
    """ComfyUI's folders with a tiny Janus-Pro, PEFT's merged copy of it, and the adapter."""
    root = Path(loaded.stubs.folders.paths("ssd_backbones")[-1])
    loras = Path(loaded.stubs.folders.paths("loras")[-1])
    folder = janus_original(root / "Janus-Pro-1B")
    _adapter, merged = peft_lora(folder, loras / "brush")
    merged_copy(folder, merged, root / "merged" / "Janus-Pro-1B")
    yield root
    shutil.rmtree(root)
    shutil.rmtree(loras)


def drawn(pack, model):
    run = pack.run("SSD_Sampler", model=model, prompt="a red fox", preview=False)[1]
    return run.tokens.tokens


def test_the_node_gives_the_model_that_peft_gives_and_leaves_the_other_as_it_was(pack, models):
    plain, twin = (pack.run("SSD_LoadModel", model=name, dtype="fp32")[0]
                   for name in ("Janus-Pro-1B", "merged/Janus-Pro-1B"))
    made, = pack.run("SSD_LoadLora", model=plain, lora="brush")
    halves, = pack.run("SSD_LoadLora", model=made, lora="brush", strength=-1.0)
    none, = pack.run("SSD_LoadLora", model=plain, lora="brush", strength=0.0)
    assert made.module.decoder.layers[0].qkv.allclose(twin.module.decoder.layers[0].qkv, atol=1e-6)
    assert len(halves.module.lora) == 2 and halves.module.base_sha256 == plain.module.sha256
    assert none.module.sha256 == plain.module.sha256 != made.module.sha256
    assert not plain.module.lora
    pictures = [drawn(pack, model) for model in (plain, twin, made, none)]
    assert pictures[1].equal(pictures[2]) and pictures[0].equal(pictures[3])
    assert not pictures[0].equal(pictures[2])


def test_a_name_that_is_not_there_is_told_before_the_run(pack, models):
    node = pack.nodes["SSD_LoadLora"]
    assert node.validate_inputs(lora="brush") is True
    assert "is not here" in node.validate_inputs(lora="gone")
    assert str(Path("loras/brush")) in node.fingerprint_inputs(lora="brush")
