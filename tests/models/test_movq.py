"""Emu3's MoVQ: pixels and tokens as the transformers class gives them (tested with 5.23.0)."""

import re

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from ssd_core.backbones.codecs import vqgan
from ssd_core.backbones.codecs.files import load_weights
from ssd_core.backbones.codecs.movq import LAYOUTS, MoVQ, MoVQShape, layout_of, movq_of, shape_of
from ssd_core.errors import SSDError

SHAPE = MoVQShape(channels=32, multipliers=(1, 2, 2), res_blocks=2, z_channels=4, codes=60,
                  code_dim=4, attention_levels=(2,), halvings=2)
ORIGINAL = (  # transformers' names to those of BAAI/Emu3-VisionTokenizer
    (r"middle_block\.attn_norm\.", "mid.attn_1.norm."), (r"middle_block", "mid"),
    (r"(up|down)_block\.(up|down)", r"\2"), (r"attn_norms\.(\d+)", r"attn.\1.norm"),
    (r"\.([qkv])_proj\.", r".\1."), (r"\.out_proj\.", ".proj_out."))
PUBLISHED = (  # names read in the original's source, whichever rule they come from
    "encoder.down.2.attn.1.proj_out.weight", "encoder.mid.attn_1.norm.bias",
    "encoder.time_conv.1.conv.conv.weight", "encoder.time_res_stack.0.conv2.conv.bias",
    "encoder.time_res_stack.1.norm1.running_var", "encoder.down.0.downsample.conv.weight",
    "decoder.up.2.attn.0.norm.norm_layer.weight", "decoder.up.0.block.2.norm1.conv_y.bias",
    "decoder.mid.attn_1.norm.conv_b.weight", "decoder.up.1.upsample.conv.weight",
    "decoder.norm_out.norm_layer.bias", "decoder.time_conv.0.conv.conv.bias",
    "quant_conv.conv.weight", "post_quant_conv.conv.bias", "quantize.embedding.weight")


@pytest.fixture(scope="module")
def oracle():
    transformers = pytest.importorskip("transformers", reason="the oracle needs transformers")
    torch.manual_seed(0)
    model = transformers.Emu3VQVAE(transformers.Emu3VQVAEConfig(
        codebook_size=60, embed_dim=4, latent_channels=4, base_channels=32, num_res_blocks=2,
        channel_multiplier=[1, 2, 2], attn_resolutions=[2], hidden_size=64)).eval()
    for name, weight in model.state_dict().items():  # nothing stays at its initial zero or one
        if name.endswith("running_var"):
            weight.uniform_(0.5, 2)
        elif weight.is_floating_point():
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return model.requires_grad_(False)


def published(oracle, layout, prefix=""):
    """The oracle's weights under the names, and in the shapes, of one published layout."""
    weights = {key: tensor for key, tensor in oracle.state_dict().items()
               if not key.endswith("num_batches_tracked")}
    if layout == "emu3":
        for pattern, replacement in ORIGINAL:
            weights = {re.sub(pattern, replacement, key): weight
                       for key, weight in weights.items()}
        weights = {key: weight[..., None, None] if ".attn" in key and weight.dim() == 2 else weight
                   for key, weight in weights.items()}
    return {prefix + key: weight for key, weight in weights.items()}


def shapes_of(weights):
    return {key: tuple(tensor.shape) for key, tensor in weights.items()}


