"""Draft heads that learn from the PNGs somebody has drawn: what counts, what is kept, versions."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import tiny_postcard
from test_train_heads import ssd

from ssd_core import SSDError, generate, load_backbone
from ssd_core.backbones import postcard
from ssd_core.engine.edits.words import Edit
from ssd_core.engine.events import finished
from ssd_core.engine.heads import DraftHeads, stored_heads
from ssd_core.engine.methods import AR, SSD, Exact, Rolling
from ssd_core.model.grid import Grid
from ssd_core.model.sampling import Sampling
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import make_recipe, save_png
from ssd_core.train import BOTH, checkpoints, heads, judging, own_pictures, row, versions
from ssd_core.train.heads import HeadsRecipe, Room
from ssd_core.train.own_pictures import COPY, OTHER, PARTLY, PLAIN
from ssd_core.train.processes import ALONE
from ssd_lab.evaluate.metrics import nll

WORDS = ("a red house", "a sun", "a blue tower on the left")


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """A small postcard of random weights."""
    folder = tmp_path_factory.mktemp("card")
    postcard.save(tiny_postcard(grid=Grid(6, 6)), folder / "backbone.safetensors")
    return load_backbone(folder, "cpu"), folder


def saved(backbone, path: Path, number: int, method=None, **changes) -> None:
    """A PNG of random tokens by this backbone."""
    grid = backbone.grid
    tokens = torch.randint(backbone.codes, (grid.rows, grid.columns),
                           generator=torch.Generator().manual_seed(number))
    drawing = Drawing(WORDS[number % 3], method=method or AR(), sampling=Sampling(seed=number))
    recipe = make_recipe(backbone, None, replace(drawing, **changes), tokens,
                         {"passes": 36, "seconds": {"total": 1.0}})
    path.parent.mkdir(parents=True, exist_ok=True)
    save_png(path, torch.zeros(*backbone.size[::-1], 3), recipe)


def drawn(backbone, folder: Path, count: int, first: int = 0) -> Path:
    for number in range(first, first + count):
        saved(backbone, folder / f"{number:03d}.png", number,
              Rolling() if number % 4 == 3 else AR())
    return folder


def recipe_for(folder: Path, pictures: Path, **changes) -> HeadsRecipe:
    return HeadsRecipe(folder / "heads.safetensors", backbone="", pictures_from=[str(pictures)],
                       **{"k_h": 1, "k_v": 1, "batch": 2, "device": "cpu", **changes})


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 12))


def test_only_whole_pictures_of_this_very_backbone_count(card, tmp_path):
    backbone, _ = card
    drawn(backbone, tmp_path / "here" / "today", 12)
    here = tmp_path / "here"
    (here / "photo.png").write_bytes((here / "today" / "001.png").read_bytes()[:300])
    (here / "again.png").write_bytes((here / "today" / "001.png").read_bytes())
    (here / ".hidden").mkdir()
    (here / ".hidden" / "002.png").write_bytes((here / "today" / "002.png").read_bytes())
    keep = torch.zeros(1, 6, 6, dtype=torch.long)
    saved(backbone, here / "edited.png", 40, keep=keep, edit=Edit("a house"))
    stranger = load_backbone(card[1], "cpu")
    stranger.sha256 = "0" * 64
    saved(stranger, here / "stranger.png", 41)
    found = own_pictures.own_pictures([here, here / "today"], backbone)
    assert len(found) == 12 and found.approximate == 3
    assert found.left_out == {PLAIN: 1, COPY: 1, PARTLY: 1, OTHER: 1}
    assert "12 pictures to learn from" in found.line and f"1 {PARTLY}" in found.line
    ids = {tuple(each.tolist()) for group in found.shown for each in group.prompts}
    assert ids <= {tuple(backbone.tokenize(words)) for words in WORDS}


def test_what_measures_stays_apart_as_more_is_drawn(card, tmp_path):
    backbone, _ = card

    def parts() -> tuple[set[bytes], set[bytes]]:
        found = own_pictures.own_pictures([tmp_path], backbone)
        return tuple({tokens.numpy().tobytes() for group in groups for tokens in group.tokens}
                     for groups in (found.shown, found.held_out))

    drawn(backbone, tmp_path, 24)
    shown, held_out = parts()
    drawn(backbone, tmp_path, 24, first=24)
    more_shown, more_held_out = parts()
    assert shown < more_shown and held_out <= more_held_out and held_out
    assert not more_shown & more_held_out


def test_too_few_pictures_and_folders_that_are_missing_are_one_line(capsys, card, tmp_path):
    backbone, folder = card
    drawn(backbone, tmp_path / "few", 3)
    for named, line in ((tmp_path / "few", "3 pictures of postcard to learn from, at least 8"),
                        (tmp_path / "none", "none: no folder of pictures here")):
        code, _, said = ssd(capsys, "train", "heads", "--backbone", folder, "--pictures-from",
                            named, "--out", tmp_path / "out", "--device", "cpu")
        assert code == 2 and line in said and not (tmp_path / "out").exists()
    code, _, said = ssd(capsys, "train", "heads", "--backbone", folder, "--pictures-from",
                        tmp_path / "few", "--data", tmp_path, "--out", tmp_path / "out")
    assert code == 2 and "data and pictures_from both name pictures" in said


@pytest.mark.usefixtures("few_steps")
def test_the_command_line_learns_both_kinds_and_then_goes_on(capsys, card, tmp_path,
                                                             monkeypatch):
    backbone, folder = card
    pictures, out = drawn(backbone, tmp_path / "drawn", 12), tmp_path / "heads"
    given = ("train", "heads", "--backbone", folder, "--pictures-from", pictures, "--out", out,
             "--kind", "both", "--k-h", 2, "--k-v", 1, "--batch", 2, "--rate", 4e-3,
             "--device", "cpu")
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)
    code, told, said = ssd(capsys, *given)
    assert code == 0 and told["saved"] == ["heads", "row"]
    assert [each["before"] for each in told["judged"].values()] == [None, None]
    assert "Row drafter: Faithful takes" in said and f"Saved as {out}" in said
    assert set(told["acceptance"]) == {"horizontal+1", "horizontal+2", "vertical+1", "row"}
    assert "3 heads of" in said and "a row drafter of" in said and "12 pictures to learn" in said
    left = [path.name for path in out.iterdir() if not path.name.startswith(".")]
    assert left == ["heads.safetensors"], "no checkpoint is left"
    first = stored_heads(out / "heads.safetensors", backbone)
    code, _, said = ssd(capsys, *given)
    assert code == 2 and "no new pictures of postcard since its drafts last learned" in said
    drawn(backbone, pictures, 1, first=12)
    _, told, said = ssd(capsys, *given, "--rate", 1e-3)
    assert all(each["before"] for each in told["judged"].values()), "those in use were judged"
    assert "the earlier ones are kept beside it" in said
    older = versions.version_of(out / "heads.safetensors", first.sha256)
    assert stored_heads(older, backbone).sha256 == first.sha256


@pytest.mark.usefixtures("few_steps")
def test_drafts_that_bring_no_more_are_not_kept(card, tmp_path, monkeypatch):
    backbone, _ = card
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)
    pictures = drawn(backbone, tmp_path / "drawn", 12)
    recipe = recipe_for(tmp_path, pictures, kind=BOTH, rate=4e-3)
    heads.learn(heads.prepare(recipe, backbone))
    file = recipe.file.read_bytes()
    drawn(backbone, pictures, 1, first=12)
    current = stored_heads(recipe.file, backbone).float()
    real = judging.judged
    monkeypatch.setattr(judging, "judged", lambda kind, *given: replace(
        real(kind, *given), new=[0.0] if kind == heads.ROW else [9.0], before=[1.0], none=[1.0]))
    monkeypatch.setattr(judging, "is_less", lambda own, other: own < other)
    told = heads.learn(heads.prepare(recipe, backbone, current))
    assert told["saved"] == ["row"], "each kind is judged by itself"
    mixed = stored_heads(recipe.file, backbone).float()
    assert all(torch.equal(mixed.state_dict()[name], old)
               for name, old in current.state_dict().items() if not name.startswith("row."))
    assert recipe.file.read_bytes() != file
    before = recipe.file.read_bytes()
    drawn(backbone, pictures, 1, first=13)
    monkeypatch.setattr(judging, "is_less", lambda own, other: False)
    assert heads.learn(heads.prepare(recipe, backbone, mixed))["saved"] == []
    assert recipe.file.read_bytes() == before and not list(tmp_path.glob("*.ckpt"))


def test_drafts_that_bring_nothing_at_first_leave_no_file(card, tmp_path, monkeypatch):
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 2))
    monkeypatch.setattr(judging, "is_less", lambda own, other: False)
    backbone, _ = card
    recipe = recipe_for(tmp_path, drawn(backbone, tmp_path / "drawn", 8), kind=BOTH)
    told = heads.learn(heads.prepare(recipe, backbone))
    assert told["saved"] == [] and told["sentences"][-1] == "Not kept."
    assert not list(tmp_path.glob("heads*"))


def test_heads_are_on_disk_before_the_row_drafter_learns(card, tmp_path, monkeypatch):
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 2))
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)
    backbone, _ = card
    recipe = recipe_for(tmp_path, drawn(backbone, tmp_path / "drawn", 8), kind=BOTH)
    run = heads.prepare(recipe, backbone)
    with pytest.raises(checkpoints.Stopped):
        heads.learn(run, lambda step: step <= run.lessons[0].steps)
    saved = stored_heads(recipe.file, backbone)
    assert saved.k_h == 1 and saved.row is None, "without the one that has not learned"


def test_drafts_are_judged_by_what_they_are_for(card):
    """The passes are those of `exact`, the nats those of the laboratory's own measure."""
    backbone, _ = card
    drafts = DraftHeads(backbone.hidden_size, 1, 1).eval()
    drafts.row = row.fresh_drafter(backbone.hidden_size, torch.Generator().manual_seed(1))
    ids = torch.tensor(backbone.tokenize("a red house"))
    group = own_pictures.Pictures(torch.zeros(2, 6, 6), (ids, ids), backbone.size)
    told = {kind: judging.judged(kind, drafts, None, backbone, [group], ALONE, lambda: None)
            for kind in (heads.HEADS, heads.ROW)}
    passes = [finished(generate(backbone, "a red house", Exact(drafter="row"), drafts,
                                Sampling(seed=seed))).stats["passes"] for seed in (0, 1)]
    assert told[heads.ROW].new == passes
    method = SSD(k_h=1, k_v=1)
    pictures = [finished(generate(backbone, "a red house", method, drafts, Sampling(seed=seed)))
                for seed in (0, 1)]
    expected = [float(nll(backbone, ["a red house"], each.tokens, Sampling())) for each in pictures]
    assert told[heads.HEADS].new == pytest.approx(expected, abs=1e-4)
    assert told[heads.HEADS].none != told[heads.HEADS].new


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=9), st.floats(0.1, 5))
def test_a_gain_counts_if_it_is_larger_than_its_error(values, gain):
    assert judging.is_less(values, [value + gain for value in values])
    assert not judging.is_less(values, values)
    assert not judging.is_less([0.0, 0.0], [5.0, -4.0]), "by chance"


