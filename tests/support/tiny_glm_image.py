"""A tiny random GLM-Image in the names and folders of zai-org/GLM-Image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from support.tiny_checkpoints import Tensors, random_tensors, word_tokenizer, write_folder

CODES = 30
CONTROL = [f"<|dit_token_{CODES}|>", f"<|dit_token_{CODES + 1}|>", "<sop>", "<eop>", "<|image|>"]
WORDS = ["<unk>", *"0123456789", *"abcdefghijklmnopqrstuvwxyz"]
TEXT = {"hidden_size": 64, "intermediate_size": 48, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "head_dim": 16,
        "vision_vocab_size": CODES + 8, "hidden_act": "silu", "attention_bias": True,
        "pad_token_id": CODES + 7, "eos_token_id": CODES + 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                            "partial_rotary_factor": 0.5, "mrope_section": [1, 2, 1]}}
VISION = {"depth": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 24,
          "image_size": 64, "patch_size": 16}
SOURCES = {"min_pixels": 96**2, "max_pixels": 256**2}  # of source pictures
VQ = {"embed_dim": 12, "num_embeddings": CODES, "latent_channels": 16}


def tokenizer() -> Tokenizer:
    """Codes come first, as in the published vocabulary; a word is a letter or a digit."""
    codes = [f"<|dit_token_{code}|>" for code in range(CODES)]
    return word_tokenizer([*codes, *CONTROL, *WORDS], [*codes, *CONTROL])


def config(**text: Any) -> dict:
    rows = tokenizer().get_vocab_size()
    return {"model_type": "glm_image", "architectures": ["GlmImageForConditionalGeneration"],
            "image_start_token_id": CODES, "image_end_token_id": CODES + 1,
            "image_token_id": tokenizer().token_to_id("<|image|>"), "tie_word_embeddings": False,
            "text_config": {**TEXT, "vocab_size": rows, **text}, "vision_config": VISION,
            "vq_config": VQ}


def tensors(seed: int = 0) -> Tensors:
    """All but the way back from codes, which is never used."""
    width, hidden, ffn = TEXT["head_dim"], TEXT["hidden_size"], TEXT["intermediate_size"]
    heads, kv_heads = TEXT["num_attention_heads"], TEXT["num_key_value_heads"]
    prefix = "model.language_model."
    shapes: dict[str, tuple[int, ...]] = {
        f"{prefix}embed_tokens.weight": (tokenizer().get_vocab_size(), hidden),
        f"{prefix}norm.weight": (hidden,), "lm_head.weight": (CODES + 8, hidden),
        "model.vqmodel.quantize.embedding.weight": (CODES, VQ["embed_dim"])}
    for i in range(TEXT["num_hidden_layers"]):
        layer = f"{prefix}layers.{i}."
        shapes |= {f"{layer}{name}.weight": (hidden,) for name in (
            "input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm",
            "post_mlp_layernorm")}
        for name, rows in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            shapes |= {f"{layer}self_attn.{name}_proj.weight": (rows * width, hidden),
                       f"{layer}self_attn.{name}_proj.bias": (rows * width,)}
        shapes |= {f"{layer}self_attn.o_proj.weight": (hidden, heads * width),
                   f"{layer}mlp.gate_up_proj.weight": (2 * ffn, hidden),
                   f"{layer}mlp.down_proj.weight": (hidden, ffn)}
    return {**{name: value * (3 if "k_proj" in name or name == "lm_head.weight" else 1)
               for name, value in random_tensors(shapes, seed).items()}, **encoder_tensors()}


def encoder_tensors() -> Tensors:
    """The encoder of pictures."""
    width, ffn, patch = VISION["hidden_size"], VISION["intermediate_size"], VISION["patch_size"]
    visual = "model.visual."
    cells = (VISION["image_size"] // patch) ** 2
    sizes: dict[str, tuple[int, ...]] = {
        f"{visual}embeddings.position_embedding.weight": (cells, width),
        f"{visual}patch_embed.proj.weight": (width, 3, patch, patch),
        f"{visual}patch_embed.proj.bias": (width,),
        "model.vqmodel.quant_conv.weight": (VQ["embed_dim"], width, 1, 1),
        "model.vqmodel.quant_conv.bias": (VQ["embed_dim"],)}
    for i in range(VISION["depth"]):
        block = f"{visual}blocks.{i}."
        for name, (rows, columns) in {"attn.qkv": (3 * width, width), "attn.proj": (width, width),
                                      "mlp.fc1": (ffn, width), "mlp.fc2": (width, ffn)}.items():
            sizes |= {f"{block}{name}.weight": (rows, columns), f"{block}{name}.bias": (rows,)}
        sizes |= {f"{block}norm{n}.{kind}": (width,) for n in (1, 2) for kind in ("weight", "bias")}
    return random_tensors(sizes, seed=1)


def glm_image(folder: Path, shards: int = 2, **text: Any) -> Path:
    """The two folders of the pipeline that the codes need."""
    write_folder(folder / "vision_language_encoder", tensors(), config(**text), shards=shards)
    write_folder(folder / "processor", {}, None, tokenizer())
    (folder / "processor" / "model.safetensors").unlink()
    (folder / "processor" / "preprocessor_config.json").write_text(json.dumps(SOURCES))
    return folder


def oracle() -> torch.nn.Module:
    """transformers' own class with the same tensors."""
    import transformers

    transformers.logging.set_verbosity_error()
    told = config()
    model = transformers.GlmImageForConditionalGeneration(transformers.GlmImageConfig(
        **{name: value for name, value in told.items() if name != "architectures"}))
    missing, unexpected = model.load_state_dict(tensors(), strict=False)
    assert not unexpected
    assert all(name.startswith("model.vqmodel.post_quant_conv.") for name in missing)
    return model.eval()
