"""Emu3.5-Image from a tiny checkpoint: against transformers' Qwen3, which is as it, and by hand."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from support.block_passes import hidden_by_blocks
from support.refusals import refused_in_one_line
from support.tiny_checkpoints import EMU3_5_DECODER, EMU3_CODES, emu3_5, emu3_codec, write_folder

from ssd_core import Sampling, SSDError, generate, load_backbone, methods
from ssd_core.backbones.codecs.codec import VQGANShape
from ssd_core.backbones.codecs.vqgan import IBQ
from ssd_core.backbones.emu3_5 import Emu35
from ssd_core.engine.methods import Rows
from ssd_core.model.grid import Grid
from ssd_core.weights.catalogue import CATALOGUE
from ssd_core.weights.fit import fit

FIRST_CODE, ROW_END = 470, 462  # behind 259 words, 208 control tokens and three for pictures


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return emu3_5(tmp_path_factory.mktemp("models") / "Emu3.5-Image")


@pytest.fixture(scope="module")
def backbone(folder) -> Emu35:
    return load_backbone(folder, "cpu", "fp32")


def drawing(backbone: Emu35, width: int, height: int) -> Emu35:
    """The backbone on a grid smaller than any it was trained on."""
    view = copy(backbone)
    view.sizes = ((width, height),)
    view.apply_size()
    return view


def tokens(backbone: Emu35, method, prompts, **options) -> torch.Tensor:
    return list(generate(backbone, prompts, method, **options))[-1].tokens


# The decoder


@pytest.fixture(scope="module")
def oracle(folder):
    """Qwen3 normalises queries and keys as Emu3.5 does: one RMSNorm for all heads of each."""
    transformers = pytest.importorskip("transformers", reason="the oracle needs transformers")
    config = transformers.Qwen3Config(
        **EMU3_5_DECODER, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    model = transformers.Qwen3ForCausalLM(config).eval()
    model.load_state_dict({name: value for file in folder.glob("*.safetensors")
                           for name, value in load_file(file).items()})
    return model


@torch.no_grad()
def states_of(oracle, prompt: list[int], picture: torch.Tensor) -> torch.Tensor:
    slots = torch.where(picture == EMU3_CODES, ROW_END, picture + FIRST_CODE)
    return oracle.model(torch.cat((torch.tensor(prompt), slots))[None]).last_hidden_state[0]


def test_blocks_of_unequal_prompts_equal_transformers(backbone, oracle):
    prompts = [backbone.tokenize("a red boat"), backbone.unconditional([])]
    picture = torch.randint(EMU3_CODES + 1, (2, 19), generator=torch.Generator().manual_seed(1))
    found = hidden_by_blocks(backbone, prompts, picture)
    for row, prompt in enumerate(prompts):
        expected = states_of(oracle, prompt, picture[row])
        normed = F.rms_norm(found[row], found[row].shape[-1:], backbone.norm, 1e-5)
        assert torch.allclose(normed, expected, atol=1e-5)
        logits = oracle.lm_head(expected)[:, FIRST_CODE : FIRST_CODE + EMU3_CODES]
        assert torch.allclose(backbone.logits(found[row]), logits, atol=1e-5)


@torch.inference_mode()
def test_greedy_guided_picture_equals_a_plain_loop_over_transformers(backbone, oracle):
    """As published, with end-of-image behind the last row."""
    view = drawing(backbone, 80, 48)
    prompt, picture = view.tokenize("a red boat"), torch.empty(0, dtype=torch.long)
    for slot in range(view.grid.slots - 1):
        cond, uncond = (oracle.lm_head(states_of(oracle, ids, picture)[-1])[FIRST_CODE:]
                        for ids in (prompt, view.unconditional(prompt)))
        chosen = (uncond + 5.0 * (cond - uncond)).argmax()
        chosen = torch.tensor(EMU3_CODES) if slot % 6 == 5 else chosen
        picture = torch.cat((picture, chosen[None]))
    expected = F.pad(picture, (0, 1)).view(3, 6)[:, :5]
    found = tokens(view, methods.AR(), ["a red boat"], sampling=Sampling(temperature=0.0))
    assert found[0].equal(expected) and len(expected.unique()) > 2


def test_exact_equals_ar(backbone):
    view, sampling = drawing(backbone, 80, 48), Sampling(seed=5, top_k=12)
    runs = [tokens(view, method, ["red boat", "sun"], sampling=sampling)
            for method in (methods.Exact(), methods.AR())]
    assert runs[0].equal(runs[1]) and backbone.preset.cfg == 5.0


# The codec


def test_codes_are_those_of_the_largest_inner_products(backbone):
    codec, shown = backbone.picture_codec, torch.Generator().manual_seed(2)
    pictures = torch.rand(1, 3, 48, 80, generator=shown) * 2 - 1
    latents = codec.to_code(codec.encoder(pictures))[0].flatten(1).T
    largest = (latents @ codec.codebook.T).argmax(1)
    assert codec.encode(pictures).equal(largest.view(1, 3, 5))
    assert not largest.equal(torch.cdist(latents, codec.codebook).argmin(1))


def test_the_true_codec_has_the_published_size():
    with torch.device("meta"):
        codec = IBQ(VQGANShape(256, res_blocks=4, codes=131_072, code_dim=256,
                               attention_levels=(4,)))
    assert round(sum(weight.numel() for weight in codec.parameters()) / 1e6) == 455


# Prompts and sizes


def spelled(text: str) -> list[int]:
    """The tiny tokenizer: letters as bytes, but for "re" 256, "red" 257, " a" 258."""
    for letters, id in (("red", 257), ("re", 256), (" a", 258)):
        text = text.replace(letters, chr(id))
    return [*map(ord, text)]


def test_prompts_are_the_official_template(backbone):
    """Begin 465, the turn, its end 362, begin-of-image 468, rows * columns in digits, then 467."""
    words = spelled("You are a helpful assistant for t2i task. USER: red ASSISTANT: ")
    assert backbone.tokenize("red") == [465, *words, 362, 468, *b"64*64", 467]
    wide = backbone.resized((1360, 752))
    plain = spelled("You are a helpful assistant. USER:  ASSISTANT: ")
    assert wide.unconditional([]) == [465, *plain, 362, 468, *b"47*85", 467]
    words = spelled("You are a helpful assistant. USER: red ASSISTANT: ")
    assert wide.tokenize_negative("red") == [465, *words, 362, 468, *b"47*85", 467]
    with pytest.raises(SSDError, match="image end"):
        backbone.tokenize("red <|image end|>")


def test_sizes_are_the_official_ratios(backbone):
    assert (backbone.size, backbone.grid) == ((1024, 1024), Grid(64, 64, True))
    assert backbone.resized((1168, 880)).grid == Grid(55, 73, True)  # 4 : 3
    assert backbone.resized((832, 1248)).grid == Grid(78, 52, True)  # 2 : 3
    assert len(backbone.sizes) == 8


def test_int4_fits_a_card_of_32_gb_and_bf16_no_single_one():
    needed = {dtype: fit(CATALOGUE["Emu3.5-Image"], Rows(), dtype=dtype, device="meta").needed
              for dtype in ("bf16", "int4")}
    assert 24e9 < needed["int4"] < 32e9 and needed["bf16"] > 68e9


# What the files may hold


def edit(path: Path, **changes: object) -> None:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **changes}))


def with_emu3s_codec(path: Path) -> None:
    (path / "vq" / "model.ckpt").unlink()
    write_folder(path / "vq", emu3_codec("emu3"))


SPOILED = {
    "layers": (lambda path: edit(path, num_hidden_layers=3), "num_hidden_layers is 3"),
    "another rotation": (lambda path: edit(path, rope_scaling={"type": "dynamic", "factor": 2.0}),
                         "rope_scaling"),
    "no words": (lambda path: (path / "emu3.tiktoken").unlink(), "emu3.tiktoken: missing"),
    "no codec": (lambda path: (path / "vq" / "model.ckpt").unlink(),
                 "BAAI/Emu3.5-VisionTokenizer"),
    "another codec": (with_emu3s_codec, "is Emu3's MoVQ, expected a VQGAN"),
    "another model": (lambda path: edit(path, model_type="qwen3"), "no backbone known here"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_what_cannot_draw_is_refused_in_one_line(tmp_path, case):
    spoil, named = SPOILED[case]
    path = emu3_5(tmp_path / "emu")
    spoil(path)
    with refused_in_one_line(named, path):
        load_backbone(path, "cpu", "fp32")
