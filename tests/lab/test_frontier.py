"""`ssd frontier`: the sweep, its prices, its files, and going on after an interruption."""

import json
import sys

import pytest
from PIL import Image
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import Grid, SSDError, load_backbone, methods
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.engine.heads import save_heads
from ssd_lab.evaluate import frontier, shards
from ssd_lab.evaluate.quality import evaluate


def test_the_sweep_holds_ar_and_the_papers_settings_once_each():
    backbone = tiny_postcard()
    for heads in (None, random_heads(backbone), random_heads(backbone, row=True)):
        entries = frontier.entries(heads)
        assert len(set(entries)) == len(entries) and entries[0].method == methods.AR()
        paper = [entry for entry in entries if frontier.is_paper(entry)]
        assert len(paper) == (1 if heads is None else 5)
        assert any(entry.heads for entry in entries) == (heads is not None)
        by_row = [entry for entry in entries if getattr(entry.method, "drafter", None) == "row"]
        assert bool(by_row) == (heads is not None and heads.row is not None)
        assert all(entry.heads for entry in by_row)


def test_pictures_that_are_no_postcards_are_refused_in_one_line():
    with pytest.raises(SSDError, match="draws 64x64 pixels.*use evaluate --suite"):
        evaluate(tiny_postcard(grid=Grid(4, 4)), None, [("ar", methods.AR())], 1)


AR, SSD = shards.Entry(methods.AR(), False), shards.Entry(methods.SSD(k_v=1))
FREE = {"heads": 0.0, "row": 0.0}


def test_a_pass_costs_its_launches_or_its_bytes():
    small = frontier.LoadedCard("small", 1e12, 1e9, 500, 700, FREE)
    assert small.seconds(100, AR, 24) == pytest.approx(100 * 500 * 5e-6)
    assert small.seconds(100, SSD, 24) == pytest.approx(100 * 700 * 5e-6)
    large = frontier.LoadedCard("large", 1e12, 14e9, 500, 700, FREE)
    assert large.seconds(100, AR, 24) == large.seconds(100, SSD, 24) == pytest.approx(1.4)


@pytest.mark.parametrize("method, heads, drafts", [
    (methods.AR(), False, 0), (methods.Rows(k_v=1), False, 0), (methods.Exact(48), False, 0),
    (methods.SSD(k_v=1), True, 24 * 0.04), (methods.SSD(k_v=2), True, 12 * 0.04),
    (methods.SSD(k_v=1, drafter="row"), True, 24 * 0.08), (methods.Exact(48), True, 100 * 0.04),
    (methods.Exact(48, "row"), True, 100 * 1.3 * 0.08)])
def test_drafts_cost_what_they_read(method, heads, drafts):
    """In passes; a window drafts in every pass, SSD once a block of rows."""
    card = frontier.LoadedCard("large", 1e12, 14e9, 0, 0, {"heads": 0.04, "row": 0.08})
    seconds = card.seconds(100, shards.Entry(method, heads), 24)
    assert seconds == pytest.approx((100 + drafts) * 14e9 / 1e12)


def test_the_front_is_what_nothing_beats():
    rows = [{"method": name, "passes": passes, "caption_accuracy": claims}
            for name, passes, claims in (("slow", 100, 0.9), ("waste", 120, 0.8),
                                         ("fast", 10, 0.5), ("worse", 10, 0.4), ("mid", 50, 0.9))]
    assert frontier.front(rows, "passes") == ["fast", "mid"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny postcard with heads and a row drafter."""
    folder = tmp_path_factory.mktemp("tiny")
    postcard.save(tiny_postcard(), folder / "backbone.safetensors")
    backbone = load_backbone(folder, "cpu")
    save_heads(random_heads(backbone, row=True), folder / "heads.safetensors", backbone, {})
    return folder


def drawn_once(plot):
    """Draws a plot of each cost, and copies it for the other qualities: they differ in a column."""
    made = {}

    def draw(rows, cost, unit, path, axis, *rest):
        if cost not in made:
            plot(rows, cost, unit, path, axis, *rest)
            made[cost] = path.read_bytes()
        assert all(axis[0] in row for row in rows)
        path.write_bytes(made[cost])

    return draw


@pytest.mark.nightly
def test_the_command_writes_its_files_and_goes_on(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    few = [shards.Entry(methods.AR(), False), shards.Entry(methods.SSD(k_h=5, k_v=1, rounds=2)),
           shards.Entry(methods.Exact(48, "row")), shards.Entry(methods.Exact(48), False),
           shards.Entry(methods.SSD(drafter="row", k_v=1, rounds=2))]
    monkeypatch.setattr(frontier, "entries", lambda heads: few)
    monkeypatch.setattr(frontier, "plot", drawn_once(frontier.plot))
    command = ["frontier", "--backbone", str(folder), "--out", str(tmp_path), "--prompts", "2",
               "--batch", "2", "--repeats", "1", "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])["results"]
    assert [row["name"] for row in rows] == ["ar", "ssd", "exact", "exact", "ssd"]
    assert rows[2]["method"].startswith("exact drafter=row")
    assert rows[3]["method"].endswith("no heads")
    assert all(row["identical_tokens"] == 1 for row in rows if row["guarantee"] == "identical")
    text = (tmp_path / "frontier.md").read_text(encoding="utf-8")
    assert all(f"| {row['method']} |" in text for row in rows)
    assert "| seconds of one picture here" in text
    for plot in tmp_path.glob("*.png"):
        assert Image.open(plot).width > 1000 and f"({plot.name})" in text
    assert len(list(tmp_path.glob("*.png"))) == 12
    monkeypatch.setattr(shards, "decode_all", lambda *_: pytest.fail("a batch was drawn again"))
    assert main([*command, "--no-plots"]) == 0
    assert all(row["median_seconds"] > 0 and row["threads"] >= 1 for row in rows)
    capsys.readouterr()
    untimed = [*command, "--repeats", "0"]
    assert main([*untimed, "--methods", "exact:window=48:drafter=row"]) == 0
    some = json.loads(capsys.readouterr().out.splitlines()[-1])["results"]
    assert [(row["name"], row["median_seconds"]) for row in some] == [("ar", None), ("exact", None)]
    text = (tmp_path / "frontier.md").read_text(encoding="utf-8")
    assert "of one picture" not in text and "| modelled: Janus-Pro-7B, RTX 4090 |" in text


@pytest.mark.parametrize("flags", [["--prompts", "0"], ["--batch", "0"],
                                   ["--repeats", "-1"]])
def test_no_prompts_are_refused(flags, capsys):
    assert main(["frontier", *flags]) == 2
    assert "prompts and batch must be at least 1" in capsys.readouterr().err


def test_without_matplotlib_one_line_says_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["frontier"]) == 2
    assert "plots need matplotlib" in capsys.readouterr().err
