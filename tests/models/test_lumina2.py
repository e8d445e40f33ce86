"""Lumina-mGPT 2.0 from a tiny checkpoint: against transformers' Chameleon, and by hand."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from support.block_passes import hidden_by_blocks
from support.refusals import refused_in_one_line
from support.tiny_checkpoints import LUMINA2_CONFIG, chameleon_codec, lumina2, lumina2_codec

from ssd_core import Sampling, SSDError, generate, load_backbone, methods
from ssd_core.backbones import lumina2 as family
from ssd_core.backbones.codecs.codec import VQGANShape
from ssd_core.backbones.codecs.files import load_weights
from ssd_core.backbones.codecs.movq import MoVQGAN, movqgan_of
from ssd_core.backbones.prompts.two_panels import CONTROLS, Control, control_of
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.model.grid import Grid
from ssd_core.weights.convert import convert

CPU = torch.device("cpu")
ROW_END, FIRST_CODE, CODES = 151670, 155000, 16384  # as the authors' code has them


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return lumina2(tmp_path_factory.mktemp("models") / "Lumina-mGPT-2.0")


@pytest.fixture(scope="module")
def backbone(folder):
    return load_backbone(folder, "cpu", "fp32")


def drawing(backbone, width: int, height: int):
    """The backbone on a grid smaller than any it was trained on."""
    view = copy(backbone)
    view.sizes = ((width, height),)
    view.apply_size()
    return view


def tokens(backbone, method, prompts, **options) -> torch.Tensor:
    return list(generate(backbone, prompts, method, **options))[-1].tokens


# The decoder, against transformers


@pytest.fixture(scope="module")
def oracle(folder):
    """transformers' own class, in which every head has its own norm."""
    transformers = pytest.importorskip("transformers", reason="the oracle needs transformers")
    codec = transformers.ChameleonVQVAEConfig(
        base_channels=32, channel_multiplier=[1], num_res_blocks=1, latent_channels=4,
        embed_dim=4, num_embeddings=4)
    names = ("vocab_size", "hidden_size", "num_attention_heads", "num_key_value_heads",
             "num_hidden_layers", "intermediate_size", "rms_norm_eps")
    model = transformers.ChameleonForConditionalGeneration(transformers.ChameleonConfig(
        vq_config=codec, vocabulary_map={"<image>": 0}, bos_token_id=0,
        **{name: LUMINA2_CONFIG[name] for name in names})).eval()
    weights = {name: value.repeat_interleave(2, dim=0) if "_norm." in name and value.dim() == 2
               else value for file in folder.glob("*.safetensors")
               for name, value in load_file(file).items()}
    missing = model.load_state_dict(weights, strict=False).missing_keys
    assert all("vqmodel" in name for name in missing)
    return model


def as_ids(picture: torch.Tensor) -> torch.Tensor:
    """Slot tokens as ids of the vocabulary."""
    return torch.where(picture == CODES, ROW_END, picture + FIRST_CODE)


@torch.no_grad()
def states_of(oracle, prompt: list[int], picture: torch.Tensor) -> torch.Tensor:
    ids = torch.cat((torch.tensor(prompt), as_ids(picture)))
    return oracle.model(ids[None]).last_hidden_state[0]


def test_blocks_of_unequal_prompts_equal_transformers(backbone, oracle):
    """The guided branches too: the unconditional one starts with begin-of-image."""
    prompts = [backbone.tokenize("a red boat"), backbone.unconditional(backbone.tokenize("red"))]
    draw = torch.Generator().manual_seed(1)
    picture = torch.randint(CODES + 1, (2, 19), generator=draw)
    found = hidden_by_blocks(backbone, prompts, picture)
    for row, prompt in enumerate(prompts):
        expected = states_of(oracle, prompt, picture[row])
        normed = F.rms_norm(found[row], found[row].shape[-1:], backbone.norm, 1e-5)
        assert torch.allclose(normed, expected, atol=1e-5)
        logits = oracle.lm_head(expected[-1])[FIRST_CODE:]
        assert torch.allclose(backbone.logits(found[row][-1]), logits, atol=1e-5)


@torch.inference_mode()
def test_greedy_guided_picture_equals_a_plain_loop_over_transformers(backbone, oracle):
    view = drawing(backbone, 64, 32)
    prompt, picture = view.tokenize("a red boat"), torch.empty(0, dtype=torch.long)
    for slot in range(view.grid.slots):
        cond, uncond = (oracle.lm_head(states_of(oracle, ids, picture)[-1])[FIRST_CODE:]
                        for ids in (prompt, view.unconditional(prompt)))
        chosen = (uncond + 4.0 * (cond - uncond)).argmax()
        chosen = torch.tensor(CODES) if slot % 9 == 8 else chosen
        picture = torch.cat((picture, chosen[None]))
    found = tokens(view, methods.AR(), ["a red boat"], sampling=Sampling(temperature=0.0))
    assert found[0].equal(picture.view(4, 9)[:, :8]) and len(found.unique()) > 2


