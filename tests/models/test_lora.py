"""LoRA adapters, merged at loading, beside what PEFT merges."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.layouts import LAYOUTS
from support.tiny_checkpoints import emu3_5, lumina2
from support.tiny_glm_image import glm_image
from support.tiny_image_models import janus_original
from support.tiny_loras import merged_copy, peft_lora

from ssd_core import Sampling, SSDError, load_backbone, methods
from ssd_core.model.products import Int8Matrix

FAMILIES = {**LAYOUTS, "lumina2": lumina2, "emu3_5": emu3_5, "glm_image": glm_image}
LAYER = "language_model.model.layers.0"
KINDS = {
    "rslora": {"use_rslora": True}, "dora": {"use_dora": True},
    "patterns": {"rank_pattern": {"q_proj": 2},
                 "alpha_pattern": {"q_proj": 7, f"^{LAYER}.mlp.up_proj": 2}},
    "saved whole": {"target_modules": [f"{LAYER}.self_attn.v_proj"], "bias": "all",
                    "modules_to_save": ["gen_head.vision_head", "gen_head.output_mlp_projector"]},
    "embeddings": {"target_modules": ["language_model.model.embed_tokens", f"{LAYER}.mlp.up_proj"],
                   "embedding": "language_model.model.embed_tokens"}}


@pytest.fixture(scope="module")
def janus(tmp_path_factory):
    return janus_original(tmp_path_factory.mktemp("janus") / "Janus-Pro-1B")


@pytest.fixture(scope="module")
def lora(janus, tmp_path_factory):
    """(adapter, checkpoint that PEFT merged it into)."""
    root = tmp_path_factory.mktemp("lora")
    adapter, merged = peft_lora(janus, root / "brush")
    return adapter, merged_copy(janus, merged, root / "Janus-Pro-1B")


def same_weights(one, other) -> bool:
    """To the last bits, in which the sums of products may differ."""
    pairs = [(value, other.get_parameter(name)) for name, value in one.named_parameters()]
    return all(torch.allclose(value, twin, rtol=1e-5, atol=1e-6) for value, twin in pairs)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.by_day(4)
def test_every_family_takes_an_adapter_as_peft_merges_it(family, tmp_path):
    folder = tmp_path / "Lumina-mGPT-7B-512"
    FAMILIES[family](folder)
    adapter, merged = peft_lora(folder, tmp_path / "brush")
    copy = merged_copy(folder, merged, tmp_path / "two" / folder.name)
    plain, twin = (load_backbone(path, "cpu", "fp32") for path in (folder, copy))
    made = load_backbone(folder, "cpu", "fp32", lora=[adapter])
    assert same_weights(made, twin) and not same_weights(made, plain)
    assert made.base_sha256 == plain.sha256 != made.sha256
    assert [each.name for each in made.lora] == ["brush"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_peft_is_merged_as_by_peft(kind, janus, tmp_path):
    adapter, merged = peft_lora(janus, tmp_path / "brush", **KINDS[kind])
    twin = load_backbone(merged_copy(janus, merged, tmp_path / "Janus-Pro-1B"), "cpu", "fp32")
    made = load_backbone(janus, "cpu", "fp32", lora=[adapter])
    assert same_weights(made, twin)


def test_the_tokens_are_those_of_the_merged_checkpoint_in_int8_too(janus, lora):
    adapter, twin = lora
    for dtype in ("fp32", "int8"):
        drawn = [tokens_of(load_backbone(path, "cpu", dtype, lora=named))
                 for path, named in ((twin, []), (janus, [f"{adapter}:1"]), (janus, []))]
        assert drawn[0].equal(drawn[1]) and not drawn[1].equal(drawn[2])
    assert isinstance(load_backbone(janus, "cpu", "int8", lora=[adapter]).decoder.layers[0].qkv,
                      Int8Matrix)


def test_strength_0_is_the_model_itself_and_two_adapters_add_up(janus, lora, tmp_path):
    adapter, plain = lora[0], load_backbone(janus, "cpu", "fp32")
    none = load_backbone(janus, "cpu", "fp32", lora=[(adapter, 0)])
    assert none.sha256 == plain.sha256
    assert all(value.equal(plain.get_parameter(name)) for name, value in none.named_parameters())
    halves = load_backbone(janus, "cpu", "fp32", lora=[f"{adapter}:0.5", (adapter, 0.5)])
    whole = load_backbone(janus, "cpu", "fp32", lora=[adapter])
    assert same_weights(halves, whole)
    assert len({halves.sha256, plain.sha256, whole.sha256}) == 3


@pytest.mark.parametrize("written", ["peft", "kohya"])
def test_a_single_file_is_merged_with_its_own_alpha(written, janus, lora, tmp_path):
    """Without alpha an update is as strong as it is; names may have _ for each dot."""
    stored = load_file(lora[0] / "adapter_model.safetensors")
    tensors = {name.removeprefix("base_model.model."): value for name, value in stored.items()}
    if written == "kohya":
        tensors = {"lora_unet_" + name.removesuffix(f".{part}.weight").replace(".", "_")
                   + {"lora_A": ".lora_down.weight", "lora_B": ".lora_up.weight"}[part]: value
                   for name, value in tensors.items() for part in [name.split(".")[-2]]}
        tensors |= {name.replace("lora_down.weight", "alpha"): torch.tensor(5.0)
                    for name in list(tensors) if "lora_down" in name}
    save_file(tensors, file := tmp_path / "brush.safetensors")
    strength = 1 if written == "kohya" else 5 / 3
    made = load_backbone(janus, "cpu", "fp32", lora=[(file, strength)])
    assert same_weights(made, load_backbone(janus, "cpu", "fp32", lora=[lora[0]]))


UP = f"{LAYER}.mlp.up_proj"
REFUSED = {
    "another kind": ({f"{UP}.lokr_w1": (3, 3)}, "lokr_w1 belongs to an adapter of another"),
    "half of it": ({f"{UP}.lora_A.weight": (3, 32)}, "up_proj has parts of shapes"),
    "convolution": ({f"{UP}.lora_A.weight": (3, 32, 1, 1), f"{UP}.lora_B.weight": (48, 3, 1, 1)},
                    "only LoRA of linear layers"),
    "another shape": ({f"{UP}.lora_A.weight": (3, 31), f"{UP}.lora_B.weight": (48, 3)},
                      "fits a layer of shape (48, 31)"),
    "no such layer": ({"layers.0.mlp.other.lora_A.weight": (3, 32),
                       "layers.0.mlp.other.lora_B.weight": (48, 3)},
                      "other.weight changes a layer that"),
    "no lora": ({"a.weight": (3, 3)}, "holds no tensors of a LoRA")}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_merged_is_refused_by_the_tensors_name(case, janus, tmp_path):
    shapes, line = REFUSED[case]
    save_file({name: torch.ones(shape) for name, shape in shapes.items()},
              file := tmp_path / "brush.safetensors")
    with pytest.raises(SSDError) as refused:
        load_backbone(janus, "cpu", lora=[file])
    assert line in str(refused.value) and "\n" not in str(refused.value)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize("setting, value", [
    ("peft_type", "LOHA"), ("init_lora_weights", "pissa"), ("fan_in_fan_out", True),
    ("alpha_pattern", {"(a+)+b": 3}), ("lora_alpha", "x")])
def test_settings_of_peft_that_are_not_read_are_refused(setting, value, janus, lora, tmp_path):
    stored = lora[0]
    settings = json.loads((stored / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps({**settings, setting: value}))
    (tmp_path / "adapter_model.safetensors").symlink_to(stored / "adapter_model.safetensors")
    with pytest.raises(SSDError, match=setting):
        load_backbone(janus, "cpu", lora=[tmp_path])
    with pytest.raises(SSDError, match="adapter_config.json is missing"):
        (tmp_path / "adapter_config.json").unlink()
        load_backbone(janus, "cpu", lora=[tmp_path])


@pytest.mark.parametrize("named, line", [
    ("nowhere", "no such adapter"), (7, "give FILE"), ("nowhere:0.5", "no such adapter"),
    (("nowhere", 11.0), "strength 11.0 must lie"), (("nowhere", float("nan")), "strength nan")])
def test_missing_adapters_and_odd_strengths_are_refused(named, line, janus):
    with pytest.raises(SSDError, match=line):
        load_backbone(janus, "cpu", lora=[named])


def test_layers_that_pictures_do_not_need_are_left_out_with_a_note(janus, tmp_path):
    names = [f"{LAYER}.mlp.up_proj", "aligner.layers.0"]
    adapter, _ = peft_lora(janus, tmp_path / "brush", target_modules=names)
    doubts = load_backbone(janus, "cpu", lora=[adapter]).doubts
    note, = [doubt for doubt in doubts if "LoRA" in doubt]
    assert "aligner.layers.0.weight" in note
    adapter, _ = peft_lora(janus, tmp_path / "eyes", target_modules=names[1:])
    with pytest.raises(SSDError, match="changes nothing that draws pictures"):
        load_backbone(janus, "cpu", lora=[adapter])


def tokens_of(backbone):
    from ssd_core import generate
    from ssd_core.engine.events import Finished

    events = generate(backbone, ["a red fox"], methods.AR(), sampling=Sampling(seed=3, cfg=2.0))
    return next(event.tokens for event in events if isinstance(event, Finished))
