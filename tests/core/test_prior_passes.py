"""What plans tell of prior pass counts: figures kept with postcard, and those of own runs."""

import json

import pytest
from support.mock_backbone import MockBackbone

from ssd_core import Grid, Sampling, methods, plan
from ssd_core.backbones.estimates import MOST_KEYS, Estimates, PassCounts
from ssd_core.backbones.postcard import Postcard
from ssd_core.engine import prior_passes


@pytest.fixture
def backbone():
    backbone = MockBackbone(Grid(4, 6))
    backbone.sha256 = "f" * 64
    backbone.estimates = Estimates()
    return backbone


def note(backbone, passes, method=methods.Exact(), sampling=Sampling(), **options):  # noqa: B008
    prior_passes.note(backbone, method, False, sampling, {"passes_each": passes}, **options)


def test_an_unknown_backbone_has_bounds_only(backbone):
    assert plan(backbone, methods.Exact()).prior_passes is None


def test_own_runs_are_told_by_the_next_plan_of_the_same_kind_alone(backbone):
    note(backbone, [10, 14])
    note(backbone, [6])
    assert plan(backbone, methods.Exact()).prior_passes == 9
    assert plan(backbone, methods.Exact(), keep_rows=2).prior_passes == 4
    assert plan(backbone, methods.Exact(), heads=True).prior_passes is None
    assert plan(backbone, methods.Exact(7)).prior_passes is None
    assert plan(backbone, methods.SSD()).prior_passes is None


def test_runs_unlike_the_plans_are_not_remembered(backbone):
    note(backbone, [9], sampling=Sampling(temperature=2.0))
    note(backbone, [9], partly=True)
    note(backbone, [9], method=methods.SSD())
    assert not backbone.estimates.passes.entries


def test_a_file_remembers_and_stays_small(tmp_path, backbone):
    backbone.estimates = Estimates.stored_in(tmp_path / "new")
    note(backbone, [12])
    again = PassCounts(tmp_path / "new")
    assert again.entries == backbone.estimates.passes.entries and len(again.entries) == 1
    for n in range(2 * MOST_KEYS):
        again.add(str(n), n + 1)
    assert len(json.loads(again.path.read_text())) == MOST_KEYS


def test_backbones_share_the_figures_of_their_process_unless_they_have_others(tmp_path, backbone):
    other, stored = (MockBackbone(Grid(4, 6)) for _ in range(2))
    other.sha256 = stored.sha256 = "f" * 64
    stored.estimates = Estimates.stored_in(tmp_path)
    backbone = other.resized(other.size)
    note(backbone, [12])
    assert plan(other, methods.Exact()).prior_passes == 12
    assert plan(stored, methods.Exact()).prior_passes is None and not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "[]", "[1]", '{"a": 1}', '{"a": [NaN, 1]}', '{"a": [1, {}]}'])
def test_a_bad_file_and_one_that_cannot_be_written_are_no_errors(tmp_path, backbone, text):
    path = tmp_path / PassCounts.file
    path.write_text(text)
    backbone.estimates = Estimates.stored_in(tmp_path)
    assert not backbone.estimates.passes.entries
    backbone.estimates.passes.path = path / "below a file"
    note(backbone, [12])
    assert plan(backbone, methods.Exact()).prior_passes == 12


def test_postcards_figures_come_along_for_the_default_window():
    for heads in (True, False):
        told = plan(Postcard, methods.Exact(), heads=heads, device="cpu")
        assert 40 < told.prior_passes < 110 < told.passes_max


def test_a_shipped_figure_stands_until_there_are_ten_own_runs(backbone):
    backbone.name, backbone.sha256 = "postcard", prior_passes.bundled()["sha256"]
    shipped = plan(backbone, methods.Exact()).prior_passes
    own = shipped + 50
    for _ in range(prior_passes.ENOUGH - 1):
        note(backbone, [own])
    assert plan(backbone, methods.Exact()).prior_passes == shipped
    note(backbone, [own])
    assert plan(backbone, methods.Exact()).prior_passes == own
