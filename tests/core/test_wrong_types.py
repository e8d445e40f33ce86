"""Whatever a program hands to the Python API: a picture, or an SSDError of one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard
from support.requests import requested

from ssd_core import Grid, Sampling, SSDError, compare, generate, load_backbone, load_heads, plan
from ssd_core import methods as kinds

BACKBONE = MockBackbone()
HEADS = random_heads(BACKBONE)
ENDLESS = 1 << 70
ANYTHING = [None, True, -1, 0, 1, 3, ENDLESS, 0.5, float("nan"), "", "a sun", b"a", [], [1], ["a"],
            (), (4, 5), (1.5, "x"), {}, {"a": 1}, {1: 2}, set(), object(), object, Exception(), int,
            len, Path("x"), np.float64(1.5), np.int64(2), np.zeros(3), torch.zeros(2),
            torch.zeros(1, 4, 5, dtype=torch.long), torch.ones(4, 5, dtype=torch.bool),
            torch.tensor(1), torch.float32, torch.device("cpu"), BACKBONE, HEADS, Grid(4, 5),
            kinds.AR(), kinds.AR, kinds.SSD(), Sampling(), Sampling(cfg=2.0)]
SOMETHING = st.sampled_from(ANYTHING)


def wrong(right: dict):
    """Right arguments with one or two of them replaced by anything, or others added."""
    return st.dictionaries(st.sampled_from(sorted(right)), SOMETHING, min_size=1, max_size=2).map(
        lambda other: {**right, **other})


def answers(call, **arguments) -> None:
    try:
        call(**arguments)
    except SSDError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 300


RIGHT = {"backbone": BACKBONE, "heads": None, "method": kinds.AR(), "sampling": Sampling(cfg=1.0),
         "prompt": "a sun", "negative": None, "size": None, "keep": None, "keep_rows": 0,
         "keep_mask": None}


def drawn(**arguments) -> None:
    request = requested(**arguments)
    request.check()
    assert request.plan.passes_max >= 0 and request.notes is not None and request.label
    assert request.tuning_text is not None and request == request and hash(request)


@given(wrong({**RIGHT, "pictures": 1, "fall_back": True, "named": False, "device": None,
              "threads": None, "expand": False, "open": (), "fixed": (), "keep_pixels": None,
              "edit": None, "sources": (),
              "drawn_before": None}))
def test_requests(arguments):
    answers(drawn, **arguments)


@given(wrong({**{name: value for name, value in RIGHT.items() if name != "prompt"},
              "prompts": "a sun", "threads": None, "edit": None}))
def test_generate(arguments):
    answers(lambda **given: generate(**given).close(), **arguments)


@given(wrong({"grid_or_backbone": BACKBONE, "method": kinds.AR(), "keep_rows": 0, "heads": False,
              "device": None, "keep_mask": None}))
def test_plan(arguments):
    answers(plan, **arguments)


@given(wrong({"backbone": BACKBONE, "prompt": "a sun", "methods": {"ar": kinds.AR()},
              "heads": None, "sampling": Sampling(cfg=1.0), "negative": None, "size": None,
              "pictures": 1}))
def test_compare(arguments):
    if arguments["pictures"] is not ENDLESS:
        answers(compare, **arguments)


@given(wrong({"name_or_path": "no such backbone", "device": "cpu", "dtype": "auto",
              "offload": False, "graphs": "auto", "estimates": None, "files": None,
              "draws_on": None}))
def test_load_backbone(arguments):
    if not isinstance(arguments["name_or_path"], torch.nn.Module):
        answers(load_backbone, **arguments)


@given(wrong({"name_or_path": "no such heads", "backbone": BACKBONE}))
def test_load_heads(arguments):
    answers(load_heads, **arguments)


CODEC = tiny_postcard()


@pytest.mark.parametrize("tokens", [
    *ANYTHING, torch.full((1, 24, 24), 32), torch.full((1, 24, 24), -1), torch.zeros(1, 24, 24),
    torch.zeros(24, 24, dtype=torch.long), torch.zeros(0, 24, 24, dtype=torch.long)])
def test_decode(tokens):
    with torch.inference_mode():
        answers(CODEC.decode, tokens=tokens)


def test_one_picture_of_tokens_is_decoded():
    with torch.inference_mode():
        picture, = CODEC.decode(torch.zeros(1, 24, 24, dtype=torch.long))
    assert picture.shape == (384, 384, 3)


@pytest.mark.parametrize(("call", "line"), [
    (lambda: load_backbone("postcard", device=object()), "device: must be text, not an object"),
    (lambda: requested(None, None, kinds.AR(), Sampling(), "a sun"),
     "backbone: must be a Backbone, not None"),
    (lambda: load_backbone("postcard", dtype=torch.int32),
     "dtype 'int32': choose auto, fp32, fp16, bf16, fp8, int8, int4, 8bit"),
    (lambda: load_backbone("postcard", graphs=np.zeros(3)),
     "graphs '[0. 0. 0.]': choose auto or off"),
    (lambda: compare(BACKBONE, 5), "prompt '5': must be text"),
    (lambda: compare(BACKBONE, "a sun", pictures=np.zeros(3)), "pictures: must be a whole "
     "number, not of type ndarray"),
    (lambda: generate(BACKBONE, ["a", 5], kinds.AR()),
     "prompts: must be text or a Sequence of text, not a list"),
    (lambda: requested(BACKBONE, HEADS, kinds.SSD, Sampling(), "a sun"),
     "method: must be a Method, not a type")])
def test_the_line_names_the_argument_and_what_it_must_be(call, line):
    with pytest.raises(SSDError) as refused:
        call()
    assert str(refused.value) == line
