"""Tar's AR-DTok from tiny checkpoints, against its equations and SigLIP2 of transformers (5.23)."""

import json
import math
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.block_passes import hidden_by_blocks, random_tokens
from support.mock_backbone import tokens
from support.tiny_image_models import TA_TOK, ta_tok_tensors, tar, tar_language, tar_tensors

from ssd_core import Sampling, SSDError, load_backbone, methods
from ssd_core.backbones.tar import Tar


def load(path) -> Tar:
    return load_backbone(path, "cpu", "fp32")


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> Tar:
    return load(tar(tmp_path_factory.mktemp("tar") / "256"))


@pytest.fixture(scope="module")
def prompts(tmp_path_factory) -> list[str]:
    """Two squares of codes, 9 x 9 as .json and 13 x 13 as .npy."""
    folder, generator = tmp_path_factory.mktemp("codes"), np.random.default_rng(0)
    small, large = (generator.integers(TA_TOK["codes"], size=n) for n in (81, 169))
    (folder / "small.json").write_text(json.dumps(small.tolist()))
    np.save(folder / "large.npy", large.reshape(13, 13))
    return [f"codes:{folder / 'small.json'}", f" codes:{folder / 'large.npy'} "]


def codes_of(backbone: Tar, prompt: str) -> list[int]:
    return [i - 1 for i in backbone.tokenize(prompt)]


# Against the model, slot by slot, without a cache


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight


