"""The seconds of cards that are not here: as measured where there was one, and in proportion."""

import pytest
from support.script_modules import script

from ssd_core import SSDError
from ssd_core.engine.methods import AR, SSD, Exact, Rolling
from ssd_core.weights.cards import CARDS, OnCard, card_named, seconds_text
from ssd_core.weights.catalogue import CATALOGUE
from ssd_core.weights.model_size import ModelSize

# Milliseconds of a pass, lab/benchmarks/results/card_session_h200.md.
MEASURED = [("Janus-Pro-7B", AR(), 1, 5.7), ("Janus-Pro-7B", SSD(), 24, 7.3),
            ("Janus-Pro-7B", Exact(), 96, 8.2), ("Janus-Pro-7B", Rolling(), 96, 11.4),
            ("Janus-Pro-1B", AR(), 1, 2.6), ("Lumina-mGPT-7B-768", AR(), 1, 7.0)]


@pytest.mark.parametrize(("name", "method", "cells", "ms"), MEASURED)
def test_passes_on_an_h200_last_about_as_long_as_measured(name, method, cells, ms):
    here = OnCard(ModelSize.of(CATALOGUE[name]), CARDS["H200"])
    assert 1000 * here.pass_of(method.name, cells) == pytest.approx(ms, rel=0.2)


def test_balanced_is_no_slower_than_faithful_on_any_card_of_the_table():
    rows = script("tools", "first_model").ROWS
    for card, choices in rows.items():
        for name, dtype in choices:
            seconds = OnCard(ModelSize.of(CATALOGUE[name]), CARDS[card], dtype).seconds()
            assert seconds["Balanced"] < 1.105 * seconds["Faithful"], (card, name)
            assert seconds["Balanced"] < seconds["Reference"]


def test_cards_are_found_in_any_spelling_and_others_named():
    assert card_named("nvidia geforce rtx 4060 ti") is card_named("4060Ti") is CARDS["RTX 4060 Ti"]
    with pytest.raises(SSDError, match="card 'Voodoo 2': choose one of RTX 3050, "):
        card_named("Voodoo 2")


def test_one_figure_is_told_and_untried_dtypes_are_marked():
    shown = seconds_text(17.2), seconds_text(0.44), seconds_text(8.1, "int8")
    assert shown == ("20 s", "0.4 s", "8 s?")
