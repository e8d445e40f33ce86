"""Rounding is measured when weights are loaded where they draw; else nothing is guaranteed."""

from contextlib import contextmanager

import pytest
import torch
from support.mock_backbone import MockBackbone, tiny_postcard, tokens

from ssd_core import Grid, Sampling, load_backbone, methods
from ssd_core.backbones import invariance, postcard
from ssd_core.engine.repeat_near_ties import margin
from ssd_core.model import transformer
from ssd_core.output.guarantees import guarantee, guarantee_holds, guarantee_text
from ssd_core.weights import load

CARD, CPU = torch.device("cuda"), torch.device("cpu")


@contextmanager
def used(found, device):
    assert device == CARD and len(found) in (0, 2), "both measurements are made inside"
    yield
    assert found == []


@pytest.fixture
def on_a_card(monkeypatch):
    """Backbones that say that they are on a card; `found` gives what is measured there."""
    found = []
    monkeypatch.setattr(MockBackbone, "device", CARD)
    monkeypatch.setattr(load, "rounding", lambda backbone, widths: found.pop(0))
    monkeypatch.setattr(load, "one_attention_kernel", lambda device: used(found, device))
    return found


def unmeasured(grid: Grid = Grid(5, 6)) -> MockBackbone:  # noqa: B008
    backbone = MockBackbone(grid)
    backbone.rounding = None
    return backbone


@pytest.mark.parametrize(("few_keys", "all_keys"), [(0.0, 0.0), (1e-6, 0.0), (0.0, 3e-6)])
def test_a_card_is_measured_with_few_keys_and_with_all(on_a_card, few_keys, all_keys):
    on_a_card += [few_keys, all_keys]
    backbone = unmeasured()
    load.prepared(backbone, CARD, "auto", None)
    assert on_a_card == [] and backbone.rounding == max(few_keys, all_keys)
    assert backbone.batch_invariant == (backbone.rounding == 0) and guarantee_holds(backbone)
    assert bool(margin(backbone, Sampling(cfg=2.0))) == (backbone.rounding > 0)


@pytest.mark.parametrize("draws", ["cuda", "meta", "mps"])
def test_weights_that_wait_elsewhere_are_not_measured_and_nothing_is_guaranteed(draws):
    backbone = unmeasured()
    load.prepared(backbone, torch.device(draws), "auto", None)
    assert backbone.rounding is None and not backbone.batch_invariant
    assert guarantee(methods.Exact(), backbone) == "same distribution"
    assert "rounding in fp32 on this device may make it differ" in guarantee_text(
        methods.Exact(), backbone)


def test_a_card_without_memory_for_it_is_not_measured(on_a_card, monkeypatch):
    def full(backbone, widths):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(load, "rounding", full)
    load.prepared(backbone := unmeasured(), CARD, "auto", None)
    assert backbone.rounding is None and not guarantee_holds(backbone)


@pytest.mark.parametrize("grid", [Grid(24, 24), Grid(6, 50), Grid(4, 130)])
def test_a_card_compares_passes_of_the_sizes_of_runs(monkeypatch, grid):
    monkeypatch.setattr(MockBackbone, "device", CARD)
    few, whole = load.passes_on(MockBackbone(grid))
    assert few.keys == 256 and whole.keys % 256 == 0 and whole.keys >= grid.slots
    assert few.each == whole.each == (1, 8, grid.width, 2 * grid.width)
    assert few.cells >= 2 * grid.width and few.cells % grid.width == 0


def test_the_passes_of_a_card_find_kernels_that_divide_long_sums(monkeypatch):
    """They run on a CPU, too; here attention over many keys rounds by the number of queries."""
    backbone = MockBackbone(Grid(40, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MockBackbone, "device", CARD)
        few, whole = load.passes_on(backbone, 8)
    assert whole.keys > few.keys
    assert all(invariance.rounding(backbone, widths) < 1e-5 for widths in (few, whole))
    plain = transformer.attention

    def divided(q, k, v, *rest):
        y = plain(q, k, v, *rest)
        return y + 1e-3 if k.shape[2] > few.keys and q.shape[2] == 1 else y

    monkeypatch.setattr(transformer, "attention", divided)
    assert invariance.rounding(backbone, few) < 1e-5 < 1e-4 < invariance.rounding(backbone, whole)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_on_a_card_rounding_is_measured_and_fp32_draws_ar_s_picture(tmp_path, dtype):
    postcard.save(tiny_postcard(), tmp_path / "backbone.safetensors")
    backbone = load_backbone(tmp_path, "cuda", dtype)
    assert backbone.rounding is not None
    assert backbone.batch_invariant == (backbone.rounding == 0)
    if not guarantee_holds(backbone):
        assert dtype == "bf16" or backbone.rounding > 1e-4
        return
    ar, exact = (tokens(backbone, method, sampling=Sampling(seed=3, cfg=2.0))
                 for method in (methods.AR(), methods.Exact(window=13)))
    assert exact.equal(ar)
