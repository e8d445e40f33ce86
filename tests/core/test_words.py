"""The words drawn for what was typed: in requests, in recipes, and wherever these restore them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.mock_backbone import MockBackbone, random_heads, randomise
from support.requests import requested

from ssd_core import Sampling, SSDError, generate, methods
from ssd_core.backbones import postcard
from ssd_core.backbones.postcard import Postcard
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.cli import main
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import DecoderShape
from ssd_core.output.comfyui_workflow import SAMPLER, node_of, workflow_of
from ssd_core.output.recipe import parameters, read_recipe, recipe_tokens, save_png
from ssd_core.output.words import Words, drawn_words, inherited
from ssd_core.runs.request import Request, Result
from ssd_lab.postcards import WORDS

SHAPE = DecoderShape(1, 16, 2, 2, 8, 32, rotary="interleaved")


@pytest.fixture(scope="module")
def backbone():
    """Four by five cells, random weights, and all words of the postcards."""
    small = Postcard(WORDS, 32, SHAPE, Grid(4, 5))
    randomise(small, 3, 0.25)
    small.sha256 = "a1" * 32
    return small.freeze()


def request(backbone, prompt="a red house", seed=5, **options):
    return requested(backbone, None, methods.AR(), Sampling(seed), prompt,
                   **{"expand": True, **options})


def drawn(run: Request) -> Result:
    return run.run()


def saved(result: Result, folder: Path, index: int = 0) -> dict:
    """The recipe of a picture after a round trip through its PNG."""
    path = folder / f"{index}.png"
    picture = list(result.pictures())[index]
    save_png(path, picture.pixels, picture.recipe)
    return read_recipe(path)


def test_every_picture_is_expanded_by_its_own_seed_also_when_drawn_alone(backbone):
    batch = request(backbone, pictures=3)
    prompts = [words.prompt for words in batch.words]
    assert prompts == [expand("a red house", None, 5 + n).prompt for n in range(3)]
    assert len(set(prompts)) == 3
    tokens = drawn(batch).tokens
    alone = replace(batch)
    alone.alone = True
    for n, part in enumerate(alone.parts()):
        assert part.words == batch.words[n : n + 1]
        assert torch.equal(drawn(part).tokens[0], tokens[n])


def test_it_draws_the_words_and_not_what_was_typed(backbone):
    expanded = request(backbone)
    words = expand("a red house", None, 5).prompt
    *_, last = generate(backbone, [words], methods.AR(), sampling=Sampling(5))
    assert torch.equal(drawn(expanded).tokens, last.tokens)
    assert not torch.equal(drawn(request(backbone, expand=False)).tokens, last.tokens)
    assert request(backbone).expansions[0].added


def test_without_expansion_or_words_of_its_own_a_request_is_what_was_typed(backbone):
    mock = requested(MockBackbone(), None, methods.AR(), Sampling(), "a sun", expand=True)
    for typed in (request(backbone, expand=False), mock):
        assert typed.words == (Words(typed.prompt),) and typed.expansions == []
    few = Postcard(("a", "red", "house"), 32, SHAPE, Grid(4, 5))
    assert few.expand("a house", None, 0) is None


def test_an_addition_that_was_clicked_away_is_not_drawn(backbone):
    name = request(backbone).expansions[0].added[-1].name
    less = request(backbone, open=(name,))
    assert [addition.name for addition in less.expansions[0].added] == [
        addition.name for addition in request(backbone).expansions[0].added
        if addition.name != name]
    assert less != request(backbone) == request(backbone, open=("nothing",))


def test_a_negation_is_drawn_as_the_negative_prompt_and_told(backbone):
    typed = request(backbone, "a house, no trees", negative="rain")
    assert typed.words[0].negative == "rain, trees"
    assert "'no trees' was moved to the negative prompt" in typed.notes
    unguided = requested(backbone, None, methods.AR(), Sampling(cfg=1.0), "a house, no trees",
                       expand=True)
    assert unguided.words[0].negative is None and "trees" not in unguided.words[0].prompt
    drawn(unguided)


def test_a_negation_moves_also_where_nothing_is_added(backbone, tmp_path):
    """The picture is that of the words without it, and its recipe restores it."""
    typed = request(backbone, "a house, no trees", expand=False, pictures=2)
    assert set(typed.words) == {Words("a house", "trees")}
    assert "'no trees' was moved to the negative prompt" in typed.notes
    batch = drawn(typed)
    *_, last = generate(backbone, ["a house"] * 2, methods.AR(), sampling=Sampling(5),
                        negative="trees")
    assert torch.equal(batch.tokens, last.tokens)
    recipe = saved(batch, tmp_path)
    assert (recipe["prompt"], recipe["prompt_expanded"]) == ("a house, no trees", "a house")
    again = Request.of_recipe(recipe, backbone, None)
    assert torch.equal(drawn(again).tokens[0], batch.tokens[0])


def test_the_recipe_restores_the_words_also_where_expansion_is_off(backbone, tmp_path):
    batch = drawn(request(backbone, "a house, no trees", pictures=2))
    for n in range(2):
        recipe = saved(batch, tmp_path, n)
        assert (recipe["prompt"], recipe["negative"]) == ("a house, no trees", None)
        assert recipe["prompt_expanded"] == batch.request.words[n].prompt
        assert recipe["negative_expanded"] == "trees"
        again = Request.of_recipe(recipe, backbone, None)
        assert again.drawing.fixed and again.prompt == "a house, no trees"
        assert torch.equal(drawn(again).tokens[0], batch.tokens[n])
        assert saved(drawn(again), tmp_path)["prompt_expanded"] == recipe["prompt_expanded"]


def test_a_recipe_without_the_fields_is_drawn_as_typed(backbone, tmp_path):
    recipe = saved(drawn(request(backbone, expand=False)), tmp_path)
    assert not {"prompt_expanded", "negative_expanded"} & set(recipe)
    again = Request.of_recipe(recipe, backbone, None)
    again = replace(again, drawing=replace(again.drawing, expand=True))
    assert again.words == (Words("a red house"),)


def test_nothing_is_recorded_where_nothing_was_added(backbone, tmp_path):
    whole = expand("a red house", None, 5).prompt
    on, off = (request(backbone, whole, expand=switch) for switch in (True, False))
    assert on == off and torch.equal(drawn(on).tokens, drawn(off).tokens)
    assert "prompt_expanded" not in saved(drawn(on), tmp_path)


def test_variations_have_their_parents_words(backbone, tmp_path):
    recipe = saved(drawn(request(backbone)), tmp_path)
    typed = Words("a red house")
    parent = inherited(recipe, typed)
    assert parent == (drawn_words(recipe),)
    assert inherited(recipe, Words("a boat")) == () == inherited(None, typed)
    more = request(backbone, seed=40, pictures=3, fixed=parent)
    assert more.words == parent * 3 and more.expansions == []
    assert [part.words for part in more.parts()] == [more.words]


def test_fixed_words_fit_the_pictures(backbone):
    words = (Words("a house"), Words("a boat"))
    both = request(backbone, pictures=2, fixed=words)
    assert both.words == words
    both.alone = True
    assert [part.words for part in both.parts()] == [words[:1], words[1:]]
    with pytest.raises(SSDError, match="2 pictures do not fit 3"):
        request(backbone, pictures=3, fixed=words).check()
    with pytest.raises(SSDError, match="share the negative prompt"):
        request(backbone, pictures=2, fixed=(words[0], Words("a boat", "rain"))).check()


def test_the_memory_of_a_batch_is_that_of_its_longest_words():
    class Longer(MockBackbone):
        def expand(self, prompt, negative, seed, leave_open=(), fill=True):
            return replace(expand("a", None, 0), prompt=prompt + " x" * (seed == 6))

        def tokenize(self, prompt):
            return [1] * (1 + 40 * prompt.count("x"))

    single = requested(Longer(), random_heads(Longer()), methods.AR(), Sampling(5), "a sun",
                     expand=True)
    assert replace(single, drawing=single.drawing.with_seed(6)).bytes_needed > single.bytes_needed
    both = replace(single, drawing=replace(single.drawing, pictures=2))
    assert both.bytes_needed > 2 * single.bytes_needed


def test_other_programs_are_told_the_words(backbone, tmp_path):
    recipe = saved(drawn(request(backbone, "a house, no trees")), tmp_path)
    text = parameters(recipe)
    assert text.startswith("a house, no trees\n")
    assert f"Expanded prompt: {json.dumps(recipe['prompt_expanded'])}" in text
    widgets = node_of(workflow_of(recipe), SAMPLER)["widgets_values_named"]
    assert widgets["prompt"] == recipe["prompt_expanded"] and widgets["negative"] == "trees"
    assert not widgets.get("expand")


# The command line


@pytest.fixture(scope="module")
def folder(backbone, tmp_path_factory):
    place = tmp_path_factory.mktemp("model")
    postcard.save(backbone, place / "backbone.safetensors")
    return place


@pytest.fixture
def ssd(folder, tmp_path, monkeypatch, capsys):
    """Run a command line in an empty folder; gives the JSON of its last line, and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        assert main([*map(str, arguments), "--backbone", str(folder), "--json"]) == 0
        out, err = capsys.readouterr()
        return json.loads(out.splitlines()[-1]), err

    return run


