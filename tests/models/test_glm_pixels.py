"""GLM-Image's pixels by the pipeline of diffusers, with tiny random weights."""

from importlib.util import find_spec

import pytest
import torch
from support.documents import DOCS, blocks
from support.tiny_glm_image import CODES, glm_image, oracle
from support.tiny_glm_pipeline import glm_pipeline

from ssd_core import SSDError
from ssd_core.weights.diffusion import load_painter

pytestmark = pytest.mark.skipif(not find_spec("diffusers"),
                                reason="diffusers paints GLM-Image's pixels")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return glm_pipeline(tmp_path_factory.mktemp("glm") / "GLM-Image")


def test_every_code_and_seed_counts_and_progress_is_told(folder):
    painter = load_painter(folder / "transformer", dtype=torch.float32)
    assert painter.pipeline.vision_language_encoder is None
    codes = torch.randint(CODES, (2, 2, 3), generator=torch.Generator().manual_seed(0))
    steps = []
    both = painter.paint(codes, ["a", "b"], seed=5, steps=2,
                         on_step=lambda done, total: steps.append((done, total)))
    assert both.shape == (2, 64, 96, 3) and both.min() >= 0 and both.max() <= 1
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert painter.paint(codes[1:], ["b"], seed=6, steps=2).equal(both[1:])
    other = codes.clone()
    other[0, 0, 0] = (other[0, 0, 0] + 1) % CODES
    assert not painter.paint(other[:1], ["a"], seed=5, steps=2).equal(both[:1])
    with pytest.raises(RuntimeError, match="stop"):
        painter.paint(codes, ["a", "b"], on_step=stop)


def test_sources_change_the_pixels(folder):
    painter = load_painter(folder, dtype=torch.float32)
    codes = torch.zeros(1, 2, 2).long()
    source = torch.rand(50, 70, 3, generator=torch.Generator().manual_seed(1))  # scaled to fit
    plain, first, second = (painter.paint(codes, ["a"], steps=1, sources=sources) for sources in (
        (), [(source, torch.zeros(2, 3).long())], [(1 - source, torch.ones(2, 3).long())] * 2))
    assert first.shape == plain.shape and not first.equal(plain) and not first.equal(second)


def stop(done: int, total: int) -> None:
    raise RuntimeError("stop")


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(SSDError, match="no model_index.json here or above it"):
        load_painter(tmp_path)
    (tmp_path / "model_index.json").write_text("{}")
    with pytest.raises(SSDError, match="transformer, text_encoder, .* is missing"):
        load_painter(tmp_path)


def test_the_example_of_the_documents_feeds_the_pipeline(folder, monkeypatch):
    diffusers = pytest.importorskip("diffusers")
    pipeline = load_painter(folder, dtype=torch.float32).pipeline
    model = oracle()
    model.name_or_path = str(glm_image(folder) / "vision_language_encoder")
    pipeline.vision_language_encoder = model
    monkeypatch.setattr(diffusers.GlmImagePipeline, "from_pretrained",
                        lambda name, torch_dtype: pipeline)
    code = next(block.code for block in blocks(DOCS / "cli.md") if "GlmImagePipeline" in block.code)
    for dear, cheap in (("1024", "256"), (", width=256", ", width=256, num_inference_steps=2"),
                        ('.to("cuda")', "")):
        assert dear in code
        code = code.replace(dear, cheap)
    names = {}
    exec(compile(code, "example", "exec"), names)  # noqa: S102
    assert names["codes"].shape == (1, 8, 8)
    assert names["picture"].size == (256, 256)
