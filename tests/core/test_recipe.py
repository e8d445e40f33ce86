"""Recipes: what is written comes back, and nothing in a foreign file is trusted."""

import contextlib
import hashlib
import json
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ssd_core.backbones.base import Preset
from ssd_core.engine.methods import METHODS, SSD
from ssd_core.errors import SSDError
from ssd_core.model.grid import Grid
from ssd_core.model.sampling import Sampling
from ssd_core.output.drawing import Drawing, drawing_of
from ssd_core.output.packed import tokens_sha256
from ssd_core.output.recipe import (
    make_recipe,
    other_dtype,
    read_recipe,
    recipe_tokens,
    save_png,
    tokens_from_png,
)
from studio.settings import of_recipe

BACKBONE = SimpleNamespace(
    name="toy", sha256="ab" * 32, preset=Preset(cfg=3.0), sizes=((16, 8),), size=(16, 8),
    grid=Grid(2, 4), sources=(), lora=(),
    codes=9, device=torch.device("cpu"), dtype=torch.float32, in_int8=True,
    encode=lambda pictures: torch.full((len(pictures), 2, 4), 5))
TOKENS = torch.arange(8).view(2, 4)
STATS = {"passes": 6, "seconds": {"total": 0.5}}


def recipe(**changes):
    method = SSD(rounds=1).resolve(BACKBONE.preset)
    drawing = Drawing("a höuse\nby a lake", "fog", method, Sampling(seed=(1 << 64) - 1), pictures=2)
    return {**make_recipe(BACKBONE, None, drawing.of_picture(1), TOKENS, STATS), **changes}


@pytest.fixture
def png(tmp_path):
    """Save a picture with this recipe text (or dict, or none) and give its path."""
    def write(content, size=(16, 8)):
        info = PngInfo()
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content)
            info.add_text("ssd_recipe", text)
        Image.new("RGB", size).save(tmp_path / "x.png", pnginfo=info)
        return tmp_path / "x.png"
    return write


def test_a_recipe_comes_back(tmp_path):
    path = tmp_path / "deep" / "x.png"
    save_png(path, torch.rand(8, 16, 3), recipe(), {"workflow": "{}"})
    back = read_recipe(path)
    assert back["seed"] == 0 and back["cfg"] == 3.0 and back["prompt"] == "a höuse\nby a lake"
    assert back["rounds"] == 1 and back["k_h"] == 5
    assert torch.equal(recipe_tokens(back), TOKENS)
    info = Image.open(path).info
    assert info["workflow"] == "{}"
    assert "Negative prompt: fog\nSteps: 6, Sampler: ssd" in info["parameters"]


def test_a_kernel_that_was_chosen_by_a_measurement_is_named(monkeypatch):
    """None is on a CPU."""
    assert "kernels" not in recipe()
    monkeypatch.setattr("ssd_core.output.recipe.attention_kernel", lambda device: "cudnn")
    assert recipe()["kernels"] == {"attention": "cudnn"}


@pytest.mark.parametrize("key, kind", [("version", "recipe"), ("noise_version", "noise")])
def test_a_recipe_of_a_newer_version_is_refused_with_what_to_do(png, key, kind):
    with pytest.raises(SSDError, match=f"x.png: its format is ssd-{kind}/2, this program reads "
                                       f"up to ssd-{kind}/1: update this program"):
        read_recipe(png(recipe(**{key: 2})))


def test_a_recipe_tells_the_dtype(png):
    assert read_recipe(png(recipe()))["dtype"] == "int8"
    assert other_dtype(recipe(), BACKBONE) is None
    assert "load it with dtype fp32" in other_dtype(recipe(dtype="fp32"), BACKBONE)
    foreign = recipe(dtype="fp32", backbone={"name": "other", "sha256": "cd" * 32})
    assert other_dtype(foreign, BACKBONE) is None


def test_no_recipe_leaves_no_chunk(tmp_path):
    save_png(tmp_path / "x.png", torch.rand(8, 16, 3), None)
    assert not {"ssd_recipe", "parameters"} & set(Image.open(tmp_path / "x.png").info)


def test_token_hash_is_little_endian_int32_in_raster_order():
    expected = hashlib.sha256(np.arange(8, dtype="<i4").tobytes()).hexdigest()
    assert tokens_sha256(TOKENS) == expected


def test_kept_tokens_come_from_the_recipe(tmp_path):
    save_png(tmp_path / "x.png", torch.rand(8, 16, 3), recipe())
    tokens, how = tokens_from_png(tmp_path / "x.png", BACKBONE)
    assert torch.equal(tokens, TOKENS[None]) and "recipe" in how


def test_kept_tokens_of_foreign_or_changed_pictures_are_encoded(tmp_path, png):
    assert "no recipe" in tokens_from_png(png(None), BACKBONE)[1]
    other = {"name": "other", "sha256": "cd" * 32}
    tokens, how = tokens_from_png(png(recipe(backbone=other)), BACKBONE)
    assert "another backbone" in how and (tokens == 5).all()
    tokens, how = tokens_from_png(png(recipe(pixels_sha256="00")), BACKBONE)
    assert "changed" in how and tokens.shape == (1, 2, 4)


def test_kept_pictures_of_another_size_are_refused(png):
    with pytest.raises(SSDError, match="16x8"):
        tokens_from_png(png(None, size=(8, 8)), BACKBONE)


def test_kept_tokens_beyond_the_codebook_are_refused(tmp_path):
    packed = make_recipe(BACKBONE, None, Drawing("x", None, SSD()), TOKENS + 8, STATS)
    save_png(tmp_path / "x.png", torch.rand(8, 16, 3), packed)
    with pytest.raises(SSDError, match="do not fit"):
        tokens_from_png(tmp_path / "x.png", BACKBONE)


