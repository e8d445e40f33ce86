"""What other node packs do to torch changes no bit of a picture."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F
from support.tiny_image_models import janus_port

from ssd_core import Sampling, load_backbone, methods
from ssd_core.engine.decode import generate
from ssd_core.engine.events import finished
from ssd_core.output.pixels import pixels

OWN = F.scaled_dot_product_attention


def without_mask(q, k, v, attn_mask=None, **options):
    """As SageAttention's stand-in, which takes a mask and ignores it."""
    return OWN(q, k, v, **options)


def rounding(*args, **options):
    return OWN(*[x.bfloat16() if torch.is_tensor(x) and x.is_floating_point() else x
                 for x in args], **options).float()


@contextmanager
def left(change, back):
    change()
    try:
        yield
    finally:
        back()


RUDE = {
    "attention without its mask": lambda patch: left(
        lambda: patch.setattr(F, "scaled_dot_product_attention", without_mask), patch.undo),
    "attention in halves": lambda patch: left(
        lambda: patch.setattr(F, "scaled_dot_product_attention", rounding), patch.undo),
    "a default device": lambda patch: left(
        lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)),
    "a default dtype": lambda patch: left(
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_default_dtype(torch.float32)),
    "autocast": lambda patch: torch.autocast("cpu", torch.bfloat16),
    "a precision of products": lambda patch: left(
        lambda: torch.set_float32_matmul_precision("medium"),
        lambda: torch.set_float32_matmul_precision("highest"))}


def drawn(folder):
    """Load, draw by AR and by `exact`, and decode."""
    backbone = load_backbone(folder)
    sampling, done = Sampling(7, cfg=2.0), {}
    for method in (methods.AR(), methods.Exact(window=30), methods.Rows()):
        tokens = finished(generate(backbone, "a red house", method, sampling=sampling)).tokens
        done[method.name] = tokens, next(pixels(backbone, tokens))
    return backbone.sha256, done


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = janus_port(tmp_path_factory.mktemp("models") / "Janus-Pro-1B")
    return folder, drawn(folder)


@pytest.mark.parametrize("name", RUDE)
@pytest.mark.by_day(3)
def test_what_another_pack_left_in_torch_changes_no_bit(plain, name, monkeypatch):
    folder, (sha256, expected) = plain
    with RUDE[name](monkeypatch):
        found, done = drawn(folder)
    assert found == sha256
    for method, (tokens, picture) in expected.items():
        assert torch.equal(done[method][0], tokens), method
        assert torch.equal(done[method][1], picture), method
    assert torch.equal(expected["ar"][0], expected["exact"][0])