def test_generate_expands_and_says_so_before_it_draws(ssd):
    made, err = ssd("generate", "a red house", "--seed", 5, "--batch", 2, "--out", "x.png")
    words = [expand("a red house", None, seed).prompt for seed in (5, 6)]
    assert made["prompt_expanded"] == words and made["negative_expanded"] is None
    assert all(f"drawn from: {prompt}" in err for prompt in words)
    recipes = [read_recipe(Path(path)) for path in made["images"]]
    assert [recipe["prompt_expanded"] for recipe in recipes] == words
    plain, err = ssd("generate", "a red house", "--seed", 5, "--no-expand", "--out", "y.png")
    assert plain["prompt_expanded"] is None and "drawn from" not in err
    assert "prompt_expanded" not in read_recipe(Path("y.png"))


def test_a_kept_top_goes_on_with_its_own_words_if_the_prompt_is_the_same(ssd):
    ssd("generate", "a red house", "--seed", 5, "--out", "x.png")
    keep = ("--keep", "x.png", "--keep-rows", 2, "--seed", 9, "--out", "y.png")
    same, _ = ssd("generate", "a red house", *keep)
    assert same["prompt_expanded"] == [expand("a red house", None, 5).prompt]
    other, _ = ssd("generate", "a blue house", *keep)
    assert other["prompt_expanded"] == [expand("a blue house", None, 9).prompt]
    first, again = (recipe_tokens(read_recipe(Path(name))) for name in ("x.png", "y.png"))
    assert torch.equal(first[:2], again[:2])


