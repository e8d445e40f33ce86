"""GLM-Image from tiny checkpoints, against the class of transformers (5.24)."""

from copy import deepcopy

import pytest
import torch
from support.mock_backbone import tokens
from support.tiny_checkpoints import word_tokenizer
from support.tiny_glm_image import CODES, CONTROL, WORDS, glm_image, oracle

from ssd_core import Sampling, SSDError, generate, load_backbone, methods, plan
from ssd_core.engine.edits.words import Edit
from ssd_core.engine.events import Finished, Pass
from ssd_core.engine.sketches import enlarged, fitted
from ssd_core.model.grid import Grid
from ssd_core.output.preview import Preview
from ssd_core.train.teacher import branch, teach

GREEDY = Sampling(temperature=0.0)
PROMPTS = ["a red house", "tree"]
SIZES = [(256, 256), (256, 480)]  # square, high


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return glm_image(tmp_path_factory.mktemp("glm") / "GLM-Image")


@pytest.fixture(scope="module")
def backbone(folder):
    return load_backbone(folder, device="cpu", dtype="fp32")


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("transformers", reason="transformers is the oracle")
    return oracle()


@pytest.fixture(scope="module")
def wide(theirs, backbone) -> torch.Tensor:
    """Both grids [2, cells] of 512 x 256 pixels, as the oracle draws them."""
    return expected(theirs, backbone, PROMPTS, (512, 256))


def run(backbone, prompts, method=None, size=(256, 256), sampling=GREEDY, **more):
    """All events of a run, and its last."""
    events = list(generate(backbone, prompts, method or methods.AR(), size=size,
                           sampling=sampling, **more))
    assert isinstance(events[-1], Finished)
    return events, events[-1]


def expected(model, backbone, prompts, size) -> torch.Tensor:
    """Both grids [B, cells] by the oracle's own generate: greedy, among codes only."""
    backbone = backbone.resized(size)
    ids = [backbone.tokenize(prompt) for prompt in prompts]
    longest = max(map(len, ids))
    padded = torch.tensor([[CODES + 7] * (longest - len(each)) + each for each in ids])
    mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in ids])
    grids = [[1, grid.rows, grid.columns] for grid in backbone.grids] * len(ids)
    count = sum(grid.cells for grid in backbone.grids)
    out = model.generate(
        input_ids=padded, attention_mask=mask, image_grid_thw=torch.tensor(grids),
        images_per_sample=torch.tensor([2] * len(ids)), max_new_tokens=count, do_sample=False,
        suppress_tokens=list(range(CODES, CODES + 8)))
    return out[:, longest:]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.nightly  # of one size a test below tells as much
def test_both_grids_equal_the_oracles_own_generate(backbone, theirs, size):
    """Greedy; prompts of different length in one batch."""
    codes = expected(theirs, backbone, PROMPTS, size)
    view = backbone.resized(size)
    sketch = view.sketch()
    small = tokens(sketch, methods.AR(), PROMPTS, sampling=GREEDY)
    assert small.flatten(1).equal(codes[:, : sketch.grid.cells])
    assert tokens(view, methods.AR(), PROMPTS, sampling=GREEDY).flatten(1).equal(
        codes[:, sketch.grid.cells :])
    assert len(codes.unique()) > 8


def test_one_run_draws_the_sketch_and_then_the_picture(backbone, wide):
    events, last = run(backbone, PROMPTS, size=(512, 256))
    small, large = 11 * 22, 8 * 16
    assert last.sketch.shape == (2, 11, 22) and last.tokens.shape == (2, 8, 16)
    assert torch.cat((last.sketch.flatten(1), last.tokens.flatten(1)), 1).equal(wide)
    assert len(wide.unique()) > 8
    passes = [event for event in events if isinstance(event, Pass)]
    assert [event.index for event in passes] == list(range(1, small + large + 1))
    assert events[small + 1].tokens.equal(last.sketch)  # Sketched, after Started and its passes
    assert all(event.cells[..., 1].eq(16).all() for event in passes[:small])
    assert last.stats["passes"] == last.stats["ar_passes"] == small + large
    assert last.stats["sketch_passes"] == small
    assert plan(backbone.resized((512, 256)), methods.AR()).passes == small + large


def test_a_model_of_transformers_draws_its_own_tokens(folder, theirs, wide):
    model = deepcopy(theirs)
    model.name_or_path = str(folder / "vision_language_encoder")  # as diffusers loads it
    backbone = load_backbone(model)
    _, last = run(backbone, PROMPTS, methods.Exact(), (512, 256))
    assert torch.cat((last.sketch.flatten(1), last.tokens.flatten(1)), 1).equal(wide)


@pytest.mark.parametrize("method", [
    methods.Exact(), methods.Exact(window=50, guess="parent"), methods.Jacobi(),
    methods.Rolling(budget=1000)], ids=lambda method: f"{method.name}-{method.guess}")
@pytest.mark.by_day(1)
def test_other_decoders_draw_the_same_picture_in_fewer_passes(backbone, method):
    sampling = Sampling(seed=4, temperature=0.9, top_p=0.75)
    _, ar = run(backbone, PROMPTS, sampling=sampling)
    _, other = run(backbone, PROMPTS, method, sampling=sampling)
    assert ar.tokens.equal(other.tokens) and ar.sketch.equal(other.sketch)
    assert other.stats["passes"] < ar.stats["passes"] or method.name == "rolling"


