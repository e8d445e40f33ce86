"""lab/benchmarks/run.py methods: every method, resumable, beside AR; on a tiny random backbone."""

import argparse
import json
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from support import script_modules
from support.mock_backbone import random_heads, tiny_postcard
from support.small_bundle import check_enlarged

from ssd_core import Grid, SSDError
from ssd_core.engine.methods import METHODS
from ssd_core.output.guarantees import HELPFUL, NEEDED, heads_use
from ssd_lab.evaluate import metrics, plots, shards
from ssd_lab.evaluate.shards import Shards

PROMPTS, BATCH = 3, 2


@pytest.fixture(scope="module")
def script():
    return script_modules.script("lab/benchmarks", "tables")


@pytest.fixture(scope="module", params=[8, pytest.param(24, marks=pytest.mark.nightly)])
def side(request):
    """Cells in a row and rows of the table's pictures."""
    return request.param


@pytest.fixture(scope="module")
def made(script, tmp_path_factory, side):
    """(rows, text, folder of results and runs) of a small table."""
    folder = tmp_path_factory.mktemp("table")
    backbone = tiny_postcard(grid=Grid(side, side))
    heads = random_heads(backbone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "check", check_enlarged)
        patch.setattr(script, "RESULTS", folder / "results")
        patch.setattr(script, "load_backbone", lambda *_, **__: backbone)
        patch.setattr(script, "load_heads", lambda *_: heads)
        (folder / "results").mkdir()
        text = script.run("methods", options(folder))
        rows = json.loads((folder / "results" / "methods.json").read_text())
        yield rows, text, folder


def options(folder, **changes):
    return argparse.Namespace(**{
        "backbone": "tiny", "heads": "tiny", "dtype": "fp32", "runs": folder / "runs",
        "prompts": PROMPTS, "batch": BATCH, "seed": 5, "temperatures": "2", "no_plots": False,
        **changes})


@pytest.mark.nightly
def test_every_method_is_a_row_and_warm_rows_need_no_heads(made):
    rows, text, _ = made
    cool = [row["name"] for row in rows if row["temperature"] == 1]
    assert cool[0] == "ar" and set(cool) == set(METHODS)
    warm = {row["name"] for row in rows if row["temperature"] == 2}
    assert warm == {name for name in METHODS if heads_use(name) != NEEDED}
    bare = [row["name"] for row in rows if row["method"].endswith(", no heads")]
    assert bare == [name for name in cool if heads_use(name) == HELPFUL][: len(bare)] and bare
    assert all(f"| {row['method']} |" in text for row in rows)


def test_rows_are_measured_beside_ar_of_their_own_temperature(made, side):
    rows, _, _ = made
    for row in rows:
        assert row["prompts"] == PROMPTS and row["seconds_each"] > 0
        assert not any("wall_clock" in key for key in row)  # that of batches says little of speed
        for key in ("passes", "step_acceleration", "nll", "entropy", "caption_accuracy",
                    "object_accuracy", "frechet", "identical_tokens"):
            assert f"{key}_se" in row, key
        if row["guarantee"] == "identical":
            assert row["identical_tokens"] == 1
        if row["name"] == "ar":
            assert row["step_acceleration"] == 1
            assert row["passes"] == side**2 and row["identical_tokens"] == 1
    exact = [row for row in rows if row["name"] == "exact"]
    assert len(exact) == 3 and all(row["identical_tokens"] == 1 for row in exact)
    assert all(row["step_acceleration"] > 2 for row in exact)


def test_files_are_written(made, side):
    rows, text, folder = made
    results = folder / "results"
    assert (results / "methods.md").read_text(encoding="utf-8") == text
    sheet = Image.open(results / "methods.webp")
    assert sheet.height == 128 * len(rows)
    assert Image.open(results / "methods-passes.png").width > 1000
    assert "(methods-passes.png)" in text and "(speed.md)" in text


def test_a_run_goes_on_where_it_was_interrupted(script, made, monkeypatch):
    rows, _, folder = made
    decoded = []
    honest = shards.decode_all
    monkeypatch.setattr(shards, "decode_all", lambda *args: (decoded.append(args[2]),
                                                             honest(*args))[1])
    script.run("methods", options(folder, no_plots=True))
    assert decoded == []
    lost = sorted((folder / "runs" / "tables").rglob("*.npz"))[0]
    lost.unlink()
    script.run("methods", options(folder, no_plots=True))
    assert len(decoded) == 1 and lost.exists()
    again = json.loads((folder / "results" / "methods.json").read_text())
    timed = ("seconds", "acceptance")
    for old, new in zip(rows, again, strict=True):
        assert {key: old[key] for key in old if not key.startswith(timed)} == {
            key: new[key] for key in new if not key.startswith(timed)}


