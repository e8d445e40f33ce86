"""Self-distillation: exact draws what AR draws; no prompt goes through a text model twice."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.mock_backbone import tiny_postcard
from support.tiny_image_models import llamagen_t2i, tar, tar_language

from ssd_core import Grid, SSDError, load_backbone
from ssd_core.backbones import postcard
from ssd_core.backbones.prompts.tar_language import TarLanguage
from ssd_core.backbones.prompts.text_model import FlanT5
from ssd_core.train import heads, self_distill
from ssd_core.train.heads import HeadsRecipe
from ssd_core.train.picture_files import KEPT_PROMPTS, load_pictures
from ssd_core.train.self_distill import SelfDistillRecipe


def test_exact_draws_ars_pictures_in_fewer_passes(tmp_path):
    card = tmp_path / "backbone.safetensors"
    postcard.save(tiny_postcard(grid=Grid(12, 12)), card)
    told: list[str] = []
    recipe = SelfDistillRecipe(tmp_path / "ar", str(card), pictures=5, batch=3, device="cpu",
                               dtype="fp32")
    ar = self_distill.train(recipe, told.append)
    exact = self_distill.train(replace(recipe, out=tmp_path / "exact", method="exact"),
                               told.append)
    backbone = load_backbone(card, "cpu", "fp32")
    by_ar, by_exact = (load_pictures(tmp_path / name, backbone).tokens for name in ("ar", "exact"))
    assert torch.equal(by_ar, by_exact)
    assert ar["passes"] == 2 * 144 and exact["passes"] < ar["passes"] / 2
    assert f"by ar: 720 tokens, {ar['passes']} passes" in told[0]
    assert re.search(r"by exact: 720 tokens, usually about \d+ passes", told[1])


def test_a_method_that_draws_other_pictures_is_refused(tmp_path):
    with pytest.raises(SSDError, match="method 'ssd': choose one of ar, exact"):
        self_distill.train(SelfDistillRecipe(tmp_path, method="ssd"))


# What text models make of prompts


@pytest.fixture
def readings(monkeypatch) -> list[tuple[int, ...]]:
    """The ids of every prompt that goes through a text model."""
    seen: list[tuple[int, ...]] = []
    for kind, name in ((FlanT5, "encoded"), (TarLanguage, "sampled")):
        plain = getattr(kind, name)

        def counted(self, ids, *more, plain=plain):
            seen.append(ids)
            return plain(self, ids, *more)
        monkeypatch.setattr(kind, name, counted)
    return seen


def test_a_prompt_is_encoded_once_for_drawing_and_for_all_epochs(tmp_path, readings):
    pytest.importorskip("transformers", reason="flan-T5 is read with transformers")
    path = llamagen_t2i(tmp_path / "t2i-256")
    (tmp_path / "prompts.txt").write_text("a red house\nsun\n")
    self_distill.train(SelfDistillRecipe(tmp_path, str(path), str(tmp_path / "prompts.txt"),
                                         device="cpu"))
    assert len(readings) == len(set(readings)) == 2
    heads.train(HeadsRecipe(tmp_path, str(path), str(tmp_path), k_h=1, k_v=1, epochs=2, batch=1,
                            held_out=0, device="cpu"))
    assert len(readings) == 2


def features(path: Path, folder: Path) -> torch.Tensor:
    backbone = load_backbone(path, "cpu")
    backbone.cache_prompts(folder)
    return backbone.embed_prompt(torch.tensor([backbone.tokenize("a house")]))


def test_kept_features_are_those_of_this_encoder_and_damage_is_made_good(tmp_path, readings):
    pytest.importorskip("transformers", reason="flan-T5 is read with transformers")
    path, kept = llamagen_t2i(tmp_path / "t2i"), tmp_path / KEPT_PROMPTS
    first = features(path, kept)
    assert torch.equal(features(path, kept), first) and len(readings) == 1
    (file,) = kept.rglob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1])
    assert torch.equal(features(path, kept), first) and len(readings) == 2
    weights = path.parent / "flan-t5-xl" / "model.safetensors"
    save_file({name: value * 2 for name, value in load_file(weights).items()}, weights,
              {"format": "pt"})
    assert not torch.equal(features(path, kept), first) and len(readings) == 3


def test_tars_language_model_speaks_once(tmp_path, readings, monkeypatch):
    pytest.importorskip("transformers", reason="Tar's language model is read with transformers")
    monkeypatch.setattr("ssd_core.backbones.prompts.tar_language.COUNT", 6)
    path, drawn = tar(tmp_path / "tar-512"), []
    tar_language(path.parent / "Tar-1.5B")
    for _ in range(2):
        backbone = load_backbone(path, "cpu")
        backbone.cache_prompts(tmp_path / KEPT_PROMPTS)
        ids = tuple(backbone.language.tokenize("a house"))
        drawn.append(backbone.language.draw(ids, torch.device("cpu"), torch.float32))
    assert drawn[0] == drawn[1] and len(readings) == 1
