"""What a caller may hand in and gets back: types, cold temperatures, autocast, own tensors."""

import numpy as np
import pytest
import torch
from support.every_method import one_of_each
from support.mock_backbone import MockBackbone, events, random_heads, tokens

from ssd_core import Finished, Sampling, SSDError, generate, methods
from ssd_core.model.sampling import probabilities

EVERY = one_of_each(k_h=2, k_v=1, rounds=1, window=4)


@pytest.fixture(scope="module")
def drawing():
    backbone = MockBackbone()
    return backbone, random_heads(backbone)


def tensors(event):
    return [value for value in vars(event).values() if isinstance(value, torch.Tensor)]


def events_of(drawing, method, **options):
    return generate(drawing[0], ["a sun"], method, drawing[1], **options)


@pytest.mark.parametrize("method", EVERY, ids=lambda m: m.name)
@pytest.mark.by_day(7)
def test_tensors_of_events_are_the_callers_own_and_may_be_written_to(drawing, method):
    expected = tokens(drawing[0], method, heads=drawing[1])
    for event in events_of(drawing, method):
        if isinstance(event, Finished):
            assert event.tokens.equal(expected)
        for tensor in tensors(event):
            assert not tensor.is_inference()
            tensor.zero_()


@pytest.mark.parametrize("method", EVERY, ids=lambda m: m.name)
@pytest.mark.by_day(7)
def test_autocast_changes_nothing_and_is_left_as_it_was(drawing, method):
    expected = tokens(drawing[0], method, heads=drawing[1])
    with torch.autocast("cpu", torch.bfloat16):
        told = []
        for event in events_of(drawing, method):
            told.append(event)
            assert torch.is_autocast_enabled("cpu") and not torch.is_inference_mode_enabled()
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    assert told[-1].tokens.equal(expected)


@pytest.mark.parametrize("temperature", [1e-6, 1e-30, 1e-40, 5e-324])
def test_a_tiny_temperature_takes_the_likeliest_token(drawing, temperature):
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    cold = Sampling(temperature=temperature)
    assert probabilities(logits, cold).tolist() == [[0.0, 1.0, 0.0]]
    assert tokens(drawing[0], methods.AR(), sampling=cold).equal(
        tokens(drawing[0], methods.AR(), sampling=Sampling(temperature=0)))


def test_temperatures_just_above_draw_numbers():
    for temperature in (1e-5, 1e-4, 1e-3):
        probs = probabilities(torch.randn(4, 50) * 1e4, Sampling(temperature=temperature))
        assert probs.isfinite().all() and torch.allclose(probs.sum(-1), torch.ones(4))


@pytest.mark.parametrize("make, name", [
    (lambda: methods.SSD(k_h=2.5), "k_h"), (lambda: methods.SSD(k_v="1"), "k_v"),
    (lambda: methods.SSD(rounds=True), "rounds"), (lambda: methods.SSD(acceptance=3), "acceptance"),
    (lambda: methods.SSD(fused_commit="yes"), "fused_commit"),
    (lambda: methods.SSD(fused_commit=1), "fused_commit"),
    (lambda: methods.SSD(draft_temperature=float("nan")), "draft_temperature"),
    (lambda: methods.Exact(window=24.5), "window"), (lambda: methods.MTP(rounds=None), "rounds"),
    (lambda: methods.Strict(k_h=[3]), "k_h"), (lambda: methods.Rows(draft=None), "draft"),
    (lambda: Sampling(seed=1.5), "seed"), (lambda: Sampling(seed="7"), "seed"),
    (lambda: Sampling(cfg="3"), "cfg"), (lambda: Sampling(temperature=float("nan")), "temperature"),
    (lambda: Sampling(top_k=True), "top_k"), (lambda: Sampling(top_p="all"), "top_p")])
def test_a_knob_of_the_wrong_type_is_named_in_one_line(make, name):
    with pytest.raises(SSDError, match=f"^{name}.*: must be") as caught:
        make()
    assert "\n" not in str(caught.value)


def test_numbers_of_numpy_are_numbers(drawing):
    method = methods.SSD(np.int64(2), np.int32(1), np.uint8(1), fused_commit=np.bool_(False))
    assert method == methods.SSD(2, 1, 1) and type(method.k_h) is int
    sampling = Sampling(np.int64(3), np.float32(2), np.float64(1), np.float64(0))
    assert sampling == Sampling(3, 2.0, 1.0, 0) and type(sampling.cfg) is float
    kept = tokens(drawing[0], methods.AR())
    told = events(drawing[0], method, heads=drawing[1], sampling=sampling, keep=kept,
                  keep_rows=np.int64(1), size=tuple(np.array(drawing[0].sizes[0])))
    assert told[-1].tokens[:, :1].equal(kept[:, :1])


@pytest.mark.parametrize("options, line", [
    ({"keep": torch.zeros(1, 4, 5), "keep_rows": 1}, "keep"),
    ({"keep": torch.full((1, 4, 5), torch.nan), "keep_rows": 1}, "keep"),
    ({"keep": [[0]], "keep_rows": 1}, "keep"), ({"keep_rows": 1.0}, "keep_rows"),
    ({"keep_rows": "1"}, "keep_rows"), ({"negative": 3}, "negative"),
    ({"negative": ["a"]}, "negative"), ({"size": "5x4"}, "size"), ({"size": 5}, "size"),
    ({"size": (5,)}, "size"), ({"size": (5.5, 4)}, "size"), ({"size": ("5", "4")}, "size"),
    ({"prompts": [3]}, "prompt")])
def test_arguments_of_the_wrong_type_are_refused_in_one_line(drawing, options, line):
    with pytest.raises(SSDError, match=f"^{line}") as caught:
        events(drawing[0], methods.AR(), **options)
    assert "\n" not in str(caught.value)
