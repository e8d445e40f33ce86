"""Prompts that a seed or another program's picture chooses, and seed -1, on the command line."""

import json

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from support.mock_backbone import MockBackbone, tiny_postcard, tokens
from support.requests import requested

from ssd_core import Sampling, SSDError, methods
from ssd_core.backbones import postcard
from ssd_core.backbones.prompts.alternatives import resolved
from ssd_core.cli import main
from ssd_core.output.recipe import read_recipe

TYPED = "a {red|blue} {house|boat}"
A1111 = "a red house\nNegative prompt: sun\nSteps: 20, Sampler: Euler, Seed: 77, Size: 64x64"


@pytest.fixture
def ssd(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    postcard.save(tiny_postcard(), tmp_path / "tiny.safetensors")

    def run(command, *arguments):
        flags = () if command == "plan" else ("--method", "rows", "--rounds", "0")
        assert main([command, *map(str, arguments), "--backbone", "tiny.safetensors", "--json",
                     *flags]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def test_a_seed_draws_one_of_the_alternatives_in_every_command(ssd, tmp_path):
    told = ssd("generate", TYPED, "--seed", 5, "--no-expand")
    assert told["prompt_expanded"] == [resolved(TYPED, 5).text] == [
        read_recipe(told["images"][0])["prompt"]]
    planned = ssd("plan", TYPED, "--seed", 5, "--no-expand")
    assert planned["prompt_expanded"] == resolved(TYPED, 5).text
    (tmp_path / "p.txt").write_text(TYPED)
    ssd("render", "p.txt", "--each", 6, "--seed", 5, "--no-expand", "--out", "r")
    drawn = [read_recipe(path)["prompt"] for path in sorted((tmp_path / "r").glob("*.png"))]
    assert drawn == [resolved(TYPED, seed).text for seed in range(5, 11)] and len(set(drawn)) > 1
    assert ssd("render", "p.txt", "--each", 6, "--seed", 5, "--no-expand", "--out", "r")[
        "drawn_now"] == 0


def test_a_request_draws_the_alternative_that_the_app_draws():
    for seed in range(4):
        asked = requested(MockBackbone(), None, methods.AR(), Sampling(seed), TYPED)
        assert asked.prompt == asked.words[0].prompt == resolved(TYPED, seed).text
    assert requested(MockBackbone(), None, methods.AR(), Sampling(1), "a {b} {").prompt == "a {b} {"
    alike = [tokens(MockBackbone(), methods.AR(), [text], sampling=Sampling(2))
             for text in ("{a|b|c}", resolved("{a|b|c}", 2).text)]
    assert alike[0].equal(alike[1])


def test_seed_minus_one_is_a_new_seed(ssd):
    seeds = {Sampling(-1).seed for _ in range(8)}
    assert len(seeds) > 1 and all(0 <= seed < 2**32 for seed in seeds)
    told = ssd("generate", "a red house", "--seed", -1)
    seed, = told["seeds"]
    image, = told["images"]
    assert image == f"tiny-{seed}.png" and read_recipe(image)["seed"] == seed
    with pytest.raises(SSDError, match="seed -2: must lie in"):
        Sampling(-2)


def test_pictures_of_other_programs_give_their_words_and_seed(ssd, tmp_path):
    info = PngInfo()
    info.add_text("parameters", A1111)
    Image.new("RGB", (64, 64), "teal").save(tmp_path / "theirs.png", pnginfo=info)
    told = ssd("generate", "--like", "theirs.png", "--no-expand")
    recipe = read_recipe(told["images"][0])
    assert (recipe["prompt"], recipe["negative"], recipe["seed"]) == ("a red house", "sun", 77)
    told = ssd("generate", "a boat", "--like", "theirs.png", "--seed", 3, "--negative", "lake")
    recipe = read_recipe(told["images"][0])
    assert (recipe["prompt"], recipe["negative"], recipe["seed"]) == ("a boat", "lake", 3)


def test_an_edit_takes_the_words_that_another_program_wrote(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    postcard.save(tiny_postcard(), tmp_path / "tiny.safetensors")
    info = PngInfo()
    info.add_text("parameters", A1111)
    for name, told in (("theirs", info), ("nobodys", None)):
        Image.new("RGB", (64, 64), "teal").save(f"{name}.png", pnginfo=told)
    edit = ["a blue house", "--backbone", "tiny.safetensors", "--json"]
    assert main(["edit", "theirs.png", *edit]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["old_prompt"] == "a red house"
    assert main(["edit", "nobodys.png", *edit]) == 2
    assert "does not tell its words" in capsys.readouterr().err
