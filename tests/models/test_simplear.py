"""SimpleAR from a tiny checkpoint, against transformers' Qwen2 and the codec's equations."""

import shutil

import pytest
import torch
import torch.nn.functional as F
from support.block_passes import hidden_by_blocks, random_tokens
from support.mock_backbone import tokens
from support.refusals import refused_in_one_line
from support.tiny_image_models import byte_tokenizer
from support.tiny_simplear import (
    CONFIG,
    CONTROL,
    COSMOS,
    cosmos_tensors,
    save_script,
    simplear,
    simplear_tensors,
)

from ssd_core import Sampling, SSDError, load_backbone, methods
from ssd_core.backbones.codecs.cosmos import cosmos_of
from ssd_core.backbones.codecs.files import load_weights


def load(folder):
    return load_backbone(folder, device="cpu", dtype="fp32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return simplear(tmp_path_factory.mktemp("simplear") / "SimpleAR-0.5B")


@pytest.fixture(scope="module")
def backbone(folder):
    return load(folder)


@pytest.fixture(scope="module")
def oracle():
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle")
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**CONFIG)).eval()
    missing, unexpected = model.load_state_dict(simplear_tensors(), strict=False)
    assert not unexpected and missing == ["lm_head.weight"]
    return model


def spelled(backbone, ids):
    return "".join(map(backbone.vocabulary.text.tokenizer.id_to_token, ids)).replace("Ġ", " ")


def test_prompts_are_those_of_the_published_template(backbone):
    ids = backbone.tokenize(" a red tree ")
    assert spelled(backbone, ids) == "<|t2i|>A highly realistic image of a red tree<|soi|>"
    assert spelled(backbone, backbone.tokenize_negative("fog")) == "<|t2i|>An image of fog<|soi|>"
    unconditional = spelled(backbone, backbone.unconditional(ids))
    assert unconditional.startswith("<|t2i|>An image of aerial view, overexposed, low quality, ")
    assert unconditional.endswith("bad eyes, bad limbs, distortion<|soi|>")


def test_a_tokenizer_json_is_the_same_tokenizer(backbone, folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "simplear")
    for name in ("vocab.json", "merges.txt", "added_tokens.json"):
        (other / name).unlink()
    byte_tokenizer(CONTROL).save(str(other / "tokenizer.json"))
    assert load(other).tokenize("a red tree") == backbone.tokenize("a red tree")


def guided_logits(backbone, oracle, prompt, codes, cfg=6.0):
    """What predicts each of a picture's first cells, by the oracle."""
    ids = backbone.tokenize(prompt)
    first = backbone.vocabulary.first_code
    with torch.no_grad():
        yes, no = (oracle(torch.tensor([[*branch, *(codes + first).tolist()]])).logits[
            0, len(branch) - 1 : -1, first:] for branch in (ids, backbone.unconditional(ids)))
    return no + cfg * (yes - no)


def test_hidden_states_and_logits_equal_the_oracle(backbone, oracle):
    prompts = [backbone.tokenize("a red tree"), backbone.unconditional([])]
    codes = random_tokens(backbone, len(prompts), count=30)
    first = backbone.vocabulary.first_code
    for ids, row, ours in zip(prompts, codes, hidden_by_blocks(backbone, prompts, codes),
                              strict=True):
        with torch.no_grad():
            x = torch.tensor([[*ids, *(row + first).tolist()]])
            theirs = oracle.model(x).last_hidden_state[0]
            logits = oracle(x).logits[0, :, first:]
        normed = F.rms_norm(ours, ours.shape[-1:], backbone.norm, 1e-6)
        assert torch.allclose(normed, theirs, atol=1e-5)
        assert torch.allclose(backbone.logits(ours), logits, atol=1e-4)


def test_the_last_row_is_the_oracles_greedy_one_by_ar_and_exact(backbone, oracle):
    keep = random_tokens(backbone, 1).view(1, 64, 64)
    options = {"keep": keep, "keep_rows": 63, "sampling": Sampling(temperature=0.0)}
    picture, = tokens(backbone, methods.AR(), ["a red tree"], **options)
    assert picture.equal(tokens(backbone, methods.Exact(), ["a red tree"], **options)[0])
    best = guided_logits(backbone, oracle, "a red tree", picture.flatten()).argmax(-1)
    assert best[-64:].equal(picture[63])


def test_the_same_rows_embed_and_predict(backbone):
    assert backbone.head is backbone.code_embedding
    assert backbone.decoder.shape.qkv_bias and backbone.preset.cfg == 6


