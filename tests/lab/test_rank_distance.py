"""The distance by ranks is 0 for a distribution's own samples, and tells of others."""

import pytest
import torch
from support.script_modules import script


@pytest.fixture(scope="module")
def distance():
    return script("lab/benchmarks", "rank_distance")


def samples(log, draw):
    return torch.multinomial(log.exp(), 1, generator=draw)[:, 0]


@pytest.mark.parametrize("sharpness", [0.5, 6.0])
def test_samples_are_at_no_distance_and_others_are(distance, sharpness):
    draw = torch.Generator().manual_seed(2)
    log = (sharpness * torch.randn(8000, 64, generator=draw)).log_softmax(-1)

    def of(drawn):
        return distance.rank_distance(distance.ranks(log, drawn, draw))

    assert of(samples(log, draw)) == pytest.approx(0, abs=0.002)
    likelier = samples((1.5 * log).log_softmax(-1), draw)
    assert of(likelier) > 0.01, "likely tokens are preferred, so that NLL alone looks good"
    elsewhere = samples(log.roll(1, 0), draw)
    assert of(elsewhere) > 0.1
