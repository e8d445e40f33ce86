"""Passes and judges are static: a stand-in for CUDA graphs replays them, and tokens stay the same.

`Rehearsal` fails if any replay differs from the first in more than the contents of its buffers.
"""

import pytest
import torch
from support.layouts import LAYOUTS, every_layout
from support.mock_backbone import MockBackbone, events, random_heads, tiny_postcard, tokens
from support.rehearsal import NotStatic, Rehearsal
from test_methods import UNDER_TEST, WORDS

from ssd_core import Grid, Sampling, SSDError, generate, load_backbone, methods
from ssd_core.engine import decode, graphs
from ssd_core.engine.graphs import Graphs


@pytest.fixture
def rehearse(monkeypatch):
    """Switches graphs on for a call; returns what it returned, and the recorder."""
    def rehearsed(call, *given, **options):
        recorder = Rehearsal()
        with monkeypatch.context() as patch:
            patch.setattr(decode, "runner", lambda backbone: Graphs(recorder))
            return call(*given, **options), recorder
    return rehearsed


@pytest.mark.parametrize("name", UNDER_TEST)
def test_replays_give_the_tokens_of_eager_passes(name, rehearse):
    """Prompts of one length and without row ends; then of any length, with row ends."""
    for backbone, prompts in ((tiny_postcard(grid=Grid(4, 4)), ("a red house",)),
                              (MockBackbone(Grid(4, 4, True), codes=12), WORDS)):
        options = {"heads": random_heads(backbone, row=True),
                   "sampling": Sampling(seed=7, cfg=2.0)}
        expected = tokens(backbone, UNDER_TEST[name], prompts, **options)
        found, recorder = rehearse(tokens, backbone, UNDER_TEST[name], prompts, **options)
        assert found.equal(expected)
        assert recorder.replayed >= recorder.recorded > 0 and recorder.closed
