"""What the app calls runs: by their quality, in both languages."""

import pytest

from ssd_core.engine.methods import Exact, Rolling
from ssd_core.output.labels import label
from studio.words import run_title


@pytest.mark.parametrize("method, english, chinese", [
    (Exact(), "Faithful", "忠实"), (Rolling(fewer=8.0, window=48), "Balanced", "均衡"),
    (Rolling(fewer=12.0, window=31), "Fast", "快速")])
def test_runs_have_the_name_of_their_quality_whatever_was_chosen_for_the_machine(
        method, english, chinese):
    assert run_title(label(method), "en") == english
    assert run_title(label(method), "zh") == chinese


def test_other_runs_have_their_label():
    method = Rolling(fewer=5.0, window=48)
    assert run_title(label(method), "en") == label(method) == "rolling fewer=5.0 window=48"
