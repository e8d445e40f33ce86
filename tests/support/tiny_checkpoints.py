"""Tiny random checkpoints in the exact key names, configs and tokenizers of published layouts.

One function a layout; each writes a folder and returns it. Nothing here needs the libraries that
the originals were written with.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

from ssd_core.backbones.codecs.files import CodecNames
from ssd_core.backbones.codecs.movq import LAYOUTS as MOVQ_LAYOUTS
from ssd_core.backbones.codecs.movq import SBER_LAYOUT as MOVQGAN_LAYOUT
from ssd_core.backbones.codecs.movq import MoVQ, MoVQGAN, MoVQShape
from ssd_core.backbones.codecs.vqgan import LAYOUTS, VQGAN, VQGANShape
from ssd_core.backbones.prompts.text import byte_letters

Tensors = dict[str, torch.Tensor]


def random_tensors(shapes: Mapping[str, tuple[int, ...]], seed: int = 0, std: float = 0.2,
                   dtype: torch.dtype = torch.float32) -> Tensors:
    """Normal numbers of std 0.2; around 1 where a norm's weight is meant."""
    generator = torch.Generator().manual_seed(seed)
    return {name: (torch.randn(shape, generator=generator) * std
                   + name.endswith("norm.weight")).to(dtype) for name, shape in shapes.items()}


def llama_shapes(prefix: str, layers: int = 2, hidden: int = 16, heads: int = 2,
                 kv_heads: int = 2, ffn: int = 24,
                 qk_norm: tuple[int, ...] | None = None,
                 qkv_bias: bool = False,
                 head_dim: int | None = None) -> dict[str, tuple[int, ...]]:
    """A decoder in Hugging Face names, from layer 0 to the final norm."""
    width = head_dim or hidden // heads
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
        for name, sharing in (("q", heads), ("k", kv_heads)) if qk_norm else ():
            sizes = (min(qk_norm[0], sharing), *qk_norm[1:])
            shapes |= {f"{layer}self_attn.{name}_norm.{kind}": sizes for kind in ("weight", "bias")}
        for name, sharing in (("q", heads), ("k", kv_heads), ("v", kv_heads)) if qkv_bias else ():
            shapes[f"{layer}self_attn.{name}_proj.bias"] = (sharing * width,)
    return {**shapes, f"{prefix}norm.weight": (hidden,)}


def word_tokenizer(words: Iterable[str], control: Iterable[str]) -> Tokenizer:
    """Ids in the order given: control tokens may stand anywhere among the words."""
    return numbered_tokenizer({word: i for i, word in enumerate(words)}, control)


def numbered_tokenizer(ids: Mapping[str, int], control: Iterable[str]) -> Tokenizer:
    """One id a letter or control token, with gaps where there are any."""
    tokenizer = Tokenizer(models.WordLevel(dict(ids), unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w|[^\w\s]|\n"), "removed", invert=True)
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in control])
    return tokenizer


