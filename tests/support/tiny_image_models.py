"""Tiny random checkpoints of Janus-Pro, LlamaGen and Tar, in the exact names of their layouts."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from ssd_core.backbones.codecs.vqgan import LAYOUTS, VQGAN, VQGANShape
from support.tiny_checkpoints import (
    Tensors,
    llama_shapes,
    random_tensors,
    word_tokenizer,
    write_folder,
)

CODES = 40
CODEC = VQGANShape(32, (1, 1), 1, 8, CODES, 8, normalised=True, attention_levels=(1,))


def codec_tensors(layout: str, prefix: str, seed: int = 0) -> Tensors:
    """A picture codec of 2 x 2 pixels a cell; its projections are 1 x 1 convolutions in files."""
    torch.manual_seed(seed)
    codec, rows = VQGAN(CODEC), LAYOUTS[layout]
    weights, tensors = codec.state_dict(), {}
    for name, key in rows.keys(codec).items():
        value = weights[name]
        conv = ".attn" in key or ".mid.1." in key
        tensors[prefix + key] = value[..., None, None] if conv and value.dim() == 2 else value
    return tensors


# Janus-Pro: hidden 32, two heads; 24 x 24 codes of 2 x 2 pixels

JANUS_CONTROL = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>",
                 "<begin_of_image>", "<end_of_image>", "<image_placeholder>")
JANUS_TEXT = {
    "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": 272,
    "max_position_embeddings": 16384}
JANUS_PORT = {  # (the original's name, the port's)
    "language_model.model.": "model.language_model.", "gen_embed.": "model.generation_embeddings.",
    "gen_aligner.layers.0.": "model.generation_aligner.fc1.",
    "gen_aligner.layers.2.": "model.generation_aligner.hidden_layers.0.",
    "gen_head.output_mlp_projector.": "model.generation_head.proj_out.",
    "gen_head.vision_head.": "model.generation_head.vision_head."}


def byte_tokenizer(control: tuple[str, ...]) -> Tokenizer:
    """Bytes and a few merges ("Ġa", "re", "red", "<|"), then control tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "a"), ("r", "e"), ("re", "d"), ("<", "|")]
    vocabulary = {word: i for i, word in enumerate([*letters, *map("".join, merges)])}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in control])
    return tokenizer


