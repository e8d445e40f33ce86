"""Checkpoints that ComfyUI's tools have quantised: marked in the header, or layer by layer."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.tiny_image_models import janus_port

from ssd_core import SSDError, load_backbone
from ssd_core.backbones.reading.checkpoint import Checkpoint

FP8, INT8 = "float8_e4m3fn", "int8_tensorwise"
WEIGHT = torch.linspace(-3, 3, 12).view(4, 3)


def quantised(weight: torch.Tensor, name: str, by_row: bool) -> dict[str, torch.Tensor]:
    """The numbers and scales of a layer."""
    most = 127 if name == INT8 else 448
    scale = (weight.abs().amax(1) if by_row else weight.abs().amax()) / most
    values = weight / (scale[:, None] if by_row else scale)
    dtype = torch.int8 if name == INT8 else torch.float8_e4m3fn
    return {"weight": (values.round() if name == INT8 else values).to(dtype),
            "weight_scale": scale, "input_scale": torch.ones(())}


def mark(**settings) -> torch.Tensor:
    return torch.tensor(list(json.dumps(settings).encode()), dtype=torch.uint8)


def file_of(folder, settings, by_row=False, marked=True):
    """A file with one quantised layer and one plain tensor."""
    parts = quantised(WEIGHT, settings.get("format", INT8), by_row)
    tensors = {f"a.{name}": value for name, value in parts.items()} | {"b.weight": WEIGHT}
    header = {"_quantization_metadata": json.dumps({"layers": {"a": settings}})}
    if marked:
        header, tensors["a.comfy_quant"] = None, mark(**settings)
    save_file(tensors, folder / "m.safetensors", header)
    return folder / "m.safetensors"


@pytest.mark.parametrize("name", [FP8, INT8])
@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("by_row", [True, False])
def test_a_layer_is_read_back_as_floating_point(tmp_path, name, marked, by_row):
    checkpoint = Checkpoint((file_of(tmp_path, {"format": name}, by_row, marked),))
    assert set(checkpoint.shapes) == {"a.weight", "b.weight"}
    found = checkpoint.floating("a.weight")
    assert found.dtype == torch.float32 and checkpoint.floating("b.weight").equal(WEIGHT)
    step = 3 / 127 / 2 if name == INT8 else 3 / 16
    assert (found - WEIGHT).abs().max() <= step and not found.equal(WEIGHT.round())


@pytest.mark.parametrize(("settings", "line"), [
    ({"format": "nvfp4"}, "layer a is quantised as nvfp4, which is not read: get the model in"),
    ({"format": INT8, "convrot": True}, "int8_tensorwise with convrot, which is not read"),
    ({}, "quantised as None")])
def test_other_formats_are_refused_by_name(tmp_path, settings, line):
    with pytest.raises(SSDError, match=line):
        Checkpoint((file_of(tmp_path, settings),))


@pytest.mark.parametrize(("tensors", "kind"), [
    (("weight", "scales", "biases"), "MLX"), (("weight", "weight_scale_2"), "as nvfp4"),
    (("_weight_qdata",), "torchao"), (("weight:_data",), "torchao"), (("q_weight",), "EXL2"),
    (("trellis",), "EXL3"), (("codebooks",), "AQLM")])
def test_other_quantisers_are_named_by_the_ends_of_their_keys(tmp_path, tensors, kind):
    save_file({f"layers.0.q_proj.{name}": WEIGHT.clone() for name in tensors},
              tmp_path / "m.safetensors")
    with pytest.raises(SSDError, match=f"quantised by .*{kind}, which is not read"):
        Checkpoint((tmp_path / "m.safetensors",))


def test_blocks_of_mxfp4_and_what_mlx_saved_are_named(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"experts.down_proj_blocks": WEIGHT}, path)
    with pytest.raises(SSDError, match="as mxfp4, which is not read"):
        Checkpoint((path,))
    save_file({"a.weight": WEIGHT}, path, {"format": "mlx"})
    with pytest.raises(SSDError, match="converted for MLX, which is not read"):
        Checkpoint((path,))


def test_damaged_marks_and_scales_are_named(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"a.weight": WEIGHT}, path, {"_quantization_metadata": "{"})
    with pytest.raises(SSDError, match="not readable as JSON"):
        Checkpoint((path,))
    for text in ('{"layers": 3}', '{"layers": {"a": 3}}'):
        save_file({"a.weight": WEIGHT}, path, {"_quantization_metadata": text})
        with pytest.raises(SSDError, match="names no layers"):
            Checkpoint((path,))
    save_file({"a.weight": WEIGHT, "a.weight_scale": torch.ones(3),
               "a.comfy_quant": mark(format=FP8)}, path)
    with pytest.raises(SSDError, match=r"a\.weight has 3 scales for 4 rows"):
        Checkpoint((path,)).floating("a.weight")
    save_file({"a.weight": WEIGHT, "a.comfy_quant": mark(format=FP8)}, path)
    with pytest.raises(SSDError, match=r"a\.weight_scale is missing"):
        Checkpoint((path,)).floating("a.weight")


def test_a_quantised_janus_loads_in_every_dtype(tmp_path):
    folder = janus_port(tmp_path, shards=1)
    file = folder / "model.safetensors"
    tensors = load_file(file)
    for name in [name for name in tensors if ".mlp." in name and "language_model" in name]:
        layer = name.removesuffix(".weight")
        parts = quantised(tensors.pop(name).float(), FP8, by_row=True)
        tensors |= {f"{layer}.{part}": value for part, value in parts.items()}
        tensors[f"{layer}.comfy_quant"] = mark(format=FP8)
    before = load_backbone(folder, "cpu", "fp32").decoder.layers[0].down
    save_file(tensors, file, {"format": "pt"})
    after = load_backbone(folder, "cpu", "fp32").decoder.layers[0].down
    assert not after.equal(before) and torch.allclose(after, before, atol=0.05)
    assert load_backbone(folder, "cpu", "int8").in_int8
