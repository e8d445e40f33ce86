"""Draft heads for every family: its own pictures, heads that learn from them, SSD with the heads.

Tiny random checkpoints in the published layouts stand for the backbones.
"""

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import tiny_checkpoints, tiny_image_models
from support.block_passes import hidden_by_blocks
from support.mock_backbone import MockBackbone, events, tiny_postcard
from support.tiny_glm_image import glm_image

from ssd_core import SSDError, load_backbone, load_heads, methods
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.engine.heads import DraftHeads, save_heads
from ssd_core.files import read_safetensors, write_safetensors
from ssd_core.model.grid import Grid
from ssd_core.runs.batch.workers import Place
from ssd_core.train import common, heads, self_distill
from ssd_core.train import heads as learning
from ssd_core.train.heads import HeadsRecipe
from ssd_core.train.picture_files import FORMAT, Pictures, gaps, load_pictures
from ssd_core.train.self_distill import SelfDistillRecipe
from ssd_core.train.teacher import teach, with_row_ends
from ssd_core.weights.model_size import stored_dtype


def small_emu3(folder: Path) -> Path:
    """Pictures of 12 x 12 cells: what the config says of their area counts."""
    config = tiny_checkpoints.emu3(folder) / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "image_area": 96 * 96}))
    return folder


def small_postcard(folder: Path, side: int = 12) -> Path:
    postcard.save(tiny_postcard(grid=Grid(side, side)), folder / "backbone.safetensors")
    return folder


def codes_file(folder: Path, count: int) -> str:
    path = folder / f"{count}.json"
    path.write_text(json.dumps([i % 50 for i in range(count)]))
    return f"codes:{path}"


@dataclass(frozen=True)
class Family:
    """How to write a checkpoint; what to draw: prompts of several lengths, or what it knows."""

    write: object
    prompts: tuple[str, ...] = ("a red house", "sun")
    knobs: dict = field(default_factory=dict)
    left: float = 0.98  # the most that may be left of the error of heads that learned nothing
    needs: str = "torch"  # a package that reads its prompts

    def prompts_in(self, folder: Path) -> list[str]:
        return [codes_file(folder, int(p)) if p.isdigit() else p for p in self.prompts]


FAMILIES = {
    "postcard": Family(small_postcard),
    "janus": Family(tiny_image_models.janus_port),
    "llamagen-c2i": Family(tiny_image_models.llamagen_c2i, ()),
    "llamagen-t2i": Family(tiny_image_models.llamagen_t2i, needs="transformers"),
    "tar": Family(tiny_image_models.tar, ("81", "169")),
    "lumina": Family(tiny_checkpoints.lumina, knobs={"size": "480x544"}),
    "anole": Family(tiny_checkpoints.anole),
    "emu3": Family(small_emu3),
    "glm-image": Family(glm_image, knobs={"size": "768x768"}, left=0.995),
}


@dataclass
class Trained:
    """What the two stages made of a family, and what they said."""

    backbone: Path
    out: Path
    prompts: list[str]
    told: list[str]
    drawn: dict
    result: dict
    left: float


# Bundled weights, classes, and words with rows that end with a token; the others by night.
BY_DAY = ("postcard", "llamagen-c2i", "lumina")


@pytest.fixture(scope="module", params=[
    pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly) for name in FAMILIES])
def trained(request, tmp_path_factory) -> Trained:
    family, folder = FAMILIES[request.param], tmp_path_factory.mktemp(request.param)
    pytest.importorskip(family.needs, reason=f"{family.needs} reads this family's prompts")
    path, out = family.write(folder / f"{request.param}-512"), folder / "run"
    prompts, told = family.prompts_in(folder), []
    (folder / "prompts.txt").write_text("\n".join([*prompts, ""]))
    drawn = self_distill.train(SelfDistillRecipe(
        out, str(path), str(folder / "prompts.txt") if prompts else "", pictures=4, batch=4,
        device="cpu", **family.knobs), told.append)
    result = heads.train(HeadsRecipe(
        out / "tiny.safetensors", str(path), str(out), k_h=3, k_v=2, epochs=4, batch=1,
        rate=4e-3, held_out=1, device="cpu"), told.append)
    return Trained(path, out, prompts, told, drawn, result, family.left)


