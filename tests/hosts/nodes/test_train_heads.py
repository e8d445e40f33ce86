"""Train Draft Heads: what it learns from, progress, interrupts, and what it says."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from support.mock_backbone import tiny_postcard

from ssd_core import load_backbone
from ssd_core.backbones import postcard
from ssd_core.engine.methods import AR
from ssd_core.model.grid import Grid
from ssd_core.model.sampling import Sampling
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import make_recipe, save_png

NODE = "SSD_TrainHeads"


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """A small postcard of random weights."""
    file = tmp_path_factory.mktemp("card") / "backbone.safetensors"
    postcard.save(tiny_postcard(grid=Grid(6, 6)), file)
    return load_backbone(file, "cpu")


@pytest.fixture
def tiny(pack, card, monkeypatch):
    """The same as a model in ComfyUI's folders, learning in few steps; no pictures at first."""
    heads, judging, pictures = (pack.module(f"ssd_core.train.{name}")
                                for name in ("heads", "judging", "own_pictures"))
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 6))
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)
    monkeypatch.setattr(pictures.LAST_LESSON, "in_memory", {})
    folders = [Path(pack.stubs.folders.paths(name)[-1]) for name in ("ssd_backbones", "ssd_heads")]
    shutil.copytree(card.files[0].parent, folders[0] / "tiny")
    output = Path(pack.stubs.folders.output)
    output.mkdir(exist_ok=True)
    yield pack.run("SSD_LoadModel", model="tiny", dtype="fp32")[0]
    for folder in (*folders, output):
        shutil.rmtree(folder, ignore_errors=True)


def draw(pack, backbone, count: int, folder: str = "", first: int = 0) -> None:
    """PNGs of random tokens by this backbone in a folder of ComfyUI's output folder."""
    place = Path(pack.stubs.folders.output, folder)
    place.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        tokens = torch.randint(backbone.codes, (backbone.grid.rows, backbone.grid.columns),
                               generator=torch.Generator().manual_seed(seed))
        drawing = replace(Drawing("a red house", method=AR()), sampling=Sampling(seed=seed))
        recipe = make_recipe(backbone, None, drawing, tokens,
                             {"passes": 36, "seconds": {"total": 1.0}})
        save_png(place / f"{seed:03d}.png", torch.zeros(*backbone.size[::-1], 3), recipe)


def learned_file(pack) -> Path:
    return Path(pack.stubs.folders.paths("ssd_heads")[-1], "tiny", "heads.safetensors")


def test_drafts_learn_with_a_bar_and_the_model_then_has_them(pack, card, tiny):
    draw(pack, card, 12, "today")
    stranger = load_backbone(card.files[0].parent, "cpu")
    stranger.sha256 = "0" * 64
    draw(pack, stranger, 1, first=50)
    assert tiny.heads is None
    model, text = pack.run(NODE, model=tiny)
    assert model.backbone is tiny.backbone and model.heads.path == learned_file(pack)
    assert model.heads.module.k_h and model.heads.module.row is not None
    done, totals = zip(*pack.stubs.bars, strict=True)
    assert set(totals) == {12} and set(done) == set(range(1, 13)), "a step each, of both kinds"
    assert "Draft heads: " in text and "Row drafter: " in text and "of your prompts" in text
    assert "with those in use" not in text, "there were none before"
    assert re.search(r"Left out: \d+ of other models", text), "other tests drew some, too"
    assert pack.server.texts[-1][0] == text
    assert any("Step 2 of 12, about" in said for said, *_ in pack.server.texts)
    assert not list(learned_file(pack).parent.glob("*.ckpt"))
    assert pack.run("SSD_LoadModel", model="tiny", dtype="fp32")[0].heads is model.heads
    drawn = pack.run("SSD_Sampler", model=model, prompt="a red house", method={
        "method": "SSD (k_h, k_v, r, b/i)", "k_h": 2, "k_v": 1})
    report = drawn[1].report
    assert "ssd" in report and "there are no draft heads" not in report


def test_it_learns_again_only_when_there_are_enough_new_pictures(pack, card, tiny):
    draw(pack, card, 12)
    fingerprint = pack.nodes[NODE].fingerprint_inputs
    seen = fingerprint(folder="", new_pictures=8)
    first, _ = pack.run(NODE, model=tiny, new_pictures=8, kind="heads")
    pack.stubs.bars.clear()
    again, text = pack.run(NODE, model=tiny, new_pictures=8, kind="heads")
    assert again == first and not pack.stubs.bars
    assert text.startswith("0 new pictures since these drafts last learned")
    draw(pack, card, 12, first=20)
    assert fingerprint(folder="", new_pictures=8) != seen
    assert fingerprint(folder="", new_pictures=0) != fingerprint(folder="", new_pictures=0)
    _, text = pack.run(NODE, model=tiny, new_pictures=8, kind="heads")
    assert pack.stubs.bars and "with those in use" in text


