"""Hawk: the joint distribution of a whole small picture, AR's picture at temperature 0, passes."""

import pytest
import torch
from support.joint import SMALL, drawn, in_turn, joint, p_value
from support.mock_backbone import MockBackbone, events
from test_methods import PEOPLE, ar_picture, scene

from ssd_core import Grid, Sampling, methods
from ssd_core.engine import accept

HAWKS = [methods.Hawk(3), methods.Hawk(2, 2, 2, 1, 20), methods.Hawk(4, 0, 2, 2, 12),
         methods.Hawk(3, 1, 1, 2, 5)]


@in_turn(HAWKS)
@pytest.mark.by_day(2)
def test_hawk_has_the_joint_distribution(small, method):
    grid, codes, sampling = SMALL[small]
    backbone = MockBackbone(grid, codes, seed=4)
    counts = drawn(backbone, method, sampling, 4_096)
    assert p_value(counts, joint(backbone, Sampling(**sampling))) > 1e-4


@pytest.mark.parametrize("fault", ["p is kept", "q is flat"])
def test_hawk_with_a_wrong_residual_does_not(monkeypatch, fault):
    right = accept.siblings

    def wrong(tokens, draft_probs, target_probs, uniforms, noise, present, *relaxed):
        """Judges every sibling by p itself, or as if drawn from all codes alike."""
        if fault == "q is flat":
            draft_probs = torch.full_like(draft_probs, 1 / draft_probs.shape[-1])
            return right(tokens, draft_probs, target_probs, uniforms, noise, present)
        one = [right(tokens[:, i:], draft_probs[:, i:], target_probs, uniforms[:, i:], noise,
                     present[:, i:] & (torch.arange(tokens.shape[1] - i) == 0))
               for i in range(tokens.shape[1])]
        token, rank = one[-1][0], torch.full_like(tokens[:, 0], tokens.shape[1])
        for i, (found, place) in reversed(list(enumerate(one))):
            token = torch.where(place == 0, found, token)
            rank = torch.where(place == 0, i, rank)
        return token, rank

    monkeypatch.setattr(accept, "siblings", wrong)
    backbone = MockBackbone(Grid(2, 3), 3, seed=4)
    counts = drawn(backbone, methods.Hawk(3, 1, 2), {}, 4_096)
    assert p_value(counts, joint(backbone, Sampling())) < 1e-4


@pytest.mark.parametrize("method, row_end", [
    (methods.Hawk(5, 2, 1, 3, 40), True), (methods.Hawk(3, 0, 1, 1), False),
    (methods.Hawk(3, 2, 0), True)], ids=str)
def test_hawk_at_temperature_0_is_ar(row_end, method):
    backbone, heads = scene(row_end)
    sampling = Sampling(seed=4, cfg=3.0, temperature=0)
    told = events(backbone, method, PEOPLE, heads=heads, sampling=sampling)
    assert told[-1].tokens.equal(ar_picture(row_end, sampling))
    assert told[-1].stats["passes"] <= told[0].plan.passes_max


def test_a_chain_of_hawk_is_strict_in_passes_and_a_tree_needs_fewer():
    backbone, heads = scene(False)
    passes = [sum(events(backbone, method, PEOPLE, heads=heads,
                         sampling=Sampling(seed=seed))[-1].stats["passes"] for seed in (1, 2, 3))
              for method in (methods.Strict(k_h=4), methods.Hawk(4, 1, 0), methods.Hawk(4, 2, 2))]
    assert abs(passes[0] - passes[1]) < 0.1 * passes[0] and passes[2] < 0.8 * passes[0]