def loaded(trained: Trained):
    """The backbone at the size of its pictures, its heads, and the pictures."""
    backbone = load_backbone(trained.backbone, "cpu")
    pictures = load_pictures(trained.out, backbone)
    backbone = backbone.resized(pictures.size)
    return backbone, load_heads(trained.out / "tiny.safetensors", backbone), pictures


def test_the_stages_tell_their_cost_and_their_metrics(trained):
    backbone, _, pictures = loaded(trained)
    drawing, learning = trained.told
    cells = 4 * backbone.grid.cells
    width, height = backbone.size
    assert f"4 pictures of {width}x{height} px" in drawing and f"{cells:,} tokens" in drawing
    d = backbone.hidden_size
    assert f"5 heads of {(8 * d * d + d) / 1e6:.1f}M parameters" in learning  # 134M at d = 4096
    assert "12 steps of 1 pictures out of 3" in learning
    assert trained.drawn["drawn_now"] == len(pictures) == 4
    assert list(trained.result["acceptance"]) == [
        "horizontal+1", "horizontal+2", "horizontal+3", "vertical+1", "vertical+2"]
    assert all(0 < share <= 1 for share in trained.result["acceptance"].values())


def test_ssd_runs_with_the_heads(trained):
    backbone, draft_heads, pictures = loaded(trained)
    prompt = (trained.prompts or ["7"])[0]
    method = methods.SSD(k_h=3, k_v=2, rounds=1, incremental=1)
    tokens, stats = (finished := events(backbone, method, (prompt,), heads=draft_heads)[-1]
                     ).tokens, finished.stats
    assert tokens.shape[1:] == pictures.tokens.shape[1:] and tokens.max() < backbone.codes
    assert stats["passes"] < stats["ar_passes"] / 4
    assert {"horizontal+1", "vertical+1", "vertical+2"} <= set(stats["acceptance_by_offset"])


def test_heads_learn_the_states_of_pictures_that_they_never_saw(trained):
    backbone, draft_heads, pictures = loaded(trained)
    last = pictures.pick([3])
    taught = teach(backbone, [last.prompts[0].tolist()], last.tokens)
    fresh = heads.start(HeadsRecipe(trained.out, k_h=3, k_v=2), backbone,
                        torch.Generator().manual_seed(0))
    learned, nothing = (error(each, backbone, *taught) for each in (draft_heads, fresh))
    assert learned < trained.left * nothing


@torch.no_grad()
def error(draft_heads: DraftHeads, backbone, hidden: torch.Tensor,
          embedding: torch.Tensor) -> float:
    """Mean distance of all heads' estimates from the states at their offsets."""
    errors = [(head(hidden[:, :-step], embedding[:, :-step]) - hidden[:, step:]).abs().mean()
              for _, head, step in learning.offsets(draft_heads, backbone.grid.columns)]
    return torch.stack(errors).mean().item()


@pytest.fixture
def whole_precision(monkeypatch):
    """As on a processor without units for bfloat16 products."""
    monkeypatch.setattr(common, "cpu_has_bf16", lambda: False)


