"""The engine draws what a plain page of SSD draws: the same tokens in the same number of passes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support import plain_ssd
from support.mock_backbone import MockBackbone, random_heads

from ssd_core import Grid, Sampling, methods
from ssd_core.engine.decode import generate
from ssd_core.engine.events import finished
from ssd_core.engine.methods.ssd import Verify


class World(MockBackbone):
    def unconditional(self, prompt_ids):
        return [7] * len(prompt_ids)


worlds = st.builds(World, st.builds(Grid, st.integers(2, 5), st.integers(2, 6),
                                           st.booleans()), codes=st.just(32))
schedules = st.builds(methods.SSD, k_h=st.integers(1, 5), k_v=st.integers(1, 3),
                      rounds=st.integers(0, 4), incremental=st.integers(0, 3),
                      acceptance=st.sampled_from(["residual", "coupled"]))


def engines(world, method, sampling):
    done = finished(generate(world, "a sun", method, random_heads(world), sampling))
    return done.tokens[0], done.stats["passes"]


def equal(world, method, seed, cfg=2.0):
    sampling = Sampling(seed=seed, cfg=cfg)
    plain = plain_ssd.drawn(world, "a sun", None if method == methods.AR() else method,
                            random_heads(world), sampling)
    tokens, passes = engines(world, method, sampling)
    return torch.equal(tokens, plain[0]) and passes == plain[1]


@settings(max_examples=20, phases=[Phase.generate])
@given(worlds, schedules, st.integers(0, 1 << 40), st.sampled_from([1.0, 2.0]))
def test_the_engine_draws_as_the_plain_page_does(world, method, seed, cfg):
    assert equal(world, method, seed, cfg)


@pytest.mark.parametrize("row_end", [False, True])
def test_ar_draws_as_the_plain_page_does(row_end):
    assert equal(World(Grid(3, 4, row_end), codes=32), methods.AR(), 5)


def test_one_round_short_is_noticed(monkeypatch):
    world, method = World(Grid(4, 6), codes=32), methods.SSD(
        k_h=3, k_v=1, rounds=2, incremental=0, acceptance="residual")
    assert equal(world, method, 3)
    own = methods.SSD.schedule

    def shorter(self, region):
        return (step._replace(most=max(0, step.most - 1)) if isinstance(step, Verify) else step
                for step in own(self, region))

    monkeypatch.setattr(methods.SSD, "schedule", shorter)
    assert not equal(world, method, 3)