def loaded(weights) -> MoVQ:
    codec, keys = movq_of(shapes_of(weights))
    load_weights(codec, keys, weights.__getitem__)
    return codec


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows, columns", [(4, 4), (3, 5)])
def test_decodes_the_pixels_of_transformers(oracle, layout, rows, columns):
    tokens = torch.randint(60, (2, rows, columns), generator=torch.Generator().manual_seed(1))
    pixels = loaded(published(oracle, layout)).decode(tokens)
    assert pixels.shape == (2, 3, rows * 4, columns * 4) and pixels.dtype == torch.float32
    torch.testing.assert_close(pixels, oracle.decode(tokens), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("height, width", [(16, 16), (12, 20)])
def test_encodes_the_tokens_of_transformers(oracle, layout, height, width):
    draws = torch.Generator().manual_seed(2)
    pictures = torch.rand((2, 3, height, width), generator=draws) * 2 - 1
    tokens = loaded(published(oracle, layout)).encode(pictures)
    sizes = torch.tensor([[height, width]] * 2)
    assert torch.equal(tokens, torch.stack(oracle.encode(pictures, sizes).image_tokens))
    assert tokens.shape == (2, height // 4, width // 4) and len(tokens.unique()) > 3


@pytest.mark.parametrize("prefix", ["", "vqmodel.", "model.vqmodel."])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_and_every_name_are_read_off_the_file(oracle, layout, prefix):
    shapes = shapes_of(published(oracle, layout, prefix))
    assert shape_of(shapes) == SHAPE
    assert layout_of(shapes).rules == LAYOUTS[layout].rules
    codec, keys = movq_of(shapes)
    assert set(keys) == set(codec.state_dict())
    assert sorted(keys.values()) == sorted(shapes)


def test_what_batch_norms_count_in_training_is_passed_over(oracle):
    counts = {key: () for key in oracle.state_dict() if key.endswith("num_batches_tracked")}
    shapes = shapes_of(published(oracle, "emu3-hf"))
    assert counts and movq_of(shapes | counts)[1] == movq_of(shapes)[1]


def test_names_are_those_of_the_original():
    with torch.device("meta"):
        keys = LAYOUTS["emu3"].keys(MoVQ(SHAPE))
    assert set(PUBLISHED) <= set(keys.values())
    assert len(set(keys.values())) == len(keys)


def test_true_size_has_the_published_number_of_parameters():
    with torch.device("meta"):
        codec = MoVQ(MoVQShape(256, (1, 2, 2, 4), 2, 4, 32768, 4, attention_levels=(3,)))
    assert codec.shape.patch == 8
    assert round(sum(p.numel() for p in codec.parameters()) / 1e6, 1) == 270.7


@pytest.mark.parametrize("wrong, layout, opened, message", [
    (MoVQ(SHAPE), LAYOUTS["emu3"], vqgan.vqgan_of, "Emu3's MoVQ, expected a VQGAN"),
    (vqgan.VQGAN(vqgan.VQGANShape(32, (1, 2), 1, 4, 9, 4)), vqgan.LAYOUTS["taming"], movq_of,
     "a VQGAN, expected Emu3's MoVQ")])
def test_a_file_of_the_other_codec_is_refused_by_name(wrong, layout, opened, message):
    keys = layout.keys(wrong)
    shapes = {keys[name]: tuple(tensor.shape) for name, tensor in wrong.state_dict().items()}
    with pytest.raises(SSDError, match=message):
        opened(shapes)


DAMAGE = {
    "dropped": lambda weights, key: weights.pop(key),
    "renamed": lambda weights, key: weights.update({f"{key}s": weights.pop(key)}),
    "truncated": lambda weights, key: weights.update({key: weights[key][1:]}),
    "whole numbers": lambda weights, key: weights.update({key: weights[key].long()}),
}


@given(st.sampled_from(list(LAYOUTS)), st.sampled_from(list(DAMAGE)), st.data())
def test_a_damaged_file_ends_in_one_line_that_says_so(oracle, layout, damage, data):
    weights = published(oracle, layout)
    key = data.draw(st.sampled_from(sorted(weights)))
    assume((damage, key) != ("truncated", "quantize.embedding.weight"))  # a smaller codebook
    DAMAGE[damage](weights, key)
    with pytest.raises(SSDError, match="picture codec") as error:
        loaded(weights)
    assert "\n" not in str(error.value)