def test_plan_and_compare_expand_too(ssd):
    words = expand("a house, no trees", "rain", 5)
    prompt = ("a house, no trees", "--negative", "rain", "--seed", 5)
    planned, err = ssd("plan", *prompt)
    assert (planned["prompt_expanded"], planned["negative_expanded"]) == (words.prompt,
                                                                          "rain, trees")
    assert f"drawn from: {words.prompt}" in err and "'no trees' was moved" in err
    moved, err = ssd("plan", *prompt, "--no-expand")
    assert (moved["prompt_expanded"], moved["negative_expanded"]) == ("a house", "rain, trees")
    assert "'no trees' was moved" in err
    assert ssd("plan", "a house", "--no-expand")[0]["prompt_expanded"] is None
    compared, _ = ssd("compare", *prompt, "--methods", "ar,rows:rounds=0")
    assert [row["prompt_expanded"] for row in compared["results"]] == [[words.prompt]] * 2


def test_a_grid_has_no_words(capsys):
    assert main(["plan", "a house", "--grid", "4x4"]) == 2
    assert "a prompt needs --backbone" in capsys.readouterr().err


def test_render_draws_what_generate_draws_from_a_short_prompt(ssd, folder, capsys):
    Path("p.txt").write_text("a red house\na house, no trees\na boat\n", encoding="utf-8")
    command = ("render", "p.txt", "--out", "r", "--seed", 5, "--batch", 3, "--method", "ar")
    assert ssd(*command)[0]["drawn_now"] == 3
    for number, (path, prompt) in enumerate(zip(
            sorted(Path("r").glob("*.png")), ("a red house", "a house, no trees", "a boat"),
            strict=True)):
        ssd("generate", prompt, "--seed", 5 + number, "--method", "ar", "--out", "x.png")
        first, second = read_recipe(path), read_recipe(Path("x.png"))
        for key in ("tokens", "prompt", "negative", "prompt_expanded", "negative_expanded", "seed"):
            assert first[key] == second[key], key
    assert read_recipe(Path("r/000001-a-house-no-trees.png"))["negative_expanded"] == "trees"
    assert ssd(*command)[0]["drawn_now"] == 0
    assert main([*map(str, command), "--no-expand", "--backbone", str(folder)]) == 2
    err = capsys.readouterr().err
    assert "now it is null: change --expand or --no-expand back, or choose another folder" in err
    ssd(*command, "--no-expand", "--out", "typed")
    assert "prompt_expanded" not in read_recipe(Path("typed/000000-a-red-house.png"))
    moved = read_recipe(Path("typed/000001-a-house-no-trees.png"))
    assert (moved["prompt_expanded"], moved["negative_expanded"]) == ("a house", "trees")
