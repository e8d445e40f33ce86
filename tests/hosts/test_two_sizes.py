"""The command line with a model that decodes its tokens at two sizes."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from support.mock_backbone import tiny_postcard

from ssd_core import Grid
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.output.kept_pixels import weights
from ssd_core.output.packed import unpack_mask
from ssd_core.output.recipe import read_recipe, recipe_tokens

LARGE, SMALL = (384, 384), (192, 192)


@pytest.fixture
def ssd(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    postcard.save(tiny_postcard(grid=Grid(12, 12), twice=True), tmp_path / "tiny.safetensors")

    def run(command, *arguments):
        code = main([command, *map(str, arguments), "--backbone", "tiny.safetensors", "--json"])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, err=err,
                               json=json.loads(out.splitlines()[-1]) if not code else None)

    run("generate", "a red house", "--seed", 3, "--out", "large.png")
    run("generate", "a red house", "--seed", 3, "--size", "192x192", "--out", "small.png")
    return run


def size_of(name):
    """Of the picture, which its recipe tells, too."""
    width, height = Image.open(name).size
    assert read_recipe(name)["size"] == f"{width}x{height}"
    return width, height


def tokens_of(name):
    return recipe_tokens(read_recipe(name))


def pixels_of(name):
    return np.asarray(Image.open(name))


def test_the_default_is_the_larger_one_and_a_size_gives_the_other(ssd):
    assert size_of("large.png") == LARGE and size_of("small.png") == SMALL
    assert tokens_of("large.png").equal(tokens_of("small.png"))
    refused = ssd("generate", "a red house", "--size", "200x200", "--out", "no.png")
    assert refused.code == 2 and "the nearest are 192x192, 384x384" in refused.err


@pytest.mark.parametrize("name", ["large.png", "small.png"])
def test_a_picture_is_drawn_again_at_its_own_size(ssd, name):
    ssd("generate", "--like", name, "--out", "again.png")
    assert np.array_equal(pixels_of("again.png"), pixels_of(name))
    ssd("generate", "--like", "large.png", "--size", "192x192", "--out", "smaller.png")
    assert np.array_equal(pixels_of("smaller.png"), pixels_of("small.png"))
    ssd("vary", name, "--count", 1, "--variation", 0.1, "--out", "varied.png")
    assert size_of("varied.png") == size_of(name)


@pytest.mark.parametrize(("name", "box"), [("large.png", "0,0,64,64"), ("small.png", "0,0,32,32")])
def test_an_edit_has_the_size_and_the_pixels_of_its_picture(ssd, name, box):
    done = ssd("edit", name, "a red sun", "--box", box, "--seed", 9, "--out", "edited.png").json
    assert size_of("edited.png") == size_of(name)
    assert done["mask_share"] == pytest.approx(4 / 144)
    kept = unpack_mask(read_recipe("edited.png")["keep_mask"])
    outside = (weights(kept, size_of(name)[::-1]) == 0).numpy()
    assert outside.any() and np.array_equal(pixels_of("edited.png")[outside],
                                            pixels_of(name)[outside])
    assert tokens_of("edited.png")[kept].equal(tokens_of(name)[kept])


def test_an_edit_at_the_other_size_has_the_same_tokens(ssd):
    edits = {"a.png": ("large.png", "384x384", "0,0,64,64"),
             "b.png": ("small.png", "384x384", "0,0,64,64"),
             "c.png": ("large.png", "192x192", "0,0,32,32"),
             "d.png": ("small.png", "192x192", "0,0,32,32")}
    for out, (name, size, box) in edits.items():
        ssd("edit", name, "a red sun", "--box", box, "--size", size, "--seed", 9, "--out", out)
        assert size_of(out) == tuple(map(int, size.split("x")))
        assert tokens_of(out).equal(tokens_of("a.png"))
    assert np.abs(pixels_of("a.png")[96:].astype(float) - pixels_of("large.png")[96:]).max() == 0
    assert np.abs(pixels_of("d.png")[48:].astype(float) - pixels_of("small.png")[48:]).max() == 0


def test_words_edit_a_picture_of_either_size_alike(ssd):
    for name in ("large.png", "small.png"):
        ssd("edit", name, "a red sun", "--seed", 3, "--out", f"edited-{name}")
        assert size_of(f"edited-{name}") == size_of(name)
    assert tokens_of("edited-large.png").equal(tokens_of("edited-small.png"))


@pytest.mark.parametrize("size", ["384x384", "192x192"])
def test_rows_are_kept_from_a_picture_of_either_size(ssd, size):
    for name in ("large.png", "small.png"):
        done = ssd("generate", "a red sun", "--seed", 5, "--keep", name, "--keep-rows", 4,
                   "--size", size, "--out", f"below-{name}")
        assert done.code == 0 and size_of(f"below-{name}") == tuple(map(int, size.split("x")))
        assert tokens_of(f"below-{name}")[:4].equal(tokens_of(name)[:4])
    assert np.array_equal(pixels_of("below-large.png"), pixels_of("below-small.png"))
    other = "192x192" if size == "384x384" else "384x384"
    ssd("generate", "--like", "below-large.png", "--size", other, "--out", "other.png")
    assert size_of("other.png") != size_of("below-large.png")
    assert tokens_of("other.png").equal(tokens_of("below-large.png"))


def test_a_list_of_prompts_and_a_comparison_have_the_larger_size(ssd, tmp_path):
    (tmp_path / "prompts.txt").write_text("a red house\na sun\n", encoding="utf-8")
    ssd("render", "prompts.txt", "--out", "rendered")
    compared = ssd("compare", "a red house", "--methods", "ar,rows", "--out", "compared").json
    files = [*tmp_path.glob("rendered/*.png"),
             *(name for each in compared["results"] for name in each["images"])]
    assert len(files) == 4 and {size_of(name) for name in files} == {LARGE}