def write_folder(folder: Path, tensors: Tensors, config: dict | None = None,
                 tokenizer: Tokenizer | None = None, shards: int = 1) -> Path:
    """model.safetensors, or so many shards with their index; config.json; tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    ends = [len(names) * (i + 1) // shards for i in range(-1, shards)]
    files = {f"model-{i + 1:05}-of-{shards:05}.safetensors": names[ends[i] : ends[i + 1]]
             for i in range(shards)} if shards > 1 else {"model.safetensors": names}
    for file, part in files.items():
        held = {name: tensors[name].contiguous() for name in part}
        save_file(held, folder / file, {"format": "pt"})  # as published files say it
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


def chameleon_tensors(tokenizer: Tokenizer, qk_norm: tuple[int, ...], seed: int = 0,
                      kv_heads: int = 2) -> Tensors:
    entries = tokenizer.get_vocab_size()
    return random_tensors({"model.embed_tokens.weight": (entries, 16),
                           **llama_shapes("model.", qk_norm=qk_norm, kv_heads=kv_heads),
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


def anole(folder: Path, kv_heads: int = 2) -> Path:
    """leloy/Anole-7b-v0.1-hf: a norm for each head, the codec in the same files."""
    tokenizer = chameleon_tokenizer()
    config = {**CHAMELEON_CONFIG, "vocab_size": tokenizer.get_vocab_size(),
              "architectures": ["ChameleonForConditionalGeneration"],
              "num_key_value_heads": kv_heads,
              "vocabulary_map": tokenizer.get_vocab()}
    tensors = {**chameleon_tensors(tokenizer, (2, 8), kv_heads=kv_heads),
               **chameleon_codec("model.vqmodel.")}
    return write_folder(folder, tensors, config, tokenizer, shards=3)


def codec_tensors(make: Callable[[], torch.nn.Module], layout: CodecNames, prefix: str = "",
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


# Lumina-mGPT 2.0: the published ids, in matrices of few columns

LUMINA2_IDS = 171_384
LUMINA2_CODEC = VQGANShape(channels=32, multipliers=(1, 1, 1, 1), res_blocks=1, z_channels=4,
                           codes=16_384, code_dim=4, attention_levels=(3,))
LUMINA2_CONTROL = {"<|endoftext|>": 151643, "<|im_end|>": 151645, "<racm3:break>": 151665,
                   "<eoss>": 151666, "<reserved08799>": 151670, "<reserved08706>": 151671,
                   **{f"<reserved{8800 + n:05}>": 151671 + n for n in range(1, 49)}}
LUMINA2_CONFIG = {**CHAMELEON_CONFIG, "num_attention_heads": 4, "num_key_value_heads": 4,
                  "model_parallel_size": 2, "vocab_size": LUMINA2_IDS, "mask_image_logits": False,
                  "architectures": ["ChameleonForConditionalGeneration"]}


def lumina2(folder: Path) -> Path:
    """Alpha-VLLM/Lumina-mGPT-2.0: a norm for every second head, ai-forever's codec as a pickle."""
    letters = ["<unk>", *sorted(set(map(chr, range(33, 127))) | {"\n"})]
    ids = {letter: i for i, letter in enumerate(letters)} | LUMINA2_CONTROL
    tensors = random_tensors({"model.embed_tokens.weight": (LUMINA2_IDS, 16),
                              **llama_shapes("model.", heads=4, kv_heads=4, qk_norm=(2, 4)),
                              "lm_head.weight": (LUMINA2_IDS, 16)}, seed=4)
    write_folder(folder, tensors, LUMINA2_CONFIG, numbered_tokenizer(ids, LUMINA2_CONTROL), 4)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": None, "eos_token": "<|im_end|>"}))
    (folder / "vq").mkdir()
    torch.save({**lumina2_codec(), "loss.discriminator.main.0.weight": torch.ones(1)},
               folder / "vq" / "movqgan_270M.ckpt")
    return folder


def lumina2_codec() -> Tensors:
    return codec_tensors(lambda: MoVQGAN(LUMINA2_CODEC), MOVQGAN_LAYOUT)


# Emu3

EMU3_CODES = 24
EMU3_MERGES = (b"re", b"red", b" a")
EMU3_CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>",
                *(f"<|extra_{i}|>" for i in range(205))]
EMU3_VISION = ["<|image token|>", "<|image start|>", "<|image end|>",
               *(f"<|visual token {code:06}|>" for code in range(EMU3_CODES))]
EMU3_RANKS = {token: rank for rank, token in enumerate(
    (*(bytes([byte]) for byte in range(256)), *EMU3_MERGES))}
EMU3_DECODER = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4,
                "num_key_value_heads": 2, "num_hidden_layers": 2, "rms_norm_eps": 1e-5,
                "vocab_size": len(EMU3_RANKS) + len(EMU3_CONTROL) + len(EMU3_VISION)}


def emu3_tensors(prefix: str, head: str) -> Tensors:
    entries = EMU3_DECODER["vocab_size"]
    return random_tensors({f"{prefix}embed_tokens.weight": (entries, 16),
                           **llama_shapes(prefix, heads=4), head: (entries, 16)}, seed=3)


def emu3_codec(layout: str, prefix: str = "") -> Tensors:
    """Emu3's codec: projections are 1 x 1 convolutions in the original, Linear in the port."""
    return codec_tensors(movq, MOVQ_LAYOUTS[layout], prefix, layout == "emu3")