def plain_logits(tensors: dict, x: torch.Tensor, heads: int = 2) -> torch.Tensor:
    """Logits [n, codes] of embeddings [n, d] with their positions added; full causal attention."""
    x, width = x + tensors["abs_pe"][0, : len(x)], x.shape[1] // heads
    causal = torch.ones(len(x), len(x)).tril().bool()
    for i in range(2):
        layer = {name.removeprefix(f"layers.{i}."): value for name, value in tensors.items()}
        y = normed(x, layer["attention_norm.weight"]) @ layer["attention.wqkv.weight"].T
        q, k, v = (part.view(len(x), heads, width).transpose(0, 1) for part in y.chunk(3, dim=-1))
        scores = (q @ k.transpose(1, 2) / math.sqrt(width)).masked_fill(~causal, -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
        x = x + mixed @ layer["attention.wo.weight"].T
        y = normed(x, layer["ffn_norm.weight"])
        gate = F.silu(y @ layer["feed_forward.w1.weight"].T)
        x = x + (gate * (y @ layer["feed_forward.w3.weight"].T)) @ layer[
            "feed_forward.w2.weight"].T
    return normed(x, tensors["norm.weight"]) @ tensors["output.weight"].T


def test_logits_equal_the_plain_model(backbone, prompts):
    """Prompts of different length in one batch, each with and without its codes."""
    tensors = tar_tensors()
    ids = [backbone.tokenize(prompt) for prompt in prompts]
    ids += [backbone.unconditional(row) for row in ids]
    picture = random_tokens(backbone, 4, count=40)
    for row, ours in enumerate(hidden_by_blocks(backbone, ids, picture)):
        features = torch.zeros(len(ids[row]), TA_TOK["width"])
        if row < 2:
            features = backbone.read(tuple(codes_of(backbone, prompts[row])))
        conditions = features @ tensors["clip_proj.weight"].T + tensors["clip_proj.bias"]
        x = torch.cat((conditions, tensors["tok_embeddings.weight"][picture[row]]))
        assert torch.allclose(backbone.logits(ours), plain_logits(tensors, x),
                              atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("count", [81, 169, 729])
def test_features_equal_siglip2(backbone, count):
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle")
    config = transformers.Siglip2VisionConfig(
        patch_size=1, num_hidden_layers=TA_TOK["layers"], num_channels=TA_TOK["dim"],
        hidden_size=TA_TOK["width"], intermediate_size=TA_TOK["ffn"], vision_use_head=False)
    model, tensors = transformers.Siglip2VisionModel(config).eval(), ta_tok_tensors()
    own = {name.removeprefix("decoder."): value for name, value in tensors.items()
           if name.startswith("decoder.")}
    if not any(name.startswith("vision_model.") for name in model.state_dict()):
        own = {name.removeprefix("vision_model."): value for name, value in own.items()}
    model.load_state_dict(own)
    codes = random_tokens(backbone, 1, count=count)[0] % TA_TOK["codes"]

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    book = linear(tensors["bottleneck.regularizer.embedding.weight"],
                  "bottleneck.regularizer.embedding_proj")
    book = book / book.norm(dim=-1, keepdim=True)
    side = math.isqrt(count)
    with torch.no_grad():
        seen = model(linear(book[codes], "bottleneck.out_linear")[None],
                     torch.ones(1, count, dtype=torch.int), torch.tensor([[side, side]]))
        theirs = linear(torch.tanh(linear(seen.last_hidden_state[0], "decode_task_layer.0")),
                        "decode_task_layer.2")
    assert torch.allclose(backbone.read(tuple(codes.tolist())), theirs, atol=1e-5, rtol=1e-5)


def test_exact_equals_ar_and_a_batch_equals_solo_runs(backbone, prompts):
    sampling = Sampling(seed=5)
    both = tokens(backbone, methods.AR(), prompts, sampling=sampling)
    assert tokens(backbone, methods.Exact(), prompts, sampling=sampling).equal(both)
    assert both[1:].equal(tokens(backbone, methods.AR(), prompts[1:], sampling=Sampling(seed=6)))


def test_prompt_ids_are_codes_plus_one(backbone, tmp_path):
    (tmp_path / "codes.json").write_text(json.dumps([[0, 1, 49] * 3] * 9))
    ids = backbone.tokenize(f"codes:{tmp_path / 'codes.json'}")
    assert ids == [1, 2, 50] * 27
    assert backbone.unconditional(ids) == [-1] * 81


# Prompts in words


@pytest.fixture(scope="module")
def speaking(tmp_path_factory) -> Tar:
    pytest.importorskip("transformers", reason="Tar's language model is read with transformers")
    folder = tar(tmp_path_factory.mktemp("speaking") / "tar")
    tar_language(folder / "Tar-1.5B")
    return load(folder)


def test_words_become_the_official_chat(speaking):
    words = [i - TA_TOK["codes"] - 2 for i in speaking.tokenize(" a red ") if i > 51]
    told = [speaking.language.text.tokenizer.id_to_token(i) for i in words]
    assert "".join(told).replace("\u0120", " ").replace("\u010a", "\n") == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
        "a red<|im_end|>\n<|im_start|>assistant\n<im_start><S0>")
    assert len(speaking.tokenize("a red")) == 729


def test_codes_of_words_are_drawn_from_the_models_own_distribution(speaking, monkeypatch):
    """Each as from one full pass without a cache, with the filters of the original."""
    from transformers import Qwen2ForCausalLM

    monkeypatch.setattr("ssd_core.backbones.prompts.tar_language.COUNT", 6)
    language = speaking.language
    model = Qwen2ForCausalLM.from_pretrained(language.folder)
    ids = language.tokenize("a red house")
    drawn = language.draw(tuple(ids), torch.device("cpu"), torch.float32)
    assert len(drawn) == 6 and drawn == language.draw.__wrapped__(
        language, tuple(ids), torch.device("cpu"), torch.float32)
    assert drawn != language.draw(tuple(language.tokenize("a boat")), torch.device("cpu"),
                                  torch.float32)
    for code in drawn:
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1][language.code_ids]
        ordered, order = logits.softmax(-1).sort(descending=True)
        kept = order[: int((ordered.cumsum(0) < 0.95).sum()) + 1]
        assert code in kept
        ids.append(int(language.code_ids[code]))


def test_a_prompt_in_words_draws_as_its_codes_do(speaking, tmp_path):
    codes = speaking.language.draw(tuple(speaking.language.tokenize("a sun")),
                                   torch.device("cpu"), torch.float32)
    assert len(codes) == 729
    (tmp_path / "codes.json").write_text(json.dumps(codes))
    first, second = (tokens(speaking, methods.Rows(), [prompt], sampling=Sampling(seed=3))
                     for prompt in ("a sun", f"codes:{tmp_path / 'codes.json'}"))
    assert first.equal(second)


@pytest.mark.parametrize("prompt, named", [("a <S0> b", "control token <S0>"),
                                           ("x" * 800, "at most 729")])
