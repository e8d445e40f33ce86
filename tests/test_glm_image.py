"""GLM-Image from tiny checkpoints, against the class of transformers (5.24)."""


import pytest
import torch
from support.mock_backbone import tokens
from support.tiny_glm_image import CODES, glm_image, oracle

from ssd_core import Sampling, generate, load_backbone, methods, plan
from ssd_core.engine.events import Finished, Pass

GREEDY = Sampling(temperature=0.0)
PROMPTS = ["a red house", "tree"]
SIZES = [(256, 256), (512, 256), (256, 480)]  # square, wide, high


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return load_backbone(glm_image(tmp_path_factory.mktemp("glm") / "GLM-Image"), device="cpu",
                         dtype="fp32")


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("transformers", reason="transformers is the oracle")
    return oracle()


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


def test_one_run_draws_the_sketch_and_then_the_picture(backbone, theirs):
    codes = expected(theirs, backbone, PROMPTS, (512, 256))
    events, last = run(backbone, PROMPTS, size=(512, 256))
    small, large = 11 * 22, 8 * 16
    assert last.sketch.shape == (2, 11, 22) and last.tokens.shape == (2, 8, 16)
    assert torch.cat((last.sketch.flatten(1), last.tokens.flatten(1)), 1).equal(codes)
    passes = [event for event in events if isinstance(event, Pass)]
    assert [event.index for event in passes] == list(range(1, small + large + 1))
    assert last.stats["passes"] == last.stats["ar_passes"] == small + large
    assert last.stats["sketch_passes"] == small
    assert plan(backbone.resized((512, 256)), methods.AR()).passes == small + large


@pytest.mark.parametrize("method", [
    methods.Exact(), methods.Exact(window=100, guess="parent"), methods.Jacobi(),
    methods.Rolling(budget=1000)], ids=lambda method: f"{method.name}-{method.guess}")
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
