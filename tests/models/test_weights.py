"""From names in files to parameters: every value in its place, once, and little memory for it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from support.tiny_checkpoints import llama_shapes, random_tensors, write_folder
from support.tiny_image_models import janus_port, llamagen_shapes
from torch import nn

from ssd_core import SSDError, load_backbone
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.backbones.reading.weights import (
    LLAMAGEN,
    Concat,
    Fingerprint,
    Slice,
    decoder_shape,
    decoder_sources,
    fill,
)
from ssd_core.model.transformer import Decoder, DecoderShape

CPU = torch.device("cpu")
WORDS = "model.language_model.embed_tokens.weight"


class Model(nn.Module):
    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.decoder = Decoder(shape)


def filled(checkpoint, shape, sources, dtype=torch.float32):
    with torch.device("meta"):
        model = Model(shape)
    return model, fill(model, sources, checkpoint, CPU, dtype)


def hf(folder: Path, dtype=torch.float32, shards: int = 3, **sizes):
    tensors = random_tensors(llama_shapes("model.", **sizes), dtype=dtype)
    return open_checkpoint(write_folder(folder, tensors, shards=shards)), tensors


def test_hugging_face_names(tmp_path):
    checkpoint, tensors = hf(tmp_path / "m", heads=4, kv_heads=2, qk_norm=(4, 4))
    shape = decoder_shape(checkpoint, "model.", 4)
    assert shape == DecoderShape(2, 16, 4, 2, 4, 24, qk_norm=True)
    for i in (0, 1):  # the published norms of k have a row for each of its own heads
        for kind in ("weight", "bias"):
            name = f"model.layers.{i}.self_attn.k_norm.{kind}"
            tensors[name] = tensors[name][:2]
    checkpoint = open_checkpoint(write_folder(tmp_path / "n", tensors))
    model, _ = filled(checkpoint, shape, decoder_sources("model.", 2, qk_norm=True))
    layer, at = model.decoder.layers[1], "model.layers.1."
    qkv = torch.cat([tensors[f"{at}self_attn.{name}_proj.weight"] for name in "qkv"])
    assert torch.equal(layer.qkv, layer.to_runtime_layout("qkv",
                                                          qkv)) and not torch.equal(layer.qkv, qkv)
    assert torch.equal(layer.gate_up, torch.cat([tensors[f"{at}mlp.gate_proj.weight"],
                                                 tensors[f"{at}mlp.up_proj.weight"]]))
    for own, key in (("out", "self_attn.o_proj.weight"), ("down", "mlp.down_proj.weight"),
                     ("attention_norm", "input_layernorm.weight"),
                     ("ffn_norm", "post_attention_layernorm.weight")):
        assert torch.equal(getattr(layer, own), tensors[at + key]), own
    for kind in ("weight", "bias"):
        own, both = f"qk_norm_{kind}", torch.cat([
            tensors[f"{at}self_attn.{name}_norm.{kind}"] for name in "qk"])
        assert torch.equal(getattr(layer, own), layer.to_runtime_layout(own, both)), own
    assert not any(weight.requires_grad for weight in model.parameters())


def test_biases_of_q_k_and_v(tmp_path):
    checkpoint, tensors = hf(tmp_path / "m", heads=4, kv_heads=2, qkv_bias=True)
    shape = decoder_shape(checkpoint, "model.", 4, qkv_bias=True)
    assert shape == DecoderShape(2, 16, 4, 2, 4, 24, qkv_bias=True)
    model, _ = filled(checkpoint, shape, decoder_sources("model.", 2, qkv_bias=True))
    layer = model.decoder.layers[1]
    bias = torch.cat([tensors[f"model.layers.1.self_attn.{name}_proj.bias"] for name in "qkv"])
    assert torch.equal(layer.qkv_bias, layer.to_runtime_layout("qkv_bias", bias))
    assert "_proj.bias has no place in this model" in refused_shape(checkpoint, 4)


def test_llamagen_names(tmp_path):
    tensors = random_tensors(llamagen_shapes())
    torch.save({"model": tensors}, tmp_path / "m.pt")
    checkpoint = open_checkpoint(tmp_path)
    shape = decoder_shape(checkpoint, "", 2, LLAMAGEN, rotary="interleaved", eps=1e-5)
    assert shape == DecoderShape(2, 128, 2, 2, 64, 48, "interleaved", eps=1e-5)
    model, _ = filled(checkpoint, shape, decoder_sources("", 2, LLAMAGEN))
    assert torch.equal(model.decoder.layers[0].qkv, tensors["layers.0.attention.wqkv.weight"])
    assert torch.equal(model.decoder.layers[1].down, tensors["layers.1.feed_forward.w2.weight"])


@given(layers=st.integers(1, 3), kv=st.integers(1, 3), groups=st.integers(1, 3),
       width=st.sampled_from((4, 10)), ffn=st.integers(1, 9), shards=st.integers(1, 3))
def test_sizes_are_read_off_the_tensors(tmp_path_factory, layers, kv, groups, width, ffn, shards):
    heads = kv * groups
    checkpoint, _ = hf(tmp_path_factory.mktemp("m") / "m", shards=shards, layers=layers,
                       hidden=heads * width, heads=heads, kv_heads=kv, ffn=ffn)
    shape = decoder_shape(checkpoint, "model.", heads)
    assert shape == DecoderShape(layers, heads * width, heads, kv, width, ffn)
    filled(checkpoint, shape, decoder_sources("model.", layers))


def refused_shape(checkpoint, heads: int = 2, **options) -> str:
    with pytest.raises(SSDError) as caught:
        decoder_shape(checkpoint, "model.", heads, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name, value", [
    ("num_hidden_layers", 3), ("hidden_size", 17), ("num_attention_heads", 4), ("head_dim", 16),
    ("num_key_value_heads", 1), ("intermediate_size", 23)])
def test_a_config_that_says_otherwise_is_refused(tmp_path, name, value):
    checkpoint, _ = hf(tmp_path / "m")
    message = refused_shape(checkpoint, config={name: value})
    assert f"config.json: {name} is {value}" in message
    decoder_shape(checkpoint, "model.", 2, config={name: None})


@pytest.mark.parametrize("heads", [0, -1, "two", None, True, 3, 2.0, 32])
def test_heads_that_cannot_be_are_refused(tmp_path, heads):
    checkpoint, _ = hf(tmp_path / "m")
    assert str(tmp_path) in refused_shape(checkpoint, heads)


@pytest.mark.parametrize("eps", [0, -1.0, "x", float("nan"), float("inf")])
def test_an_epsilon_that_cannot_be_is_refused(tmp_path, eps):
    assert "rms_norm_eps" in refused_shape(hf(tmp_path / "m")[0], eps=eps)


@pytest.mark.parametrize("change", [
    {"model.layers.0.self_attn.q_proj.bias": torch.ones(16)},  # Qwen's, which we would ignore
    {"model.layers.1.self_attn.q_norm.weight": torch.ones(2, 8)},
    {"model.layers.7.mlp.down_proj.weight": torch.ones(16, 24)},
    {"model.layers.x.mlp.down_proj.weight": torch.ones(16, 24)}], ids=lambda c: next(iter(c)))
def test_layers_of_another_kind_are_refused(tmp_path, change):
    tensors = {**random_tensors(llama_shapes("model.")), **change}
    message = refused_shape(open_checkpoint(write_folder(tmp_path / "m", tensors)))
    assert "model.layers." in message and str(tmp_path) in message


def test_no_layers_at_all_are_refused(tmp_path):
    save_file({"model.norm.weight": torch.ones(3)}, tmp_path / "m.safetensors")
    assert "model.layers.0." in refused_shape(open_checkpoint(tmp_path))


def test_tables_that_old_files_carry_are_passed_over(tmp_path):
    tensors = {**random_tensors(llama_shapes("model.")),
               "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}
    decoder_shape(open_checkpoint(write_folder(tmp_path / "m", tensors)), "model.", 2)


class Table(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        with torch.device("meta"):
            self.table = nn.Parameter(torch.empty(shape))


@given(data=st.data(), dtype=st.sampled_from((torch.float32, torch.bfloat16, torch.float64)))
def test_slices_and_stacks_take_just_these_rows(tmp_path_factory, data, dtype):
    tensors = {name: torch.randn(5, 2).to(dtype) for name in "xyz"}
    checkpoint = open_checkpoint(write_folder(tmp_path_factory.mktemp("m") / "m", tensors,
                                              shards=3))
    parts, expected = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from("xyz"))
        start = data.draw(st.integers(0, 5))
        stop = data.draw(st.integers(start, 5))
        parts.append(data.draw(st.sampled_from((Slice(name, start, stop),
                                                Concat((Slice(name, start, stop),))))))
        expected.append(tensors[name][start:stop])
    expected = torch.cat(expected).float()
    table = Table(*expected.shape)
    fill(table, {"table": Concat(tuple(parts))}, checkpoint, CPU, torch.float32)
    assert torch.equal(table.table, expected)


@pytest.mark.parametrize("source, reason", [
    ("x", "expected"), (Slice("x", 3, 6), "rows"), (Slice("x", 4, 2), "rows"), ("gone", "missing"),
    (Concat(("x", "y")), "expected"), (Slice("number", 0, 1), "rows"), ("number", "expected"),
    ("whole", "int64")], ids=str)
def test_what_does_not_fit_is_refused_by_name(tmp_path, source, reason):
    save_file({"x": torch.ones(5, 2), "y": torch.ones(1, 3), "number": torch.tensor(1.0),
               "whole": torch.ones(4, 2, dtype=torch.int64)}, tmp_path / "m.safetensors")
    with pytest.raises(SSDError, match=f"m.safetensors.*{reason}"):
        fill(Table(4, 2), {"table": source}, open_checkpoint(tmp_path), CPU, torch.float32)


def test_a_parameter_without_a_source_is_a_fault_of_ours(tmp_path):
    save_file({"x": torch.ones(4, 2)}, tmp_path / "m.safetensors")
    checkpoint = open_checkpoint(tmp_path)
    for sources in ({}, {"table": "x", "other": "x"}):
        with pytest.raises(ValueError, match="sources and parameters differ"):
            fill(Table(4, 2), sources, checkpoint, CPU, torch.float32)


def test_what_is_filled_keeps_no_file_open(tmp_path):
    """A view into the file would change, or fail, with the file."""
    save_file({"x": torch.ones(4, 2)}, tmp_path / "m.safetensors")
    table = Table(4, 2)
    fill(table, {"table": "x"}, open_checkpoint(tmp_path), CPU, torch.float32)
    with (tmp_path / "m.safetensors").open("r+b") as file:
        file.seek(-8, 2)
        file.write(b"\0" * 8)
    assert table.table.eq(1).all()


def print_of(folder, tensors, dtype=torch.float32, shards: int = 1) -> str:
    checkpoint = open_checkpoint(write_folder(folder, tensors, shards=shards))
    shape = decoder_shape(checkpoint, "model.", 2)
    return filled(checkpoint, shape, decoder_sources("model.", 2), dtype)[1].hexdigest()


def test_a_fingerprint_knows_the_weights_and_not_how_they_lie(tmp_path):
    tensors = random_tensors(llama_shapes("model."))
    one = print_of(tmp_path / "1", tensors)
    assert one == print_of(tmp_path / "2", tensors, shards=3)
    assert one == print_of(tmp_path / "3", tensors, torch.bfloat16)
    rounded = {name: value.bfloat16() for name, value in tensors.items()}
    assert one == print_of(tmp_path / "4", rounded)
    other = random_tensors(llama_shapes("model."), seed=1)
    for number, name in enumerate(tensors):
        if name != "model.norm.weight":  # no part of the decoder itself
            assert one != print_of(tmp_path / f"x{number}", {**tensors, name: other[name]}), name


def hash_of(value: torch.Tensor) -> str:
    fingerprint = Fingerprint()
    fingerprint.add("x", value)
    return fingerprint.hexdigest()


@given(st.sampled_from([(1,), (77,), (5, 3), (130, 64), (9, 4100), (3, 2, 5, 5), (3000, 77)]),
       st.sampled_from([torch.float32, torch.bfloat16, torch.float16]), st.data())
def test_every_single_value_and_its_place_count(shape, dtype, data):
    value = torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype)
    before, flat = hash_of(value), value.view(-1)
    at = data.draw(st.integers(0, value.numel() - 1))
    kept = flat[at].clone()
    flat[at] = data.draw(st.sampled_from([-kept, kept * 1.01, torch.tensor(0.0)]))
    assert hash_of(value) != before
    flat[at] = kept
    assert hash_of(value) == before
    if len(value) > 1:  # two words of a table that changed places
        assert hash_of(value.flip(0)) != before


def test_a_fingerprint_knows_the_shape():
    assert hash_of(torch.ones(3, 2)) != hash_of(torch.ones(2, 3))


def test_three_changed_words_of_a_large_table_are_another_model(tmp_path):
    """Also on meta, where the values are read for this alone, and only if they are asked for."""
    sums = {}
    for name, rows in (("one", ()), ("two", (68, 81, 82))):
        folder = janus_port(tmp_path / name, shards=1)
        tensors = load_file(folder / "model.safetensors")
        table = tensors[WORDS].repeat(-(-2000 // len(tensors[WORDS])), 1)[:2000].contiguous()
        for row in rows:
            table[row] *= -1
        save_file({**tensors, WORDS: table}, folder / "model.safetensors")
        assert load_backbone(folder, "meta", hashed=False).sha256 == ""
        sums[name] = load_backbone(folder, "meta").sha256
        assert load_backbone(folder).sha256 == sums[name]
        assert load_backbone(folder, "meta", hashed=False).sha256 == sums[name]
    assert sums["one"] != sums["two"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Files as exporters write them: whole layers one after the other."""
    shapes = llama_shapes("model.", layers=12, hidden=768, heads=8, kv_heads=8, ffn=2048)
    folder = tmp_path_factory.mktemp("large")
    for i, names in enumerate(batched(list(shapes), -(-len(shapes) // 4))):
        save_file({name: torch.ones(shapes[name]) for name in names},
                  folder / f"model-{i + 1:05}-of-00004.safetensors")
    yield folder
    shutil.rmtree(folder)


def batched(names: list[str], size: int) -> list[list[str]]:
    return [names[i : i + size] for i in range(0, len(names), size)]


@pytest.mark.skipif(not Path("/proc/self/status").is_file(),
                    reason="resident memory is read from /proc, which only Linux has")
@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
@pytest.mark.by_day(1)
def test_loading_takes_little_more_than_the_weights_and_one_shard(large, wanted):
    """The bound is one shard plus 1 GiB; these shards are small, so 48 MiB must do for the 1 GiB.

    Four files of 81 MiB each in float32, in a process of its own.
    """
    script = Path(__file__).parents[1] / "support" / "load_and_measure.py"
    run = subprocess.run([sys.executable, script, large, wanted], capture_output=True, text=True,
                         check=True)
    measured = json.loads(run.stdout.splitlines()[-1])
    shard = max(path.stat().st_size for path in large.glob("*.safetensors"))
    assert measured["own"] > 1.5 * shard  # or else the bound would say nothing
    assert measured["peak"] - measured["own"] < shard + 48 * 2**20, measured