@pytest.mark.usefixtures("whole_precision")
def test_the_teacher_sees_what_decoding_sees(trained):
    """Both branches, prompts of two lengths, hidden slots, row ends, against passes in blocks."""
    backbone, _, pictures = loaded(trained)
    prompts = [ids.tolist() for ids in pictures.prompts[:2]]
    if backbone.takes_guidance:
        prompts += [backbone.unconditional(ids) for ids in prompts]
    tokens = pictures.tokens[:2].repeat(len(prompts) // 2, 1, 1)
    hidden, embedding = teach(backbone, prompts, tokens)
    slots = with_row_ends(tokens.long(), backbone.grid, backbone.codes)
    cells = backbone.grid.coordinates[:, 1] < backbone.grid.columns
    for row, states in enumerate(hidden_by_blocks(backbone, prompts, slots[:, :-1], block=128)):
        expected = states[len(prompts[row]) - 1 :][cells]
        assert torch.allclose(hidden[row], expected, atol=1e-4 * expected.abs().max().item())
    assert torch.equal(embedding, backbone.embed(tokens.flatten(1).long()))


# Parts of the stages

MOCK = MockBackbone(Grid(4, 5, row_end=True))


def mock_pictures(count: int) -> Pictures:
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(MOCK.codes, (count, 4, 5), generator=generator)
    prompts = tuple(torch.tensor(MOCK.tokenize("abcdef"[: 1 + i])) for i in range(count))
    return Pictures(tokens, prompts, MOCK.size)


@pytest.mark.usefixtures("whole_precision")
def test_a_batch_in_parts_gives_the_gradients_of_the_whole():
    gradients = []
    for cells in (1000, 40, 1):
        draft_heads = heads.start(HeadsRecipe(Path(), k_h=2, k_v=1), MOCK,
                                  torch.Generator().manual_seed(0))
        learning.learn_heads(draft_heads, MOCK, mock_pictures(5), [False, True] * 2 + [False],
                             cells, torch.nn.functional.smooth_l1_loss)
        gradients.append([weight.grad for weight in draft_heads.parameters()])
    for other in gradients[1:]:
        assert all(torch.allclose(a, b, atol=1e-6)
                   for a, b in zip(gradients[0], other, strict=True))
    assert any(grad.abs().max() > 1e-4 for grad in gradients[0])


def test_acceptance_is_the_same_however_many_cells_are_measured_at_once(monkeypatch):
    draft_heads = heads.start(HeadsRecipe(Path(), k_h=2, k_v=1), MOCK,
                              torch.Generator().manual_seed(0))
    whole = heads.acceptance(draft_heads, MOCK, [mock_pictures(3)])
    monkeypatch.setattr(heads, "NUMBERS_AT_ONCE", 100)
    parts = heads.acceptance(draft_heads, MOCK, [mock_pictures(3)])
    for key in ("acceptance", "acceptance_se"):
        assert parts[key] == pytest.approx(whole[key], abs=1e-6)


def test_heads_continue_from_those_of_another_backbone(tmp_path):
    recipe = HeadsRecipe(tmp_path, k_h=2, k_v=1, start_from=str(tmp_path))
    other = heads.start(replace(recipe, start_from=""), MOCK, torch.Generator().manual_seed(3))
    save_heads(other, recipe.file, MockBackbone(Grid(4, 4), seed=9), {})
    continued = heads.start(recipe, MOCK, torch.Generator().manual_seed(0))
    for goal, source in zip(continued.parameters(), other.parameters(), strict=True):
        assert torch.equal(goal, source.half().float())
    for wrong in (replace(recipe, k_h=3), replace(recipe, kind="row"), replace(recipe, source="e")):
        with pytest.raises(SSDError, match="start_from"):
            heads.start(wrong, MOCK, torch.Generator())


def test_an_embedding_is_guessed_where_rows_end_with_a_token():
    draft_heads = heads.start(HeadsRecipe(Path(), k_h=1, k_v=1, source="e", target="e"), MOCK,
                              torch.Generator().manual_seed(0))
    shares = heads.acceptance(draft_heads, MOCK, [mock_pictures(3)])["acceptance"]
    assert all(0 < share <= 1 for share in shares.values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("loss", ["smooth_l1", "kl"])
def test_heads_learn_in_float32_from_a_backbone_in_less(dtype, loss):
    backbone = MockBackbone(Grid(4, 5, row_end=True)).to(dtype)
    draft_heads = heads.start(HeadsRecipe(Path(), k_h=2, k_v=1), backbone,
                              torch.Generator().manual_seed(0))
    total = learning.learn_heads(draft_heads, backbone, mock_pictures(3), [False, True, False],
                        1000, lambda a, b: learning.distance(
                                            a, b, loss, 1.0, draft_heads, backbone))
    assert total > 0 and all(w.grad.dtype == torch.float32 for w in draft_heads.parameters())


@given(st.integers(0, 20), st.integers(0, 60), st.sets(st.integers(0, 70)), st.integers(1, 9))
def test_what_is_missing_is_drawn_once_in_batches(first, stop, there, most):
    runs = gaps(range(first, stop), there, most)
    numbers = [i for run in runs for i in run]
    assert numbers == [i for i in range(first, stop) if i not in there]
    assert all(1 <= len(run) <= most for run in runs)


# From the command line, on a postcard of random weights


@pytest.fixture(scope="module")
def card(tmp_path_factory) -> Path:
    return small_postcard(tmp_path_factory.mktemp("card"), 24)


def ssd(capsys, *arguments: object) -> tuple[int, dict, str]:
    """(exit code, the last line's object, stderr without progress bars)."""
    code = main([*map(str, arguments)])
    said = capsys.readouterr()
    lines = [line for line in re.split(r"[\r\n]", said.err) if line and "%|" not in line]
    return code, json.loads(said.out.splitlines()[-1]) if said.out else {}, "\n".join(lines)


def test_an_interrupted_run_ends_in_the_pictures_of_a_whole_one(capsys, card, tmp_path):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\ufeffa red house\n\n  a sun \nred\n", encoding="utf-8")
    common = ("train", "self-distill", "--backbone", card, "--prompts", prompts, "--device", "cpu")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert ssd(capsys, *common, "--out", whole)[1]["pictures"] == 3  # one a prompt
    for more, drawn_now in ((("--pictures", 1), 1), (("--batch", 1, "--first", 2), 1),
                            ((), 1), ((), 0)):
        code, told, said = ssd(capsys, *common, "--out", parts, *more)
        assert (code, told["drawn_now"]) == (0, drawn_now)
        assert f"draws {drawn_now} pictures of 384x384 px" in said
    backbone = load_backbone(card, "cpu")
    first, second = load_pictures(whole, backbone), load_pictures(parts, backbone)
    assert torch.equal(first.tokens, second.tokens) and first.tokens.dtype == torch.int16
    assert [ids.tolist() for ids in second.prompts] == [
        backbone.tokenize(prompt) for prompt in ("a red house", "a sun", "red")]


def test_heads_come_out_of_the_command_line_and_go_on_from_a_checkpoint(capsys, card, tmp_path):
    ssd(capsys, "train", "self-distill", "--backbone", card, "--out", tmp_path, "--pictures", 4)
    common = ("train", "heads", "--backbone", card, "--out", tmp_path / "mine.safetensors",
              "--k-h", 1, "--k-v", 1, "--batch", 1, "--held-out", 1, "--device", "cpu")
    code, told, said = ssd(capsys, *common, "--data", tmp_path, "--epochs", 1)
    assert (code, told["steps"]) == (0, 3) and "2 heads of 0.0M parameters" in said
    assert load_heads(tmp_path / "mine.safetensors", load_backbone(card, "cpu")).k_v == 1
    code, told, _ = ssd(capsys, *common, "--data", tmp_path, "--epochs", 2)
    assert told["steps"] == 6
    assert torch.load(tmp_path / "mine.ckpt", weights_only=True)["step"] == 6


@pytest.mark.parametrize(("flags", "said"), [
    (("--prompts", "{}/none.txt"), "none.txt: no such file"),
    (("--prompts", "{}/blank.txt"), "blank.txt: holds no prompts"),
    (("--prompts", "{}/latin.txt"), "latin.txt: prompts cannot be read"),
    (("--prompts", "{}/long.txt"), "long.txt, line 3: the prompt has 40 words"),
    (("--size", "64"), "size '64'"),
    (("--size", "64x64"), "size 64x64: postcard does not draw it; the nearest are 384x384"),
    (("--pictures", "-1"), "pictures -1"), (("--batch", "-2"), "batch -2"),
    (("--cfg", "0.5"), "cfg 0.5"), (("--seed", "-1"), "seed -1")])
def test_what_cannot_be_drawn_is_one_line(capsys, card, tmp_path, flags, said):
    (tmp_path / "blank.txt").write_text("\n \n")
    (tmp_path / "latin.txt").write_bytes("h\xe4user".encode("latin-1"))
    (tmp_path / "long.txt").write_text("red\n\n" + "red house " * 20)
    flags = [flag.format(tmp_path) for flag in flags]
    code, _, line = ssd(capsys, "train", "self-distill", "--backbone", card, "--out",
                        tmp_path / "out", *flags)
    assert code == 2 and line.startswith("error: ") and said in line and "\n" not in line
    assert not (tmp_path / "out").exists()


def test_a_backbone_that_draws_texts_asks_for_them(tmp_path):
    path = tiny_image_models.janus_port(tmp_path / "janus")
    with pytest.raises(SSDError, match="needs prompts to draw from: give --prompts FILE.txt"):
        self_distill.train(SelfDistillRecipe(tmp_path, str(path), device="cpu"))


@pytest.fixture(scope="module")
def four(card, tmp_path_factory) -> Path:
    """Four pictures of the postcard."""
    out = tmp_path_factory.mktemp("four")
    self_distill.train(SelfDistillRecipe(out, str(card), pictures=4, device="cpu"))
    return out


@pytest.mark.parametrize(("flags", "said"), [
    (("--k-h", "24"), "--k-h 24: pictures of 24x24 have room for 23"),
    (("--k-v", "24"), "--k-v 24"), (("--k-h", "-1"), "--k-h -1: must be at least 0"),
    (("--batch", "-1"), "batch -1"),
    (("--epochs", "0"), "epochs 0"), (("--drop-text", "2"), "--drop-text 2.0"),
    (("--loss", "l2"), "loss 'l2'"), (("--source", "x"), "source 'x'"),
    (("--batch", "16"), "3 pictures in 3 epochs are less than one batch of 16"),
    (("--data", "{}/nothing"), "nothing/self-distill: no pictures"),
    (("--data", "{}/foreign"), "drawn by another backbone than the loaded postcard"),
    (("--data", "{}/short"), "not a whole file of pictures"),
    (("--data", "{}/beyond"), "not a whole file of pictures"),
    (("--data", "{}/sizes"), "size 64x64: postcard does not draw it; the nearest are 384x384"),
    (("--data", "{}/named"), "mine.safetensors: not a file of pictures")])
def test_what_cannot_be_learnt_is_one_line(capsys, card, four, tmp_path, flags, said):
    spoil(four, tmp_path)
    flags = [flag.format(tmp_path) for flag in flags]
    given = ("--batch", "1", "--data", str(four))
    code, _, line = ssd(capsys, "train", "heads", "--backbone", card, "--out", tmp_path / "out",
                        *given, *flags, "--device", "cpu")
    assert code == 2 and line.startswith("error: ") and said in line and "\n" not in line
    assert not (tmp_path / "out").exists()


def spoil(good: Path, folder: Path) -> None:
    """Copies of a folder of pictures, each with one thing wrong."""
    tensors, metadata = read_safetensors(next(good.rglob("*.safetensors")), FORMAT)
    for name, changed, told in (
            ("foreign", {}, {"backbone_sha256": "0" * 64}), ("sizes", {}, {"size": "[64, 64]"}),
            ("short", {"tokens": tensors["tokens"][:, :8].contiguous()}, {}),
            ("beyond", {"tokens": tensors["tokens"] + 32}, {}), ("named", {}, {})):
        file = "mine" if name == "named" else "000000"
        write_safetensors({**tensors, **changed}, folder / name / "self-distill" /
                          f"{file}.safetensors", {**metadata, **told})


def test_sizes_are_not_mixed(tmp_path):
    path = tiny_checkpoints.lumina(tmp_path / "Lumina-512")
    (tmp_path / "prompts.txt").write_text("a house")
    backbone = load_backbone(path, "cpu").resized((480, 544))
    write_safetensors({"tokens": torch.zeros(1, 34, 30, dtype=torch.int16),
                       **self_distill.of_prompts([backbone.tokenize("a")])},
                      tmp_path / "self-distill" / "000000.safetensors",
                      {"format": FORMAT, "backbone_sha256": backbone.sha256, "size": "[480, 544]"})
    recipe = SelfDistillRecipe(tmp_path, str(path), str(tmp_path / "prompts.txt"), device="cpu")
    with pytest.raises(SSDError, match="480x544 px among those of 512x512"):
        self_distill.train(recipe)
    assert self_distill.train(replace(recipe, size="480x544"))["drawn_now"] == 0


def test_batches_shrink_to_what_memory_has_room_for():
    recipe = SelfDistillRecipe(Path())
    for free, pictures in ((1 << 40, 64), (1, 1), (None, 64)):  # None: 8 GiB are assumed
        place = Place("cpu", "fp32", free)
        assert self_distill.at_once(recipe, MOCK, place) == pictures
        assert self_distill.at_once(replace(recipe, batch=7), MOCK, place) == 7


@pytest.mark.parametrize("dtype, stored", [("auto", "fp32"), ("int8", "int8")])
def test_the_bundled_backbone_teaches_in_fp32_unless_told_otherwise(tmp_path, dtype, stored):
    """In int8 its image head is floating point again: gradients pass through it."""
    recipe = HeadsRecipe(tmp_path, backbone="postcard", dtype=dtype)
    backbone = heads.load_teacher(recipe, SimpleNamespace(device="cpu"))
    teacher = heads.with_gradients(backbone)
    assert stored_dtype(backbone) == stored and isinstance(teacher.head, torch.nn.Parameter)
    assert isinstance(backbone.head, torch.nn.Parameter) == (stored == "fp32"), "it still draws"