def test_words_that_break_the_chat_are_refused(speaking, prompt, named):
    with pytest.raises(SSDError, match=named):
        speaking.tokenize(prompt)


# Files


def test_sizes_follow_from_the_table_of_positions(tmp_path):
    for cells, side in ((256, 16), (1024, 32)):
        backbone = load(tar(tmp_path / str(cells), cells))
        assert (backbone.grid.rows, backbone.grid.columns) == (side, side)
        assert backbone.sizes == ((2 * side, 2 * side),)
        assert backbone.name == f"tar-ar-dtok-{16 * side}"


@pytest.mark.parametrize("file, named", [
    ("ta_tok.pth", "put csuhan/TA-Tok's ta_tok.pth beside"),
    ("vq_ds16_t2i.pt", "put LlamaGen's vq_ds16_t2i.pt beside")])
def test_what_lies_in_other_files_is_told_where_it_lacks(tmp_path, file, named):
    folder = tar(tmp_path / "tar")
    (folder / file).unlink()
    with pytest.raises(SSDError, match=named) as refused:
        load(folder)
    assert "\n" not in str(refused.value)


def test_arguments_pickled_as_easydict_are_read_as_plain_data(tmp_path, monkeypatch):
    """What ta_tok.pth holds beside its tensors: a class that weights_only would refuse."""
    class EasyDict(dict):
        def __init__(self, values: dict) -> None:
            super().__init__(values)
            self.__dict__.update(values)

    EasyDict.__module__, EasyDict.__qualname__ = "easydict", "EasyDict"
    module = ModuleType("easydict")
    module.EasyDict = EasyDict
    folder = tar(tmp_path / "tar")
    monkeypatch.setitem(sys.modules, "easydict", module)
    arguments = EasyDict({"bottleneck": EasyDict({"name": "bottleneck"}), "pool_scale": 1})
    torch.save({"model": {"args": arguments, "sd": ta_tok_tensors()}}, folder / "ta_tok.pth")
    monkeypatch.delitem(sys.modules, "easydict")
    assert load(folder).ta_tok_codes == TA_TOK["codes"]


def test_tensors_of_another_shape_are_refused_by_name(tmp_path):
    folder = tar(tmp_path / "tar")
    tensors = ta_tok_tensors()
    tensors["decode_task_layer.2.weight"] = torch.zeros(24, 23)
    torch.save({"model": {"sd": tensors}}, folder / "ta_tok.pth")
    with pytest.raises(SSDError, match="ta_tok.pth: tensor decode_task_layer.2.weight"):
        load(folder)


# What the user gets wrong


@pytest.mark.parametrize("content, named", [
    ([1] * 80, "80 codes, expected 729, 169, 81"), ([50] * 81, "0 .. 49"), ([-1] * 81, "0 .. 49"),
    ([0.5] * 81, "whole numbers"), ({"codes": 1}, "whole numbers"), (None, "whole numbers"),
    ([], "whole numbers"), ([[1], [2, 3]], "cannot be read")])
def test_codes_that_do_not_fit_are_refused(backbone, tmp_path, content, named):
    (tmp_path / "codes.json").write_text(json.dumps(content))
    with pytest.raises(SSDError, match=named) as refused:
        tokens(backbone, methods.AR(), [f"codes:{tmp_path / 'codes.json'}"])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("prompt, named", [
    ("a red house", "write codes:FILE.*Tar-1.5B"), ("codes:nowhere.npy", "nowhere.npy"),
    ("codes:codes.txt", ".npy or .json")])
def test_other_prompts_are_told_what_to_write(backbone, prompt, named):
    with pytest.raises(SSDError, match=named) as refused:
        tokens(backbone, methods.AR(), [prompt])
    assert "\n" not in str(refused.value)


def test_an_array_of_objects_is_never_unpickled(backbone, tmp_path):
    np.save(tmp_path / "codes.npy", np.array([print, 1], dtype=object), allow_pickle=True)
    with pytest.raises(SSDError, match="cannot be read"):
        backbone.tokenize(f"codes:{tmp_path / 'codes.npy'}")


def test_a_negative_prompt_is_refused(backbone, prompts):
    with pytest.raises(SSDError, match="takes no negative prompt"):
        tokens(backbone, methods.AR(), prompts[:1], negative="rain")
