"""Choices that a small change of the logits could change: all are found, and few others."""

import pytest
import torch

from ssd_core import Sampling
from ssd_core.model.near_ties import sample_with_ties
from ssd_core.model.sampling import probabilities, sample

SLACK = 0.04
CODES = 16
SAMPLINGS = {"plain": Sampling(), "greedy": Sampling(temperature=0),
             "cold": Sampling(temperature=1e-4), "hot": Sampling(temperature=2.5),
             "top-k": Sampling(top_k=5), "top-k-1": Sampling(top_k=1),
             "top-p": Sampling(top_p=0.7), "min-p": Sampling(min_p=0.2),
             "min-p-1": Sampling(min_p=1), "all": Sampling(temperature=0.7, top_k=6, top_p=0.9,
                                                           min_p=0.1)}


def closely(logits, noise, sampling, slack=SLACK):
    return sample_with_ties(logits, probabilities(logits, sampling), noise, sampling, slack)


def crowded(rows=2000, seed=0):
    """Logits [rows, CODES] in groups of near ties, and the noise of their race."""
    generator = torch.Generator().manual_seed(seed)
    steps = (torch.randn(rows, CODES, generator=generator) * 3).round() / 3
    nudges = torch.randn(rows, CODES, generator=generator) * SLACK
    return steps + nudges, -torch.rand(rows, CODES, generator=generator).log()


def changed(logits, noise, sampling, tries=60):
    """Which choices [rows] another rounding of the logits changes."""
    sampled = sample(probabilities(logits, sampling), noise)
    generator = torch.Generator().manual_seed(1)
    other = torch.zeros(len(logits), dtype=torch.bool)
    for _ in range(tries):
        signs = torch.randint(2, logits.shape, generator=generator) - 0.5
        other |= sample(probabilities(logits + signs * SLACK, sampling), noise) != sampled
    return other


@pytest.mark.parametrize("name", SAMPLINGS)
def test_every_choice_that_rounding_changes_is_found(name):
    logits, noise = crowded()
    sampling = SAMPLINGS[name]
    sampled, ties = closely(logits, noise, sampling)
    other = changed(logits, noise, sampling)
    assert sampled.equal(sample(probabilities(logits, sampling), noise))
    assert other.sum() > 10 and not (other & ~ties).any()
    assert name == "cold" or ties.float().mean() < 0.75  # there the slack decides everything


def test_a_quarter_of_the_slack_misses_some():
    """Proof that the test above can fail."""
    logits, noise = crowded()
    for sampling in (one for name, one in SAMPLINGS.items() if name != "cold"):
        _, ties = closely(logits, noise, sampling, SLACK / 4)
        assert (changed(logits, noise, sampling) & ~ties).any(), sampling


def test_scores_alone_miss_what_filters_decide():
    logits, noise = crowded()
    for name in ("top-k", "top-p", "min-p"):
        scores = probabilities(logits, SAMPLINGS[name]) / noise
        near = scores >= scores.amax(-1, keepdim=True) * (1 - SLACK)
        assert (changed(logits, noise, SAMPLINGS[name]) & (near.sum(-1) == 1)).any(), name


@pytest.mark.parametrize(("others", "sampling", "ties"), [
    ([-0.9], Sampling(temperature=0), True), ([-1.1], Sampling(temperature=0), False),
    ([-0.9], Sampling(), True), ([-1.1], Sampling(), False),
    ([-0.9], Sampling(temperature=3), True), ([-1.1], Sampling(temperature=3), False),
    ([-1.1, -0.9], Sampling(temperature=0), True), ([0.0], Sampling(temperature=0), True),
])
def test_a_lead_of_less_than_the_slack_is_a_near_tie(others, sampling, ties):
    """Leads in slacks, where all have the same noise."""
    logits = torch.tensor([[3.0, *(3 + SLACK * lead for lead in others), -9.0]])
    assert closely(logits, torch.ones(1, 1), sampling)[1].tolist() == [ties]


def test_a_token_at_a_filters_limit_counts_only_if_it_would_win():
    logits = torch.tensor([[3.0, 2.0, 1.0, 1.0 - SLACK / 2]])
    for sampling in (Sampling(top_k=3), Sampling(min_p=0.1333), Sampling(top_p=0.9)):
        fair = torch.ones(1, 4)
        assert not closely(logits, fair, sampling)[1], sampling
        lucky = torch.tensor([[1.0, 1.0, 1.0, 0.01]])
        assert closely(logits, lucky, sampling)[1], sampling
        assert not closely(logits - torch.tensor([0, 0, 0, 1.0]), lucky, sampling)[1], sampling