def test_exact_equals_ar_at_the_official_guidance(backbone):
    view, sampling = drawing(backbone, 64, 32), Sampling(seed=5, top_k=4096)
    runs = [tokens(view, method, ["red boat", "sun"], sampling=sampling)
            for method in (methods.Exact(), methods.AR())]
    assert runs[0].equal(runs[1]) and backbone.preset.cfg == 4.0


# The codec, against its equations


def written_out(weights: dict[str, torch.Tensor], codes: torch.Tensor) -> torch.Tensor:
    """Pixels [1, 3, H, W] of codes [1, R, C]: every norm is scaled and shifted by the codes."""
    vectors = F.embedding(codes, weights["quantize.embedding.weight"]).permute(0, 3, 1, 2)

    def conv(name: str, x: torch.Tensor) -> torch.Tensor:
        weight = weights[f"{name}.weight"]
        return F.conv2d(x, weight, weights[f"{name}.bias"], padding=weight.shape[-1] // 2)

    def norm(name: str, x: torch.Tensor) -> torch.Tensor:
        resized = F.interpolate(vectors, x.shape[-2:], mode="nearest")
        plain = F.group_norm(x, 32, weights[f"{name}.norm_layer.weight"],
                             weights[f"{name}.norm_layer.bias"], 1e-6)
        return plain * conv(f"{name}.conv_y", resized) + conv(f"{name}.conv_b", resized)

    def block(name: str, x: torch.Tensor) -> torch.Tensor:
        y = conv(f"{name}.conv1", F.silu(norm(f"{name}.norm1", x)))
        return x + conv(f"{name}.conv2", F.silu(norm(f"{name}.norm2", y)))

    def attend(name: str, x: torch.Tensor) -> torch.Tensor:
        y = norm(f"{name}.norm", x)
        q, k, v = (conv(f"{name}.{part}", y).flatten(2) for part in "qkv")
        share = (q.mT @ k / q.shape[1] ** 0.5).softmax(-1)
        return x + conv(f"{name}.proj_out", (v @ share.mT).view(x.shape))

    x = conv("decoder.conv_in", conv("post_quant_conv", vectors))
    x = block("decoder.mid.block_2", attend("decoder.mid.attn_1", block("decoder.mid.block_1", x)))
    for level in (3, 2, 1, 0):
        for i in range(2):
            x = block(f"decoder.up.{level}.block.{i}", x)
            x = attend(f"decoder.up.{level}.attn.{i}", x) if level == 3 else x
        if level:
            x = conv(f"decoder.up.{level}.upsample.conv", F.interpolate(x, scale_factor=2.0))
    return conv("decoder.conv_out", F.silu(norm("decoder.norm_out", x)))


@pytest.fixture(scope="module")
def codec_weights() -> dict[str, torch.Tensor]:
    """The published names, with nothing at its initial zero or one."""
    draw = torch.Generator().manual_seed(3)
    return {name: value + 0.1 * torch.randn(value.shape, generator=draw)
            for name, value in lumina2_codec().items()}


def loaded(weights: dict[str, torch.Tensor]) -> MoVQGAN:
    codec, keys = movqgan_of({name: tuple(value.shape) for name, value in weights.items()})
    load_weights(codec, keys, weights.__getitem__)
    return codec


def test_pixels_equal_the_equations(codec_weights):
    codes = torch.randint(CODES, (1, 2, 3), generator=torch.Generator().manual_seed(1))
    pixels = loaded(codec_weights).decode(codes)
    assert pixels.shape == (1, 3, 16, 24) and pixels.std() > 0.1
    assert torch.allclose(pixels, written_out(codec_weights, codes), atol=1e-5)


def test_pictures_become_the_nearest_codes(codec_weights):
    codec = loaded(codec_weights)
    pictures = torch.rand(1, 3, 16, 24, generator=torch.Generator().manual_seed(2)) * 2 - 1
    latents = codec.to_code(codec.encoder(pictures))[0].flatten(1).T
    nearest = torch.cdist(latents, codec_weights["quantize.embedding.weight"]).argmin(1)
    assert codec.encode(pictures).equal(nearest.view(1, 2, 3))


def test_the_true_codec_has_the_published_size():
    with torch.device("meta"):
        codec = MoVQGAN(VQGANShape(256, (1, 2, 2, 4), 2, 4, CODES, 4, attention_levels=(3,)))
    assert round(sum(weight.numel() for weight in codec.parameters()) / 1e6) == 271


def test_the_pickled_codec_is_converted_once(folder, backbone, tmp_path):
    path = lumina2(tmp_path / "converted")
    pickled = path / "vq" / "movqgan_270M.ckpt"
    assert convert(pickled) == [pickled.with_suffix(".safetensors")]
    pickled.unlink()
    codec = family.load(open_checkpoint(path), CPU, torch.float32).picture_codec
    theirs = backbone.picture_codec.state_dict()
    assert all(value.equal(theirs[name]) for name, value in codec.state_dict().items())


# Prompts and sizes


def letters(text: str) -> list[int]:
    """The tiny tokenizer: one id a letter, blanks left out, behind the unknown word."""
    return [1 + "\n!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
            "abcdefghijklmnopqrstuvwxyz{|}~".index(letter) for letter in text if letter != " "]


def test_prompts_are_the_official_template(backbone):
    """The tokenizer's last token, the words, turn, begin-of-image, then height and width."""
    words = letters("Generate an image of 768x768 according to the following prompt:\nred")
    assert backbone.tokenize("red") == [151645, *words, 151671, 151665, 151695, 151695]
    wide = backbone.resized((1024, 544))
    assert wide.unconditional(wide.tokenize("red")) == [151665, 151671 + 17, 151671 + 32]


def test_two_panels_are_asked_for_in_the_official_words(backbone):
    view = backbone.resized((512, 1024))
    prompt = Control("depth", "a ball").written(view.size)
    assert prompt == (
        "Generate a dual-panel image of 512x1024 where the <upper half> displays a <depth map>, "
        "while the <lower half> retains the original image for direct visual comparison:\na ball")
    assert view.tokenize(prompt)[1:-4] == letters(prompt)
    assert view.tokenize(prompt)[-2:] == [151671 + 32, 151671 + 16]


def test_a_subject_is_asked_for_in_the_words_of_the_paper():
    assert Control("subject", "it stands on a roof", " a glass ").written() == (
        "Generate a dual-panel image of 512x1024 where the <upper half> displays: a glass, while "
        "the <lower half> shows the image according to the object and following prompt: it stands "
        "on a roof")
    with pytest.raises(SSDError, match="subject: empty"):
        Control("subject", "a roof", " ").written()
    with pytest.raises(SSDError, match="control 'pose': choose one of depth, canny, subject"):
        Control("pose", "a roof").written()


@pytest.mark.parametrize("kind", CONTROLS)
def test_a_prompt_for_two_panels_tells_what_it_was_written_from(kind):
    control = Control(kind, "a ball,\nwhile the sun sets: red", "a, b" * (kind == "subject"))
    assert control_of(control.written((64, 96))) == control
    assert control_of("a ball") is None and control_of(control.written()[:-40]) is None


def test_only_omni_takes_controls(backbone, folder, tmp_path):
    omni = tmp_path / "Lumina-mGPT-2.0-Omni"
    omni.symlink_to(folder, target_is_directory=True)
    assert backbone.controls == () and load_backbone(omni, "meta").controls == CONTROLS


def test_sizes_are_steps_of_32_px_in_cells_of_8(backbone):
    assert (backbone.size, backbone.grid) == ((768, 768), Grid(96, 96, True))
    assert backbone.resized((512, 1024)).grid == Grid(128, 64, True)
    for width, height in backbone.sizes:
        assert width % 32 == height % 32 == 0 and width * height <= 768**2
    with pytest.raises(SSDError, match="lumina-mgpt-2.0 does not draw it; the nearest are 768x"):
        backbone.resized((800, 800))


# What the files may hold


def edit(path: Path, file: str, **changes: object) -> None:
    config = json.loads((path / file).read_text())
    (path / file).write_text(json.dumps({**config, **changes}))


def with_a_vqgan(path: Path) -> None:
    """Another codec with as many codes."""
    (path / "vq" / "movqgan_270M.ckpt").unlink()
    book = {"quantize.embedding.weight": torch.ones(CODES, 8)}
    save_file({**chameleon_codec(), **book}, path / "vq" / "model.safetensors")


def without_a_shard(path: Path) -> None:
    (path / "model-00002-of-00004.safetensors").unlink()


SPOILED = {
    "swin norm": (lambda path: edit(path, "config.json", swin_norm=True), "swin_norm"),
    "another rotation": (lambda path: edit(path, "config.json", rope_scaling={
        "type": "linear", "factor": 2.0}), "rope_scaling"),
    "no first token": (lambda path: edit(path, "tokenizer_config.json", eos_token=None),
                       "bos_token"),
    "an unknown first token": (lambda path: edit(path, "tokenizer_config.json", bos_token="<s>"),
                               "knows no token <s>"),
    "no codec": (lambda path: (path / "vq" / "movqgan_270M.ckpt").unlink(), "ai-forever/MoVQGAN"),
    "another codec": (with_a_vqgan, "is a VQGAN, expected a MoVQGAN"),
    "a missing shard": (without_a_shard, "model-00002-of-00004.safetensors: missing"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_what_cannot_draw_is_refused_in_one_line(tmp_path, case):
    spoil, named = SPOILED[case]
    path = lumina2(tmp_path / "lumina")
    spoil(path)
    with refused_in_one_line(named, path):
        load_backbone(path, "cpu", "fp32")
