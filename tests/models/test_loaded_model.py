"""load_backbone on a model of transformers: its own tokens, on its own tensors, without a copy."""

from copy import copy, deepcopy

import pytest
import torch
from support.block_passes import random_tokens
from support.documents import DOCS, blocks
from support.mock_backbone import tokens
from support.oracles import chameleon_oracle, emu3_oracle, janus_oracle
from support.tiny_checkpoints import anole, emu3_later_port
from support.tiny_glm_image import glm_image, oracle
from support.tiny_image_models import janus_port
from torch import nn

from ssd_core import Sampling, SSDError, load_backbone, methods

WRITERS = {"janus": janus_port, "emu3": emu3_later_port, "anole": anole, "glm": glm_image}
MAKERS = {"janus": lambda folder: janus_oracle(), "emu3": emu3_oracle, "anole": chameleon_oracle,
          "glm": lambda folder: oracle()}
GREEDY = Sampling(temperature=0.0, cfg=3.0)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Each family's folder and model as transformers would load it."""
    folders = {name: write(tmp_path_factory.mktemp(name) / name) for name, write in WRITERS.items()}
    return {name: (folder, MAKERS[name](folder)) for name, folder in folders.items()}


@pytest.fixture(params=WRITERS)
def family(request, models):
    folder, model = models[request.param]
    return request.param, folder, deepcopy(model)


def storages(*modules: nn.Module) -> dict[int, int]:
    """Bytes by address of all memory that holds the modules' tensors."""
    held = (value.untyped_storage() for module in modules
            for value in (*module.parameters(), *module.buffers()))
    return {storage.data_ptr(): storage.nbytes() for storage in held}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.by_day(3)
def test_no_tensor_is_held_twice(family, dtype):
    name, folder, model = family
    model.to(dtype)
    before = sum(storages(model).values())
    backbone = load_backbone(model, files=folder)
    if name == "anole":  # transformers' Chameleon has no decoder of pictures
        del backbone.picture_codec
    if name == "glm":  # a colour for each code, made from the codebook
        del backbone.picture_codec.colours
    again = load_backbone(model, files=folder)
    assert again.decoder.layers[0].qkv.data_ptr() == backbone.decoder.layers[0].qkv.data_ptr()
    assert sum(storages(model, backbone).values()) == before
    assert backbone.dtype == dtype and set(storages(backbone)) <= set(storages(model))


def test_the_model_computes_as_before_and_heads_fit(family):
    _, folder, model = family
    ids = torch.arange(3, 12)[None]
    language = next((module for module in (getattr(model.model, name, None) for name in (
        "language_model", "text_model")) if module is not None), model.model)
    with torch.no_grad():
        before = language(input_ids=ids).last_hidden_state
        backbone = load_backbone(model, files=folder)
        assert language(input_ids=ids).last_hidden_state.equal(before)
    assert backbone.sha256 == load_backbone(folder, "cpu", "fp32").sha256
    assert not any(weight.requires_grad for weight in backbone.parameters())


def small(backbone):
    """The backbone on a grid of 3 x 2 cells."""
    view = copy(backbone)
    view.sizes = ((3 * backbone.picture_codec.patch, 2 * backbone.picture_codec.patch),)
    view.apply_size()
    return view


def greedy(logits, backbone, prompt, count):
    """The tokens of a picture's slots, by logits(ids, slot tokens) of the whole sequence."""
    picture = torch.empty(0, dtype=torch.long)
    other = backbone.unconditional(prompt)
    while len(picture) < count:
        if (len(picture) + 1) % backbone.grid.width == 0 and backbone.grid.row_end:
            best = torch.tensor(backbone.codes)
        else:
            yes, no = logits(prompt, picture), logits(other, picture)
            best = (no + 3.0 * (yes - no)).argmax()
        picture = torch.cat((picture, best[None]))
    return picture.view(backbone.grid.rows, -1)[:, : backbone.grid.columns]


