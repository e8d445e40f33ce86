"""The recipe from end to end at toy length: every stage runs, resumes, and feeds the next one."""

import itertools
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone

from ssd_core import Grid, SSDError, generate, load_backbone, load_heads
from ssd_core.backbones import postcard
from ssd_core.backbones.codecs.vq import VQTokenizer
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import COLOURS, KINDS, PLACES, SQUARE, WIDE, scene_of
from ssd_core.engine.methods import AR, SSD, MuLo, Rolling
from ssd_core.train import common, heads, self_distill
from ssd_core.train.common import cosine, trapezoid
from ssd_lab.evaluate.metrics import code_entropy, objects, with_errors
from ssd_lab.evaluate.quality import evaluate
from ssd_lab.postcards import WORDS, Claim
from ssd_lab.train import backbone, batches, blend, mulo, reading, tokenizer
from ssd_lab.train.data import HELD_OUT, pictures, to_signed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which all five stages have run, on a backbone of two layers and two heads."""
    out = tmp_path_factory.mktemp("recipe")
    recipe = tokenizer.TokenizerRecipe(out, steps=16, pictures=8, patches=20_000, rounds=1, batch=2,
                                       held_out=2)
    stages = {
        "tokenizer": tokenizer.train(recipe),
        "backbone": backbone.train(backbone.BackboneRecipe(
            out, layers=2, hidden=128, steps=2, pictures=8, batch=2, reading_steps=2,
            reading_batch=8, held_out=2)),
        "blend": blend.train(blend.BlendRecipe(out, pictures=8, steps=1, batch=2, held_out=2,
                                               device="cpu")),
        "distill": self_distill.train(self_distill.SelfDistillRecipe(
            out, pictures=4, batch=4, device="cpu")),
        "heads": heads.train(heads.HeadsRecipe(
            out, k_v=2, epochs=1, batch=2, held_out=1, device="cpu"))}
    return out, stages


def test_every_stage_reports_its_metrics(folder):
    stages = folder[1]
    assert stages["tokenizer"]["codes_used"] >= 1 and stages["tokenizer"]["psnr_db"] > 0
    assert 0 <= stages["tokenizer"]["claims_kept"] <= 1
    assert 7 < stages["backbone"]["held_out_nll"] < 9  # two steps from log 4096 = 8.3 nats
    assert 0 <= stages["backbone"]["fields_read"] <= 1
    assert stages["blend"]["steps"] == 1 and 0 <= stages["blend"]["claims_kept"] <= 1
    assert stages["distill"]["drawn_now"] == 4
    names = [f"horizontal+{d}" for d in range(1, 6)] + ["vertical+1", "vertical+2"]
    assert list(stages["heads"]["acceptance"]) == names
    assert all(0 < value <= 1 for value in stages["heads"]["acceptance"].values())
    assert list(stages["heads"]["acceptance_se"]) == names


def test_the_outcome_loads_and_draws(folder):
    loaded = load_backbone(folder[0], "cpu")
    draft_heads = load_heads(folder[0], loaded)
    assert (draft_heads.k_h, draft_heads.k_v) == (5, 2)
    assert draft_heads.metadata["loss"] == "smooth_l1"
    rows = evaluate(loaded, draft_heads, [("ar", AR()), ("ssd", SSD())], prompts=2, batch=2)
    assert rows[0]["identical_tokens"] == 1
    assert rows[0]["passes"] == 576 and 31 <= rows[1]["passes"] <= 77  # less where it converged
    assert set(rows[1]["acceptance_by_offset"]) == {*(f"horizontal+{d}" for d in range(1, 6)),
                                                    "vertical+1"}
    assert rows[0]["nll"] > 0 and rows[0]["nll_se"] >= 0
    assert rows[0]["frechet"] > 0 and rows[0]["frechet_se"] >= 0


def test_more_codes_than_patches_are_refused():
    with pytest.raises(SSDError, match="20 patches for 32 codes: raise --pictures and --patches"):
        tokenizer.kmeans(torch.rand(20, 4), 32, 1, torch.Generator())


@pytest.mark.parametrize(("loss", "target"), [
    ("scaled", "h_pre"), ("kl", "h_pre"), ("scaled+kl", "h_pre"), ("smooth_l1", "e")])
def test_heads_learn_by_every_loss(folder, tmp_path, loss, target):
    source = "e" if target == "e" else "h_pre+e"
    result = heads.train(heads.HeadsRecipe(
        tmp_path, backbone=str(folder[0]), data=str(folder[0]), k_h=1, k_v=1, epochs=1, batch=2,
        held_out=1, loss=loss, source=source, target=target, device="cpu"))
    assert (result["loss"], result["target"]) == (loss, target)
    assert (result["variance"] != 1) == (target == "e") and result["scale"] > 0
    loaded = load_backbone(folder[0], "cpu")
    assert load_heads(tmp_path, loaded).space.source == source


def test_an_unknown_loss_is_named(folder, tmp_path):
    with pytest.raises(SSDError, match="loss 'l2'"):
        heads.train(heads.HeadsRecipe(tmp_path, backbone=str(folder[0]), data=str(folder[0]),
                                      loss="l2", device="cpu"))


@given(st.integers(0, 10**6))
def test_a_scene_is_told_by_its_fields(seed):
    scene = scene_of(seed)
    told = [values[i] for values, i in zip(reading.FIELDS, reading.answers(scene), strict=True)]
    assert told[:7] == [scene.time, scene.sky, scene.light, scene.light_place, scene.ridge,
                        scene.ground, scene.path]
    things = {place: (kind, colour) for place, kind, colour in zip(
        PLACES, told[7::2], told[8::2], strict=True) if kind != "none"}
    assert things == {t.place: (t.kind, t.colour) for t in scene.things}


@pytest.fixture(scope="module")
def fresh():
    model = postcard.Postcard(WORDS)
    model.initialise(torch.Generator().manual_seed(0))
    for name, weight in model.decoder.named_parameters():
        if name.endswith((".out", ".down")):
            torch.nn.init.normal_(weight, std=0.02)
    model.refresh_tables()
    return model


def test_reading_captions_alone_is_what_a_full_pass_does(fresh):
    prompts = torch.tensor([fresh.tokenize(fresh_caption(seed, 0)) for seed in range(3)])
    with torch.no_grad(), reading.heard_at_prompt(fresh) as heard:
        backbone.hidden_states(fresh, prompts, torch.zeros(3, 576, dtype=torch.long))
    assert torch.allclose(heard[0], reading.read(fresh, prompts), atol=1e-5)
    assert len(heard) == 1  # the hook is gone: reading on its own was not heard


def test_a_probe_ignores_pictures_without_text():
    probe = reading.SceneProbe(8)
    torch.nn.init.normal_(probe.weight)
    state, told = torch.randn(4, 8), torch.tensor([reading.answers(scene_of(i)) for i in range(4)])
    said = torch.tensor([True, False, True, False])
    assert torch.allclose(probe.loss(state, told, said), probe.loss(state[said], told[said]))


def test_reading_is_learnt(tmp_path):
    shape = backbone.shape_of(backbone.BackboneRecipe(tmp_path, layers=4, hidden=64))
    model = postcard.Postcard(WORDS, 8, shape)
    generator = torch.Generator().manual_seed(0)
    model.initialise(generator)
    probe = reading.SceneProbe(model.hidden_size)
    reading.learn_to_read(model, probe, 25, 32, 3e-3, tmp_path / "reading.ckpt", generator)
    prompts = torch.tensor([model.tokenize(fresh_caption(HELD_OUT + i, 0)) for i in range(64)])
    told = torch.tensor([reading.answers(scene_of(HELD_OUT + i)) for i in range(64)])
    model.refresh_tables()
    chance = sum(torch.tensor(len(values)).log() for values in reading.FIELDS)
    with torch.no_grad():
        assert probe.loss(reading.read(model, prompts), told) < 0.97 * chance


def test_a_backbone_goes_on_from_weights_that_are_there(folder, tmp_path):
    recipe = backbone.BackboneRecipe(tmp_path, start_from=str(folder[0]), steps=1, pictures=8,
                                     batch=2, reading_steps=0, held_out=2, rate=0.0)
    backbone.train(recipe)
    before, after = (load_backbone(path, "cpu").state_dict() for path in (folder[0], tmp_path))
    assert all(torch.equal(before[name], after[name]) for name in before), "nothing was learnt yet"


def test_a_decoder_alone_learns_for_the_codes_that_are_there(folder, tmp_path):
    codec = load_backbone(folder[0], "cpu").picture_codec
    told = tokenizer.train(tokenizer.TokenizerRecipe(
        tmp_path, start_from=str(folder[0]), channels=16, blocks=2, shapes=True, steps=2,
        pictures=8, batch=2, crop=96, slopes=1.0, held_out=1))
    wider = backbone.stored_codec(tmp_path / "tokenizer.safetensors")
    painted = to_signed(pictures(2, tmp_path, HELD_OUT))
    assert wider.encode(painted).equal(codec.encode(painted)), "tokens keep their meaning"
    assert len(wider.repair[0].weight) == 16 and told["grid_ratio"] > 0
    assert wider.repair[-1].weight.any(), "the decoder has learnt something"


def test_codes_that_nothing_uses_move_to_what_is_reproduced_worst():
    generator = torch.Generator().manual_seed(0)
    shown = torch.randn(40, 768, generator=generator)
    model = VQTokenizer(codes=32, dim=8)
    tokenizer.start(model, shown[:20].repeat(4, 1), 3, generator)
    before = model.codebook.detach().clone()
    far = model.encoder[1](5 * shown[20:, :, None, None]).flatten(1).detach()
    tokenizer.refill(model, torch.cat((shown[:20], 5 * shown[20:])),
                     tokenizer.TokenizerRecipe("x", refill=4, rounds=3), generator)
    moved = (model.codebook != before).any(1)
    assert moved.sum() == 4
    assert torch.cdist(far, model.codebook).min(-1)[0].mean() < torch.cdist(
        far, before).min(-1)[0].mean()
    with pytest.raises(SSDError, match="refill 99: there are only 32 codes"):
        tokenizer.refill(model, shown, tokenizer.TokenizerRecipe("x", refill=99), generator)


def test_steps_across_borders_of_patches_count_as_much_as_all_others():
    painted = torch.zeros(1, 3, 32, 32)
    at_border, within = painted.clone(), painted.clone()
    at_border[..., 16:] = 1
    within[..., 8:] = 1
    assert tokenizer.slope_error(painted, painted) == 0
    assert tokenizer.slope_error(at_border, painted).item() == pytest.approx(1)
    assert tokenizer.slope_error(within, painted).item() == pytest.approx(1 / 30)


def test_only_a_postcard_has_codes_to_keep(tmp_path, monkeypatch):
    monkeypatch.setattr(tokenizer, "load_backbone", lambda *_: MockBackbone(Grid(2, 2)))
    with pytest.raises(SSDError, match="start_from janus: not a postcard"):
        tokenizer.with_codes_of(tokenizer.TokenizerRecipe(tmp_path, start_from="janus"))


@pytest.mark.nightly
def test_a_postcard_learns_other_shapes_and_a_new_decoder(folder, tmp_path):
    before = load_backbone(folder[0], "cpu")
    tokenizer.train(tokenizer.TokenizerRecipe(
        tmp_path, start_from=str(folder[0]), channels=16, blocks=1, steps=1, pictures=4, batch=2,
        held_out=1))
    told = backbone.train(backbone.BackboneRecipe(
        tmp_path, start_from=str(folder[0]), shapes=0.5, steps=6, pictures=8, batch=2,
        reading_steps=0, held_out=2, rate=0.0))
    assert {"held_out_nll", "held_out_nll_wide", "held_out_nll_tall"} <= set(told)
    after = load_backbone(tmp_path, "cpu")
    assert after.sizes == ((384, 384), (512, 288), (288, 512))
    assert after.positions.equal(before.positions), "the square is drawn as before"
    assert len(after.picture_codec.repair[0].weight) == 16
    for size, grid in zip(after.sizes, postcard.GRIDS, strict=True):
        view = after.resized(size)
        *_, drawn = generate(view, "a red house", Rolling(budget=30))
        assert drawn.tokens.shape == (1, grid.rows, grid.columns)
        assert view.decode(drawn.tokens).shape == (1, size[1], size[0], 3)


def test_position_tables_are_stretched_over_a_shape():
    table = torch.arange(24.0)[:, None].expand(24, 3)
    assert postcard.stretched(table, 24).equal(table)
    for side in (18, 32):
        rows = postcard.stretched(table, side)[:, 0]
        assert rows.shape == (side,) and rows.diff().gt(0).sum() >= side - 3
        assert rows.mean().item() == pytest.approx(11.5)


def test_codes_go_on_from_a_postcard_that_also_draws_at_twice_the_size():
    model = tokenizer.with_codes_of(tokenizer.TokenizerRecipe(
        Path("unused"), start_from="postcard", channels=8))
    own = load_backbone("postcard", "cpu", "fp32").picture_codec
    assert own.upsample is not None and model.codebook.equal(own.codebook)


def test_a_tokenizer_of_other_codes_is_refused(folder, tmp_path):
    tokenizer.save(VQTokenizer(), tmp_path / "tokenizer.safetensors")
    with pytest.raises(SSDError, match="not made from"):
        backbone.train(backbone.BackboneRecipe(tmp_path, start_from=str(folder[0]), steps=1))


@pytest.mark.nightly
def test_a_postcard_of_fewer_cells_drafts_for_the_whole_one(folder, tmp_path):
    shutil.copytree(folder[0], tmp_path, dirs_exist_ok=True)
    backbone.train(backbone.BackboneRecipe(
        tmp_path / "small", tokenizer=str(tmp_path), side=12, layers=2, hidden=64, steps=1,
        pictures=4, batch=2, reading_steps=1, reading_batch=4, held_out=2))
    small = load_backbone(tmp_path / "small", "cpu")
    assert (small.grid, small.size, small.hidden_size) == (Grid(12, 12), (192, 192), 64)
    mulo.train(mulo.MuloRecipe(tmp_path, drafter=str(tmp_path / "small"), steps=1, batch=2,
                               width=8, blocks=1, device="cpu"))
    *_, told = generate(load_backbone(tmp_path, "cpu"), "a red house", MuLo(tau=0))
    assert told.tokens.shape == (1, 24, 24) and told.stats["drafter_passes"] == 12 * 12 - 1


def test_fresh_weights_have_the_bundled_shape():
    assert backbone.shape_of(backbone.BackboneRecipe("x")) == postcard.SHAPE


@pytest.mark.parametrize(("wrong", "told"), [
    ({"side": 5}, "side 5: choose 24, 12"), ({"side": 0}, "side 0"), ({"hidden": 100}, "of 64"),
    ({"hidden": 0}, "hidden 0"), ({"layers": 1}, "layers 1: must be at least 2")])
def test_shapes_that_no_postcard_has_are_refused(tmp_path, wrong, told):
    with pytest.raises(SSDError, match=told):
        backbone.shape_of(backbone.BackboneRecipe(tmp_path, **wrong))


@pytest.mark.parametrize("seed", range(4))
def test_a_cell_of_a_smaller_picture_shows_what_any_of_its_cells_shows(seed):
    whole, half = (reading.cell_labels(scene_of(seed), Grid(side, side)).view(side, side)
                   for side in (24, 12))
    for y, x in itertools.product(range(12), repeat=2):
        assert half[y, x] == whole[2 * y : 2 * y + 2, 2 * x : 2 * x + 2].max()


@given(st.integers(0, 99), st.floats(0, 1), st.floats(0, 1))
def test_foreign_cells_are_those_of_another_picture_and_no_more_than_asked(seed, cells, patches):
    grid, generator = Grid(9, 12), torch.Generator().manual_seed(seed)
    tokens = torch.arange(5)[:, None].expand(5, grid.cells)
    recipe = backbone.BackboneRecipe("x", foreign_cells=cells, foreign_patches=patches)
    seen = batches.with_foreign_cells(tokens, grid, recipe, generator)
    foreign = seen != tokens
    assert seen[foreign].equal(tokens.roll(1, 0)[foreign])
    if patches == 0:
        assert foreign.float().mean(1).max() <= cells + 3 * (cells / grid.cells) ** 0.5
    if cells == patches == 0:
        assert not foreign.any()


def test_workers_make_the_batches_of_none_and_a_step_does_not_depend_on_those_before():
    painted = {SQUARE: torch.arange(6 * 576).view(6, 576) % 50,
               WIDE: torch.arange(4 * 576).view(4, 576) % 50}
    grids = {frame: Grid(frame.rows, frame.columns) for frame in painted}
    made = batches.Batches(painted, grids, backbone.BackboneRecipe("x", batch=3, busy=2.0))
    here, ahead = (list(batches.made_ahead(made, range(2, 6), workers)) for workers in (0, 2))
    for step, (batch, other) in enumerate(zip(here, ahead, strict=True), 2):
        again = made[step]
        assert batch.frame == other.frame == again.frame
        assert list(batch.captions) == list(other.captions) == list(again.captions)
        for part, same, once_more in zip(batch, other, again, strict=True):
            if isinstance(part, torch.Tensor):
                assert part.equal(same) and part.equal(once_more)
    assert {batch.frame for batch in map(made.__getitem__, range(20))} == {SQUARE, WIDE}


def test_busy_scenes_are_learned_more_often():
    seeds = range(40)
    odds = batches.odds_of(seeds, 2.5)
    for seed, odd in zip(seeds, odds.tolist(), strict=True):
        scene = scene_of(seed)
        looks = {(thing.kind, thing.colour) for thing in scene.things}
        assert odd == (2.5 if len(looks) == 3 or scene.path in ("road", "river") else 1)
    assert set(odds.tolist()) == {1, 2.5}


def test_a_foreign_patch_is_a_rectangle():
    grid = Grid(9, 12)
    recipe = backbone.BackboneRecipe("x", foreign_cells=0.0, foreign_patches=1.0)
    tokens = torch.arange(64)[:, None].expand(64, grid.cells)
    seen = batches.with_foreign_cells(tokens, grid, recipe, torch.Generator().manual_seed(0))
    for mask in (seen != tokens).view(64, grid.rows, grid.columns):
        height, width = mask.any(1).sum(), mask.any(0).sum()
        assert mask.sum() == height * width and {int(height), int(width)} <= set(range(2, 9))


def test_only_a_postcard_can_be_gone_on_from():
    with pytest.raises(SSDError, match="mock is not a postcard"):
        backbone.require_postcard(MockBackbone(Grid(2, 2)))


def test_finished_stages_do_not_start_again(folder):
    again = self_distill.train(self_distill.SelfDistillRecipe(
        folder[0], pictures=4, batch=4, device="cpu"))
    assert again["drawn_now"] == 0


def test_a_stage_resumes_where_it_stopped(folder, tmp_path):
    recipe = tokenizer.TokenizerRecipe(tmp_path, steps=4, pictures=8, patches=20_000, rounds=1,
                                       batch=2, held_out=1)
    tokenizer.train(recipe)
    first = torch.load(tmp_path / "tokenizer.ckpt", weights_only=True)
    tokenizer.train(replace(recipe, steps=6))
    second = torch.load(tmp_path / "tokenizer.ckpt", weights_only=True)
    assert (first["step"], second["step"]) == (4, 6)
    assert torch.equal(first["model"]["codebook"], second["model"]["codebook"])
    assert not torch.equal(first["model"]["mosaic.bias"], second["model"]["mosaic.bias"])


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


@pytest.mark.parametrize(("platform", "options"), [
    ("linux", common.MALLOC_OPTIONS), ("win32", {})])
def test_glibc_is_told_to_keep_freed_memory(monkeypatch, platform, options):
    told: dict[int, int] = {}
    libc = SimpleNamespace(mallopt=told.setdefault)
    monkeypatch.setattr(common.sys, "platform", platform)
    monkeypatch.setattr(common.ctypes, "CDLL", lambda name: libc)
    common.keep_freed_memory()
    assert told == options


def test_another_allocator_than_glibcs_is_left_alone(monkeypatch):
    monkeypatch.setattr(common.sys, "platform", "linux")
    monkeypatch.setattr(common.ctypes, "CDLL", lambda name: SimpleNamespace())
    common.keep_freed_memory()


def test_the_rate_rises_and_falls():
    rates = [cosine(step, 100, warmup=10, floor=0.1) for step in range(101)]
    assert rates[0] == pytest.approx(0.1) and rates[10] == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(0.1) and rates[10:] == sorted(rates[10:], reverse=True)


def test_the_rate_stays_at_its_peak_and_then_falls_to_zero():
    rates = [trapezoid(step, 100, warmup=10, cooldown=0.3) for step in range(101)]
    assert rates[0] == pytest.approx(0.1) and set(rates[10:71]) == {1.0}
    assert rates[85] == pytest.approx(0.5) and rates[-1] == 0


def test_what_components_keep_comes_back():
    generator = torch.Generator().manual_seed(0)
    plane = torch.randn(600, 8, generator=generator) @ torch.randn(8, 768, generator=generator)
    model = VQTokenizer(codes=32, dim=8)
    tokenizer.start(model, plane + 0.3, 3, generator)
    patches = F.pixel_shuffle((plane[:4] + 0.3)[..., None, None], 16)
    latents = model.encoder(patches)
    assert torch.allclose(model.pixels(latents), patches, atol=1e-3), "the repair starts at nothing"
    assert model.encode(patches).shape == (4, 1, 1)


@given(st.integers(0, 2**32))
def test_every_code_of_k_means_is_the_mean_of_its_latents(seed):
    generator = torch.Generator().manual_seed(seed)
    corners = torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
    latents = corners.repeat(20, 1) + 0.1 * torch.randn(80, 2, generator=generator)
    book = tokenizer.kmeans(latents, 8, 12, generator)
    owner = torch.cdist(latents, book).argmin(-1)
    for code in owner.unique():
        assert torch.allclose(book[code], latents[owner == code].mean(0), atol=0.2)


def test_a_cell_s_label_names_its_thing():
    scene = scene_of(3)
    labels = reading.cell_labels(scene, Grid(24, 24)).view(24, 24)
    seen = [divmod(n - 1, len(COLOURS)) for n in labels.unique().tolist() if n]
    assert {(KINDS[kind], COLOURS[colour]) for kind, colour in seen} == {
        (thing.kind, thing.colour) for thing in scene.things}


def test_things_count_more_than_what_is_around_them(fresh):
    hidden, tokens = torch.randn(1, 4, 192), torch.tensor([[5, 6, 7, 8]])
    each = [backbone.loss_of(fresh, hidden[:, i : i + 1], tokens[:, i : i + 1]) for i in range(4)]
    with torch.no_grad():
        weighted = backbone.loss_of(fresh, hidden, tokens, torch.tensor([[2.0, 1.0, 1.0, 0.0]]))
    assert weighted.item() == pytest.approx((2 * each[0] + each[1] + each[2]).item() / 4, rel=1e-5)
    assert backbone.loss_of(fresh, hidden, tokens).item() == pytest.approx(
        sum(each).item() / 4, rel=1e-5)


def test_metrics_of_a_picture():
    said = (Claim("time", "day"), Claim("kind", "house", 0), Claim("colour", "red", 0),
            Claim("kind", "tree", 1))
    assert objects(said, (True, True, False, True)) == [0.0, 1.0]
    assert code_entropy(torch.zeros(4, 4, dtype=torch.long)) == 0
    assert code_entropy(torch.arange(16).view(4, 4)) == pytest.approx(2.7726, abs=1e-3)
    row = with_errors({"x": [1.0, 3.0], "y": [2.0]})
    assert row == {"x": 2.0, "x_se": pytest.approx(1.0), "y": 2.0, "y_se": 0.0}
