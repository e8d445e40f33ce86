"""Several methods on one prompt: which of them run, and what is said of their pictures."""

import numpy as np
import pytest
import torch
from support.mock_backbone import MockBackbone, random_heads
from support.requests import requested

from ssd_core import Sampling, SSDError, compare, methods
from ssd_core.engine.methods import METHODS
from ssd_core.engine.tuning import filled
from ssd_core.model.grid import Grid
from ssd_core.output import guarantees
from ssd_core.runs import comparison
from ssd_core.runs.comparison import HEAD, Comparison, every_method, runnable
from ssd_core.runs.request import Request

BACKBONE = MockBackbone(Grid(4, 5))
HEADS = random_heads(BACKBONE)
PROMPT = "a sun"


def compared(heads=HEADS, chosen=None, **options):
    return compare(BACKBONE, PROMPT, chosen, heads, Sampling(5), **options)


def test_every_method_runs_at_its_own_settings():
    result = compared()
    names = [*result.results, *(name for line in result.left_out for name in METHODS
                                if f" {name}" in line)]
    assert set(METHODS) == set(names)
    for name, run in result.results.items():
        own = filled(METHODS[name]().resolve(BACKBONE.preset), BACKBONE.grid, "cpu")
        assert run.request.method == own and run.finished


def test_methods_that_need_heads_are_left_out_with_the_reason():
    result = compared(None)
    needing = {name for name in METHODS if guarantees.heads_use(name) == guarantees.NEEDED}
    assert needing and not needing & set(result.results)
    line = next(line for line in result.left_out if "heads" in line)
    assert line.startswith("left out: ") and all(name in line for name in needing)
    assert line in result.table() and result.left_out != []


def test_what_is_wrong_with_the_prompt_leaves_nothing_out():
    def request_of(method):
        return requested(BACKBONE, HEADS, method, Sampling(5), "", fall_back=False)

    with pytest.raises(SSDError, match="the prompt is empty"):
        runnable(every_method(), request_of)


def test_a_named_method_that_cannot_run_is_refused_before_any_runs(monkeypatch):
    monkeypatch.setattr(Request, "run", lambda *_: pytest.fail("a method ran"))
    with pytest.raises(SSDError, match="drafts with heads"):
        compared(None, {"ar": methods.AR(), "ssd": methods.SSD()})


def test_rows_say_what_was_measured_beside_ar():
    result = compared(chosen={"ar": methods.AR(), "exact": methods.Exact(),
                              "fast": methods.SSD(rounds=0)})
    rows = {row["method"]: row for row in result.rows()}
    assert [tuple(row) for row in result.rows()] == [HEAD] * 3
    assert rows["ar"]["passes"] == "20" and rows["ar"]["fewer"] == rows["ar"]["same as AR"] == ""
    assert rows["exact"]["guarantee"] == "identical" and rows["exact"]["same as AR"] == "100%"
    assert rows["exact"]["speed"].endswith("x") and rows["fast"]["guarantee"] == "approximate"
    assert rows["fast"]["same as AR"] != "100%"


def test_without_ar_nothing_is_said_against_it():
    result = compared(chosen={"rows": methods.Rows()})
    row, = result.rows()
    assert row["speed"] == row["same as AR"] == "" and row["fewer"]


def test_the_sheet_shows_the_first_picture_of_every_run_and_its_figures(monkeypatch):
    class Shades(MockBackbone):
        def decode(self, tokens):
            return (tokens / 8).float()[..., None].expand(*tokens.shape, 3)

    seen = {}
    monkeypatch.setattr(comparison, "contact_sheet", lambda *args: seen.setdefault("args", args))
    result = compare(Shades(Grid(4, 5)), PROMPT, {"ar": methods.AR(), "rows": methods.Rows()},
                     sampling=Sampling(5))
    result.sheet()
    tiles, title, below, notes = seen["args"]
    for tile, run in zip(tiles, result.results.values(), strict=True):
        assert (tile.picture == np.round(run.tokens[0, ..., None].numpy() / 8 * 255)).all()
    ar, rows = tiles
    assert (ar.name, ar.guarantee, ar.lines[0]) == ("ar", "AR itself", "20 passes")
    assert (rows.name, rows.guarantee) == ("rows", "approximate")
    assert rows.lines[0].startswith("rounds=2") and "fewer" in rows.lines[1] and (
        "as fast" in rows.lines[2]) and "of tokens are AR's" in rows.lines[3]
    assert (title, notes) == (PROMPT, []) and below.startswith("mock, seed 5, guidance 1")


def test_on_event_sees_every_event_and_pictures_are_those_of_a_run_alone():
    seen = []
    result = compared(chosen={"exact": methods.Exact()},
                      on_event=lambda label, event: seen.append((label, type(event).__name__)))
    assert seen[0] == ("exact", "Started") and seen[-1] == ("exact", "Finished")
    alone = requested(BACKBONE, HEADS, methods.Exact(), Sampling(5), PROMPT).run()
    assert torch.equal(result.results["exact"].tokens, alone.tokens)


def test_every_method_draws_the_pictures_of_a_batch():
    result = compared(chosen={"ar": methods.AR(), "exact": methods.Exact()}, pictures=2)
    assert [run.tokens.shape for run in result.results.values()] == [(2, 4, 5)] * 2
    assert [row["same as AR"] for row in result.rows()] == ["", "100%"]


def test_runs_without_labels_are_shown_by_their_methods_even_if_two_are_alike():
    alike = [requested(BACKBONE, HEADS, methods.Exact(window=3), Sampling(5), PROMPT).run()
             for _ in range(2)]
    rows = Comparison.of(alike, ["a note"]).rows()
    assert [row["method"] for row in rows] == ["exact window=3"] * 2


def test_every_method_has_a_guarantee_that_the_tables_know():
    assert {METHODS[name].guarantee for name in METHODS} <= set(guarantees.GUARANTEES)
    assert set(guarantees.CHINESE) == set(guarantees.GUARANTEES)
    grouped = guarantees.by_guarantee()
    assert sorted(name for own in grouped.values() for name in own) == sorted(METHODS)
    assert list(grouped) == [word for word in guarantees.GUARANTEES if word in grouped]
    assert guarantees.by_guarantee(["exact"], guarantees.CHINESE) == {"完全相同": ["exact"]}


@pytest.mark.parametrize(("name", "use"), [
    ("ar", "not used"), ("exact", "helpful"), ("ssd", "needed"), ("rows", "not used")])
def test_what_a_method_does_with_heads(name, use):
    assert guarantees.heads_use(name) == use