@pytest.mark.parametrize("method", [methods.AR(), methods.Exact()], ids=lambda method: method.name)
@pytest.mark.parametrize("name", ["emu3", "anole"])
def test_greedy_tokens_are_the_models(models, name, method):
    folder, model = models[name]
    model = deepcopy(model)
    backbone = small(load_backbone(model, files=folder))
    vocabulary = backbone.vocabulary
    codes = slice(vocabulary.first_code, vocabulary.first_code + vocabulary.codes)

    @torch.no_grad()
    def logits(ids, picture):
        slots = torch.where(picture < backbone.codes, picture + vocabulary.first_code,
                            vocabulary.row_end or 0)
        states = model.model(torch.cat((torch.tensor(ids), slots))[None]).last_hidden_state
        return model.lm_head(states)[0, -1, codes]

    expected = greedy(logits, backbone, backbone.tokenize("red"), backbone.grid.slots)
    assert tokens(backbone, method, ["red"], sampling=GREEDY)[0].equal(expected)
    assert len(expected.unique()) > 1


def test_a_whole_picture_is_janus_own_generate(models):
    folder, model = models["janus"]
    model = deepcopy(model)
    backbone = load_backbone(model, files=folder)
    ids = torch.tensor([backbone.tokenize("a red house")])
    theirs = model.generate(ids, attention_mask=torch.ones_like(ids), generation_mode="image",
                            guidance_scale=3.0, do_sample=False)
    ours = tokens(backbone, methods.Exact(), ["a red house"], sampling=GREEDY)
    assert ours.flatten(1).equal(theirs)


def test_a_codec_of_half_precision_computes_in_fp32_and_stays_as_it_is(models):
    folder, model = models["janus"]
    model = deepcopy(model).bfloat16()
    backbone = load_backbone(model, files=folder)
    codes = random_tokens(backbone, 1).view(1, 24, 24)
    other = deepcopy(backbone.picture_codec).float()
    with torch.no_grad():
        pictures = backbone.decode(codes)
        assert pictures.dtype == torch.float32
        assert torch.allclose(pictures, ((other.decode(codes) + 1) / 2).clamp(0, 1).permute(
            0, 2, 3, 1))
        assert backbone.encode(pictures).equal(other.encode(pictures.permute(0, 3, 1, 2) * 2 - 1))
    assert {weight.dtype for weight in backbone.picture_codec.parameters()} == {torch.bfloat16}


def partly_moved(model):
    model.lm_head.to("meta")
    return model


@pytest.mark.parametrize("make, options, named", [
    (lambda model: nn.Linear(2, 2), {}, "Linear: no backbone known here"),
    (lambda model: model, {"files": "nowhere"}, "no folder 'nowhere' with its tokenizer.json"),
    (lambda model: model, {"dtype": "int8"}, "leave device, dtype and offload out"),
    (lambda model: model, {"device": "cpu"}, "leave device, dtype and offload out"),
    (partly_moved, {}, "its weights lie on cpu, meta"),
    (lambda model: model.lm_head.half() and model, {}, "its weights are float16, float32")])
def test_what_cannot_be_used_is_refused_in_one_line(models, make, options, named):
    folder, model = models["emu3"]
    with pytest.raises(SSDError, match=named) as refused:
        load_backbone(make(deepcopy(model)), **{"files": folder, **options})
    assert "\n" not in str(refused.value)


def test_the_folder_that_a_model_came_from_is_known(models):
    folder, model = models["emu3"]
    model = deepcopy(model)
    model.name_or_path = str(folder)
    assert load_backbone(model).sha256 == load_backbone(folder, "cpu", "fp32").sha256
    model.name_or_path = ""
    with pytest.raises(SSDError, match="name it, as in load_backbone"):
        load_backbone(model)


def test_the_example_of_the_documents_draws(models, monkeypatch):
    folder, model = models["janus"]
    transformers = pytest.importorskip("transformers")
    code = next(block.code for block in blocks(DOCS / "cli.md") if "from_pretrained" in block.code)
    adopted = deepcopy(model)
    adopted.name_or_path = str(folder)
    monkeypatch.setattr(transformers.JanusForConditionalGeneration, "from_pretrained",
                        lambda name, dtype: adopted.to(dtype))
    names = {}
    exec(compile(code, "example", "exec"), names)  # noqa: S102
    assert names["picture"].shape == (1, 48, 48, 3)
