"""LANTERN: lossless at its limits, relaxed between them, and by the codec's own codebook."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, events, random_heads
from test_accept import CODES, distribution
from test_methods import PEOPLE, drawn, joint, p_value, scene

from ssd_core import Grid, Sampling, SSDError, generate, methods
from ssd_core.backbones.codecs.codec import nearest_others
from ssd_core.engine import accept

TREES = [{}, {"horizontal_width": 2, "vertical_width": 1, "vertical_depth": 2}]


@pytest.mark.parametrize("tree, row_end, limit", [
    (TREES[0], False, {"delta": 0}), (TREES[1], True, {"delta": 0}),
    (TREES[0], True, {"similar": 1, "delta": 1}), (TREES[1], False, {"similar": 1, "delta": 1})],
    ids=str)
def test_at_its_limits_it_is_hawk(row_end, tree, limit):
    backbone, heads = scene(row_end)
    sampling = Sampling(seed=3, cfg=2.0)
    hawk = methods.Hawk(4, **{"vertical_width": 0, **tree})
    ours, theirs = (events(backbone, method, PEOPLE, heads=heads, sampling=sampling)[-1]
                    for method in (methods.Lantern(4, **tree, **limit), hawk))
    assert ours.tokens.equal(theirs.tokens) and ours.stats["passes"] == theirs.stats["passes"]
    for method in (methods.Lantern(4, **tree, **limit), methods.GSD(group=0)):
        assert method.guarantee_on(backbone.grid) == "same distribution"
        assert type(method)().guarantee_on(backbone.grid) == "relaxed"


@pytest.mark.parametrize("tree", TREES, ids=["chain", "tree"])
def test_more_neighbours_and_a_larger_delta_accept_more(tree):
    backbone, heads = scene(False)

    def passes(**knobs) -> int:
        return sum(events(backbone, methods.Lantern(4, **tree, **knobs), PEOPLE, heads=heads,
                          sampling=Sampling(seed=seed))[-1].stats["passes"] for seed in (1, 2))

    most, fewest = passes(delta=0), passes(delta=1)
    assert most > passes(delta=0.1) >= fewest
    assert most > passes(similar=2, delta=1) >= fewest


def test_its_distribution_is_another():
    """It guarantees none: the test of the lossless methods tells it from AR's."""
    backbone = MockBackbone(Grid(2, 3), 3, seed=4)
    counts = drawn(backbone, methods.Lantern(3, similar=3, delta=0.5), {}, 4_096)
    assert p_value(counts, joint(backbone, Sampling())) < 1e-4


@given(st.integers(0, 1000), st.integers(1, CODES), st.floats(0, 1))
def test_the_pooled_distribution_stays_within_delta(seed, count, delta):
    p, vectors = distribution(seed, 6), distribution(seed + 1, CODES)
    similar = nearest_others(vectors, count).long()[torch.arange(6) % CODES]
    q = accept.relaxed(p, similar, delta)
    assert torch.allclose(q.sum(-1), torch.ones(6))
    assert ((q - p).abs().sum(-1) / 2 <= delta + 1e-6).all()
    assert torch.allclose(q.gather(-1, similar[:, :1])[:, 0], accept.pooled(p, similar, delta))
    untouched = torch.ones_like(p).scatter(-1, similar, 0) > 0
    assert q[untouched].equal(p[untouched])
    if delta == 0 or count == 1:
        assert q.equal(p)


def test_a_draft_like_the_target_is_accepted_as_often_as_its_pool():
    """q is sure of code 1; p gives 0.2 to it and 0.5 to its neighbour 0."""
    n, p = 4000, torch.tensor([0.5, 0.2, 0.3])
    q = torch.tensor([0.0, 1.0, 0.0]).expand(n, 1, -1)
    tokens, there = torch.ones(n, 1, dtype=torch.long), torch.ones(n, 1, dtype=torch.bool)
    similar, uniforms = torch.tensor([1, 0]).expand(n, 1, -1), torch.linspace(0, 1, n)[:, None]
    token, rank = accept.siblings(tokens, q, p.expand(n, -1), uniforms, torch.ones(n, 3), there,
                                  similar, 0.6)
    assert abs((rank == 0).float().mean().item() - 0.7) < 0.002
    assert token[rank == 1].eq(2).all()  # the neighbour's probability was given to the draft
    _, rank = accept.siblings(tokens, q, p.expand(n, -1), uniforms, torch.ones(n, 3), there,
                              similar, 0.4)
    assert abs((rank == 0).float().mean().item() - 0.2) < 0.002


def test_neighbours_are_sorted_and_begin_with_the_code_itself(monkeypatch):
    vectors = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    vectors[7] = vectors[3]  # equal codes
    monkeypatch.setattr("ssd_core.backbones.codecs.codec.AT_ONCE", 16)
    found = nearest_others(vectors, 20)
    assert found[:, 0].tolist() == list(range(50)) and found[7, 1] == 3 and found[3, 1] == 7
    distance = torch.cdist(vectors, vectors).gather(1, found.long())
    assert (distance.diff(dim=1) >= 0).all()
    assert all(len(set(row.tolist())) == 20 for row in found)


def test_the_table_of_neighbours_is_made_once():
    backbone = MockBackbone(codes=9)
    codec = backbone.picture_codec
    wide = codec.similar_codes(9, 5)
    assert codec.similar_codes(9, 5).data_ptr() == wide.data_ptr()
    assert codec.similar_codes(9, 3).equal(wide[:, :3])
    assert codec.similar_codes(6, 5).max() < 6  # a backbone may know fewer codes than its codec


@pytest.mark.parametrize("method", [methods.Lantern(3), methods.GSD(4)], ids=["lantern", "gsd"])
def test_a_codec_without_codebook_is_refused(method):
    backbone = MockBackbone()
    del backbone.picture_codec.codebook
    with pytest.raises(SSDError, match=f"method {method.name} compares codes .* no codebook"):
        generate(backbone, "sun", method, heads=random_heads(backbone))
