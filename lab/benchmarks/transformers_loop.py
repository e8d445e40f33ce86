"""The same random weights in transformers' own classes, drawn by transformers' own `generate`.

Tensors are shared with the backbone if the layout allows it. Only the parts that draw a picture get
the weights; the vision encoders stay as small as possible.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
import torch.nn.functional as F
import transformers

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.emu3 import Emu3
from ssd_core.backbones.janus import Janus

CODE_WIDTH = 8  # of Janus-Pro's codes, before the aligner
ROW_END = 3  # the id of the row end in lab/benchmarks/random_backbones.py


def text_config(backbone: Backbone, ids: int, theta: float) -> dict:
    s = backbone.decoder.shape
    return {"hidden_size": s.hidden, "intermediate_size": s.ffn, "num_hidden_layers": s.layers,
            "num_attention_heads": s.heads, "num_key_value_heads": s.kv_heads,
            "head_dim": s.head_dim, "rms_norm_eps": s.eps, "vocab_size": ids,
            "max_position_embeddings": 16384,
            "rope_parameters": {"rope_type": "default", "rope_theta": theta}}


def decoder_weights(backbone: Backbone, prefix: str) -> dict[str, torch.Tensor]:
    """Layers and final norm under Hugging Face's names; q and k are copies, the others views."""
    s, weights = backbone.decoder.shape, {f"{prefix}norm.weight": backbone.norm}
    for i, layer in enumerate(backbone.decoder.layers):
        at = f"{prefix}layers.{i}."
        qkv = layer.qkv.split([n * s.head_dim for n in (s.heads, s.kv_heads, s.kv_heads)])
        qkv = [halved(part, s.head_dim) for part in qkv[:2]] + [qkv[2]]
        weights |= {f"{at}self_attn.{name}_proj.weight": part
                    for name, part in zip("qkv", qkv, strict=True)}
        gate, up = layer.gate_up.chunk(2)
        weights |= {f"{at}self_attn.o_proj.weight": layer.out, f"{at}mlp.gate_proj.weight": gate,
                    f"{at}mlp.up_proj.weight": up, f"{at}mlp.down_proj.weight": layer.down,
                    f"{at}input_layernorm.weight": layer.attention_norm,
                    f"{at}post_attention_layernorm.weight": layer.ffn_norm}
    return weights


