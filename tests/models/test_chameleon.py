"""Lumina-mGPT and Anole from tiny checkpoints: against transformers' Chameleon, and by hand."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from support.oracles import chameleon_oracle, tensors_of
from support.refusals import refused_in_one_line
from support.tiny_checkpoints import anole, llama_shapes, lumina

from ssd_core import Sampling, SSDError, generate, load_backbone, methods, plan
from ssd_core.backbones import chameleon
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.reading.checkpoint import Checkpoint, open_checkpoint
from ssd_core.engine.state import DecodeState
from ssd_core.model.grid import Grid

CPU = torch.device("cpu")
LAYOUTS = {"lumina": (lumina, "Lumina-mGPT-7B-768"), "anole": (anole, "anole")}


@pytest.fixture(scope="module", params=LAYOUTS)
def folder(request, tmp_path_factory) -> Path:
    write, name = LAYOUTS[request.param]
    return write(tmp_path_factory.mktemp("models") / name)


@pytest.fixture(scope="module")
def lumina_folder(tmp_path_factory) -> Path:
    return lumina(tmp_path_factory.mktemp("models") / "Lumina-mGPT-7B-768")


def load(path: Path) -> Backbone:
    return chameleon.load(open_checkpoint(path), CPU, torch.float32)


def drawing(backbone: Backbone, width: int, height: int) -> Backbone:
    """The backbone on a grid smaller than any it was trained on."""
    view = copy(backbone)
    view.sizes = ((width, height),)
    view.apply_size()
    return view


def tokens(backbone: Backbone, method, prompts=("red",), **options) -> torch.Tensor:
    return list(generate(backbone, prompts, method, **options))[-1].tokens


# Against transformers


class Oracle:
    """transformers' own class on the same weights; its image logits are not masked here."""

    def __init__(self, path: Path, backbone: Backbone) -> None:
        self.model = chameleon_oracle(path)
        self.backbone = backbone
        v = backbone.vocabulary
        codes = [*range(v.first_code, v.first_code + v.codes)]
        self.codes, self.ids = codes, torch.tensor([*codes, v.row_end or 0])

    @torch.no_grad()
    def hidden(self, prompt: list[int], picture: torch.Tensor) -> torch.Tensor:
        """Normed states [n + 1, d] that predict slots 0..n, behind a prompt and n slot tokens."""
        ids = torch.cat((torch.tensor(prompt), self.ids[picture]))
        return self.model.model(ids[None]).last_hidden_state[0, len(prompt) - 1:]

    def logits(self, prompt: list[int], picture: torch.Tensor) -> torch.Tensor:
        return self.model.lm_head(self.hidden(prompt, picture))[:, self.codes]


@pytest.fixture(scope="module")
def backbone(folder) -> Backbone:
    return load(folder)


@pytest.fixture(scope="module")
def oracle(folder, backbone) -> Oracle:
    return Oracle(folder, backbone)


def assert_states(state: DecodeState, oracle: Oracle, stop: int) -> None:
    for row, prompt in enumerate(state.prompts):
        picture = state.tokens[row % state.pictures, :stop]
        hidden = state.hidden[row, : stop + 1]
        normed = F.rms_norm(hidden, hidden.shape[-1:], oracle.backbone.norm, 1e-5)
        assert torch.allclose(normed, oracle.hidden(prompt, picture), atol=1e-5)
        assert torch.allclose(oracle.backbone.logits(hidden), oracle.logits(prompt, picture),
                              atol=1e-5)


def test_blocks_rollback_and_branches_equal_transformers(backbone, oracle):
    assert_blocks(backbone, oracle)


def test_grouped_keys_and_tied_embeddings_equal_transformers(tmp_path):
    """One key head for both query heads, norms of each; the head is the embedding."""
    path = rewritten(anole(tmp_path / "anole", kv_heads=1), without("lm_head"))
    edit(path, tie_word_embeddings=True)
    found = load_backbone(path, "cpu", "fp32")
    assert found.decoder.shape.kv_heads == 1
    assert_blocks(found, Oracle(path, found))


def test_norms_stored_once_do_for_grouped_keys(tmp_path):
    """As Lumina-mGPT keeps them."""
    path = rewritten(anole(tmp_path / "anole", kv_heads=1), lambda weights: {
        name: value[:1] if "_norm." in name else value for name, value in weights.items()})
    edit(path, architectures=["ChameleonXLLMXForConditionalGeneration"],
         _name_or_path="Lumina-mGPT-7B-768")
    found = load(path)
    assert found.decoder.layers[0].qk_norm_weight.shape == (3, 8)
    assert_blocks(found, Oracle(path, found))


