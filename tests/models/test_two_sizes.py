"""Postcard decodes tokens at two sizes, where its codec has the head for the larger one."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.mock_backbone import random_heads, tiny_postcard
from support.requests import requested
from support.small_bundle import write_single_bundle

from ssd_core import Grid, Sampling, SSDError, generate, load_backbone, methods
from ssd_core.backbones import postcard
from ssd_core.backbones.base import stored_bytes
from ssd_core.backbones.postcard.scenery import at_frame_size
from ssd_core.engine import step_times
from ssd_core.files import ASSETS
from ssd_core.output.changed_words import changed_words
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.batch.workers import LoadedModels
from ssd_core.train.own_pictures import Known, by_size
from ssd_core.train.picture_files import drawn_already, read_pictures
from ssd_core.train.self_distill import DistillTask
from ssd_core.weights import fit as fit_module
from ssd_core.weights.fit import fit
from ssd_lab.postcards import FRAMES, paint
from ssd_lab.postcards.checker import outlined, read
from ssd_lab.train.data import scene_of

SMALL = ((384, 384), (512, 288), (288, 512))
LARGE = ((768, 768), (1024, 576), (576, 1024))
GRID = Grid(6, 7)


@pytest.fixture(scope="module")
def twice():
    """The bundled weights, which have the head."""
    return load_backbone("postcard")


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """The same ones without it."""
    return load_backbone(write_single_bundle(tmp_path_factory.mktemp("single")) / "postcard")


def some_tokens(backbone, pictures=1):
    cells = torch.arange(pictures * backbone.grid.cells) * 7 % backbone.codes
    return cells.view(pictures, backbone.grid.rows, backbone.grid.columns)


# Sizes


def test_the_larger_sizes_come_first_where_the_weights_have_the_head(twice, single):
    assert twice.sizes == (*LARGE, *SMALL) and twice.size == LARGE[0]
    small = load_backbone(ASSETS / "postcard" / "small")
    assert all(size not in each.sizes for size in LARGE for each in (single, small))
    assert (single.scale, single.smallest) == (1, single)


@pytest.mark.parametrize(("large", "small"), list(zip(LARGE, SMALL, strict=True)))
def test_both_sizes_of_a_shape_have_its_grid_and_its_tables(twice, large, small):
    first, second = twice.resized(large), twice.resized(small)
    assert first.grid == second.grid and (first.scale, second.scale) == (2, 1)
    assert first.positions.equal(second.positions) and first.angles.equal(second.angles)
    assert set(first.sizes_of_grid) == set(second.sizes_of_grid) == {large, small}
    assert first.smallest.size == second.smallest.size == small
    assert second.resized(large).size == large
    tokens = some_tokens(first)
    assert first.decode(tokens).shape == (1, large[1], large[0], 3)
    assert second.decode(tokens).shape == (1, small[1], small[0], 3)


def test_the_small_picture_is_that_of_weights_without_the_head(twice, single):
    tokens = some_tokens(single)
    assert twice.resized(SMALL[0]).decode(tokens).equal(single.decode(tokens))


def test_a_file_keeps_its_head(tmp_path):
    model = tiny_postcard(grid=GRID, twice=True)
    postcard.save(model, tmp_path / "twice.safetensors")
    again = load_backbone(tmp_path / "twice.safetensors", dtype="fp32")
    assert again.sizes == model.sizes == ((224, 192), (112, 96))
    own, read_back = (each.picture_codec.upsample.state_dict() for each in (model, again))
    assert own.keys() == read_back.keys()
    assert all(own[name].half().float().equal(read_back[name]) for name in own)


def test_a_picture_of_either_size_is_encoded_as_the_small_one(twice):
    picture = torch.from_numpy(paint(scene_of(3)))[None].float() / 255
    larger = F.interpolate(picture.permute(0, 3, 1, 2), scale_factor=2.0).permute(0, 2, 3, 1)
    tokens = twice.encode(larger)
    assert tokens.shape == (1, 24, 24)
    for view in (twice, twice.smallest):
        assert view.encode(picture).equal(tokens) and view.encode(larger).equal(tokens)
    with pytest.raises(SSDError, match="encodes pictures of 768x768 pixels, not 100x100"):
        twice.encode(torch.rand(1, 100, 100, 3))


# Programs that read pictures


def test_programs_read_a_large_picture_as_the_small_one():
    for seed in range(4):
        picture = paint(scene_of(seed), FRAMES[seed % 3])
        larger = picture.repeat(2, 0).repeat(2, 1)
        assert np.array_equal(at_frame_size(larger), picture)
        assert at_frame_size(picture) is picture
        assert read(larger) == read(picture)
        assert outlined(larger) == outlined(picture)


def test_an_edit_sees_the_same_in_a_picture_of_either_size(twice):
    prompts = ("a red boat", "a blue boat")
    drawn = requested(twice, None, methods.Rows(), prompt="a red boat on the sea in the rain",
                      named=True).run()
    picture, small = (next(pictures) for pictures in (
        drawn.pictures(), requested(twice, None, methods.Rows(), size=SMALL[0], named=True,
                                    prompt="a red boat on the sea in the rain").run().pictures()))
    assert picture.tokens.equal(small.tokens)
    seen = twice.seen(to_bytes(small.pixels), prompts)
    assert twice.seen(to_bytes(picture.pixels), prompts) == seen and "in the rain" in seen
    words = [changed_words(twice, {**made.recipe, "prompt": "a red boat"}, "a blue boat")
             for made in (picture, small)]
    assert words[0] == words[1] and "rain" in words[0][1]


# What a run costs


@pytest.fixture
def much_memory(monkeypatch):
    monkeypatch.setattr(fit_module, "free_bytes", lambda device: 1 << 34)


def test_the_estimate_counts_the_pixels_of_the_size(twice, single, much_memory):
    large, small = (fit(twice, methods.AR(), size=size, device="cpu") for size in (None, SMALL[0]))
    assert large.pixels >= 4 * small.pixels and large.cache == small.cache
    assert fit(twice.resized(SMALL[0]), methods.AR(), size=LARGE[0], device="cpu") == large
    assert small.pixels == fit(single, methods.AR(), device="cpu").pixels
    wide = fit(twice, methods.AR(), size=LARGE[1], device="cpu")
    assert wide.pixels == large.pixels, "both have 576 cells"


def test_the_estimate_counts_all_that_the_weights_take(twice):
    taken = sum(stored_bytes(tensor) for tensor in (*twice.parameters(), *twice.buffers()))
    assert fit(twice, methods.AR(), device="cpu").weights == pytest.approx(taken, rel=0.01)


def test_step_times_count_the_decoding_of_their_size(monkeypatch):
    model, decoded = tiny_postcard(grid=GRID, twice=True), []
    monkeypatch.setattr(type(model), "decode", lambda self, tokens: decoded.append(self.size))
    keys = set()
    for view in (model, model.smallest):
        keys.add(step_times.key_of(view, 1, 2, False))
        step_times.Passes(view, 1, 2, None).rest()
    assert len(keys) == 2 and list(dict.fromkeys(decoded)) == [model.size, model.smallest.size]


# Tokens


@pytest.mark.parametrize("method", [methods.AR(), methods.Exact(), methods.SSD(), methods.MuLo()],
                         ids=lambda method: method.name)
def test_tokens_do_not_depend_on_the_size(method):
    model = tiny_postcard(grid=GRID, twice=True)
    heads = random_heads(model)
    drawn = [list(generate(view, ["a red house"], method, heads))[-1].tokens
             for view in (model, model.smallest)]
    assert drawn[0].equal(drawn[1])


def test_drafts_learn_from_pictures_of_both_sizes_together(tmp_path):
    model = tiny_postcard(grid=GRID, twice=True)
    tokens = some_tokens(model)[0]
    known = [Known("", model.sha256, "a red house", size, "ar",
                   tokens.numpy().astype("<i4").tobytes()) for size in model.sizes]
    ids = torch.tensor(model.tokenize("a red house"))
    together, = by_size([(each, ids) for each in known], model)
    assert together.tokens.equal(torch.stack([tokens, tokens]))
    assert together.size == model.smallest.size
    task = DistillTask(0, ("a red house",), methods.AR(), Sampling())
    for view in (model, model.smallest):
        (name, content), = task.run(LoadedModels(view, None)).items()
        (tmp_path / name).write_bytes(content)
        assert read_pictures(tmp_path / name, model).size == model.smallest.size
        assert drawn_already(tmp_path, view) == {0}
