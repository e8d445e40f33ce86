"""`ssd generate --like PICTURE.png`: the settings of a recipe, and the flags that overrule them."""

import json
from types import SimpleNamespace

import pytest
from support.mock_backbone import tiny_postcard

from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.output.drawing import knobs_in
from ssd_core.output.recipe import read_recipe, recipe_tokens

DRAWN = ("a red house", "--method", "rows", "--k-h", 3, "--k-v", 2, "--seed", 2**64 - 1, "--cfg",
         1.5, "--temperature", 0.9, "--top-k", 8, "--negative", "a boat", "--dtype", "fp32")


@pytest.fixture
def draw(tmp_path, monkeypatch, capsys):
    """Run `ssd generate` with a tiny backbone; gives code, error and the recipe of the picture."""
    monkeypatch.chdir(tmp_path)
    postcard.save(tiny_postcard(), tmp_path / "tiny.safetensors")

    def run(*arguments, backbone="tiny.safetensors"):
        model = ["--backbone", backbone] if backbone else []
        code = main(["generate", *map(str, arguments), *model, "--json"])
        out, err = capsys.readouterr()
        path = json.loads(out.splitlines()[-1])["images"][0] if not code else None
        return SimpleNamespace(code=code, err=err, path=path, recipe=path and read_recipe(path))

    return run


def same(one: dict, other: dict, *but: str) -> bool:
    changing = {"seconds", "versions", "pixels_sha256", *but}
    return {**one, **dict.fromkeys(changing)} == {**other, **dict.fromkeys(changing)}


def test_all_settings_come_from_the_picture(draw):
    first = draw(*DRAWN)
    assert same(draw("--like", first.path).recipe, first.recipe)


def test_flags_and_a_prompt_overrule_the_picture(draw):
    first = draw(*DRAWN)
    other = draw("--like", first.path, "--seed", 3, "--k-v", 1).recipe
    assert other["seed"] == 3 and knobs_in(other) == {**knobs_in(first.recipe), "k_v": 1}
    assert same(other, first.recipe, "seed", *knobs_in(other), "tokens", "passes")
    typed = draw("a boat", "--like", first.path, "--method", "ar").recipe
    assert typed["prompt"] == "a boat" and typed["method"] == "ar" and knobs_in(typed) == {}
    assert typed["cfg"] == 1.5


def test_rows_that_were_kept_are_kept_again(draw):
    parent = draw(*DRAWN)
    child = draw(*DRAWN, "--seed", 9, "--keep", parent.path, "--keep-rows", 2)
    again = draw("--like", child.path)
    assert same(again.recipe, child.recipe) and again.recipe["keep_rows"] == 2
    free = draw("--like", child.path, "--keep-rows", 0).recipe
    assert not recipe_tokens(free).equal(recipe_tokens(child.recipe))


def test_what_does_not_fit_is_refused_in_one_line(draw):
    missing = draw()
    assert missing.code == 2 and "no prompt: " in missing.err
    other = draw("--like", draw(*DRAWN).path, backbone=None)
    assert other.code == 2 and "name the picture's own with --backbone" in other.err
