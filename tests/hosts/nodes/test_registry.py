"""One tree of model folders, and what ComfyUI, the app and the command line make of it."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import SSDError, load_backbone, load_heads
from ssd_core.backbones.postcard import save
from ssd_core.cli import main
from ssd_core.cli.options import Loading
from ssd_core.cli.session import load
from ssd_core.engine.heads import save_heads
from ssd_core.engine.methods import SSD
from ssd_core.errors import shortened
from ssd_core.train.versions import save_version, versions
from ssd_core.weights.registry import ModelRegistry
from studio.library import Library

BACKBONE, HEADS = "backbone.safetensors", "heads.safetensors"
BACKBONES = {  # each a backbone of its own, and where it lies
    "postcard": None,
    "loose.safetensors": "loose.safetensors",
    "many/a.safetensors": "many/a.safetensors",
    "many/b.safetensors": "many/b.safetensors",
    "mine": f"mine/{BACKBONE}",
    "named": f"named/{BACKBONE}",
    "own": "own/mine.safetensors",
    "sets/mine": f"sets/mine/{BACKBONE}",
}
DRAFTS = {  # heads: of which backbone, and where they lie below the models folder
    f"ssd_backbones/sets/mine/{HEADS}": "sets/mine",
    f"ssd_heads/elsewhere/{HEADS}": "mine",
    f"ssd_heads/named/{HEADS}": "named",
    "ssd_heads/loose.safetensors": "loose.safetensors",
}


@pytest.fixture(scope="module")
def models(loaded):
    """ComfyUI's own models folder with the tree; empty again afterwards."""
    root = Path(loaded.stubs.folders.models_dir)
    plant(root)
    yield root
    shutil.rmtree(root / "ssd_backbones")
    shutil.rmtree(root / "ssd_heads")


def plant(root: Path) -> None:
    files = {name: root / "ssd_backbones" / place for name, place in BACKBONES.items() if place}
    for seed, path in enumerate(files.values()):
        path.parent.mkdir(parents=True, exist_ok=True)
        save(tiny_postcard(seed), path)
    for place, name in DRAFTS.items():
        backbone = load_backbone(files[name], "cpu")
        save_heads(random_heads(backbone), root / place, backbone, {})
    for place in (f"broken/{BACKBONE}", f".hidden/{BACKBONE}"):
        (root / "ssd_backbones" / place).parent.mkdir()
        (root / "ssd_backbones" / place).write_bytes(b"nonsense")
    (root / "ssd_backbones" / "Anole-7B").mkdir()
    (root / "ssd_backbones" / "mine" / "up").symlink_to(root / "ssd_backbones")
    (root / "ssd_heads" / "notes.safetensors").write_bytes(b"nonsense")


@pytest.fixture
def registry(models) -> ModelRegistry:
    return ModelRegistry.below(models)


@pytest.fixture
def nodes(pack, models):
    """ComfyUI's shelf."""
    return pack.module("nodes.folders").registry()


def listed(registry) -> dict[str, tuple]:
    """What a host shows; classes differ, since ComfyUI imports the engine under another name."""
    return {name: (one.family, str(one.path), one.heads and str(one.heads), one.licence)
            for name, one in registry.backbones().items()}


def test_names_are_paths_below_the_folder_and_the_bundled_one_comes_first(registry):
    assert next(iter(registry.backbones())) == "postcard"
    assert set(registry.backbones()) == set(BACKBONES)
    assert [one.name for one in registry.unread()] == ["Anole-7B", "broken"]
    assert all(one.why_not and "\n" not in one.why_not for one in registry.unread())


def test_heads_lie_beside_a_backbone_or_have_its_name(registry, models):
    heads = {name: one.heads for name, one in registry.backbones().items() if one.heads}
    assert {name: path.relative_to(models).as_posix() for name, path in heads.items()
            if name != "postcard"} == {
        "loose.safetensors": "ssd_heads/loose.safetensors",
        "named": f"ssd_heads/named/{HEADS}",
        "sets/mine": f"ssd_backbones/sets/mine/{HEADS}"}
    assert set(registry.heads()) == {"elsewhere [postcard]", "loose.safetensors [postcard]",
                                     "named [postcard]"}
    assert [path.name for path in registry.unread_heads()] == ["notes.safetensors"]