@torch.inference_mode()
def assert_blocks(backbone, oracle) -> None:
    """Four rows, prompts of three lengths: blocks of cells, some fed again with other tokens."""
    view = drawing(backbone, 96, 64)
    prompts = [view.tokenize(text) for text in ("red", "a blue boat")]
    prompts += [view.unconditional(ids) for ids in prompts]
    assert len({len(ids) for ids in prompts}) == 3
    state = DecodeState(view, prompts, 2, Sampling(cfg=3.0), None)
    state.prefill()
    assert_states(state, oracle, 0)
    draw = torch.Generator().manual_seed(1)
    for start, stop in ((0, 5), (5, 9), (3, 11), (11, 12), (0, view.grid.slots)):
        codes = torch.randint(view.codes, (2, stop - start), generator=draw)
        state.write(slice(start, stop), codes)
        state.stale = start
        state.feed(stop)
        assert_states(state, oracle, stop)


@torch.inference_mode()
def test_greedy_guided_picture_equals_a_plain_loop_over_transformers(backbone, oracle):
    view = drawing(backbone, 64, 64)
    prompt = view.tokenize("a red boat")
    picture = torch.empty(0, dtype=torch.long)
    for slot in range(view.grid.slots):
        if view.grid.row_end and slot % view.grid.width == view.grid.columns:
            chosen = torch.tensor(view.codes)
        else:
            cond, uncond = (oracle.logits(ids, picture)[-1]
                            for ids in (prompt, view.unconditional(prompt)))
            chosen = (uncond + 3.0 * (cond - uncond)).argmax()
        picture = torch.cat((picture, chosen[None]))
    expected = picture.view(view.grid.rows, view.grid.width)[:, : view.grid.columns]
    sampling = Sampling(cfg=3.0, temperature=0.0)
    assert tokens(view, methods.AR(), ["a red boat"], sampling=sampling)[0].equal(expected)
    assert len(expected.unique()) > 2


def test_pictures_are_encoded_as_transformers_does(tmp_path):
    path = anole(tmp_path / "anole")
    backbone = drawing(load(path), 96, 64)
    oracle = Oracle(path, backbone)
    pictures = torch.rand(2, 64, 96, 3, generator=torch.Generator().manual_seed(2))
    found = backbone.encode(pictures)
    expected = oracle.model.get_image_tokens(pictures.permute(0, 3, 1, 2) * 2 - 1)
    assert found.flatten(1).equal(expected - backbone.vocabulary.first_code)
    assert found.shape == (2, 4, 6) and len(found.unique()) > 2


# Our own loop


@pytest.mark.parametrize("cfg", [1.0, 4.0])
def test_exact_equals_ar(backbone, cfg):
    view, sampling = drawing(backbone, 96, 96), Sampling(seed=5, cfg=cfg)
    options = {"prompts": ["red boat", "sun"], "sampling": sampling}
    assert tokens(view, methods.Exact(), **options).equal(tokens(view, methods.AR(), **options))


def test_a_negative_prompt_takes_the_place_of_the_unconditional_branch(backbone):
    view, sampling = drawing(backbone, 64, 64), Sampling(seed=5, cfg=4.0)
    plain, negative = (tokens(view, methods.AR(), sampling=sampling, negative=words)
                       for words in (None, "rain"))
    assert not plain.equal(negative)


def test_pixels_are_those_of_the_codec(backbone):
    picture = torch.arange(24).remainder(backbone.codes).view(1, 4, 6)
    pixels = backbone.picture_codec.decode(picture)
    shown = backbone.decode(picture)
    assert shown.shape == (1, 64, 96, 3) and shown.dtype == torch.float32
    assert torch.allclose(shown, (pixels.permute(0, 2, 3, 1) / 2 + 0.5).clamp(0, 1))
    assert shown.std() > 0.01


def test_the_codec_stays_in_fp32(lumina_folder):
    half = chameleon.load(open_checkpoint(lumina_folder), CPU, torch.bfloat16)
    assert half.dtype == half.head.dtype == torch.bfloat16
    assert {weight.dtype for weight in half.picture_codec.parameters()} == {torch.float32}


# Prompts


def letters(text: str) -> list[int]:
    """The tiny tokenizer: one id a letter, blanks left out; behind four, 24 codes and 36 more."""
    return [64 + "\n!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
            "abcdefghijklmnopqrstuvwxyz{|}~".index(letter) for letter in text if letter != " "]


