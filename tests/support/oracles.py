"""The classes of transformers with the weights of tiny checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tokenizers import Tokenizer

from .tiny_checkpoints import (
    CHAMELEON_CODES,
    EMU3_CODES,
    EMU3_CONTROL,
    EMU3_DECODER,
    EMU3_RANKS,
    EMU3_VISION,
    Tensors,
)
from .tiny_image_models import (
    CODES,
    JANUS_CONTROL,
    JANUS_TEXT,
    byte_tokenizer,
    janus_port_tensors,
)


def library() -> Any:
    return pytest.importorskip("transformers", reason="transformers is the oracle")


def tensors_of(folder: Path) -> Tensors:
    return {name: value for file in folder.glob("*.safetensors")
            for name, value in load_file(file).items()}


def janus_oracle(**changed: object) -> Any:
    """JanusForConditionalGeneration. changed: of its text_config."""
    transformers = library()
    config = transformers.JanusConfig(
        text_config={**JANUS_TEXT, **changed}, tie_word_embeddings=False,
        vision_config={"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "image_size": 48, "patch_size": 2, "projection_dim": 32, "mlp_ratio": 1.0},
        vq_config={"embed_dim": 8, "num_embeddings": CODES, "latent_channels": 8,
                   "base_channels": 32, "channel_multiplier": [1, 1], "num_res_blocks": 1,
                   "projection_dim": 32, "image_token_embed_dim": 32})
    model = transformers.JanusForConditionalGeneration(config)
    missing, unexpected = model.load_state_dict(janus_port_tensors(), strict=False)
    assert not unexpected
    assert all(key.startswith(("model.vision_model.", "model.aligner.")) for key in missing)
    tokenizer = byte_tokenizer(JANUS_CONTROL)
    begin, end, pad, image = map(tokenizer.token_to_id, JANUS_CONTROL[:4])
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=begin, eos_token_id=end, pad_token_id=pad, do_sample=False,
        guidance_scale=5.0, generation_kwargs={"boi_token_id": image})
    return model.eval()


def emu3_oracle(later_port: Path) -> Any:
    """Emu3ForConditionalGeneration with the weights of the port."""
    transformers = library()
    text = transformers.Emu3TextConfig(
        **EMU3_DECODER, pad_token_id=259, bos_token_id=465, eos_token_id=466)
    codec = transformers.Emu3VQVAEConfig(
        base_channels=32, channel_multiplier=[1, 1, 1, 1], num_res_blocks=1, latent_channels=4,
        embed_dim=4, codebook_size=EMU3_CODES, attn_resolutions=[3], hidden_size=32)
    names = [*EMU3_CONTROL, *EMU3_VISION]
    vocabulary = {name: len(EMU3_RANKS) + i for i, name in enumerate(names)}
    vocabulary["<image>"] = vocabulary.pop("<|extra_0|>")
    model = transformers.Emu3ForConditionalGeneration(transformers.Emu3Config(
        text_config=text, vq_config=codec, vocabulary_map=vocabulary)).eval()
    missing = model.load_state_dict(tensors_of(later_port), strict=False).missing_keys
    assert all(name.endswith("num_batches_tracked") for name in missing)
    return model


def chameleon_oracle(folder: Path) -> Any:
    """ChameleonForConditionalGeneration, whose forward masks the logits of pictures."""
    transformers = library()
    config = json.loads((folder / "config.json").read_text())
    codec = transformers.ChameleonVQVAEConfig(
        base_channels=32, channel_multiplier=[1] * 5, num_res_blocks=1, latent_channels=8,
        embed_dim=8, num_embeddings=CHAMELEON_CODES)
    vocabulary = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    names = ("vocab_size", "hidden_size", "num_attention_heads", "num_key_value_heads",
             "num_hidden_layers", "intermediate_size", "rms_norm_eps")
    model = transformers.ChameleonForConditionalGeneration(transformers.ChameleonConfig(
        vq_config=codec, vocabulary_map=vocabulary, bos_token_id=0,
        **{name: config[name] for name in names})).eval()
    sharing = {"q_norm": config["num_attention_heads"], "k_norm": config["num_key_value_heads"]}
    weights = {name: next((value.expand(heads, -1) for kind, heads in sharing.items()
                           if kind in name), value)
               for name, value in tensors_of(folder).items()}
    if config.get("tie_word_embeddings"):
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    missing = model.load_state_dict(weights, strict=False).missing_keys
    assert all("vqmodel" in name for name in missing)
    return model