@pytest.mark.parametrize("place, name", DRAFTS.items())
def test_a_loaded_backbone_finds_its_heads_wherever_they_lie(registry, models, place, name):
    path = registry.backbone_path(name)
    assert registry.heads_for(path, "auto", load_backbone(path, "cpu").sha256) == models / place


@pytest.mark.parametrize("name", ["postcard", "sets/mine", "many/a.safetensors"])
def test_drafts_that_learned_from_own_pictures_win_and_are_found_by_their_hash(tmp_path, models,
                                                                               name):
    shutil.copytree(models, tmp_path / "models", symlinks=True)
    registry = ModelRegistry.below(tmp_path / "models")
    path = registry.backbone_path(name)
    backbone = load_backbone(path, "cpu")
    file = registry.drafts_file(path)
    assert file.is_relative_to(tmp_path / "models" / "ssd_heads") and file.name == HEADS
    for seed in range(2):
        save_version(file, partial(save_heads, random_heads(backbone, 1, 1, seed=seed), file,
                                   backbone, {}))
    assert registry.heads_for(path, "auto", backbone.sha256) == file
    current, earlier = (load_heads(each, backbone).sha256 for each in (file, *versions(file)))
    assert registry.drafts_by_hash(current) == file
    assert registry.drafts_by_hash(earlier) == versions(file)[0]
    beside = load_heads("postcard", load_backbone("postcard", "cpu")).sha256
    assert registry.drafts_by_hash(beside).name == HEADS, "the bundled ones do not tell theirs"
    assert registry.drafts_by_hash("0" * 64) is None


def test_heads_of_another_backbone_are_not_taken_and_that_is_told(registry, models):
    path = registry.backbone_path("sets/mine")
    assert registry.heads_for(path, "auto", "0" * 64) is None
    mine = models / "ssd_backbones" / "sets" / "mine" / HEADS
    assert str(mine) in registry.heads_mismatch(path, "0" * 64)
    assert registry.heads_mismatch(path, load_backbone(path, "cpu").sha256) is None
    assert registry.heads_mismatch(registry.backbone_path("mine"), "0" * 64) is None


@pytest.mark.parametrize("wish", ["named", "named [postcard]", "ssd_heads/named",
                                  f"ssd_heads/named/{HEADS}", f"named/{HEADS}"])
def test_heads_go_by_name_label_or_path(registry, models, wish, monkeypatch):
    monkeypatch.chdir(models)
    found = registry.heads_for(registry.backbone_path("many/a.safetensors"), wish)
    assert found.resolve() == models / "ssd_heads" / "named" / HEADS


def test_a_folder_above_leads_to_what_is_in_it(registry, models):
    """A name that is not listed, but a folder that is there."""
    assert registry.backbone_path("sets") == models / "ssd_backbones" / "sets"
    assert registry.named("sets").heads == models / "ssd_backbones" / "sets" / "mine" / HEADS


@pytest.mark.parametrize("name, words", [
    ("Mona-Lisa", "not here: put it into"), ("", "put it into"),
    ("Janus-Pro-1B", "is not here .*download Janus-Pro-1B --models-dir"),
    ("Anole-7B", "lacks files .*download Anole-7B")])
def test_what_is_not_here_says_what_to_do_in_one_line(registry, name, words):
    with pytest.raises(SSDError, match=words) as told:
        registry.backbone_path(name)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["notes", "notes.safetensors"])
def test_a_file_that_holds_no_heads_is_here_and_is_named(pack, models, name):
    with pytest.raises(pack.error, match=f"^draft heads '{name}': .*notes.safetensors holds none"):
        pack.run("SSD_LoadHeads", model=pack.run("SSD_LoadModel")[0], heads=name)
    said = pack.nodes["SSD_LoadHeads"].validate_inputs(heads=name)
    assert "holds none" in said and "not here" not in said