def test_a_picture_is_the_same_alone_and_in_a_batch(backbone):
    _, both = run(backbone, PROMPTS, sampling=Sampling(seed=7))
    _, alone = run(backbone, PROMPTS[1:], sampling=Sampling(seed=8))
    assert both.tokens[1:].equal(alone.tokens) and both.sketch[1:].equal(alone.sketch)
    # the numbers that choose a sketch's cells are not those of the picture's cells
    assert backbone.sketch().first_slot > backbone.grid.slots


def test_the_teacher_of_draft_heads_reads_prompt_sketch_and_picture(backbone):
    _, last = run(backbone, PROMPTS)
    view = backbone.resized((256, 256))
    prompts = [view.after_sketch(view.tokenize(prompt), codes.flatten().tolist())
               for prompt, codes in zip(PROMPTS, last.sketch, strict=True)]
    hidden, _ = teach(view, prompts, last.tokens)
    same = view.logits(hidden).argmax(-1) == last.tokens.flatten(1)
    assert same.float().mean() > 0.95  # the teacher computes in bf16
    ids = view.tokenize("a")
    assert branch(view, ids, without_text=True) == ids  # it draws without guidance


def test_first_guesses_may_be_those_of_the_sketch():
    sketch = torch.arange(6).view(1, 2, 3)
    assert enlarged(sketch, Grid(4, 6))[0].tolist() == [
        [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5], [3, 3, 4, 4, 5, 5]]


def test_a_budget_is_shared_and_windows_fit_the_sketch():
    first, second = fitted(methods.Rolling(budget=100, window=500), Grid(16, 16), Grid(32, 32))
    assert (first.budget, second.budget) == (20, 80)
    assert first.window == 256 and second.window == 500


@pytest.mark.parametrize("size, named", [
    ((500, 500), "480x480 or 512x512"), ((1024, 1030), "1024x1024 or 1056x1056"),
    ((128, 4096), "256x2048")])
def test_other_sizes_are_refused_with_the_nearest(backbone, size, named):
    with pytest.raises(SSDError, match=f"in steps of 32: choose {named}"):
        backbone.resized(size)


def test_what_it_cannot_do_is_one_line(backbone):
    with pytest.raises(SSDError, match="draws its codes without guidance: set cfg to 1"):
        run(backbone, ["a"], sampling=Sampling(cfg=2.0))
    with pytest.raises(SSDError, match="cannot edit pictures by words"):
        run(backbone, ["a"], methods.Exact(), keep=torch.zeros(1, 8, 8).long(), edit=Edit("b"))


def test_a_note_tells_of_pixels_and_the_published_sampling_is_the_preset(backbone):
    pixels, = backbone.notes(Sampling())
    assert "the node Finish" in pixels
    own, published = Sampling(seed=2), Sampling(seed=2, temperature=0.9, top_p=0.75)
    plain = Sampling(seed=2, temperature=1, top_p=1)
    ours, theirs, other = (run(backbone, ["a"], methods.Rows(rounds=1), sampling=each)[1].tokens
                           for each in (own, published, plain))
    assert ours.equal(theirs) and not ours.equal(other)


def test_false_colours_tell_codes_apart(backbone):
    pictures = backbone.resized((256, 256)).decode(torch.arange(64).view(1, 8, 8) % CODES)
    assert pictures.shape == (1, 256, 256, 3)
    assert len(pictures[0, ::32, ::32].flatten(0, 1).unique(dim=0)) == CODES


@pytest.mark.parametrize("text, named", [
    ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
    ({"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, "rope_parameters is"),
    ({"rope_parameters": {"mrope_section": [4, 4, 4], "partial_rotary_factor": 0.5}},
     r"mrope_section is \[4, 4, 4\] .* three sections of 4 pairs"),
    ({"num_key_value_heads": 1}, "num_key_value_heads is 1, the tensors have 2")])
def test_another_config_is_refused_by_name(tmp_path, text, named):
    with pytest.raises(SSDError, match=named) as refused:
        load_backbone(glm_image(tmp_path / "GLM", **text), device="meta")
    assert "\n" not in str(refused.value)


def test_another_tokenizer_or_file_is_refused_by_name(tmp_path):
    folder = glm_image(tmp_path / "GLM")
    (folder / "processor" / "tokenizer.json").unlink()
    with pytest.raises(SSDError, match="tokenizer.json: missing"):
        load_backbone(folder, device="meta")
    names = [f"<|dit_token_{code}|>" for code in range(CODES)]
    word_tokenizer([*CONTROL, *names, *WORDS], [*CONTROL, *names]).save(
        str(folder / "processor" / "tokenizer.json"))
    with pytest.raises(SSDError, match=f"has id 0, config.json of .* says {CODES}"):
        load_backbone(folder, device="meta")


def test_the_live_preview_shows_the_sketch_before_the_first_row(backbone):
    messages = []
    preview = Preview(backbone.resized((256, 256)), methods.Exact(), messages.append, label="")
    events, _ = run(backbone, ["a"], methods.Exact())
    for event in events:
        preview(event, seconds=100.0)
    kinds = [message["kind"] for message in messages]
    sketch = messages[kinds.index("cells")]
    assert kinds.index("cells") < kinds.index("rows")
    assert (sketch["first"], sketch["last"], len(sketch["strips"])) == (0, 8, 1)


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
@pytest.mark.by_day(1)
def test_exact_is_ar_in_every_dtype_that_the_probe_holds_for(tmp_path, dtype):
    backbone = load_backbone(glm_image(tmp_path / "GLM"), device="cpu", dtype=dtype)
    ar, exact = (run(backbone, ["a"], method, sampling=Sampling(seed=3))[1].tokens
                 for method in (methods.AR(), methods.Exact()))
    assert ar.equal(exact) or not backbone.batch_invariant
