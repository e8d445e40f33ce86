"""`ssd vary PICTURE.png`: variations of a picture with its settings, or of any with --from."""

import json
from types import SimpleNamespace

import pytest
import torch
from PIL import Image
from support.mock_backbone import tiny_postcard

from ssd_core import Grid
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.output.recipe import read_recipe, recipe_tokens, save_png

GRID = Grid(12, 12)


@pytest.fixture
def ssd(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = tiny_postcard(grid=GRID)
    postcard.save(model, tmp_path / "tiny.safetensors")

    def run(command, *arguments):
        code = main([command, *map(str, arguments), "--backbone", "tiny.safetensors", "--json"])
        out, err = capsys.readouterr()
        data = json.loads(out.splitlines()[-1]) if not code else None
        return SimpleNamespace(code=code, err=err, json=data, model=model)

    return run


def recipes(run) -> list[dict]:
    return [read_recipe(path) for path in run.json["images"]]


def test_variations_share_the_seed_and_the_words_and_differ_in_their_number(ssd):
    ssd("generate", "a red house", "--seed", 3, "--out", "x.png")
    run = ssd("vary", "x.png", "--strength", "strong", "--count", 3, "--variation-seed", 5)
    assert run.json["images"] == ["x-vary-0.png", "x-vary-1.png", "x-vary-2.png"]
    assert run.json["variation_seeds"] == [5, 6, 7] and run.json["seeds"] == [3, 3, 3]
    own, drawn = recipe_tokens(read_recipe("x.png")), [recipe_tokens(one) for one in recipes(run)]
    for recipe, tokens, kept in zip(recipes(run), drawn, run.json["kept"], strict=True):
        assert (recipe["prompt"], recipe["variation"]) == ("a red house", 0.5)
        assert "keep" not in recipe and recipe["guess"] == "auto"
        assert kept == pytest.approx((tokens == own).float().mean().item())
    assert not drawn[0].equal(drawn[1])


def test_the_seed_of_the_picture_is_no_variation(ssd):
    ssd("generate", "a red house", "--seed", 2, "--out", "x.png")
    run = ssd("vary", "x.png", "--strength", "strong", "--count", 3)
    assert run.json["variation_seeds"] == [3, 4, 5] and max(run.json["kept"]) < 1
    assert ssd("vary", "x.png", "--count", 1).json["variation_seeds"] == [1]


def test_a_variation_is_drawn_again_from_its_own_settings(ssd):
    ssd("generate", "a red house", "--seed", 3, "--out", "x.png")
    first, _ = recipes(ssd("vary", "x.png", "--variation", 0.4, "--count", 2))
    again, = recipes(ssd("generate", "--like", "x-vary-0.png", "--out", "again.png"))
    assert recipe_tokens(again).equal(recipe_tokens(first))
    other, = recipes(ssd("generate", "--like", "x-vary-0.png", "--variation-seed", 2,
                         "--out", "other.png"))
    assert recipe_tokens(other).equal(recipe_tokens(read_recipe("x-vary-1.png")))
    run = ssd("vary", "x-vary-0.png", "--variation", 0.4, "--count", 1, "--out", "once.png")
    assert "a variation itself" in run.err
    assert recipe_tokens(read_recipe("once.png")).equal(recipe_tokens(first))


def test_of_a_picture_without_settings_some_cells_are_drawn_anew(ssd):
    model = tiny_postcard(grid=GRID)
    width, height = model.size
    picture = torch.rand(height, width, 3)
    save_png("photo.png", picture, None)
    refused = ssd("vary", "photo.png")
    assert refused.code == 2 and "--from" in refused.err
    run = ssd("vary", "photo.png", "--from", "a red house", "--strength", "medium", "--count", 2)
    for recipe, kept in zip(recipes(run), run.json["kept"], strict=True):
        assert "keep_mask" in recipe and 0.7 < kept < 1
    with Image.open(run.json["images"][0]) as image:
        assert image.size == (width, height)


@pytest.mark.parametrize(("flags", "said"), [
    (("--strength", "huge"), "choose one of subtle, medium, strong"),
    (("--variation", 0), "must lie above 0"), (("--count", 0), "count 0: must be at least 1")])
def test_what_does_not_fit_is_refused_in_one_line(ssd, flags, said):
    run = ssd("vary", "x.png", *flags)
    assert run.code == 2 and said in run.err and run.err.count("\n") == 1