@pytest.mark.usefixtures("few_steps")
def test_a_run_that_a_host_stops_goes_on_where_it_was(card, tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)
    backbone, _ = card
    pictures = drawn(backbone, tmp_path / "drawn", 12)
    whole, parts = (recipe_for(tmp_path / name, pictures, kind=BOTH) for name in ("one", "two"))
    done: list[int] = []
    run = heads.prepare(whole, backbone)
    steps = run.lessons[0].steps
    told = heads.learn(run, lambda step: not done.append(step))
    assert list(dict.fromkeys(done)) == list(range(1, run.steps + 1)), "of both lessons together"
    assert done.count(run.steps) > 1, "it may also stop while the drafts are measured"
    for stop in (5, steps + 5):
        with pytest.raises(checkpoints.Stopped):
            heads.learn(heads.prepare(parts, backbone), lambda step, stop=stop: step < stop)
    run = heads.prepare(parts, backbone)
    assert [lesson.start for lesson in run.lessons] == [steps, 5]
    assert heads.learn(run)["acceptance"] == pytest.approx(told["acceptance"], abs=1e-6)
    one, two = (stored_heads(each.file, backbone).state_dict() for each in (whole, parts))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_checkpoint_of_other_shapes_does_not_stop_a_new_lesson(card, tmp_path, monkeypatch):
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 4))
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)
    backbone, _ = card
    pictures = drawn(backbone, tmp_path / "drawn", 8)
    with pytest.raises(checkpoints.Stopped):
        heads.learn(heads.prepare(recipe_for(tmp_path, pictures, k_h=2), backbone),
                    lambda step: False)
    run = heads.prepare(recipe_for(tmp_path, pictures, k_h=1), backbone)
    assert run.lessons[0].start == 0
    assert heads.learn(run)["saved"] == ["heads"]