# The codec, by its equations over time


def causal(w, name, x, pad=0, stride=(1, 1, 1)):
    weight = w[f"{name}.conv3d.weight"]
    before = x[:, :, :1].repeat(1, 1, weight.shape[2] - stride[0], 1, 1)
    x = F.pad(torch.cat((before, x), 2), (pad,) * 4)
    return F.conv3d(x, weight, w[f"{name}.conv3d.bias"], stride)


def norm(w, name, x):
    return F.group_norm(x, 1, w[f"{name}.norm.weight"], w[f"{name}.norm.bias"], 1e-6)


def factorised(w, name, x):
    return causal(w, f"{name}.1", causal(w, f"{name}.0", x, pad=1))


def block(w, name, x):
    h = factorised(w, f"{name}.conv1", F.silu(norm(w, f"{name}.norm1", x)))
    h = factorised(w, f"{name}.conv2", F.silu(norm(w, f"{name}.norm2", h)))
    short = f"{name}.nin_shortcut"
    return h + (causal(w, short, x) if f"{short}.conv3d.weight" in w else x)


def attention(w, name, x):
    h = norm(w, f"{name}.norm", x)
    q, k, v = (causal(w, f"{name}.{part}", h).flatten(2) for part in "qkv")
    weights = (q.mT @ k / q.shape[1] ** 0.5).softmax(-1)
    return x + causal(w, f"{name}.proj_out", (v @ weights.mT).view(x.shape))


def over_time(w, name, x):
    """One frame sees itself alone."""
    h = causal(w, f"{name}.v", norm(w, f"{name}.norm", x))
    return x + causal(w, f"{name}.proj_out", h)


def middle(w, name, x):
    x = over_time(w, f"{name}.attn_1.1", attention(w, f"{name}.attn_1.0",
                                                   block(w, f"{name}.block_1", x)))
    return block(w, f"{name}.block_2", x)


def down(w, name, x, time):
    x = F.pad(x, (0, 1, 0, 1))
    x = causal(w, f"{name}.conv1", x, stride=(1, 2, 2)) + F.avg_pool3d(x, (1, 2, 2))
    if time:
        x = torch.cat((x[:, :, :1], x), 2)
        x = causal(w, f"{name}.conv2", x, stride=(2, 1, 1)) + F.avg_pool3d(x, (2, 1, 1))
    return causal(w, f"{name}.conv3", x)


def up(w, name, x, time):
    x = causal(w, f"{name}.conv1", x) + x if time else x
    x = x.repeat_interleave(2, 3).repeat_interleave(2, 4)
    return causal(w, f"{name}.conv3", causal(w, f"{name}.conv2", x, pad=1) + x)


def halves(x, axis):
    pairs = x.unflatten(axis, (-1, 2))
    a, b = pairs.unbind(axis + 1)
    return (a + b) / 2**0.5, (a - b) / 2**0.5


def wavelets(x):
    """Frames [B, c, T, H, W] -> [B, 8 c, T / 2, H / 2, W / 2], scaled to keep means."""
    parts = [x]
    for axis in (2, 3, 4):
        parts = [half for part in parts for half in halves(part, axis)]
    return torch.cat(parts, 1) / 8**0.5


