"""Tiny random checkpoints in the exact key names, configs and tokenizers of published layouts.

One function a layout; each writes a folder and returns it. Nothing here needs the libraries that
the originals were written with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

from ssd_core.backbones.codec_files import Layout
from ssd_core.backbones.vqgan import LAYOUTS, VQGAN, VQGANShape

Tensors = dict[str, torch.Tensor]


def random_tensors(shapes: Mapping[str, tuple[int, ...]], seed: int = 0, std: float = 0.2,
                   dtype: torch.dtype = torch.float32) -> Tensors:
    """Normal numbers of std 0.2; around 1 where a norm's weight is meant."""
    generator = torch.Generator().manual_seed(seed)
    return {name: (torch.randn(shape, generator=generator) * std
                   + name.endswith("norm.weight")).to(dtype) for name, shape in shapes.items()}


def llama_shapes(prefix: str, layers: int = 2, hidden: int = 16, heads: int = 2,
                 kv_heads: int = 2, ffn: int = 24,
                 qk_norm: tuple[int, ...] | None = None) -> dict[str, tuple[int, ...]]:
    """A decoder in Hugging Face names, from layer 0 to the final norm."""
    width = hidden // heads
    shapes: dict[str, tuple[int, ...]] = {}
    for i in range(layers):
        layer = f"{prefix}layers.{i}."
        shapes |= {f"{layer}input_layernorm.weight": (hidden,),
                   f"{layer}post_attention_layernorm.weight": (hidden,),
                   f"{layer}self_attn.q_proj.weight": (heads * width, hidden),
                   f"{layer}self_attn.k_proj.weight": (kv_heads * width, hidden),
                   f"{layer}self_attn.v_proj.weight": (kv_heads * width, hidden),
                   f"{layer}self_attn.o_proj.weight": (hidden, heads * width),
                   f"{layer}mlp.gate_proj.weight": (ffn, hidden),
                   f"{layer}mlp.up_proj.weight": (ffn, hidden),
                   f"{layer}mlp.down_proj.weight": (hidden, ffn)}
        for name in ("q_norm", "k_norm") if qk_norm else ():
            shapes |= {f"{layer}self_attn.{name}.{kind}": qk_norm for kind in ("weight", "bias")}
    return {**shapes, f"{prefix}norm.weight": (hidden,)}


def word_tokenizer(words: Iterable[str], control: Iterable[str]) -> Tokenizer:
    """Ids in the order given: control tokens may stand anywhere among the words."""
    words, control = list(words), list(control)
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)},
                                           unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w|[^\w\s]|\n"), "removed", invert=True)
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in control])
    return tokenizer


def write_folder(folder: Path, tensors: Tensors, config: dict | None = None,
                 tokenizer: Tokenizer | None = None, shards: int = 1) -> Path:
    """model.safetensors, or so many shards with their index; config.json; tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    files = {f"model-{i + 1:05}-of-{shards:05}.safetensors": names[i::shards]
             for i in range(shards)} if shards > 1 else {"model.safetensors": names}
    for file, part in files.items():
        save_file({name: tensors[name].contiguous() for name in part}, folder / file)
    if shards > 1:
        index = {"weight_map": {name: file for file, part in files.items() for name in part}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    if tokenizer is not None:
        tokenizer.save(str(folder / "tokenizer.json"))
    return folder


# Chameleon: Lumina-mGPT and Anole

CHAMELEON_CODES = 24


def chameleon_tokenizer(codes: int = CHAMELEON_CODES) -> Tokenizer:
    """The published order: four, the picture codes by their letter names, control, text."""
    names = ["IMGIMG" + str(code).translate(str.maketrans("0123456789", "ABCDEFGHIJ")) + "Z"
             for code in range(codes)]
    reserved = [f"<reserved{n:05}>" for n in (8706, 8799, *range(8801, 8833))]
    control = ["<s>", "<pad>", "</s>", "<unk>", "<eoss>", "<racm3:break>", *reserved]
    letters = sorted(set(map(chr, range(33, 127))) | {"\n"})
    return word_tokenizer([*control[:4], *names, *control[4:], *letters], control)


def chameleon_tensors(tokenizer: Tokenizer, qk_norm: tuple[int, ...], seed: int = 0) -> Tensors:
    entries = tokenizer.get_vocab_size()
    return random_tensors({"model.embed_tokens.weight": (entries, 16),
                           **llama_shapes("model.", qk_norm=qk_norm),
                           "lm_head.weight": (entries, 16)}, seed)


CHAMELEON_CONFIG = {
    "model_type": "chameleon", "hidden_size": 16, "num_attention_heads": 2,
    "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 24,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "swin_norm": False, "model_parallel_size": 1}


def lumina(folder: Path, shards: int = 2) -> Path:
    """Alpha-VLLM/Lumina-mGPT-7B-*: q and k norms shared by all heads, the codec beside it."""
    tokenizer = chameleon_tokenizer()
    config = {**CHAMELEON_CONFIG, "vocab_size": tokenizer.get_vocab_size(), "dropout": 0.05,
              "architectures": ["ChameleonXLLMXForConditionalGeneration"], "z_loss_weight": 1e-5}
    write_folder(folder, chameleon_tensors(tokenizer, (1, 8)), config, tokenizer, shards)
    write_folder(folder / "vqvae", chameleon_codec())
    return folder


def anole(folder: Path) -> Path:
    """leloy/Anole-7b-v0.1-hf: a norm for each head, the codec in the same files."""
    tokenizer = chameleon_tokenizer()
    config = {**CHAMELEON_CONFIG, "vocab_size": tokenizer.get_vocab_size(),
              "architectures": ["ChameleonForConditionalGeneration"],
              "vocabulary_map": tokenizer.get_vocab()}
    tensors = {**chameleon_tensors(tokenizer, (2, 8)), **chameleon_codec("model.vqmodel.")}
    return write_folder(folder, tensors, config, tokenizer, shards=3)


def codec_tensors(make: Callable[[], torch.nn.Module], layout: Layout, prefix: str = "",
                  convolved: bool = True, seed: int = 5) -> Tensors:
    """A picture codec as it is made, under the names of a published layout.

    convolved: the files hold attention's projections as 1 x 1 convolutions.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        codec = make()
    keys = replace(layout, prefix=prefix).keys(codec)
    return {keys[name]: value[..., None, None] if convolved and value.dim() == 2
            and name != "codebook" else value for name, value in codec.state_dict().items()}


def chameleon_codec(prefix: str = "") -> Tensors:
    """leloy/Anole-7b-v0.1-vqvae-hf; with the prefix `model.vqmodel.` part of Anole's own files."""
    shape = VQGANShape(channels=32, multipliers=(1, 1, 1, 1, 1), res_blocks=1, z_channels=8,
                       codes=CHAMELEON_CODES, code_dim=8)
    return codec_tensors(lambda: VQGAN(shape), LAYOUTS["taming"], prefix)
