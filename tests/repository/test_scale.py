"""What tables of docs/training.md are computed from behaves; test_texts.py compares them."""

from pathlib import Path

import pytest
from support.script_modules import script

from ssd_core.weights.cards import LAUNCH
from ssd_core.weights.catalogue import CATALOGUE, GB

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def scale():
    return script("tools", "scale")


def test_the_page_says_that_nothing_was_measured():
    assert "computed, none is measured" in PAGE


def test_drawing_grows_with_the_pictures_and_a_step_with_its_batch(scale):
    work = scale.Work(CATALOGUE["Janus-Pro-7B"])
    count = 4 * work.at_once
    assert work.drawing_hours(4 * count) == pytest.approx(4 * work.drawing_hours(count))
    assert 1 < work.step_seconds(32) / work.step_seconds(16) < 2
    assert work.head_parameters == pytest.approx(8 * 8 * 4096**2, rel=1e-3)


def test_the_cards_that_the_page_names_have_room(scale):
    small, large = (scale.Work(CATALOGUE[f"Janus-Pro-{size}"]).learning_bytes()
                    for size in ("1B", "7B"))
    assert small < 11 * GB and 24 * GB < large < 47 * GB
    assert "A card of 12 GB" in PAGE and "A 7B model needs a card of 48 GB" in PAGE


def test_a_pass_is_bound_by_launches_bytes_or_products(scale, monkeypatch):
    small, large = (scale.Work(CATALOGUE[name]) for name in ("Janus-Pro-1B", "Janus-Pro-7B"))
    assert large.pass_seconds(1) > 2 * 6.1e9 / scale.BANDWIDTH
    monkeypatch.setattr(scale, "PRODUCTS", 1e12)
    assert small.pass_seconds(8) > 2 * small.matrices * 16 / (scale.REACHED * 1e12)
    monkeypatch.setattr(scale, "BANDWIDTH", 1e15)
    monkeypatch.setattr(scale, "PRODUCTS", 1e18)
    assert small.pass_seconds(1) == pytest.approx(327 * LAUNCH)
