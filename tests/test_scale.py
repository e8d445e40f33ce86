"""docs/scale.md shows what benchmarks/scale.py computes today, and the computation behaves."""

import importlib
import sys
from pathlib import Path

import pytest

from ssd_core.weights.catalogue import CATALOGUE, GB

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def scale():
    """The module; its neighbours in benchmarks/ are found only while it is imported."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("scale")
    finally:
        sys.path.pop(0)


def test_the_tables_of_the_page_are_the_scripts(scale):
    for one in scale.TABLES:
        assert one() in PAGE, one.__name__
    assert "computed, none is measured" in PAGE


def test_drawing_grows_with_the_cards_and_learning_a_little_less(scale):
    work = scale.Work(CATALOGUE["Janus-Pro-7B"], scale.CENTRE)
    count = 64 * work.at_once
    assert work.drawing_hours(count) == pytest.approx(64 * work.drawing_hours(count, 64))
    gain = work.step_seconds(128, 1) / work.step_seconds(128, 8)
    assert 5 < gain < 8
    assert work.head_parameters == pytest.approx(8 * 8 * 4096**2, rel=1e-3)


def test_the_cards_that_the_page_names_have_room(scale):
    small, large = (scale.Work(CATALOGUE[f"Janus-Pro-{size}"], scale.CONSUMER).learning_bytes()
                    for size in ("1B", "7B"))
    assert small < 11 * GB and 24 * GB < large < 47 * GB
    assert "A card of 12 GB" in PAGE and "A 7B model needs a card of 48 GB" in PAGE


def test_a_pass_is_bound_by_launches_bytes_or_products(scale):
    small, large = (CATALOGUE[name] for name in ("Janus-Pro-1B", "Janus-Pro-7B"))
    by_launches = scale.Work(small, scale.CENTRE).pass_seconds(1)
    assert by_launches == pytest.approx(307 * scale.LAUNCH)
    by_bytes = scale.Work(large, scale.CONSUMER).pass_seconds(1)
    assert by_bytes > 2 * 6.1e9 / scale.CONSUMER.bandwidth
    slow = scale.Card("slow", 24 * GB, 1e12, 1e12, 1e9)
    work = scale.Work(small, slow)
    assert work.pass_seconds(8) > 2 * work.matrices * 16 / (scale.REACHED * slow.products)