def test_a_damaged_backbone_is_here_and_its_file_is_named(pack, models):
    said = pack.nodes["SSD_LoadModel"].validate_inputs("broken")
    assert said.startswith("backbone 'broken' is here but cannot be read: ")
    assert f"{models / 'ssd_backbones' / 'broken' / BACKBONE}: " in said and "damaged" in said
    assert "\n" not in said


def test_comfyui_lists_the_same(nodes, registry):
    assert listed(nodes) == listed(registry)
    assert set(nodes.heads()) == set(registry.heads())
    assert [one.name for one in nodes.unread()] == [one.name for one in registry.unread()]


def test_the_app_lists_the_same(models, registry):
    library = Library(models, device="cpu")
    found = {one.name: one for one in library.models()}
    assert {name: one for name, one in found.items() if one.readable} == registry.backbones()
    assert {name for name, one in found.items() if not one.readable} == {"Anole-7B", "broken"}


@pytest.mark.parametrize("place, name", DRAFTS.items())
def test_the_app_draws_with_the_heads_wherever_they_lie(models, place, name):
    loaded = Library(models, name, device="cpu").current
    assert loaded.heads.metadata["backbone_sha256"] == loaded.backbone.sha256
    assert loaded.problem is None


def test_the_app_lists_a_backbone_that_was_named_by_a_path_as_long_as_it_is_there(models, tmp_path):
    shutil.copytree(models / "ssd_backbones" / "mine", tmp_path / "own", symlinks=True)
    library = Library(models, str(tmp_path / "own"), device="cpu")
    assert str(tmp_path / "own") in [one.name for one in library.models()]
    shutil.rmtree(tmp_path / "own")
    assert {one.name for one in library.models()} == {*BACKBONES, "Anole-7B", "broken"}


def test_the_command_line_lists_the_same(models, registry, capsys):
    assert main(["backbones", "--models-dir", str(models), "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["results"]}
    readable = {name: one for name, one in found.items() if not one["why_not"]}
    assert {name: (one["family"], one["path"], one["heads"], one["licence"])
            for name, one in readable.items()} == listed(registry)
    assert set(found) - set(readable) == {"Anole-7B", "broken"}
    assert main(["backbones", "--models-dir", str(models)]) == 0
    out = capsys.readouterr().out
    assert "sets/mine" in out and "not read: broken (" in out


@pytest.mark.parametrize("place, name", DRAFTS.items())
def test_the_command_line_draws_with_the_heads_wherever_they_lie(models, place, name):
    backbone, heads = load(Loading(name, models_dir=str(models), device="cpu"), [SSD()])
    assert heads.metadata["backbone_sha256"] == backbone.sha256


def test_every_host_says_the_same_of_what_is_not_here(pack, models, capsys):
    with pytest.raises(SSDError) as raised:
        Library(models, "Mona-Lisa")
    said = str(raised.value)
    assert main(["plan", "--backbone", "Mona-Lisa", "--models-dir", str(models)]) == 2
    assert capsys.readouterr().err == shortened(f"error: --{said}") + "\n"
    assert pack.nodes["SSD_LoadModel"].validate_inputs("Mona-Lisa") == said


def test_a_workflow_names_no_paths(pack, models):
    """What is chosen in a combo comes with workflows of others; files elsewhere are not theirs."""
    path = str(models / "ssd_backbones" / "mine")
    assert "not here" in pack.nodes["SSD_LoadModel"].validate_inputs(path)
    with pytest.raises(pack.error, match="not here"):
        pack.run("SSD_LoadModel", model=path)


def test_doctor_says_what_was_found_and_what_was_not(pack, models):
    lines = pack.module("nodes.report").doctor().splitlines()
    assert {"  postcard (bundled), with draft heads", "  mine", "  sets/mine, with draft heads",
            "  elsewhere [postcard]"} <= set(lines)
    assert any("not read: broken (" in line for line in lines)
    assert any("notes.safetensors" in line for line in lines)