def linear_shapes(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def janus_tensors(seed: int = 0) -> Tensors:
    """The original's names, with a little of the parts that pictures do not need."""
    shapes = {
        "language_model.model.embed_tokens.weight": (272, 32),
        **llama_shapes("language_model.model.", hidden=32, ffn=48),
        "language_model.lm_head.weight": (272, 32), "gen_embed.weight": (CODES, 8),
        **linear_shapes("gen_aligner.layers.0", 8, 32),
        **linear_shapes("gen_aligner.layers.2", 32, 32),
        **linear_shapes("gen_head.output_mlp_projector", 32, 32),
        **linear_shapes("gen_head.vision_head", 32, CODES),
        **linear_shapes("aligner.layers.0", 16, 32),
        "vision_model.vision_tower.patch_embed.proj.weight": (16, 3, 2, 2)}
    return {**random_tensors(shapes, seed),
            **codec_tensors("llamagen", "gen_vision_model.", seed)}


def janus_port_tensors(seed: int = 0) -> Tensors:
    """The same numbers under the names of the transformers port."""
    unused = ("gen_vision_model.", "aligner.", "vision_model.", "language_model.lm_head.")
    tensors = {}
    for name, value in janus_tensors(seed).items():
        for own, port in JANUS_PORT.items():
            if name.startswith(own):
                tensors[port + name.removeprefix(own)] = value
        if name.startswith(unused[3]):
            tensors["lm_head.weight"] = value
    return {**tensors, **codec_tensors("janus-hf", "model.vqmodel.", seed)}


def janus_original(folder: Path, seed: int = 0, **told: object) -> Path:
    """deepseek-ai/Janus-Pro-1B: one pickle. told: more of its config."""
    text = {**JANUS_TEXT, **told}
    write_folder(folder, {}, {"model_type": "multi_modality", "language_config": text},
                 byte_tokenizer(JANUS_CONTROL))
    (folder / "model.safetensors").unlink()
    torch.save(janus_tensors(seed), folder / "pytorch_model.bin")
    return folder


def janus_port(folder: Path, seed: int = 0, shards: int = 2, **told: object) -> Path:
    """deepseek-community/Janus-Pro-*: safetensors. told: more of its config, or otherwise."""
    text = {**JANUS_TEXT, "head_dim": 16, "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, **told}
    return write_folder(folder, janus_port_tensors(seed), {
        "model_type": "janus", "text_config": text}, byte_tokenizer(JANUS_CONTROL), shards)


# LlamaGen: hidden 128, two heads of 64; cells of 2 x 2 pixels

LLAMAGEN_HF = {  # (the original's names, those of the safetensors)
    "tok_embeddings.": "model.embed_tokens.", "norm.": "model.norm.", "output.": "lm_head.",
    "attention_norm.": "input_layernorm.", "ffn_norm.": "post_attention_layernorm.",
    "attention.wo.": "self_attn.o_proj.", "feed_forward.w1.": "mlp.gate_proj.",
    "feed_forward.w3.": "mlp.up_proj.", "feed_forward.w2.": "mlp.down_proj."}


def llamagen_shapes(hidden: int = 128, layers: int = 2, ffn: int = 48) -> dict:
    """The decoder, embeddings and head in LlamaGen's names."""
    shapes = {"tok_embeddings.weight": (CODES, hidden)}
    for i in range(layers):
        layer = f"layers.{i}."
        shapes |= {f"{layer}attention.wqkv.weight": (3 * hidden, hidden),
                   f"{layer}attention.wo.weight": (hidden, hidden),
                   f"{layer}feed_forward.w1.weight": (ffn, hidden),
                   f"{layer}feed_forward.w3.weight": (ffn, hidden),
                   f"{layer}feed_forward.w2.weight": (hidden, ffn),
                   f"{layer}attention_norm.weight": (hidden,), f"{layer}ffn_norm.weight": (hidden,)}
    return {**shapes, "norm.weight": (hidden,), "output.weight": (CODES, hidden)}


def llamagen_c2i_tensors(seed: int = 0, **sizes: int) -> Tensors:
    shapes = llamagen_shapes(**sizes)
    hidden = shapes["norm.weight"][0]
    shapes["cls_embedding.embedding_table.weight"] = (1001, hidden)
    return random_tensors(shapes, seed, std=0.1)


def llamagen_t2i_tensors(seed: int = 0, width: int = 24) -> Tensors:
    return random_tensors({
        **llamagen_shapes(), "cls_embedding.cap_proj.fc1.weight": (128, width),
        "cls_embedding.cap_proj.fc2.weight": (128, 128),
        "cls_embedding.uncond_embedding": (120, width)}, seed, std=0.1)


def llamagen_c2i(folder: Path, file: str = "c2i_B_256.pt", wrapper: str | None = "model",
                 **sizes: int) -> Path:
    """FoundationVision/LlamaGen; B and L lie in {"model": ...}, XXL and 3B lie bare."""
    folder.mkdir(parents=True)
    tensors = llamagen_c2i_tensors(**sizes)
    torch.save({wrapper: tensors, "steps": 3} if wrapper else tensors, folder / file)
    torch.save({"model": codec_tensors("llamagen", "")}, folder / "vq_ds16_c2i.pt")
    return folder / file


def flan_t5(folder: Path, width: int = 24) -> Path:
    """A T5 encoder in google/flan-t5-xl's layout: gated GELU, one letter a token."""
    letters = sorted(map(chr, range(33, 127)))
    tokenizer = word_tokenizer(["<pad>", "</s>", "<unk>", *letters], ("<pad>", "</s>", "<unk>"))
    rows = tokenizer.get_vocab_size()
    shapes = {"shared.weight": (rows, width), "encoder.final_layer_norm.weight": (width,),
              "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (32, 2)}
    for i in range(2):
        layer = f"encoder.block.{i}.layer."
        shapes |= {f"{layer}0.SelfAttention.{name}.weight": (16, width) for name in "qkv"}
        shapes |= {f"{layer}0.SelfAttention.o.weight": (width, 16),
                   f"{layer}0.layer_norm.weight": (width,), f"{layer}1.layer_norm.weight": (width,),
                   f"{layer}1.DenseReluDense.wi_0.weight": (40, width),
                   f"{layer}1.DenseReluDense.wi_1.weight": (40, width),
                   f"{layer}1.DenseReluDense.wo.weight": (width, 40)}
    config = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"],
              "d_model": width, "d_kv": 8, "d_ff": 40, "num_layers": 2, "num_heads": 2,
              "vocab_size": rows, "feed_forward_proj": "gated-gelu", "is_gated_act": True,
              "dense_act_fn": "gelu_new", "relative_attention_num_buckets": 32,
              "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6,
              "pad_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": False}
    return write_folder(folder, random_tensors(shapes, 7), config, tokenizer)


def llamagen_t2i(folder: Path, file: str = "t2i_XL_stage1_256.pt") -> Path:
    """peizesun/llamagen_t2i, with flan-T5 in a subfolder."""
    folder.mkdir(parents=True)
    torch.save({"model": llamagen_t2i_tensors()}, folder / file)
    torch.save({"model": codec_tensors("llamagen", "")}, folder / "vq_ds16_t2i.pt")
    flan_t5(folder / "flan-t5-xl")
    return folder / file


def llamagen_t2i_hf(folder: Path) -> Path:
    """jadohu/LlamaGen-T2I: Hugging Face's names with q, k and v apart."""
    tensors = {}
    for name, value in llamagen_t2i_tensors().items():
        if "wqkv" in name:
            parts = zip("qkv", value.chunk(3), strict=True)
            layer = name.split("attention")[0]
            tensors |= {f"model.{layer}self_attn.{part}_proj.weight": rows for part, rows in parts}
        elif name.startswith("cls_embedding."):
            tensors[f"model.{name}"] = value
        else:
            tensors[in_hugging_face_names(name)] = value
    write_folder(folder, tensors, {"model_type": "llama", "rms_norm_eps": 1e-6,
                                   "num_attention_heads": 2, "hidden_size": 128})
    torch.save({"model": codec_tensors("llamagen", "")}, folder / "vq_ds16_t2i.pt")
    flan_t5(folder / "flan-t5-xl")
    return folder


def in_hugging_face_names(name: str) -> str:
    _head, dot, rest = name.partition("layers.")
    layer, _, part = rest.partition(".")
    for own, theirs in LLAMAGEN_HF.items():
        if dot and part.startswith(own):
            return f"model.layers.{layer}.{theirs}{part.removeprefix(own)}"
        if not dot and name.startswith(own):
            return theirs + name.removeprefix(own)
    raise KeyError(name)


# Tar: AR-DTok in LlamaGen's names, hidden 128; TA-Tok of width 24 with 12 heads

TA_TOK = {"codes": 50, "dim": 20, "width": 24, "ffn": 32, "layers": 2}


def tar_tensors(seed: int = 0, cells: int = 256) -> Tensors:
    return random_tensors({
        **llamagen_shapes(), **linear_shapes("clip_proj", TA_TOK["width"], 128),
        "abs_pe": (1, cells + 729 - 1, 128)}, seed, std=0.1)


def ta_tok_tensors(seed: int = 0) -> Tensors:
    """The decoder, the bottleneck and a little of the encoder."""
    dim, width, ffn = TA_TOK["dim"], TA_TOK["width"], TA_TOK["ffn"]
    body, bottleneck = "decoder.vision_model.", "bottleneck."
    shapes = {f"{bottleneck}regularizer.embedding.weight": (TA_TOK["codes"], dim),
              **linear_shapes(f"{bottleneck}regularizer.embedding_proj", dim, dim),
              **linear_shapes(f"{bottleneck}in_linear", width, dim),
              **linear_shapes(f"{bottleneck}out_linear", dim, dim),
              **linear_shapes(f"{body}embeddings.patch_embedding", dim, width),
              f"{body}embeddings.position_embedding.weight": (256, width),
              **linear_shapes("encode_task_layer.0", width, width),
              **linear_shapes("decode_task_layer.0", width, width),
              **linear_shapes("decode_task_layer.2", width, width),
              "encoder.post_layernorm.weight": (width,), "scale_layer.scale": (1, 3, 1, 1)}
    norms = [f"{body}post_layernorm"]
    for i in range(TA_TOK["layers"]):
        layer = f"{body}encoder.layers.{i}."
        norms += [f"{layer}layer_norm1", f"{layer}layer_norm2"]
        for name in ("q", "k", "v", "out"):
            shapes |= linear_shapes(f"{layer}self_attn.{name}_proj", width, width)
        shapes |= {**linear_shapes(f"{layer}mlp.fc1", width, ffn),
                   **linear_shapes(f"{layer}mlp.fc2", ffn, width)}
    shapes |= {f"{name}.{kind}": (width,) for name in norms for kind in ("weight", "bias")}
    return random_tensors(shapes, seed)


def tar(folder: Path, cells: int = 256) -> Path:
    """csuhan/TA-Tok's ar_dtok_lp_*px.pth and ta_tok.pth, with LlamaGen's codec."""
    folder.mkdir(parents=True)
    file = f"ar_dtok_lp_{16 * round(cells**0.5)}px.pth"
    torch.save({"model": {"name": "llama-abs-LP", "args": {"cls_token_num": 729},
                          "sd": tar_tensors(cells=cells)}}, folder / file)
    torch.save({"model": {"args": {"bottleneck_token_num": 729}, "sd": ta_tok_tensors()}},
               folder / "ta_tok.pth")
    torch.save({"model": codec_tensors("llamagen", "")}, folder / "vq_ds16_t2i.pt")
    return folder


def tar_language(folder: Path) -> Path:
    """csuhan/Tar-1.5B: a Qwen2 whose last ids are TA-Tok's codes, in Qwen2's names."""
    control = ("<|im_start|>", "<|im_end|>", "<im_start>", "<S0>",
               *(f"<I{code}>" for code in range(TA_TOK["codes"])))
    tokenizer = byte_tokenizer(control)
    rows, layers = tokenizer.get_vocab_size(), 2
    shapes = {"model.embed_tokens.weight": (rows, 32), **llama_shapes("model.", hidden=32, ffn=48),
              "lm_head.weight": (rows, 32)}
    for i in range(layers):
        shapes |= {f"model.layers.{i}.self_attn.{name}_proj.bias": (32,) for name in "qkv"}
    config = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 32,
              "intermediate_size": 48, "num_attention_heads": 2, "num_key_value_heads": 2,
              "num_hidden_layers": layers, "vocab_size": rows, "rms_norm_eps": 1e-6,
              "rope_theta": 1e6, "tie_word_embeddings": False, "max_position_embeddings": 2048}
    return write_folder(folder, random_tensors(shapes, 9), config, tokenizer)
