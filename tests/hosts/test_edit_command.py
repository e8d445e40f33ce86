"""`ssd edit PICTURE.png "new words"`: by the words, or a region; suggestions for a region."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from support.mock_backbone import tiny_postcard

from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.output.recipe import read_recipe, recipe_tokens

BOX = ("--box", "0,0,32,32")


@pytest.fixture
def ssd(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    postcard.save(tiny_postcard(), tmp_path / "tiny.safetensors")

    def run(command, *arguments):
        code = main([command, *map(str, arguments), "--backbone", "tiny.safetensors", "--json"])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, err=err,
                               json=json.loads(out.splitlines()[-1]) if not code else None)

    run("generate", "a red house", "--seed", 3, "--out", "x.png")
    return run


def test_suggestions_for_a_region_are_files_in_the_order_of_their_fit(ssd):
    done = ssd("edit", "x.png", "a blue boat", *BOX, "--suggest", 4, "--seed", 9).json
    every = done["suggestions"]
    assert [one["image"] for one in every] == [f"x-edit-{n}.png" for n in range(4)]
    assert sorted(one["seed"] for one in every) == [9, 10, 11, 12]
    fits = [one["fit"] for one in every]
    assert fits == sorted(fits, reverse=True) and len(set(fits)) > 1 and max(fits) < 0
    assert {key: done[key] for key in every[0]} == every[0]
    for one in every:
        recipe = read_recipe(one["image"])
        assert recipe["seed"] == one["seed"]
        redrawn = (recipe_tokens(recipe) != recipe_tokens(read_recipe("x.png"))).float().mean()
        assert 1 - one["kept_share"] == pytest.approx(done["mask_share"]) and (
            redrawn <= done["mask_share"] + 1e-6), "a redrawn cell may get its token again"
    alone = ssd("edit", "x.png", "a blue boat", *BOX, "--seed", every[0]["seed"]).json
    assert alone["tokens_sha256"] == every[0]["tokens_sha256"] and alone["fit"] == 0


def test_a_region_leaves_everything_else_and_its_pixels(ssd):
    done = ssd("edit", "x.png", "a blue boat", *BOX, "--seed", 9, "--out", "y.png").json
    before, after = (recipe_tokens(read_recipe(name)) for name in ("x.png", "y.png"))
    free = round(done["mask_share"] * before.numel())
    assert 0 < (before != after).sum() <= free < before.numel() / 2
    x, y = (np.asarray(Image.open(name)) for name in ("x.png", "y.png"))
    assert (x != y).any() and np.array_equal(x[-16:], y[-16:])


def test_old_words_that_are_the_new_ones_draw_nothing(ssd):
    done = ssd("edit", "x.png", "a red house", "--from", "a red house").json
    assert done["passes"] == 0 and done["kept_share"] == 1 and "nothing was drawn" in str(
        done["notes"])


def test_words_of_from_that_are_unknown_are_told(ssd):
    done = ssd("edit", "x.png", "a blue boat", *BOX, "--from", "a red blabla")
    assert done.json["old_prompt"] == "a red blabla" and (
        "--from: postcard does not know, and leaves out: blabla" in done.err)


@pytest.mark.parametrize("flags", [(), BOX, ("--from", "a red house")])
def test_of_unknown_words_alone_nothing_is_edited(ssd, flags):
    done = ssd("edit", "x.png", "a purple elephant", *flags)
    assert done.code == 2 and "cannot draw a purple elephant, and the prompt names nothing" in (
        done.err.splitlines()[-1])


@pytest.mark.parametrize(("flags", "said"), [
    (("--suggest", "0"), "--suggest 0: must be at least 1"),
    (("--rows", "99"), "--rows 99: must lie in 0 .. 23"), (("--reach", "9"), "--reach 9.0: must"),
    (("--box", "1,2,3"), "write x,y,width,height"),
    ((*BOX, "--rows", "1"), "give one of them")])
def test_wrong_flags_get_one_line(ssd, flags, said):
    done = ssd("edit", "x.png", "a blue boat", *flags)
    assert done.code == 2 and said in done.err