def test_batches_of_another_run_are_not_taken(script):
    backbone, heads = tiny_postcard(), random_heads(tiny_postcard())
    trial = script.Trial(backbone, PROMPTS, BATCH, script.Sampling(seed=5))
    other = script.Trial(backbone, PROMPTS, BATCH, script.Sampling(seed=6))
    folders = {Shards.of(*asked, Path("runs")).folder for asked in (
        (trial, None), (other, None),
        (script.Trial(backbone, PROMPTS, 1, script.Sampling(seed=5)), None))}
    assert len(folders) == 3
    more = script.Trial(backbone, PROMPTS + 1, BATCH, script.Sampling(seed=5))
    assert Shards.of(more, heads, Path("a")).folder == Shards.of(
        trial, heads, Path("a")).folder


def test_what_cannot_run_is_left_out_with_its_reason(script):
    backbone = tiny_postcard()
    trial = script.Trial(backbone, 1, 1, script.Sampling(seed=5))
    bench = Shards.of(trial, None, Path("runs"))
    for entry in [row.entry for row in script.all_methods([])]:
        refused = bench.refused(entry)
        assert (refused is not None) >= (heads_use(entry.name) == NEEDED)
        assert refused is None or refused.startswith("method ") or heads_use(entry.name) != NEEDED


def test_without_matplotlib_one_line_says_so_before_anything_runs(script, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(script, "load_backbone", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(SSDError, match="plots need matplotlib") as told:
        script.run("methods", options(tmp_path))
    assert "\n" not in str(told.value)


def test_labels_of_a_plot_do_not_cover_each_other(tmp_path):
    rows = [{"method": f"method {n}", "guarantee": "approximate", "temperature": 1.0,
             "passes": 80 + n, "passes_se": 1.0, "caption_accuracy": 0.9,
             "caption_accuracy_se": 0.01} for n in range(5)]
    seen = []
    honest = plots.name_points

    def watched(figure, axes, *rest):
        honest(figure, axes, *rest)
        seen.extend(text.get_window_extent() for text in axes.texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "name_points", watched)
        plots.plot(rows, "passes", "forward passes", tmp_path / "plot.png")
    assert len(seen) == 5
    assert not any(a.overlaps(b) for n, a in enumerate(seen) for b in seen[:n])


def test_tokens_kept_are_those_that_were_drawn(script, tmp_path):
    backbone = tiny_postcard()
    trial = script.Trial(backbone, 2, 2, script.Sampling(seed=5))
    bench = Shards.of(trial, None, tmp_path)
    entry = next(row.entry for row in script.all_methods([]))
    first = bench.all([entry])[entry]
    assert torch.equal(first.tokens, bench.decoded(entry, 0).tokens)
    assert torch.equal(first.tokens, trial.run(entry.method, None).tokens.cpu())


def test_a_table_of_the_paper_has_its_own_labels_and_columns(script, made, side, monkeypatch):
    """Rows of one table are taken from another's batches where both have them."""
    folder = made[2]
    spec = script.Table("A table", PROMPTS, (script.AR_ROW, script.row_of("one round",
                                                                          script.ssd(1))))
    for name, value in (("TABLES", {"postcard": spec}), ("RESULTS", folder / "results"),
                        ("load_backbone",
                         lambda *_, **__: tiny_postcard(grid=Grid(side, side))),
                        ("load_heads", lambda _, backbone: random_heads(backbone))):
        monkeypatch.setattr(script, name, value)
    text = script.run("postcard", options(folder))
    rows = json.loads((folder / "results" / "postcard.json").read_text())
    assert [row["method"] for row in rows] == ["AR", "one round"]
    assert rows[0]["passes"] == side**2 and rows[1]["identical_tokens"] < 1
    assert "| decoding | passes | NLL |" in text and "(postcard.webp)" in text
    assert Image.open(folder / "results" / "postcard.webp").size == (230 + 3 * 128, 256)


def test_every_measurement_is_a_name_of_the_list(root, capsys, monkeypatch, tmp_path):
    run = script_modules.script("lab/benchmarks", "run")
    run.main(["--list"])
    told = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{told}" for name in (*run.TABLES, "speed", "memory", "soak"))
    with pytest.raises(SystemExit, match="nowhere: choose one that --list shows"):
        run.main(["nowhere"])
    (tmp_path / "small.py").write_text('"""Small."""\n\nimport sys\n\n\ndef main():\n'
                                       "    print(sys.argv[1:])\n\n\nmain()\n")
    monkeypatch.setattr(run, "HERE", tmp_path)
    run.main(["small", "--repeats", "2"])
    assert capsys.readouterr().out == "['--repeats', '2']\n"
