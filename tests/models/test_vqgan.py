"""The VQGAN of Janus-Pro, LlamaGen, Chameleon: pixels and tokens as the originals give them.

Oracles: transformers (tested with 5.23.0) for Janus and for Chameleon's encoder; a plain
written-out network, which draws each weight when it first needs it, for the published layouts.
"""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st

from ssd_core.backbones.codecs import vqgan
from ssd_core.backbones.codecs.files import load_weights
from ssd_core.backbones.codecs.vqgan import (
    LAYOUTS,
    VQGAN,
    VQGANShape,
    layout_of,
    shape_of,
    vqgan_of,
)
from ssd_core.errors import SSDError

SHAPE = VQGANShape(channels=32, multipliers=(1, 2, 2), res_blocks=1, z_channels=6, codes=50,
                   code_dim=4, normalised=True, attention_levels=(2,))
SHAPES = {"llamagen": SHAPE, "janus-hf": SHAPE,
          "taming": replace(SHAPE, code_dim=6, normalised=False, attention_levels=())}
PREFIXES = {"llamagen": "gen_vision_model.", "janus-hf": "model.vqmodel.", "taming": ""}


class Written:
    """The network written out under the names of one layout; `weights` grows as it is walked."""

    def __init__(self, layout: str, shape: VQGANShape, prefix: str) -> None:
        self.layout, self.shape, self.prefix = layout, shape, prefix
        self.weights: dict[str, torch.Tensor] = {}
        self.draws = torch.Generator().manual_seed(7)
        self.encode(torch.zeros(1, 3, 4, 4))
        self.decode(torch.zeros(1, 1, 1, dtype=torch.long))
        self.weights["loss.discriminator.weight"] = torch.ones(3)
        self.weights[f"{prefix}quantize.codebook_used"] = torch.zeros(9)

    def weight(self, name: str, *size: int) -> torch.Tensor:
        if (key := self.prefix + name) not in self.weights:
            fan_in = max(1, torch.Size(size[1:]).numel())
            drawn = torch.randn(size, generator=self.draws) / fan_in**0.5
            self.weights[key] = drawn + (1 if "norm" in name and name.endswith("weight") else 0)
        return self.weights[key]

    def conv(self, x, name, out, kernel=3, **how):
        weight = self.weight(f"{name}.weight", out, x.shape[1], kernel, kernel)
        return F.conv2d(x, weight, self.weight(f"{name}.bias", out), **how)

    def norm(self, x, name):
        channels = x.shape[1]
        return F.group_norm(x, 32, self.weight(f"{name}.weight", channels),
                            self.weight(f"{name}.bias", channels), 1e-6)

    def block(self, x, name, out):
        h = self.norm(x, f"{name}.norm1")
        h = self.conv(h * h.sigmoid(), f"{name}.conv1", out, padding=1)
        h = self.norm(h, f"{name}.norm2")
        h = self.conv(h * h.sigmoid(), f"{name}.conv2", out, padding=1)
        return h + (x if x.shape[1] == out else self.conv(x, f"{name}.nin_shortcut", out, 1))

    def attention(self, x, name):
        h, channels = self.norm(x, f"{name}.norm"), x.shape[1]
        q, k, v = (self.conv(h, f"{name}.{part}", channels, 1).flatten(2) for part in "qkv")
        weights = (torch.einsum("bcm,bcn->bmn", q, k) / channels**0.5).softmax(-1)
        mixed = torch.einsum("bmn,bcn->bcm", weights, v).reshape(x.shape)
        return x + self.conv(mixed, f"{name}.proj_out", channels, 1)

    def middle(self, x, side):
        names = ("0", "1", "2") if self.layout == "llamagen" else ("block_1", "attn_1", "block_2")
        x = self.block(x, f"{side}.mid.{names[0]}", x.shape[1])
        x = self.attention(x, f"{side}.mid.{names[1]}")
        return self.block(x, f"{side}.mid.{names[2]}", x.shape[1])

    def level(self, x, name, index, blocks):
        kind = "res" if self.layout == "llamagen" else "block"
        for i in range(blocks):
            x = self.block(x, f"{name}.{kind}.{i}", 32 * self.shape.multipliers[index])
            if index in self.shape.attention_levels:
                x = self.attention(x, f"{name}.attn.{i}")
        return x

    def end(self, x, side, out):
        x = self.norm(x, f"{side}.norm_out")
        return self.conv(x * x.sigmoid(), f"{side}.conv_out", out, padding=1)

    def codebook(self):
        rows = self.weight("quantize.embedding.weight", self.shape.codes, self.shape.code_dim)
        return F.normalize(rows, dim=-1) if self.shape.normalised else rows

    def encode(self, pixels):
        x = self.conv(pixels, "encoder.conv_in", 32, padding=1)
        down = "conv_blocks" if self.layout == "llamagen" else "down"
        for i in range(3):
            x = self.level(x, f"encoder.{down}.{i}", i, 1)
            if i < 2:
                x = self.conv(F.pad(x, (0, 1, 0, 1)), f"encoder.{down}.{i}.downsample.conv",
                              x.shape[1], stride=2)
        x = self.end(self.middle(x, "encoder"), "encoder", self.shape.z_channels)
        x = self.conv(x, "quant_conv", self.shape.code_dim, 1).permute(0, 2, 3, 1)
        x = F.normalize(x, dim=-1) if self.shape.normalised else x
        return torch.cdist(x.flatten(1, 2), self.codebook()[None]).argmin(-1).view(x.shape[:3])

    def decode(self, tokens):
        x = self.codebook()[tokens].permute(0, 3, 1, 2)
        x = self.conv(x, "post_quant_conv", self.shape.z_channels, 1)
        x = self.middle(self.conv(x, "decoder.conv_in", 64, padding=1), "decoder")
        up = "conv_blocks" if self.layout == "llamagen" else "up"
        for i in (2, 1, 0):
            name = f"decoder.{up}.{i if self.layout == 'taming' else 2 - i}"
            x = self.level(x, name, i, 2)
            if i:
                x = self.conv(x.repeat_interleave(2, 2).repeat_interleave(2, 3),
                              f"{name}.upsample.conv", x.shape[1], padding=1)
        return self.end(x, "decoder", 3)


