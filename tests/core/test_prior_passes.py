"""What plans tell of passes before a run: postcard's own, a stand-in's, and those of own pictures.
"""

import json
from itertools import pairwise

import pytest
from support.mock_backbone import MockBackbone

from ssd_core import Grid, Sampling, methods, plan
from ssd_core.backbones.estimates import LAST, MOST_KEYS, DrawnPicture, Estimates, StoredPictures
from ssd_core.backbones.postcard import Postcard
from ssd_core.engine import own_runs, prior_passes
from ssd_core.engine.own_runs import known_of, series_of

STATS = {"seconds": {"total": 6.0}, "acceptance": {"verify/1": 0.5, "verify/2": 0.9}}


@pytest.fixture
def backbone():
    backbone = MockBackbone(Grid(24, 24))
    backbone.sha256 = "f" * 64
    backbone.estimates = Estimates()
    return backbone


class Heads:
    """Draft heads, as far as their name goes."""

    def __init__(self, sha256):
        self.sha256 = sha256


def note(backbone, passes, method=methods.Exact(), sampling=Sampling(), heads=None,  # noqa: B008
         stats=STATS, **options):
    own_runs.note(backbone, method, heads, sampling, {**stats, "passes_each": passes}, **options)


def stand_in(window, name="exact", grid="24x24"):
    return prior_passes.stand_in()["shares"][grid][f"{name}/{window}/none"]


# Before the first picture


def test_an_unknown_backbone_is_told_what_a_stand_in_takes_never_postcards_figures(backbone):
    told = plan(backbone, methods.Exact(48))
    assert told.prior_passes == round(576 * stand_in(48)) and told.stand_in
    postcards = prior_passes.bundled()["passes"]["exact/48/none"]
    assert told.prior_passes > 1.2 * postcards
    assert plan(backbone, methods.Exact(48), heads=True) == told, "what its heads save is not known"
    assert plan(backbone, methods.Rolling()).prior_passes is None, "its budget tells the most"
    assert plan(backbone, methods.AR()).prior_passes is None
    wide = plan(MockBackbone(Grid(90, 90, row_end=True)), methods.Exact(96))
    assert wide.prior_passes == round(90 * 91 * stand_in(96, grid="48x48"))


def test_the_stand_in_names_its_source_and_its_figures_are_of_hard_tokens():
    shipped = prior_passes.stand_in()
    assert "lab/benchmarks/stand_in.py" in shipped["source"]
    for grid, shares in shipped["shares"].items():
        exact = [share for key, share in shares.items() if key.startswith("exact/")]
        assert all(wide < 1.05 * narrow for narrow, wide in pairwise(exact)), grid
        assert 1 / 12 < exact[-1] < exact[0] < 1


def test_postcards_figures_come_along_for_the_default_window():
    for heads in (True, False):
        told = plan(Postcard, methods.Exact(), heads=heads, device="cpu")
        assert 40 < told.prior_passes < 110 < told.passes_max
        assert not told.stand_in and told.prior_pictures == 0


# After pictures of its own


def test_own_pictures_mix_in_and_after_ten_they_alone_count(backbone):
    first = plan(backbone, methods.Exact(48)).prior_passes
    note(backbone, [2 * first, 2 * first, 2 * first], methods.Exact(48))
    told = plan(backbone, methods.Exact(48))
    assert first < told.prior_passes < 2 * first
    assert told.prior_pictures == 3 and not told.stand_in
    wider = plan(backbone, methods.Exact(96))
    assert wider.prior_pictures == 3 and wider.prior_passes > 576 * stand_in(96)
    note(backbone, [2 * first] * 7, methods.Exact(48))
    told = plan(backbone, methods.Exact(48))
    assert told.prior_passes == 2 * first and told.prior_pictures == prior_passes.ENOUGH
    assert plan(backbone, methods.Exact(48), keep_rows=12).prior_passes == first
    assert plan(backbone, methods.Exact(96)).prior_passes == round(
        2 * first / stand_in(48) * stand_in(96))
    assert plan(backbone, methods.SSD()).prior_passes is None


def test_postcards_figures_stand_beside_the_first_own_pictures(backbone):
    backbone.name, backbone.sha256 = "postcard", prior_passes.bundled()["sha256"]
    shipped = plan(backbone, methods.Exact(48)).prior_passes
    note(backbone, [shipped + 50] * 9, methods.Exact(48))
    assert shipped < plan(backbone, methods.Exact(48)).prior_passes < shipped + 50
    note(backbone, [shipped + 50], methods.Exact(48))
    assert plan(backbone, methods.Exact(48)).prior_passes == shipped + 50