def test_lumina_prompts_are_the_official_template(lumina_folder):
    """<s>, the words with the size, turn 30, begin-of-image 29, then height and width in 32 px."""
    view = load(lumina_folder)
    words = letters("Generate an image of 768x768 according to the following prompt:\nred")
    assert view.tokenize("red") == [0, *words, 30, 29, 55, 55]
    assert view.unconditional(view.tokenize("red")) == [29, 55, 55]
    wide = view.resized((1024, 544))
    words = letters("Generate an image of 1024x544 according to the following prompt:\nred")
    assert wide.tokenize_negative("red") == [0, *words, 30, 29, 48, 63]
    assert wide.unconditional(wide.tokenize("red")) == [29, 48, 63]


def test_anole_prompts_are_the_official_template(tmp_path):
    view = load(anole(tmp_path / "anole"))
    assert view.tokenize("a red") == [0, *letters("ared"), 30, 29]
    assert view.unconditional(view.tokenize("a red")) == [0, 29]


BAD_PROMPTS = {"a control token": ("red <racm3:break> boat", "<racm3:break>"),
               "too long": ("x" * 2000, "takes at most 1024")}


@pytest.mark.parametrize("case", BAD_PROMPTS)
def test_bad_prompts_are_refused(backbone, case):
    prompt, named = BAD_PROMPTS[case]
    with pytest.raises(SSDError, match=named) as refused:
        backbone.tokenize(prompt)
    assert "\n" not in str(refused.value)


# Geometry


def test_lumina_draws_the_sizes_of_its_training(lumina_folder):
    backbone = load(lumina_folder)
    assert (backbone.size, backbone.grid) == ((768, 768), Grid(48, 48, True))
    assert {(1536, 384), (384, 1536), (1024, 544), (672, 832)} <= {*backbone.sizes}
    for width, height in backbone.sizes:
        assert width % 32 == height % 32 == 0 and width * height <= 768**2
        assert max(width, height) <= 4 * min(width, height)
        assert (width + 32) * (height + 32) > 768**2
    assert backbone.resized((1024, 544)).grid == Grid(34, 64, True)
    with pytest.raises(SSDError, match="lumina-mgpt-7b-768 does not draw it; the nearest are 768"):
        backbone.resized((800, 800))


@pytest.mark.parametrize("name, size", [
    ("Lumina-mGPT-7B-512", 512), ("lumina_1024", 1024), ("Lumina-mGPT-7B-768-Omni", 768),
    ("models--Alpha-VLLM--Lumina-mGPT-7B-512/snapshots/104abe4", 512)])
def test_the_folder_tells_the_size_lumina_was_trained_for(tmp_path, name, size):
    backbone = load(lumina(tmp_path / name))
    assert (backbone.size, backbone.name) == ((size, size), f"lumina-mgpt-7b-{size}")


def test_a_folder_that_does_not_tell_the_size_is_refused(tmp_path):
    with pytest.raises(SSDError, match="512, 768 or 1024"):
        load(lumina(tmp_path / "lumina"))


def test_the_config_may_tell_the_size_too(tmp_path):
    path = lumina(tmp_path / "lumina")
    edit(path, _name_or_path="/exps/Lumina-mGPT-7B-1024")
    assert load(path).size == (1024, 1024)


def test_presets_give_the_papers_counts(lumina_folder, tmp_path):
    ours = plan(load(lumina_folder), methods.SSD())
    assert (ours.paper_passes, ours.ar_passes, ours.paper_ar_passes) == (281, 2304, 4704)
    backbone = load(anole(tmp_path / "anole"))
    assert (backbone.grid, backbone.preset.cfg) == (Grid(32, 32), 3.0)
    assert plan(backbone, methods.AR()).passes == 1024


# What the files may hold


def edit(path: Path, **changes: object) -> None:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **changes}))


def rewritten(path: Path, change) -> Path:
    """All tensors of a folder through `change`, as one file."""
    weights = tensors_of(path)
    for file in [*path.glob("*.safetensors"), *path.glob("*.index.json")]:
        file.unlink()
    save_file({k: v.contiguous() for k, v in change(weights).items()}, path / "model.safetensors")
    return path


def norms_for_each_head(weights):
    return {name: value.expand(2, -1) if "_norm." in name else value
            for name, value in weights.items()}


def test_norms_may_be_stored_once_or_for_each_head(lumina_folder, tmp_path):
    expected = tokens(drawing(load(lumina_folder), 64, 64), methods.AR())
    each = load(rewritten(lumina(tmp_path / "lumina-768"), norms_for_each_head))
    assert each.decoder.layers[1].qk_norm_bias.shape == (4, 8)
    assert tokens(drawing(each, 64, 64), methods.AR()).equal(expected)