def tokens_of(**changes):
    return {**recipe()["tokens"], **changes}


HOSTILE = {
    "none": None, "not JSON": "{", "a list": [], "huge": "x" * (2 << 20), "deep": "[" * 100_000,
    "version 2": recipe(version=2), "version text": recipe(version="1"),
    "version true": recipe(version=True), "version 0": recipe(version=0),
    "no version": {"tokens": 1}, "NaN": '{"version": 1, "cfg": NaN}', "cfg 1e999": json.dumps(
        recipe(cfg=7)).replace('"cfg": 7', '"cfg": 1e999'),
    "digits": '{"version": 1, "seed": ' + "9" * 10_000 + "}", "seed": recipe(seed=1 << 64),
    "seed text": recipe(seed="7"), "backbone text": recipe(backbone="toy"),
    "dtype": recipe(dtype="int7"), "no dtype": recipe(dtype=None),
    "nameless": recipe(backbone={"sha256": "x"}), "top_p": recipe(top_p=0),
    "min_p": recipe(min_p=2), "noise": recipe(noise_version=2),
    "no noise": recipe(noise_version=None),
    "no tokens": recipe(tokens=None), "shape": recipe(tokens=tokens_of(shape=[3, 4])),
    "huge shape": recipe(tokens=tokens_of(shape=[1 << 40, 1 << 40])),
    "negative shape": recipe(tokens=tokens_of(shape=[-2, -4])),
    "not base64": recipe(tokens=tokens_of(data="$$$")),
    "negative": recipe(tokens=tokens_of(data="/////w==", shape=[1, 1])),
    "half a character": recipe(prompt="a \ud800 house"), "half a name": recipe(
        backbone={"name": "\udcff", "sha256": "x"}), "half a negative": recipe(negative="\udc00"),
    "no keep_rows": recipe(keep_rows=None), "keep_rows -3": recipe(keep_rows=-3),
    "all rows kept": recipe(keep_rows=2), "stopped beyond": recipe(stopped_rows=3),
    "no such method": recipe(method="lightning"), "a list of methods": recipe(method=["ssd"]),
    "knob text": recipe(rounds="two"), "knob fraction": recipe(rounds=1.5),
    "knob true": recipe(k_h=True), "knob 10^400": recipe(k_v=10**400),
    "guidance 10^400": recipe(cfg=10**400), "edit": recipe(old_prompt="x"),
    "mask": recipe(keep_mask={"shape": [1, 4], "data": "/w=="}),
    "knob below": recipe(k_h=0), "draft": recipe(draft_choice="dice"),
    "top_k": recipe(top_k=10**30), "no size": recipe(size="0x-8"), "passes": recipe(passes="x")}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_recipes_are_refused_in_one_line(png, content):
    path = png(content)
    with pytest.raises(SSDError) as caught:
        read_recipe(path)
    assert str(path) in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_every_knob_of_every_method_is_checked():
    """Each is described, so that it is known what is legal."""
    assert not [f"{name}.{f.name}" for name, method in METHODS.items() for f in fields(method)
                if "help" not in f.metadata]


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(
    st.characters(exclude_categories=())), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=4)


@given(data=st.data())
def test_a_changed_recipe_is_refused_in_one_line_or_whole(data, tmp_path_factory):
    """One field, or one within a field, is taken away or becomes something else."""
    changed = json.loads(json.dumps(recipe(stopped_rows=1, pixels_sha256="")))
    inner = data.draw(st.sampled_from([changed, *(v for v in changed.values() if type(v) is dict)]))
    key = data.draw(st.sampled_from(sorted(inner)))
    if data.draw(st.booleans()):
        inner[key] = data.draw(JSON)
    else:
        del inner[key]
    info = PngInfo()
    info.add_text("ssd_recipe", json.dumps(changed))
    path = tmp_path_factory.mktemp("changed") / "x.png"
    Image.new("RGB", (16, 8)).save(path, pnginfo=info)
    try:
        back = read_recipe(path)
    except SSDError as error:
        assert len(str(error).splitlines()) == 1
        str(error).encode()
        return
    drawing_of(back).method.resolve(Preset())
    assert 0 <= back["keep_rows"] < len(recipe_tokens(back))
    json.dumps([back["prompt"], back["negative"], back["backbone"]["name"]]).encode()
    f"{back['prompt']}{back['negative']}{back['backbone']}{back['heads']}".encode()
    with contextlib.suppress(SSDError):
        of_recipe(back)


def test_a_bomb_of_a_compressed_chunk_is_refused(tmp_path):
    info = PngInfo()
    info.add_text("ssd_recipe", " " * (4 << 20), zip=True)
    Image.new("RGB", (16, 8)).save(tmp_path / "x.png", pnginfo=info)
    with pytest.raises(SSDError):
        read_recipe(tmp_path / "x.png")


@given(st.integers(0, 400), st.binary(max_size=40))
def test_damaged_files_never_raise_anything_else(tmp_path_factory, cut, noise):
    path = tmp_path_factory.mktemp("damage") / "x.png"
    save_png(path, torch.zeros(8, 16, 3), recipe())
    content = path.read_bytes()
    path.write_bytes(content[:cut] + noise + content[cut + len(noise):-60])
    with contextlib.suppress(SSDError):
        read_recipe(path)
    with contextlib.suppress(SSDError):
        tokens_from_png(path, BACKBONE)


def test_missing_and_foreign_files_are_refused(tmp_path):
    (tmp_path / "x.png").write_text("hello")
    for path in (tmp_path / "x.png", tmp_path / "y.png", tmp_path):
        with pytest.raises(SSDError):
            read_recipe(path)