def test_ssd_draws_with_what_was_learned(card, tmp_path, monkeypatch):
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 2))
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)
    backbone, _ = card
    recipe = recipe_for(tmp_path, drawn(backbone, tmp_path / "drawn", 8))
    heads.learn(heads.prepare(recipe, backbone))
    learned = stored_heads(recipe.file, backbone).float()
    method = SSD(k_h=1, k_v=1)
    other = DraftHeads(backbone.hidden_size, 1, 1).eval()
    tokens = [finished(generate(backbone, "a red house", method, drafts)).tokens
              for drafts in (learned, learned, other)]
    assert torch.equal(tokens[0], tokens[1]) and not torch.equal(tokens[0], tokens[2])


def test_new_pictures_are_those_since_the_last_lesson(card, tmp_path, monkeypatch):
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 2))
    monkeypatch.setattr(own_pictures.LAST_LESSON, "in_memory", {})
    backbone, _ = card
    new = partial(own_pictures.new_pictures, backbone)
    heads.learn(heads.prepare(recipe_for(tmp_path, drawn(backbone, tmp_path / "drawn", 8)),
                              backbone))
    assert [new(["heads"], count) for count in (8, 9, 5)] == [0, 1, 5]
    assert new(["heads", "row"], 9) == 9, "the row drafter has not learned yet"


