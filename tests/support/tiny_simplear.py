"""A tiny random SimpleAR in the published files, with a Cosmos codec as TorchScript archives."""

from __future__ import annotations

import json
from functools import cache
from io import BytesIO
from pathlib import Path

import torch
from torch import nn

from ssd_core.backbones.codecs.cosmos import Cosmos, CosmosShape

from .tiny_checkpoints import Tensors, llama_shapes, random_tensors, write_folder
from .tiny_image_models import byte_tokenizer

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|t2i|>", "<|i2t|>", "<|soi|>",
           "<|vtokens|>")
COSMOS = CosmosShape(channels=4, multipliers=(2, 3, 3), res_blocks=1, z_channels=5,
                     levels=(8, 6, 5))
CODES = COSMOS.codes
WORDS = byte_tokenizer(CONTROL).get_vocab_size()
CONFIG = {"model_type": "qwen2", "hidden_size": 16, "intermediate_size": 24,
          "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
          "vocab_size": WORDS + CODES, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
          "use_sliding_window": False, "tie_word_embeddings": True}


def simplear_tensors(seed: int = 0) -> Tensors:
    return random_tensors({
        "model.embed_tokens.weight": (WORDS + CODES, 16),
        **llama_shapes("model.", heads=4, kv_heads=2, qkv_bias=True)}, seed)


def cosmos_tensors(seed: int = 0) -> Tensors:
    """The codec's tensors, and those of moving pictures, which it has beside them."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(value.shape, generator=generator) * 0.3
               for name, value in Cosmos(COSMOS).state_dict().items()}
    return {**tensors, "decoder.up.2.upsample.conv1.conv3d.weight": torch.ones(12, 12, 3, 1, 1),
            "encoder.mid.attn_1.1.q.conv3d.bias": torch.ones(12)}


class Holder(nn.Module):
    """A module of TorchScript that only holds tensors under their names."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


@cache
def cosmos_archive() -> bytes:
    """autoencoder.jit of the tiny codec."""
    buffer = BytesIO()
    save_script(cosmos_tensors(), buffer)
    return buffer.getvalue()


def save_script(tensors: Tensors, to: Path | BytesIO) -> None:
    """Save tensors as the parameters of nested modules in a TorchScript archive."""
    root = Holder()
    for name, value in tensors.items():
        *parents, leaf = name.split(".")
        module = root
        for parent in parents:
            if parent not in dict(module.named_children()):
                module.add_module(parent, Holder())
            module = module.get_submodule(parent)
        module.register_parameter(leaf, nn.Parameter(value))
    torch.jit.save(torch.jit.trace(root, torch.ones(1)), to)


def save_tokenizer(folder: Path) -> None:
    """The three files that older libraries save: vocab.json, merges.txt and added_tokens.json."""
    tokenizer = json.loads(byte_tokenizer(CONTROL).to_str())
    merges = [" ".join(pair) for pair in tokenizer["model"]["merges"]]
    (folder / "vocab.json").write_text(json.dumps(tokenizer["model"]["vocab"]), "utf-8")
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), "utf-8")
    added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    (folder / "added_tokens.json").write_text(json.dumps(added), "utf-8")


def simplear(folder: Path, seed: int = 0, **changed: object) -> Path:
    """Daniel0724/SimpleAR-0.5B-RL with nvidia/Cosmos-1.0-Tokenizer-DV8x16x16 in a subfolder."""
    write_folder(folder, simplear_tensors(seed), {**CONFIG, **changed})
    save_tokenizer(folder)
    (folder / "cosmos").mkdir()
    (folder / "cosmos" / "autoencoder.jit").write_bytes(cosmos_archive())
    return folder