def test_norms_of_each_head_are_kept_apart(tmp_path):
    def second_off(weights):
        return {name: value * torch.tensor([[1.0], [0.0]]) if "q_norm.weight" in name else value
                for name, value in weights.items()}

    one, other = anole(tmp_path / "anole"), rewritten(anole(tmp_path / "off"), second_off)
    weight = load(other).decoder.layers[0].qk_norm_weight
    assert weight[1].eq(0).all() and weight[0].equal(load(one).decoder.layers[0].qk_norm_weight[0])


def without(word: str):
    return lambda weights: {name: value for name, value in weights.items() if word not in name}


def zero_head(weights):
    return {**weights, "lm_head.weight": torch.zeros_like(weights["lm_head.weight"])}


def one_q_bias(weights):
    return {name: value[:1] if "q_norm.bias" in name else value for name, value in weights.items()}


def misnumbered(path: Path) -> None:
    text = (path / "tokenizer.json").read_text()
    for old, new in (("IMGIMGDZ", "-"), ("IMGIMGEZ", "IMGIMGDZ"), ("-", "IMGIMGEZ")):
        text = text.replace(f'"{old}"', f'"{new}"')
    (path / "tokenizer.json").write_text(text)


SPOILED = {
    "swin norm": (lambda path: edit(path, swin_norm=True), "swin_norm"),
    "codes out of order": (misnumbered, "tokenizer.json: .*IMGIMG"),
    "no tokenizer": (lambda path: (path / "tokenizer.json").unlink(), "tokenizer.json"),
    "no codec": (lambda path: rewritten(path, without("vqmodel")), "Anole-7b-v0.1-vqvae-hf"),
    "no codec decoder": (lambda path: rewritten(path, without("vqmodel.decoder.conv_in")),
                         "Anole-7b-v0.1-vqvae-hf"),
    "a head without pictures": (lambda path: rewritten(path, zero_head), "lm_head"),
    "another activation": (lambda path: edit(path, hidden_act="gelu"), "hidden_act is 'gelu'"),
    "norms of other groups": (lambda path: rewritten(path, one_q_bias), "q_norm.*norms beside it"),
    "another rotation": (lambda path: edit(path, rope_scaling={"type": "linear", "factor": 2.0}),
                         "rope_scaling"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_what_cannot_draw_is_refused_in_one_line(tmp_path, case):
    spoil, named = SPOILED[case]
    path = anole(tmp_path / "anole")
    spoil(path)
    with refused_in_one_line(named, path):
        load(path)


DECODER = [name for name in llama_shapes("model.", qk_norm=(2, 8)) if "layers.1." not in name]


@pytest.mark.parametrize("name", [*DECODER, "model.embed_tokens.weight", "lm_head.weight"])
@pytest.mark.by_day(5)
def test_every_tensor_is_needed_in_its_shape(tmp_path, name):
    """Dropped, flattened, cut: one line that names a file or the folder."""
    path = anole(tmp_path / "anole")
    for change in (None, lambda value: value.flatten()[None, None],
                   lambda value: value[: (len(value) - 1) // 8 + 1]):
        weights = tensors_of(path)
        value = weights.pop(name)
        other = weights if change is None else {**weights, name: change(value)}
        with pytest.raises(SSDError, match=str(tmp_path)) as refused:
            load_backbone(rewritten(path, lambda _, other=other: other))
        assert "\n" not in str(refused.value)
        rewritten(path, lambda _, weights=weights, value=value: {**weights, name: value})


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_load_backbone_finds_the_family(folder, device):
    backbone = load_backbone(folder, device, "fp32")
    assert isinstance(backbone, chameleon.Chameleon) and backbone.device.type == device
    assert backbone.name == ("anole-7b" if folder.name == "anole" else "lumina-mgpt-7b-768")


def test_lumina_without_its_codec_says_which_file_belongs_where(tmp_path):
    path = lumina(tmp_path / "Lumina-mGPT-7B-768")
    (path / "vqvae" / "model.safetensors").unlink()
    with pytest.raises(SSDError, match="leloy/Anole-7b-v0.1-vqvae-hf") as refused:
        load(path)
    assert str(path) in str(refused.value)


def test_only_chameleon_files_are_claimed(folder):
    checkpoint = open_checkpoint(folder)
    assert chameleon.matches(checkpoint)
    for gone in ("q_norm", "lm_head", "embed_tokens"):
        other = copy(checkpoint)
        other.shapes = without(gone)(checkpoint.shapes)
        assert isinstance(other, Checkpoint) and not chameleon.matches(other)