def test_pictures_unlike_those_that_are_planned_are_not_remembered(backbone):
    note(backbone, [9], sampling=Sampling(temperature=2.0))
    note(backbone, [9], partly=True)
    assert not backbone.estimates.pictures.entries


# What is known of a backbone


def test_what_is_known_of_each_method(backbone):
    assert known_of(backbone) == [] == series_of(backbone)
    note(backbone, [20, 30], methods.Exact(48))
    note(backbone, [576], methods.AR(), stats={**STATS, "acceptance": {}})
    exact, plain = known_of(backbone)
    assert (exact.method, exact.window, exact.pictures) == ("exact", 48, 2)
    assert (exact.passes, exact.seconds, exact.acceptance) == (25, 3.0, 0.5)
    assert (plain.method, plain.passes, plain.acceptance) == ("ar", 576, None)
    note(backbone, [40], methods.Exact(96))
    plain, exact = known_of(backbone)
    assert (exact.window, exact.pictures) == (96, 1), "by the window used last"
    assert [(name, each.passes) for name, each in series_of(backbone)] == [
        ("exact", 20), ("exact", 30), ("ar", 576), ("exact", 40)]
    assert known_of(MockBackbone(Grid(24, 24))) == []


def test_pictures_by_other_heads_are_in_the_series_alone(backbone):
    ssd = methods.SSD(k_h=4, k_v=1, rounds=2, incremental=0)
    note(backbone, [90], ssd, heads=Heads("a" * 64))
    note(backbone, [70], ssd, heads=Heads("b" * 64))
    known, = known_of(backbone)
    assert known.method == "ssd k_h=4 k_v=1 rounds=2 incremental=0"
    assert (known.heads, known.pictures, known.passes) == ("b" * 16, 1, 70)
    assert [each.heads[0] for _, each in series_of(backbone)] == ["a", "b"]


def test_seconds_are_those_of_the_device_used_last(backbone, monkeypatch):
    note(backbone, [20], stats={**STATS, "seconds": {"total": 60.0}})
    monkeypatch.setattr(own_runs, "device_name", lambda device: "a card")
    note(backbone, [30])
    known, = known_of(backbone)
    assert (known.passes, known.seconds) == (25, 6.0)


# The file


def test_a_file_remembers_and_stays_small(tmp_path, backbone):
    backbone.estimates = Estimates.stored_in(tmp_path / "new")
    note(backbone, [12] * (LAST + 9))
    again = StoredPictures(tmp_path / "new")
    assert again.entries == backbone.estimates.pictures.entries
    (key, pictures), = again.entries.items()
    assert len(pictures) == LAST and key == f"{'f' * 16}/24x24/exact/48/none"
    for n in range(MOST_KEYS):
        again.put(str(n), pictures[:1])
    assert list(json.loads(again.stored.path.read_text())) == list(map(str, range(MOST_KEYS)))


def test_pictures_of_two_programs_are_counted_together(tmp_path, backbone):
    other = MockBackbone(Grid(24, 24))
    other.sha256 = backbone.sha256
    backbone.estimates, other.estimates = (Estimates.stored_in(tmp_path) for _ in range(2))
    note(backbone, [10])
    note(other, [20])
    note(backbone, [30])
    assert known_of(backbone)[0].passes == 20


def test_backbones_share_the_figures_of_their_process_unless_they_have_others(tmp_path, backbone):
    other, stored = (MockBackbone(Grid(24, 24)) for _ in range(2))
    other.sha256 = stored.sha256 = "f" * 64
    stored.estimates = Estimates.stored_in(tmp_path)
    backbone.estimates = other.estimates
    note(backbone.resized(backbone.size), [12])
    assert plan(other, methods.Exact()).prior_pictures == 1
    assert plan(stored, methods.Exact()).stand_in and not list(tmp_path.iterdir())


GOOD = [1, "", "a", 12, 1.0, None]


@pytest.mark.parametrize("text", ["", "[]", "[1]", '{"a": 1}', '{"a": []}', '{"a": [{}]}', *(
    json.dumps({"a": [[*GOOD[:place], bad, *GOOD[place + 1:]]]})
    for place, bad in ((0, "x"), (1, 5), (3, 0), (4, -1.0), (5, 1.5)))])
def test_a_bad_file_and_one_that_cannot_be_written_are_no_errors(tmp_path, backbone, text):
    path = tmp_path / StoredPictures.file
    path.write_text(text)
    backbone.estimates = Estimates.stored_in(tmp_path)
    assert not backbone.estimates.pictures.entries
    backbone.estimates.pictures.stored.path = path / "below a file"
    note(backbone, [12])
    assert plan(backbone, methods.Exact()).prior_pictures == 1
    assert StoredPictures().parsed([GOOD]) == [DrawnPicture(*GOOD)]