def halved(rows: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Reorder rows of q or k from neighbouring rotary pairs to first halves, then second halves."""
    return rows.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2).flatten(0, 2)


def assigned(model: torch.nn.Module, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
    unexpected = model.load_state_dict(weights, strict=False, assign=True).unexpected_keys
    if unexpected:
        raise SystemExit(f"transformers {transformers.__version__} knows no {unexpected[0]}")
    return model.requires_grad_(False).eval()


def janus(backbone: Janus) -> torch.nn.Module:
    """Janus in transformers; the backbone gets the embeddings that its aligner computes."""
    words = len(backbone.word_embedding)
    config = transformers.JanusConfig(
        text_config={"model_type": "llama", **text_config(backbone, words, 1e4)},
        vision_config={"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "image_size": 2 * backbone.grid.columns, "patch_size": 2,
                       "projection_dim": 32, "mlp_ratio": 1.0,
                       "num_image_tokens": backbone.grid.cells},
        vq_config={"embed_dim": CODE_WIDTH, "num_embeddings": backbone.codes,
                   "latent_channels": 8, "base_channels": 32, "channel_multiplier": [1, 1],
                   "num_res_blocks": 1, "projection_dim": backbone.hidden_size,
                   "image_token_embed_dim": backbone.hidden_size},
        tie_word_embeddings=False)
    with torch.device(backbone.device):
        model = transformers.JanusForConditionalGeneration._from_config(
            config, dtype=backbone.dtype, attn_implementation="sdpa")
    inner, head = "model.language_model.", "model.generation_head."
    model = assigned(model, {
        f"{inner}embed_tokens.weight": backbone.word_embedding, **decoder_weights(backbone, inner),
        f"{head}proj_out.weight": backbone.projection, f"{head}proj_out.bias":
        backbone.projection_bias, f"{head}vision_head.weight": backbone.head,
        f"{head}vision_head.bias": backbone.head_bias})
    sharpened_codes(model, backbone)
    return model


@torch.no_grad()
def sharpened_codes(model: torch.nn.Module, backbone: Janus) -> None:
    """Code embeddings that influence the next tokens, as in random_backbones.py, by the aligner."""
    draws = torch.Generator(backbone.device).manual_seed(0)
    codes = model.model.generation_embeddings.weight
    codes.normal_(generator=draws)
    for name, weight in model.model.generation_aligner.named_parameters():
        if name.endswith("weight"):
            weight.normal_(std=2 * weight.shape[1] ** -0.5, generator=draws)
    every = torch.arange(backbone.codes, device=backbone.device)
    backbone.code_embedding.copy_(model.prepare_embeddings_for_image_generation(every))


def emu3(backbone: Emu3) -> torch.nn.Module:
    words, codes = len(backbone.word_embedding), backbone.codes
    config = transformers.Emu3Config(
        text_config={**text_config(backbone, words + codes, backbone.theta), "pad_token_id": 0,
                     "bos_token_id": 1, "eos_token_id": 0, "tie_word_embeddings": False},
        vq_config={"base_channels": 32, "channel_multiplier": [1, 1], "num_res_blocks": 1,
                   "latent_channels": 4, "embed_dim": 4, "codebook_size": 32,
                   "attn_resolutions": [1], "hidden_size": 32},
        vocabulary_map={"<image>": 0}, tie_word_embeddings=False)
    with torch.device(backbone.device):
        model = transformers.Emu3ForConditionalGeneration._from_config(
            config, dtype=backbone.dtype, attn_implementation="sdpa")
    table = torch.cat((backbone.word_embedding, backbone.code_embedding[:codes]))
    table[ROW_END] = backbone.code_embedding[codes]
    inner = "model.text_model."
    return assigned(model, {
        f"{inner}embed_tokens.weight": table, **decoder_weights(backbone, inner),
        "lm_head.weight": F.pad(backbone.head, (0, 0, words, 0))})


def janus_loop(backbone: Janus, model: torch.nn.Module, branches: list[list[int]], cfg: float,
               greedy: bool, cache: str) -> Callable[[], torch.Tensor]:
    """generate(generation_mode="image"); cache: "static", or "dynamic"."""
    ids = torch.tensor(branches[:1], device=backbone.device)
    begin, boi, pad = backbone.begin, backbone.image, backbone.pad
    config = transformers.GenerationConfig(
        bos_token_id=begin, eos_token_id=0, pad_token_id=pad, do_sample=not greedy,
        guidance_scale=cfg, top_k=0, generation_kwargs={"boi_token_id": boi},
        max_length=ids.shape[1] + backbone.grid.cells)

    # Newer releases of transformers call it `cache`.
    name = next(name for name in ("cache", "past_key_values")
                if name in inspect.signature(model.forward).parameters)

    def draw() -> torch.Tensor:
        own = {} if cache == "static" else {
            name: transformers.DynamicCache(config=model.config.text_config)}
        with torch.inference_mode():
            return model.generate(ids, attention_mask=torch.ones_like(ids),
                                  generation_config=config, generation_mode="image", **own)[0]

    return draw


def emu3_loop(backbone: Emu3, model: torch.nn.Module, branches: list[list[int]], cfg: float,
              greedy: bool, cache: str) -> Callable[[], torch.Tensor]:
    """`generate` as in its documentation: guidance in a second pass, constrained ids."""
    ids, negative = (torch.tensor([row], device=backbone.device) for row in branches)
    grid, words = backbone.grid, len(backbone.word_embedding)
    picture = list(range(words, words + backbone.codes))

    def allowed(_: int, sofar: torch.Tensor) -> list[int]:
        slot = len(sofar) - ids.shape[1]
        return [ROW_END] if (slot + 1) % grid.width == 0 else picture

    config = transformers.GenerationConfig(
        do_sample=not greedy, top_k=0, guidance_scale=cfg, pad_token_id=0, eos_token_id=0,
        max_new_tokens=grid.slots, cache_implementation=cache)

    def draw() -> torch.Tensor:
        with torch.inference_mode():
            drawn = model.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=config,
                negative_prompt_ids=negative,
                negative_prompt_attention_mask=torch.ones_like(negative),
                prefix_allowed_tokens_fn=allowed)[0, ids.shape[1] :]
        return torch.where(drawn == ROW_END, backbone.codes, drawn - words)

    return draw
