"""Sketch from a tiny random checkpoint, against the Llama of transformers."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from support.block_passes import hidden_by_blocks, random_tokens
from support.mock_backbone import tokens
from support.tiny_checkpoints import llama_shapes, random_tensors, word_tokenizer, write_folder
from support.tiny_image_models import CODES, codec_tensors

from ssd_core import Sampling, load_backbone, methods

WORDS = ("<s>", "<image>", "<unk>", "a", "red", "house")
CONFIG = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2,
          "num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": len(WORDS),
          "rms_norm_eps": 1e-6, "rope_theta": 10000.0}


def tensors() -> dict[str, torch.Tensor]:
    """Every tensor under the name that the published files use."""
    return {**random_tensors({"model.embed_tokens.weight": (len(WORDS), 32),
                              **llama_shapes("model.", hidden=32, ffn=48),
                              "image_embed.weight": (CODES, 32), "image_head.weight": (CODES, 32)}),
            **codec_tensors("llamagen", "vq.")}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("sketch")
    write_folder(folder, tensors(), CONFIG, word_tokenizer(WORDS, WORDS[:3]))
    return load_backbone(folder, device="cpu", dtype="fp32")


def test_hidden_states_equal_the_oracle(backbone):
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle")
    oracle = transformers.LlamaModel(transformers.LlamaConfig(**CONFIG)).eval()
    names = {name: value for name, value in tensors().items() if name.startswith("model.")}
    oracle.load_state_dict({name.removeprefix("model."): v for name, v in names.items()})
    ids, codes = backbone.tokenize("a"), random_tokens(backbone, rows=1)
    with torch.no_grad():
        inputs = torch.cat((backbone.embed_prompt(torch.tensor([ids])), backbone.embed(codes)), 1)
        theirs = oracle(inputs_embeds=inputs).last_hidden_state[0]
    ours, = hidden_by_blocks(backbone, [ids], codes)
    assert torch.allclose(F.rms_norm(ours, ours.shape[-1:], backbone.norm, 1e-6), theirs, atol=1e-5)


def test_exact_is_ar(backbone):
    runs = [tokens(backbone, method, ["a"], sampling=Sampling(seed=3))
            for method in (methods.AR(), methods.Exact())]
    assert runs[0].equal(runs[1])
