"""The recipe from end to end at toy length: every stage runs, resumes, and feeds the next one."""

from dataclasses import replace

import pytest
import torch

from ssd_core import SSDError, load_backbone, load_heads
from ssd_core.evaluate import code_entropy, evaluate, objects, with_errors
from ssd_core.methods import AR, SSD, Exact
from ssd_core.postcards import Claim
from ssd_core.train import backbone, heads, self_distill, tokenizer
from ssd_core.train.common import cosine
from ssd_core.train.data import HELD_OUT, fresh_caption, pictures


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which all four stages have run."""
    out = tmp_path_factory.mktemp("recipe")
    recipe = tokenizer.TokenizerRecipe(out, steps=16, pictures=8, batch=2, held_out=2)
    stages = {
        "tokenizer": tokenizer.train(recipe),
        "backbone": backbone.train(backbone.BackboneRecipe(
            out, steps=2, pictures=8, batch=2, reading_steps=2, reading_batch=8, held_out=2)),
        "distill": self_distill.train(self_distill.SelfDistillRecipe(
            out, pictures=4, batch=4, device="cpu")),
        "heads": heads.train(heads.HeadsRecipe(
            out, k_v=2, epochs=1, batch=2, held_out=1, device="cpu"))}
    return out, stages


def test_every_stage_reports_its_metrics(folder):
    stages = folder[1]
    assert stages["tokenizer"]["codes_used"] >= 1 and stages["tokenizer"]["psnr_db"] > 0
    assert 0 <= stages["tokenizer"]["claims_kept"] <= 1
    assert 5 < stages["backbone"]["held_out_nll"] < 8  # two steps from log 512 = 6.2 nats
    assert stages["distill"]["drawn_now"] == 4
    names = [f"horizontal+{d}" for d in range(1, 6)] + ["vertical+1", "vertical+2"]
    assert list(stages["heads"]["acceptance"]) == names
    assert all(0 < value <= 1 for value in stages["heads"]["acceptance"].values())


def test_the_outcome_loads_and_draws(folder):
    loaded = load_backbone(folder[0], "cpu")
    draft_heads = load_heads(folder[0], loaded)
    assert (draft_heads.k_h, draft_heads.k_v) == (5, 2)
    assert draft_heads.metadata["loss"] == "smooth_l1"
    rows = evaluate(loaded, draft_heads, [("ar", AR()), ("exact", Exact()), ("ssd", SSD())],
                    prompts=2, batch=2)
    assert [row["identical_tokens"] for row in rows[:2]] == [1.0, 1.0]
    assert rows[0]["passes"] == 576 and 31 <= rows[2]["passes"] <= 77  # less where it converged
    assert set(rows[2]["acceptance_by_offset"]) == {*(f"horizontal+{d}" for d in range(1, 6)),
                                                    "vertical+1"}
    assert rows[0]["nll"] > 0 and rows[0]["nll_se"] >= 0


def test_finished_stages_do_not_start_again(folder):
    again = self_distill.train(self_distill.SelfDistillRecipe(
        folder[0], pictures=4, batch=4, device="cpu"))
    assert again["drawn_now"] == 0


def test_a_stage_resumes_where_it_stopped(folder, tmp_path):
    recipe = tokenizer.TokenizerRecipe(tmp_path, steps=4, pictures=8, batch=2, held_out=1)
    tokenizer.train(recipe)
    first = torch.load(tmp_path / "tokenizer.ckpt", weights_only=True)
    tokenizer.train(replace(recipe, steps=6))
    second = torch.load(tmp_path / "tokenizer.ckpt", weights_only=True)
    assert (first["step"], second["step"]) == (4, 6)
    assert not torch.equal(first["model"]["codebook"], second["model"]["codebook"])


def test_a_damaged_checkpoint_is_named(tmp_path):
    (tmp_path / "tokenizer.ckpt").write_bytes(b"not a checkpoint")
    with pytest.raises(SSDError, match="tokenizer.ckpt"):
        tokenizer.train(tokenizer.TokenizerRecipe(tmp_path, steps=4, pictures=8, batch=2))


def test_heads_need_pictures(folder, tmp_path):
    with pytest.raises(SSDError, match="self-distill"):
        heads.train(heads.HeadsRecipe(tmp_path, backbone=str(folder[0]), device="cpu"))


def test_painting_is_kept_and_captions_are_fresh(tmp_path):
    first, second = pictures(4, tmp_path), pictures(4, tmp_path)
    assert (first == second).all() and len(list(tmp_path.iterdir())) == 1
    assert len({fresh_caption(HELD_OUT, draw) for draw in range(8)}) > 1
    assert fresh_caption(HELD_OUT, 3) == fresh_caption(HELD_OUT, 3)


def test_the_rate_rises_and_falls():
    rates = [cosine(step, 100, warmup=10, floor=0.1) for step in range(101)]
    assert rates[0] == pytest.approx(0.1) and rates[10] == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(0.1) and rates[10:] == sorted(rates[10:], reverse=True)


def test_metrics_of_a_picture():
    said = (Claim("time", "day"), Claim("kind", "house", 0), Claim("colour", "red", 0),
            Claim("kind", "tree", 1))
    assert objects(said, (True, True, False, True)) == [0.0, 1.0]
    assert code_entropy(torch.zeros(4, 4, dtype=torch.long)) == 0
    assert code_entropy(torch.arange(16).view(4, 4)) == pytest.approx(2.7726, abs=1e-3)
    row = with_errors({"x": [1.0, 3.0], "y": [2.0]})
    assert row == {"x": 2.0, "x_se": pytest.approx(1.0), "y": 2.0, "y_se": 0.0}
