"""Prompt lookup decoding gives AR's tokens."""

import pytest
from support.mock_backbone import MockBackbone, events

from ssd_core import Grid, Sampling, methods


@pytest.mark.parametrize("window", [7, 54])
@pytest.mark.parametrize("row_end", [False, True])
def test_lookup_is_ar(row_end, window):
    backbone, sampling = MockBackbone(Grid(6, 9, row_end)), Sampling(seed=1000, cfg=3.0)
    ar, lookup = (events(backbone, method, ("cat", "a dog"), sampling=sampling)[-1]
                  for method in (methods.AR(), methods.Lookup(window)))
    assert lookup.tokens.equal(ar.tokens)
    assert lookup.stats["passes"] < ar.stats["passes"]
