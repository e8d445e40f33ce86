"""Where the first guesses of `exact` come from changes its passes, and never the picture."""

import pytest
from support.mock_backbone import MockBackbone, events, random_heads

from ssd_core import Grid, SSDError, methods

WORDS = ("cat", "a dog", "two red birds", "ox")


def test_guesses_change_the_passes_and_not_the_picture():
    backbone = MockBackbone(Grid(12, 9), codes=16)
    heads = random_heads(backbone)
    head, above, none = (
        events(backbone, methods.Exact(9, first_guess=guess), WORDS, heads=used)[-1]
        for guess, used in (("head", heads), ("above", heads), ("above", None)))
    assert head.tokens.equal(above.tokens)
    assert head.stats["passes"] != above.stats["passes"] == none.stats["passes"]


def test_another_word_is_refused():
    with pytest.raises(SSDError, match="first_guess 'left': choose one of head, above"):
        methods.Exact(first_guess="left")
