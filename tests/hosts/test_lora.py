"""A LoRA by every way but ComfyUI's: the command, the recipe, the app."""

import shutil
from types import SimpleNamespace

import pytest
from support.tiny_image_models import janus_original
from support.tiny_loras import merged_copy, peft_lora

from ssd_core import Sampling, SSDError, generate, load_backbone, load_heads, methods
from ssd_core.cli import main
from ssd_core.engine.events import Finished
from ssd_core.engine.heads import DraftHeads, save_heads
from ssd_core.output.recipe import read_recipe, recipe_tokens
from ssd_core.weights.registry import ModelRegistry
from studio.facts import lora_text
from studio.library import Library
from studio.models import switch


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A models folder with a tiny Janus-Pro, the same merged by PEFT, and the adapter."""
    root = tmp_path_factory.mktemp("models")
    folder = janus_original(root / "ssd_backbones" / "Janus-Pro-1B")
    _adapter, merged = peft_lora(folder, root / "loras" / "styles" / "brush")
    merged_copy(folder, merged, root / "ssd_backbones" / "merged" / "Janus-Pro-1B")
    return root


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def drawn(models, out, *flags):
    assert main(["generate", "a red fox", "--models-dir", str(models), "--device", "cpu",
                 "--dtype", "fp32", "--out", str(out), *flags]) in (0, None)
    return read_recipe(out)


def test_the_command_draws_what_peft_says_and_its_recipe_draws_it_again(models, tmp_path, capsys):
    named = "styles/brush:1"
    twin = drawn(models, tmp_path / "twin.png", "--backbone", "merged/Janus-Pro-1B")
    made = drawn(models, tmp_path / "made.png", "--backbone", "Janus-Pro-1B", "--lora", named)
    assert recipe_tokens(made).equal(recipe_tokens(twin))
    lora, = made["lora"]
    assert (lora["name"], lora["strength"]) == ("brush", 1.0) and len(lora["sha256"]) == 64
    plain = drawn(models, tmp_path / "plain.png", "--backbone", "Janus-Pro-1B")
    none = drawn(models, tmp_path / "none.png", "--backbone", "Janus-Pro-1B", "--lora",
                 "styles/brush:0")
    assert recipe_tokens(none).equal(recipe_tokens(plain)) and "lora" not in plain
    assert not recipe_tokens(made).equal(recipe_tokens(plain))
    assert none["backbone"] == plain["backbone"] != made["backbone"]
    again = drawn(models, tmp_path / "again.png", "--like", str(tmp_path / "made.png"),
                  "--backbone", "Janus-Pro-1B")
    assert recipe_tokens(again).equal(recipe_tokens(made))


def test_a_recipe_finds_its_adapter_by_its_hash_or_says_which_is_missing(models, tmp_path):
    registry, path = ModelRegistry.below(models), models / "loras" / "styles" / "brush"
    assert list(registry.loras()) == ["styles/brush"]
    backbone = load_backbone(models / "ssd_backbones" / "Janus-Pro-1B", "cpu", lora=[path])
    recipe = {"lora": [vars(lora) for lora in backbone.lora]}
    assert registry.loras_of(recipe) == [f"{path}:1.0"] and registry.loras_of({}) == []
    moved = ModelRegistry.below(tmp_path)
    with pytest.raises(SSDError, match=r"LoRA 'brush' \([0-9a-f]{10}\).*is not here: put it into"):
        moved.loras_of(recipe)
    shutil.copytree(path, tmp_path / "loras" / "other")
    assert moved.loras_of(recipe) == [f"{tmp_path / 'loras' / 'other'}:1.0"]


def test_heads_learned_without_it_stay_in_use_and_say_so(models, tmp_path):
    folder = models / "ssd_backbones" / "Janus-Pro-1B"
    plain = load_backbone(folder, "cpu", "fp32")
    heads = DraftHeads(plain.hidden_size, 1, 1)
    save_heads(heads, tmp_path / "heads.safetensors", plain, {})
    made = load_backbone(folder, "cpu", "fp32",
                         lora=[models / "loras" / "styles" / "brush"])
    loaded = load_heads(tmp_path / "heads.safetensors", made)
    loaded.require_backbone(made)
    assert "without the LoRA" in loaded.note_on(made)
    assert load_heads(tmp_path / "heads.safetensors", plain).note_on(plain) is None


def test_the_app_draws_with_it_and_says_of_a_picture_which_one_it_had(models, tmp_path):
    library = Library(models, "Janus-Pro-1B", device="cpu", dtype="fp32")
    switch(library, "Janus-Pro-1B", "fp32", ["styles/brush:1"])
    twin = load_backbone(models / "ssd_backbones" / "merged" / "Janus-Pro-1B", "cpu", "fp32")
    made = library.current.backbone
    pictures = [tokens_of(backbone) for backbone in (made, twin)]
    assert pictures[0].equal(pictures[1]) and made.lora[0].strength == 1
    recipe = {"lora": [vars(made.lora[0])]}
    services = SimpleNamespace(library=library)
    assert lora_text(services, recipe, "en") == (
        " It was drawn with the LoRA brush 1: choose it under Models.")
    recipe["lora"][0] |= {"sha256": "0" * 64}
    assert "is not here: put it into" in lora_text(services, recipe, "en")
    with pytest.raises(SSDError, match="no such adapter"):
        library.use("Janus-Pro-1B", "fp32", ["gone:1"])
    assert library.current.backbone.sha256 == made.sha256


def tokens_of(backbone):
    events = generate(backbone, ["a red fox"], methods.AR(), sampling=Sampling(seed=3, cfg=2.0))
    return next(event.tokens for event in events if isinstance(event, Finished))