@torch.no_grad()
def movq() -> MoVQ:
    """Its codes are latents of a picture, so that pictures are encoded as more than one of them."""
    codec = MoVQ(MoVQShape(channels=32, multipliers=(1, 1, 1, 1), res_blocks=1, z_channels=4,
                           codes=EMU3_CODES, code_dim=4, attention_levels=(3,)))
    latents = codec.to_code(codec.time_encoder(codec.encoder(torch.rand(1, 3, 64, 64) * 2 - 1)))
    codec.codebook.copy_(latents[0, :, 0].flatten(1).T[:EMU3_CODES])
    return codec


def emu3(folder: Path) -> Path:
    """BAAI/Emu3-Gen with BAAI/Emu3-VisionTokenizer in a subfolder."""
    config = {**EMU3_DECODER, "model_type": "Emu3", "rope_theta": 1e6, "image_area": 518400}
    write_folder(folder, emu3_tensors("model.", "lm_head.weight"), config, shards=2)
    write_emu3_words(folder)
    write_folder(folder / "vq", emu3_codec("emu3"))
    return folder


def write_emu3_words(folder: Path) -> None:
    lines = [f"{base64.b64encode(token).decode()} {rank}" for token, rank in EMU3_RANKS.items()]
    (folder / "emu3.tiktoken").write_text("\n".join(lines) + "\n")
    (folder / "emu3_vision_tokens.txt").write_text("\n".join(EMU3_VISION) + "\n")


EMU3_5_DECODER = {**EMU3_DECODER, "head_dim": 8}  # the heads are wider together than `hidden`


def emu3_5(folder: Path) -> Path:
    """BAAI/Emu3.5-Image with BAAI/Emu3.5-VisionTokenizer, a pickle, in a subfolder."""
    shapes = llama_shapes("model.", heads=4, head_dim=8)
    shapes |= {f"model.layers.{i}.self_attn.{name}_norm.weight": (8,) for i in (0, 1)
               for name in "qk"}
    entries = EMU3_DECODER["vocab_size"]
    tensors = random_tensors({"model.embed_tokens.weight": (entries, 16), **shapes,
                              "lm_head.weight": (entries, 16)}, seed=6)
    config = {**EMU3_5_DECODER, "model_type": "Emu3", "rope_theta": 1e6}
    write_folder(folder, tensors, config, shards=3)
    write_emu3_words(folder)
    shape = VQGANShape(channels=32, multipliers=(1, 1, 1, 1, 1), res_blocks=1, z_channels=8,
                       codes=EMU3_CODES, code_dim=8, attention_levels=(4,))
    (folder / "vq").mkdir()
    torch.save({"state_dict": codec_tensors(lambda: VQGAN(shape), LAYOUTS["taming"])},
               folder / "vq" / "model.ckpt")
    return folder


def emu3_port(folder: Path, prefix: str, head: str, codec: str, **rotary: object) -> Path:
    """Emu3-community/Emu3-Gen-hf: the vocabulary's control tokens are in the BPE's own list."""
    letters = byte_letters()
    vocabulary = {"".join(letters[byte] for byte in token): rank
                  for token, rank in EMU3_RANKS.items()}
    control = [*EMU3_CONTROL, *EMU3_VISION]
    vocabulary |= {name: len(EMU3_RANKS) + i for i, name in enumerate(control)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("r", "e"), ("re", "d"), (letters[32], "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in control])
    config = {"model_type": "emu3", "text_config": {**EMU3_DECODER, **rotary}}
    tensors = {**emu3_tensors(prefix, head), **emu3_codec("emu3-hf", codec)}
    return write_folder(folder, tensors, config, tokenizer, shards=2)


def emu3_first_port(folder: Path) -> Path:
    return emu3_port(folder, "text_model.model.", "text_model.lm_head.weight", "vqmodel.",
                     rope_scaling={"rope_type": "default"}, rope_theta=1e6)


def emu3_later_port(folder: Path) -> Path:
    return emu3_port(folder, "model.text_model.", "lm_head.weight", "model.vqmodel.",
                     rope_parameters={"rope_type": "default", "rope_theta": 1e6})