def shapes_of(weights):
    return {key: tuple(tensor.shape) for key, tensor in weights.items()}


def loaded(weights) -> VQGAN:
    codec, keys = vqgan_of(shapes_of(weights))
    load_weights(codec, keys, weights.__getitem__)
    return codec


def written(layout, prefix=None) -> Written:
    return Written(layout, SHAPES[layout], PREFIXES[layout] if prefix is None else prefix)


def pictures(*size, seed=0):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def some_tokens(codes, *size):
    return torch.randint(codes, size, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("rows, columns", [(3, 5), (4, 4)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pixels_and_tokens_equal_the_written_out_network(layout, rows, columns, monkeypatch):
    monkeypatch.setattr(vqgan, "CELLS_AT_ONCE", 7)
    reference = written(layout)
    codec = loaded(reference.weights)
    tokens = some_tokens(50, 2, rows, columns)
    pixels = codec.decode(tokens)
    assert pixels.shape == (2, 3, rows * 4, columns * 4) and pixels.dtype == torch.float32
    torch.testing.assert_close(pixels, reference.decode(tokens), atol=1e-5, rtol=1e-5)
    given_pixels = pictures(2, 3, rows * 4, columns * 4)
    found = codec.encode(given_pixels)
    assert torch.equal(found, reference.encode(given_pixels))
    assert len(found.unique()) > 3


@pytest.mark.parametrize("prefix", ["", "model.vqmodel.", "gen_vision_model."])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_and_every_name_are_read_off_the_file(layout, prefix):
    reference = written(layout, prefix)
    shapes = shapes_of(reference.weights)
    assert shape_of(shapes) == SHAPES[layout]
    assert layout_of(shapes) == replace(LAYOUTS[layout], prefix=prefix)
    codec, keys = vqgan_of(shapes)
    assert set(keys) == set(codec.state_dict())
    training = {"loss.discriminator.weight", f"{prefix}quantize.codebook_used"}
    assert sorted(keys.values()) == sorted(set(shapes) - training)


@pytest.mark.parametrize("shape, millions, decoder", [
    (VQGANShape(normalised=True, attention_levels=(4,)), 71.9, 42.4),
    (VQGANShape(codes=8192, code_dim=256), 68.7, 39.3)])
def test_true_sizes_have_the_published_number_of_parameters(shape, millions, decoder):
    with torch.device("meta"):
        codec = VQGAN(shape)
    count = {name: sum(p.numel() for p in module.parameters()) / 1e6
             for name, module in (("all", codec), ("decoder", codec.decoder))}
    assert (round(count["all"], 1), round(count["decoder"], 1)) == (millions, decoder)


@pytest.mark.parametrize("multipliers, patch", [((1, 1, 2, 2, 4), 16), ((1, 2, 2, 4), 8)])
def test_a_level_more_doubles_the_pixels_of_a_cell(multipliers, patch):
    assert VQGANShape(multipliers=multipliers).patch == patch


def test_projections_may_be_linear_in_a_file():
    weights = written("janus-hf").weights
    flat = {key: tensor.flatten(1) if ".attn" in key and tensor.dim() == 4 else tensor
            for key, tensor in weights.items()}
    assert shapes_of(flat) != shapes_of(weights)
    tokens = some_tokens(50, 1, 2, 2)
    assert torch.equal(loaded(flat).decode(tokens), loaded(weights).decode(tokens))


def test_half_precision_files_decode_in_fp32():
    halves = {key: tensor.bfloat16() for key, tensor in written("taming").weights.items()}
    codec = loaded(halves)
    assert {p.dtype for p in codec.parameters()} == {torch.float32}
    assert not any(p.requires_grad for p in codec.parameters())
    rounded = loaded({key: tensor.float() for key, tensor in halves.items()})
    tokens = some_tokens(50, 1, 2, 3)
    assert torch.equal(codec.decode(tokens), rounded.decode(tokens))


WHOLE = {layout: written(layout, "vq.").weights for layout in LAYOUTS}
NEEDED = {layout: sorted(set(weights) - {"loss.discriminator.weight", "vq.quantize.codebook_used"})
          for layout, weights in WHOLE.items()}
DAMAGE = {
    "dropped": lambda weights, key: weights.pop(key),
    "renamed": lambda weights, key: weights.update({f"{key}s": weights.pop(key)}),
    "truncated": lambda weights, key: weights.update({key: weights[key][1:]}),
    "scalar": lambda weights, key: weights.update({key: torch.tensor(1.0)}),
    "whole numbers": lambda weights, key: weights.update({key: weights[key].long()}),
}


@given(st.sampled_from(list(LAYOUTS)), st.sampled_from(list(DAMAGE)), st.data())
def test_a_damaged_file_ends_in_one_line_that_says_so(layout, damage, data):
    weights = dict(WHOLE[layout])
    key = data.draw(st.sampled_from(NEEDED[layout]))
    assume((damage, key) != ("truncated", "vq.quantize.embedding.weight"))  # a smaller codebook
    DAMAGE[damage](weights, key)
    with pytest.raises(SSDError, match="picture codec") as error:
        loaded(weights)
    assert "\n" not in str(error.value)


def test_an_encoder_without_decoder_says_what_to_do():
    shapes = shapes_of(WHOLE["taming"])
    halves = {key: shape for key, shape in shapes.items() if not key.startswith("vq.decoder.")}
    with pytest.raises(SSDError, match=r"no decoder .vq\.decoder\.conv_in.*a file that holds one"):
        vqgan_of(halves)


def janus(**sizes):
    transformers = pytest.importorskip("transformers", reason="the oracle needs transformers")
    torch.manual_seed(1)
    config = transformers.JanusVQVAEConfig(
        embed_dim=4, num_embeddings=60, latent_channels=8, base_channels=32, num_patches=4,
        channel_multiplier=[1, 2, 3], num_res_blocks=2, **sizes)
    return lively(transformers.JanusVQVAE(config))


def lively(oracle):
    """Biases and norms away from their initial zeros and ones, so that a swap would show."""
    for weight in oracle.parameters():
        weight.data.add_(torch.randn_like(weight), alpha=0.05)
    return oracle.eval().requires_grad_(False)


def state_of(oracle, prefix="model.vqmodel."):
    return {prefix + key: tensor for key, tensor in oracle.state_dict().items()}


def test_janus_of_transformers_decodes_the_same_pixels():
    oracle = janus()
    codec = loaded(state_of(oracle))
    assert codec.shape == VQGANShape(32, (1, 2, 3), 2, 8, 60, 4, True, (2,))
    tokens = some_tokens(60, 2, 4, 4)
    torch.testing.assert_close(codec.decode(tokens), oracle.decode(tokens.flatten(1)),
                               atol=1e-5, rtol=1e-5)


def test_janus_of_transformers_decodes_the_same_wide_pictures():
    oracle = janus()  # its decode() takes squares only, the parts of it take any grid
    tokens = some_tokens(60, 1, 2, 5)
    codes = F.normalize(oracle.quantize.embedding(tokens), dim=-1).permute(0, 3, 1, 2)
    expected = oracle.decoder(oracle.post_quant_conv(codes))
    torch.testing.assert_close(loaded(state_of(oracle)).decode(tokens), expected,
                               atol=1e-5, rtol=1e-5)


def test_janus_of_transformers_encodes_the_same_tokens():
    """Its encoder compares codes as they are; DeepSeek's compares directions. The codes of its
    own decoder have length 1, where both agree."""
    oracle = janus()
    codes = oracle.quantize.embedding.weight
    codes.copy_(F.normalize(codes, dim=-1))
    given_pixels = pictures(2, 3, 12, 20)
    expected = oracle.encode(given_pixels).image_tokens.view(2, 3, 5)
    assert torch.equal(loaded(state_of(oracle)).encode(given_pixels), expected)
    assert len(expected.unique()) > 3


@pytest.mark.parametrize("height, width", [(16, 16), (12, 24)])
def test_chameleon_of_transformers_encodes_the_same_tokens(height, width):
    transformers = pytest.importorskip("transformers", reason="the oracle needs transformers")
    torch.manual_seed(2)
    oracle = lively(transformers.ChameleonVQVAE(transformers.ChameleonVQVAEConfig(
        embed_dim=6, num_embeddings=50, latent_channels=6, base_channels=32, num_res_blocks=1,
        channel_multiplier=[1, 2, 2])))
    # transformers has no decoder for it: the file has one, under taming's names
    codec = loaded(written("taming", "model.vqmodel.").weights | state_of(oracle))
    assert codec.shape == SHAPES["taming"]
    given_pixels = pictures(2, 3, height, width)
    expected = oracle.encode(given_pixels).image_tokens.view(2, height // 4, width // 4)
    assert torch.equal(codec.encode(given_pixels), expected)
    assert len(expected.unique()) > 3