def test_where_memory_runs_out_parts_become_smaller(card):
    backbone, _ = card
    tried: list[int] = []
    batch = own_pictures.Pictures(torch.zeros(4, 6, 6), (torch.tensor([1]),) * 4, backbone.size)
    weights = [torch.nn.Parameter(torch.zeros(1))]

    def learn(_batch, _drop, cells):
        tried.append(cells)
        weights[0].grad = torch.ones(1) if weights[0].grad is None else weights[0].grad + 1
        if cells > 36 * limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return 0.5

    limit, room = 1, Room(36 * 4)
    assert room.take(learn, batch, [False] * 4, weights) == 0.5
    assert tried == [144, 72, 36] and weights[0].grad == 1, "what was added before is dropped"
    assert room.take(learn, batch, [False] * 4, weights) == 0.5 and tried[3:] == [36]
    limit = 0
    with pytest.raises(SSDError, match="out of memory: draft heads cannot learn beside"):
        room.take(learn, batch, [False] * 4, weights)


def test_three_versions_are_kept(card, tmp_path):
    backbone, _ = card
    file, hashes = tmp_path / "heads.safetensors", []
    for number in range(5):
        made = heads.start(HeadsRecipe(tmp_path / "new", k_h=1, k_v=1), backbone,
                           torch.Generator().manual_seed(number))
        versions.save_version(file, partial(heads.save_heads, made, file, backbone, {}))
        hashes.append(stored_heads(file, backbone).sha256)
    names = [versions.version_of(file, sha256).name for sha256 in reversed(hashes[2:4])]
    assert sorted(names) == sorted(path.name for path in versions.versions(file))
    assert len(list(tmp_path.glob("heads*"))) == versions.KEPT