def test_drafts_that_are_no_better_are_not_used_and_not_tried_again(pack, card, tiny, monkeypatch):
    draw(pack, card, 12)
    judging = pack.module("ssd_core.train.judging")
    first, _ = pack.run(NODE, model=tiny, kind="row drafter")
    monkeypatch.setattr(judging, "is_less", lambda own, other: False)
    draw(pack, card, 12, first=20)
    before = learned_file(pack).read_bytes()
    model, text = pack.run(NODE, model=tiny, kind="row drafter", new_pictures=0)
    assert "Not kept; those in use stay." in text
    assert model == first and learned_file(pack).read_bytes() == before
    _, text = pack.run(NODE, model=tiny, kind="row drafter", new_pictures=0)
    assert text.startswith("0 new pictures since these drafts last learned")


@pytest.mark.parametrize(("at", "done", "next_one"), [
    ("Step 1 of 12", 1, 3), ("Step 9 of 12", 9, 11), ("Measuring", 12, 12)])
def test_an_interrupt_ends_a_step_and_the_next_run_goes_on(pack, card, tiny, at, done, next_one):
    draw(pack, card, 12)
    bars, seen = pack.stubs.bars, []

    def stop(text, *_):
        seen.append(text)
        if text.startswith(at):
            pack.manager.interrupt_at = pack.manager.checks + 1

    pack.server.send_progress_text = stop
    with pytest.raises(pack.module("nodes.learning").mm.InterruptProcessingException):
        pack.run(NODE, model=tiny)
    del pack.server.send_progress_text
    assert bars[-1] == (done, 12), "the step under way is finished, and its work is kept"
    assert seen[-1].startswith("Interrupted.") and learned_file(pack).exists() == (done > 6)
    bars.clear()
    pack.run(NODE, model=tiny)
    assert bars[0] == (next_one, 12) and learned_file(pack).exists()


def test_what_cannot_be_learned_from_is_one_line(pack, card, tiny):
    draw(pack, card, 3)
    photo = Path(pack.stubs.folders.output, "photo.png")
    shutil.copy(Path(pack.stubs.folders.output, "000.png"), photo)
    photo.write_bytes(photo.read_bytes()[:200])
    model, text = pack.run(NODE, model=tiny)
    assert model == tiny and "3 pictures of postcard to learn from, at least 8" in text
    assert "Left out: 1 without settings: Save Image (SSD) saves them" in text
    for folder in ("..", "../models", "/tmp", "gone"):
        assert "there is none of this name" in pack.nodes[NODE].validate_inputs(folder)
        with pytest.raises(pack.error, match="there is none of this name"):
            pack.run(NODE, model=tiny, folder=folder)
    assert pack.nodes[NODE].validate_inputs("") is True


def test_memory_is_asked_for_and_what_the_last_run_left_is_freed(pack, card, tiny):
    draw(pack, card, 12)
    freed = []
    session = SimpleNamespace(nbytes=1, close=lambda: freed.append(1))
    tiny.module.session.keep(session)
    pack.run(NODE, model=tiny, kind="heads")
    patchers, wanted, _ = pack.manager.loads[0]
    assert patchers == [tiny.backbone.patcher] and wanted > 0 and freed


def test_the_page_is_told_before_anything_runs(pack, card, tiny):
    facts, widgets = pack.module("nodes.facts"), {"folder": "", "kind": "both", "epochs": 3}
    draw(pack, card, 3)
    assert facts.outlook_of(widgets, "tiny") == (
        "3 pictures of postcard: drafts learn from 8 or more.")
    draw(pack, card, 12)
    text = facts.outlook_of(widgets, "tiny")
    assert text.startswith("12 pictures of postcard: drafts could learn from them, about ")
    assert text.endswith(" on this processor.")
    assert "none of this name" in facts.outlook_of({**widgets, "folder": ".."}, "tiny")
    assert "once the model is loaded" in facts.outlook_of(widgets, "")


def test_a_chinese_page_is_told_in_chinese(pack, card, tiny):
    language = pack.module("nodes.language")
    language.remember(pack.server.client_id, "zh-CN")
    pack.server.texts.clear()
    try:
        draw(pack, card, 3)
        texts = [pack.run(NODE, model=tiny)[1]]
        draw(pack, card, 12)
        texts += [pack.run(NODE, model=tiny)[1] for _ in range(2)]
        shown = [text for text, *_ in pack.server.texts]
        widgets = {"folder": "", "kind": "both", "epochs": 3}
        said = pack.module("nodes.facts").outlook_of(widgets, "tiny")
    finally:
        language.PAGES.clear()
    for text in (*texts, *shown, said):
        assert all(re.search("[\u4e00-\u9fff]", line) for line in text.splitlines()), text