def inverse(x):
    parts = list((x * 8**0.5).chunk(8, 1))
    for axis in (4, 3, 2):
        parts = [torch.stack(((low + high) / 2**0.5, (low - high) / 2**0.5), axis + 1).flatten(
            axis, axis + 1) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def reference_pixels(w, codes):
    """One frame of pixels [B, 3, H, W] of codes [B, R, C]."""
    digits, rest = [], codes
    for level in COSMOS.levels:
        digits.append((rest % level - level // 2) / (level // 2))
        rest = rest // level
    x = causal(w, "post_quant_conv", torch.stack(digits, 1)[:, :, None])
    x = middle(w, "decoder.mid", factorised(w, "decoder.conv_in", x))
    for level in (2, 1, 0):
        for number in range(COSMOS.res_blocks + 1):
            x = block(w, f"decoder.up.{level}.block.{number}", x)
        x = up(w, f"decoder.up.{level}.upsample", x, level == 1) if level else x
    x = factorised(w, "decoder.conv_out", F.silu(norm(w, "decoder.norm_out", x)))
    return inverse(inverse(x))[:, :, 3]


def reference_codes(w, pixels):
    x = wavelets(wavelets(pixels[:, :, None].repeat(1, 1, 4, 1, 1)))
    x = factorised(w, "encoder.conv_in", x)
    for level in (0, 1, 2):
        for number in range(COSMOS.res_blocks):
            x = block(w, f"encoder.down.{level}.block.{number}", x)
        x = down(w, f"encoder.down.{level}.downsample", x, level == 0) if level < 2 else x
    x = F.silu(norm(w, "encoder.norm_out", middle(w, "encoder.mid", x)))
    x = causal(w, "quant_conv", factorised(w, "encoder.conv_out", x))[:, :, 0]
    codes, place = 0, 1
    for channel, level in zip(x.unbind(1), COSMOS.levels, strict=True):
        half, offset = (level - 1) * 1.001 / 2, 0.5 if level % 2 == 0 else 0.0
        shift = torch.tensor(offset / half).atanh()
        bounded = (channel + shift).tanh() * half - offset
        codes = codes + (bounded.round() + level // 2).long() * place
        place *= level
    return codes


def test_pixels_and_codes_equal_the_equations_over_time(folder):
    weights = cosmos_tensors()
    codec, keys = cosmos_of({name: tuple(value.shape) for name, value in weights.items()})
    load_weights(codec, keys, weights.__getitem__)
    codes = torch.randint(COSMOS.codes, (2, 3, 4), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        pixels = codec.decode(codes)
        assert pixels.shape == (2, 3, 48, 64)
        assert torch.allclose(pixels, reference_pixels(weights, codes), atol=1e-4)
        assert codec.encode(pixels).equal(reference_codes(weights, pixels))
        assert codec.quantised(codes).equal(codec.code_vectors[codes].permute(0, 3, 1, 2))


def test_the_codecs_halves_may_lie_in_two_archives(backbone, folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "simplear")
    (other / "cosmos" / "autoencoder.jit").unlink()
    for net in ("encoder", "decoder"):
        mine = {name: value for name, value in cosmos_tensors().items()
                if name.startswith((net, {"encoder": "quant", "decoder": "post"}[net]))}
        save_script(mine, other / "cosmos" / f"{net}.jit")
    states = load(other).picture_codec.state_dict(), backbone.picture_codec.state_dict()
    assert all(states[0][name].equal(states[1][name]) for name in states[1])


@pytest.mark.parametrize("spoil, named", [
    (lambda folder: shutil.rmtree(folder / "cosmos"), "picture codec is missing: put autoencoder"),
    (lambda folder: (folder / "cosmos").rename(folder / "Cosmos-0.1-Tokenizer-DV8x16x16"),
     "Cosmos-0.1 is another tokenizer"),
    (lambda folder: (folder / "cosmos").rename(folder / "Cosmos-0___1-Tokenizer-DV8x16x16"),
     "Cosmos-0.1 is another tokenizer"),
    (lambda folder: save_script({**cosmos_tensors(), "post_quant_conv.conv3d.weight":
                                 torch.ones(5, 16, 1, 1, 1)}, folder / "cosmos/autoencoder.jit"),
     "post_quant_conv.conv3d.weight has shape"),
    (lambda folder: (folder / "cosmos/autoencoder.jit").write_bytes(
        (folder / "cosmos/autoencoder.jit").read_bytes()[:5000]), "no TorchScript archive"),
    (lambda folder: save_script({**cosmos_tensors(), "quant_conv.conv3d.weight":
                                 torch.ones(16, 5, 1, 1, 1)}, folder / "cosmos/autoencoder.jit"),
     "codes have 16 channels"),
    (lambda folder: (folder / "merges.txt").write_text("q q q", "utf-8"), "does not fit merges"),
    (lambda folder: (folder / "added_tokens.json").write_text('{"<|t2i|>": 999}'),
     "ids do not follow"),
    (lambda folder: (folder / "added_tokens.json").write_text('{"<|t2i|>": 260}'),
     "has 261 entries, expected")])
def test_files_of_another_model_are_refused_by_name(folder, tmp_path, spoil, named):
    other = shutil.copytree(folder, tmp_path / "simplear")
    spoil(other)
    with refused_in_one_line(named, other):
        load(other)


@pytest.mark.parametrize("changed, named", [
    ({"use_sliding_window": True}, "use_sliding_window is set"),
    ({"num_attention_heads": 3}, "do not divide into 3 heads"),
    ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_scaling is"),
    ({"intermediate_size": 32}, "intermediate_size is 32")])
def test_a_config_of_another_decoder_is_refused_by_name(tmp_path, changed, named):
    with pytest.raises(SSDError, match=named):
        load(simplear(tmp_path / "simplear", **changed))
