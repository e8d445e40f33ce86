"""Top-a leaves out what is unlikely beside the square of the likeliest token's probability."""

import pytest
import torch

from ssd_core import Sampling, SSDError
from ssd_core.model.sampling import probabilities

LOGITS = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()


def test_unlikely_tokens_are_left_out():
    kept = probabilities(LOGITS, Sampling(top_a=0.8))  # below 0.8 x 0.25
    assert kept.tolist() == pytest.approx([0.625, 0.375, 0, 0])


def test_the_default_changes_nothing():
    assert probabilities(LOGITS, Sampling(top_a=0)).equal(probabilities(LOGITS, Sampling()))
    assert (probabilities(LOGITS, Sampling()) > 0).all()


def test_a_share_above_one_is_refused():
    with pytest.raises(SSDError, match="top_a 2"):
        Sampling(top_a=2)
