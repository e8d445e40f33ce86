"""The command line in-process, on a tiny random backbone: flags, JSON, exit codes, bad input."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from PIL import Image
from support.mock_backbone import tiny_postcard
from support.road import watched

from ssd_core import kept_files
from ssd_core.backbones import postcard
from ssd_core.backbones.estimates import StoredPictures, StoredStepTimes
from ssd_core.backbones.postcard import Postcard, save
from ssd_core.cli import main, session
from ssd_core.cli.specs import parse_method, parse_methods
from ssd_core.engine import step_times
from ssd_core.engine.events import FinalRows
from ssd_core.engine.heads import DraftHeads, save_heads
from ssd_core.engine.methods import METHODS, SSD, Exact
from ssd_core.errors import SSDError
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import DecoderShape
from ssd_core.output.guarantees import NEEDED, by_guarantee, heads_use
from ssd_core.output.packed import tokens_sha256
from ssd_core.output.recipe import read_recipe, recipe_tokens
from ssd_core.weights.load import load_backbone

ROOT = Path(__file__).resolve().parents[2]
SHAPE = DecoderShape(layers=1, hidden=32, heads=2, kv_heads=2, head_dim=16, ffn=64,
                     rotary="interleaved")


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Folders of a tiny backbone: with heads (k_h 5, k_v 2), and the same one without."""
    folder, bare = tmp_path_factory.mktemp("model"), tmp_path_factory.mktemp("bare")
    generator = torch.Generator().manual_seed(0)
    backbone = Postcard(("a", "red", "house", "boat"), codes=32, shape=SHAPE)
    backbone.initialise(generator)
    postcard.save(backbone, folder / "backbone.safetensors")
    shutil.copy(folder / "backbone.safetensors", bare)
    loaded = load_backbone(folder, "cpu")
    heads = DraftHeads(loaded.hidden_size, 5, 2)
    for head in (*heads.horizontal, *heads.vertical):
        head.initialise(generator)
    save_heads(heads, folder / "heads.safetensors", loaded, {})
    return SimpleNamespace(folder=folder, bare=bare, backbone=loaded)


@pytest.fixture
def ssd(saved, tmp_path, monkeypatch, capsys):
    """Run a command line in an empty folder; gives code, out, err and the JSON of the last line."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, backbone=saved.folder):
        model = ["--backbone", str(backbone)] if backbone else []
        code = main([*map(str, arguments), *model])
        out, err = capsys.readouterr()
        data = json.loads(out.splitlines()[-1]) if "--json" in arguments and not code else None
        return SimpleNamespace(code=code, out=out, err=err, json=data)

    return run


def test_one_picture_is_checked_and_prepared_once(ssd):
    with watched(most=555) as road:
        assert ssd("generate", "a red house", "--method", "ssd", "--out", "house.png").code == 0
    assert road.complaints == []


def test_generate_tells_and_saves(ssd, saved):
    run = ssd("generate", "a red house", "--seed", 7, "--batch", 2, "--out", "new/x.png", "--json")
    assert run.code == 0 and len(run.out.splitlines()) == 1
    assert {"method", "backbone", "passes", "ar_passes", "step_acceleration", "seconds",
            "tokens_per_second", "acceptance", "seeds", "images", "tokens_sha256"} <= set(run.json)
    assert run.json["seeds"] == [7, 8]
    assert run.json["images"] == [str(Path("new/x-0.png")), str(Path("new/x-1.png"))]
    for i, path in enumerate(run.json["images"]):
        recipe = read_recipe(path)
        assert recipe["seed"] == 7 + i and recipe["method"] == "exact"
        assert tokens_sha256(recipe_tokens(recipe)) == run.json["tokens_sha256"][i]
        assert len(recipe["heads"]) == 64


def test_default_name_never_overwrites(ssd):
    for _ in range(2):
        assert ssd("generate", "a boat", "--method", "rows", "--rounds", 0).code == 0
    names = sorted(path.name for path in Path().glob("*.png"))
    assert len(names) == 2


def test_without_json_people_read_stdout(ssd):
    run = ssd("generate", "a boat", "--out", "x.png")
    assert "passes" in run.out and "x.png" in run.out
    assert run.err.startswith("first run on this model: measuring") and run.err.count("\n") == 1


def test_ar_is_not_compared_with_itself(ssd):
    ar, exact = (ssd("generate", "a boat", "--method", name, "--out", "x.png").out
                 for name in ("ar", "exact"))
    assert "times as many" in exact and "drafts accepted" in exact
    assert "times as many" not in ar and "drafts accepted" not in ar


def test_keep_continues_a_picture(ssd):
    first = ssd("generate", "a boat", "--seed", 1, "--out", "first.png", "--json")
    again = ssd("generate", "a red boat", "--seed", 2, "--keep", "first.png", "--keep-rows", 9,
                "--out", "again.png", "--json")
    assert "tokens from its recipe" in again.err
    top, new = (recipe_tokens(read_recipe(name)) for name in ("first.png", "again.png"))
    assert torch.equal(top[:9], new[:9]) and not torch.equal(top[9:], new[9:])
    assert first.json["passes"] > again.json["passes"]


def test_unknown_words_are_named_or_refused(ssd):
    zeppelin = "a zeppelin over the sea"
    run = ssd("generate", zeppelin, "--out", "x.png")
    assert run.code == 0 and "leaves out: a zeppelin" in run.err
    assert "thing" not in run.err and run.err.count("warning: ") == 1
    refused = ssd("generate", zeppelin, "--strict-words", "--out", "y.png")
    assert refused.code == 2 and "zeppelin" in refused.err and not Path("y.png").exists()
    misplaced = ssd("generate", "a red", "--strict-words", "--out", "y.png")
    assert misplaced.code == 2 and "red (known only in" in misplaced.err


@pytest.mark.parametrize("command", [("generate", "--out", "x.png"), ("plan",),
                                     ("compare", "--methods", "ar,exact", "--out", "c"),
                                     ("generate", "--no-expand", "--out", "x.png")])
def test_of_unknown_words_alone_nothing_is_drawn(ssd, command):
    name, *options = command
    run = ssd(name, "a dog", *options)
    assert run.code == 2 and not list(Path().glob("**/*.png"))
    line, = run.err.splitlines()
    assert line.endswith("postcard cannot draw a dog, and the prompt names nothing else: name what "
                         "it knows, such as a house, a tree or the sea")


def test_a_file_with_prompts_of_unknown_words_alone_is_refused_before_it_is_drawn(ssd):
    Path("p.txt").write_text("a house\na dog\ncats\n", encoding="utf-8")
    run = ssd("render", "p.txt", "--out", "r")
    assert run.code == 2 and not Path("r").exists()
    assert "p.txt: 2 of 3 prompts name nothing that postcard knows, first 'a dog'" in run.err


def test_lines_of_a_file_draw_by_their_own_seed_and_negative_prompt(ssd):
    """A resumed run draws nothing again, also where a picture was renamed."""
    line = {"prompt": "a red house", "seed": 5, "negative": "trees", "id": 7, "steps": 20}
    Path("p.jsonl").write_text(f'"a boat"\n{json.dumps(line)}\n"a sun"\n', encoding="utf-8")
    run = ssd("render", "p.jsonl", "--out", "r", "--seed", "3")
    assert run.code == 0 and "p.jsonl, line 2: steps: without meaning here" in run.err
    recipes = [read_recipe(path) for path in sorted(Path("r").glob("*.png"))]
    assert [(each["seed"], each["negative"]) for each in recipes] == [
        (3, None), (5, "trees"), (5, None)]
    alone = ssd("generate", "a red house", "--negative", "trees", "--seed", "5", "--out", "x.png")
    assert alone.code == 0 and read_recipe(Path("x.png"))["tokens"] == recipes[1]["tokens"]
    next(Path("r").glob("000001*.png")).rename("r/mine.png")
    again = ssd("render", "p.jsonl", "--out", "r", "--seed", "3", "--json")
    assert again.code == 0 and again.json["drawn_now"] == 0, again.err
    Path("q.jsonl").write_text('{"prompt": "a sun", "size": "768x768"}\n', encoding="utf-8")
    refused = ssd("render", "q.jsonl", "--out", "q")
    assert refused.code == 2 and "line 1: size 768x768" in refused.err and not Path("q").exists()


def test_an_edit_says_how_much_its_mask_redraws_and_which_of_two_kinds_it_took(ssd):
    assert ssd("generate", "a red house", "--out", "a.png").code == 0
    mask = Image.new("RGBA", (384, 384), (0, 0, 0, 0))
    mask.paste((255, 255, 255, 255), (0, 0, 384, 24))
    mask.save("m.png")
    run = ssd("edit", "a.png", "a red house", "--mask", "m.png", "--out", "b.png")
    cells = re.search(r"redraws (\d+) of (\d+) cells", run.err)
    assert run.code == 0 and 0 < int(cells[1]) < int(cells[2])
    assert "m.png: has transparent and white parts; what is transparent is redrawn" in run.err


def test_compare_measures_what_is_identical(ssd):
    run = ssd("compare", "a red house", "--methods", "ar,exact,ssd:rounds=1", "--out", "c",
              "--json")
    assert [r["guarantee"] for r in run.json["results"]] == ["identical", "identical",
                                                             "approximate"]
    assert run.json["results"][1]["identical_tokens"] == 1
    assert 0.5 <= run.json["identical_tokens"] < 1
    assert Image.open(run.json["image"]).width > 3 * 384
    assert len(list(Path("c").glob("*.png"))) == 4


def test_a_second_comparison_overwrites_nothing(ssd):
    runs = [ssd("compare", "a boat", "--methods", "ar", "--out", "c", "--json") for _ in range(3)]
    names = sorted(path.name for path in Path("c").glob("*.png"))
    assert names == sorted(f"{stem}-0{ending}.png" for stem in ("ar", "compare")
                           for ending in ("", "_2", "_3"))
    assert [Path(run.json["image"]).name for run in runs] == names[3:]
    assert Path(runs[2].json["results"][0]["images"][0]).name == "ar-0_3.png"


def test_compare_says_what_fp32_makes_sure_and_no_share_that_was_not_measured(ssd):
    run = ssd("compare", "a boat", "--methods", "exact,rows", "--out", "c", "--json")
    assert [r["guarantee"] for r in run.json["results"]] == ["identical", "approximate"]
    assert run.json["identical_tokens"] is None


def test_compare_all_draws_what_can_run_and_says_what_cannot(ssd):
    run = ssd("compare", "a boat", "--methods", "all", "--heads", "none", "--out", "c", "--json")
    drawn = [result["method"] for result in run.json["results"]]
    needing = [name for name in METHODS if heads_use(name) == NEEDED]
    assert "ar" in drawn and not set(needing) & set(drawn)
    line = next(line for line in run.json["left_out"] if "heads" in line)
    assert all(name in line for name in needing) and line in run.err
    assert len(list(Path("c").glob("*.png"))) == len(drawn) + 1
    assert all(name in run.err for name in ("same as AR", "identical", "approximate"))


def test_methods_are_listed_with_their_guarantee(ssd):
    listed = ssd("methods", "--json", backbone=None).json["results"]
    assert [row["method"] for row in listed] == list(METHODS)
    for row in listed:
        assert row["guarantee"] == METHODS[row["method"]].guarantee
    assert "window" in next(row for row in listed if row["method"] == "exact")["knobs"]
    text = ssd("methods", backbone=None).out
    assert "AR's own picture" in text and text.count("same distribution") >= 2
    helped = " ".join(ssd("generate", "--help", backbone=None).out.replace("│", " ").split())
    assert all(f"{guarantee}: " in helped for guarantee in by_guarantee())


@pytest.mark.parametrize("command", [["compare", "a boat"], ["bench"]])
def test_what_cannot_run_is_refused_before_anything_does(ssd, monkeypatch, command):
    def run(*_):
        raise AssertionError("a method ran before all were checked")

    monkeypatch.setattr("ssd_core.cli.session.Bars.__call__", run)
    refused = ssd(*command, "--methods", "ar,ssd", "--heads", "none")
    assert refused.code == 2 and "drafts with heads" in refused.err


def test_bench_tells_ratios_against_the_fastest_ar_and_against_ar_in_the_same_dtype(ssd):
    run = ssd("bench", "--methods", "rows", "--ar-dtypes", "fp32,bf16", "--repeats", 1, "--warmup",
              0, "--dtype", "fp32", "--json")
    rows = run.json["results"]
    assert [(row["method"], row["dtype"]) for row in rows] == [
        ("ar", "fp32"), ("rows", "fp32"), ("ar", "bf16")]
    ar, own, other = rows
    least = min(ar["median_seconds"], other["median_seconds"])
    assert own["ratio_to_ar"] == least / own["median_seconds"]
    assert own["ratio_in_dtype"] == ar["median_seconds"] / own["median_seconds"]
    assert all(row["threads"] >= 1 for row in rows) and run.json["processor"]
    assert run.json["load"] == "idle" or run.json["load"].startswith(("busy", "unknown"))


def test_bench_gives_ar_in_another_dtype_no_heads_of_the_first(ssd, monkeypatch):
    seen = []

    def stop(entrants, *_):
        seen.extend(entrants)
        raise KeyboardInterrupt

    monkeypatch.setattr("ssd_core.cli.bench.bench", stop)
    ssd("bench", "--methods", "ssd", "--ar-dtypes", "bf16", "--dtype", "fp32")
    first, other = (entrant.request for entrant in seen)
    assert first.heads and other.heads is None and other.method.name == "ar"


def test_bench_leaves_out_a_dtype_that_does_not_fit_and_says_why(ssd, monkeypatch):
    quick = ("bench", "--methods", "rows", "--repeats", 1, "--warmup", 0, "--dtype", "fp32")
    with monkeypatch.context() as patch:
        patch.setattr("ssd_core.cli.bench.free_bytes", lambda device: 0)
        run = ssd(*quick)
    assert run.code == 0 and run.err.count("is left out: its weights take") == 2
    assert "bf16" not in run.out
    alone = ssd(*quick, "--ar-dtypes", "none")
    assert alone.code == 0 and "left out" not in alone.err and "bf16" not in alone.out


@pytest.mark.parametrize("command", [("generate", "--negative"), ("plan", "--negative")])
def test_half_a_character_is_told_before_anything_is_printed(command, capsys):
    name, flag = command
    for arguments in ([name, "a red \ud83d house"], [name, "a red house", flag, "\udc80"]):
        assert main([*arguments, *(["--backbone", "postcard"] if name == "plan" else [])]) == 2
        said = capsys.readouterr()
        assert "is half of one" in said.err and said.out == ""
        assert len(said.err.splitlines()) == 1


def test_a_closed_pipe_is_no_error_in_the_program():
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -u -m ssd_core methods | true; exit ${{PIPESTATUS[0]}}"],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == "" and done.returncode == 0


def test_plan_needs_no_weights(ssd):
    emu = ssd("plan", "--grid", "90x90", "--row-end", "--rounds", 6, "--json", backbone=None)
    assert emu.json["paper_passes"] == 661 and emu.json["ar_passes"] == 8100
    bundled = ssd("plan", "--json", backbone=None)
    assert bundled.json["passes_max"] == 576 and "usual on a" in bundled.json["tuning"]
    assert 1 < bundled.json["prior_passes"] < 576 and not bundled.json["stand_in"]
    other = ssd("plan", "--json").json  # of other weights
    assert other == {**bundled.json, "prior_passes": other["prior_passes"], "stand_in": True}
    assert other["prior_passes"] > 1.2 * bundled.json["prior_passes"]
    assert ssd("plan", "--method", "ssd", "--json", backbone=None).json["paper_passes"] == 80


def test_what_a_run_took_is_stored_for_the_plans_of_later_commands(ssd, saved, tmp_path,
                                                                   monkeypatch):
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(step_times, "measured", lambda *_: None)
    first = ssd("plan").out
    assert "first run on this model: measuring" in first and "stand in" not in first
    passes = ssd("generate", "a red house", "--batch", 10, "--json").json["passes"]
    files = {path.name: path.read_text() for path in (tmp_path / "cache").glob("[!.]*")}
    assert files.keys() == {StoredPictures.file, StoredStepTimes.file, "hashes.json"}
    assert "house" not in files[StoredPictures.file]
    session.estimates.cache_clear()  # as in the next process
    planned = ssd("plan", "--json")
    assert "passes measured over 10 pictures on this machine" in planned.err
    assert planned.json["prior_pictures"] == 10 and planned.json["prior_passes"] <= passes
    told = ssd("fit", saved.folder, backbone=None).out
    assert f"exact: {planned.json['prior_passes']} passes and " in told and "drawn here: 10" in told
    monkeypatch.setenv(kept_files.VARIABLE, kept_files.OFF)
    session.estimates.cache_clear()
    assert ssd("plan", "--json").json["stand_in"]


def test_heads_none_and_heads_of_their_own(ssd, saved):
    without = ssd("generate", "a boat", "--method", "ssd", "--heads", "none", "--out", "x.png")
    assert without.code == 2 and "heads" in without.err
    assert ssd("generate", "a boat", "--heads", "none", "--out", "x.png").code == 0
    fallen = ssd("generate", "a boat", "--heads", "none", "--rounds", 1, "--out", "x.png", "--json")
    assert fallen.code == 0 and fallen.json["method"] == "rows" and "no draft heads" in fallen.err
    assert read_recipe(Path("x.png"))["method"] == "rows"
    named = saved.folder / "heads.safetensors"
    assert ssd("generate", "a boat", "--heads", named, "--out", "x.png", backbone=saved.bare
               ).code == 0


def test_models_dir_is_searched_by_name(ssd, saved, tmp_path):
    (tmp_path / "ssd_backbones").mkdir()
    (tmp_path / "ssd_heads").mkdir()
    (tmp_path / "ssd_backbones" / "mine").symlink_to(saved.bare)
    (tmp_path / "ssd_heads" / "mine").symlink_to(saved.folder)
    run = ssd("generate", "a boat", "--models-dir", tmp_path, "--out", "x.png", backbone="mine")
    assert run.code == 0


def test_what_download_puts_away_is_found_and_what_it_did_not_is_told(ssd, saved, tmp_path):
    (tmp_path / "models" / "ssd_backbones").mkdir(parents=True)
    (tmp_path / "models" / "ssd_backbones" / "mine").symlink_to(saved.bare)
    assert ssd("generate", "a boat", "--method", "rows", "--out", "x.png",
               backbone="mine").code == 0
    run = ssd("generate", "a boat", "--out", "y.png", backbone="Janus-Pro-1B")
    assert run.code == 2 and "download Janus-Pro-1B --models-dir models" in run.err
    assert run.err.count("\n") == 1


def test_method_specs_carry_knobs():
    assert parse_method("ssd:rounds=1:acceptance=coupled:fused-commit=true") == SSD(
        rounds=1, acceptance="coupled", fused_commit=True)
    assert parse_methods("exact:window=9, ssd:draft_temperature=0.5") == [
        ("exact:window=9", Exact(window=9)),
        ("ssd:draft_temperature=0.5", SSD(draft_temperature=0.5))]


@pytest.mark.parametrize("text", ["", "ar,ar", "nope", "ssd:window=3", "ssd:rounds=x", "ssd:rounds",
                                  "ssd:fused_commit=maybe"])
def test_bad_method_specs_are_refused(text):
    with pytest.raises(SSDError):
        parse_methods(text)


BAD = {
    "empty prompt": ["generate", " "],
    "missing prompt": ["generate"],
    "long prompt": ["generate", "a house " * 40],
    "unknown method": ["generate", "a boat", "--method", "magic"],
    "foreign knob": ["generate", "a boat", "--method", "ssd", "--window", "3"],
    "unknown flag": ["generate", "a boat", "--fast"],
    "k_h beyond the heads": ["generate", "a boat", "--k-h", "9"],
    "k_v beyond the heads": ["generate", "a boat", "--k-v", "3"],
    "rounds below 0": ["generate", "a boat", "--rounds", "-1"],
    "cfg below 1": ["generate", "a boat", "--cfg", "0.5"],
    "cfg not a number": ["generate", "a boat", "--cfg", "nan"],
    "temperature below 0": ["generate", "a boat", "--temperature", "-1"],
    "top_k below 0": ["generate", "a boat", "--top-k", "-1"],
    "top_p 0": ["generate", "a boat", "--top-p", "0"],
    "seed of 2^64": ["generate", "a boat", "--seed", str(1 << 64)],
    "seed below 0": ["generate", "a boat", "--seed", "-2"],
    "batch 0": ["generate", "a boat", "--batch", "0"],
    "batch beyond the limit": ["generate", "a boat", "--batch", "100000"],
    "batch of a file beyond it": ["render", "p.txt", "--batch", "100000"],
    "illegal size": ["generate", "a boat", "--size", "64x64"],
    "size in words": ["generate", "a boat", "--size", "big"],
    "keep without rows": ["generate", "a boat", "--keep", "x.png"],
    "rows without keep": ["generate", "a boat", "--keep-rows", "3"],
    "missing keep": ["generate", "a boat", "--keep", "x.png", "--keep-rows", "3"],
    "missing heads": ["generate", "a boat", "--heads", "nowhere"],
    "missing models folder": ["generate", "a boat", "--models-dir", "nowhere"],
    "unknown device": ["generate", "a boat", "--device", "abacus"],
    "unknown dtype": ["generate", "a boat", "--dtype", "fp7"],
    "not a PNG": ["generate", "a boat", "--out", "x.jpg"],
    "compare with itself": ["compare", "a boat", "--methods", "ar,ar"],
    "no repeats": ["bench", "--repeats", "0"],
    "unknown dtype of AR": ["bench", "--ar-dtypes", "fp32,fp7"],
    "grid and backbone": ["plan", "--grid", "4x4"],
    "no command": ["paint"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_nothing_is_written(ssd, arguments):
    run = ssd(*arguments)
    assert run.code == 2
    *notes, error = run.err.splitlines()
    assert error.startswith("error: ") and all(line.startswith("warning: ") for line in notes)
    assert run.out == "" and not list(Path().iterdir())


@pytest.mark.parametrize(("arguments", "said"), [
    (["generate", "a boat", "--seed", "-5"],
     "--seed -5: must lie in 0 .. 18,446,744,073,709,551,615, or -1 for a random one"),
    (["generate", "a boat", "--seed", "abc"],
     "--seed abc: give a whole number, or -1 for a random one"),
    (["generate", "a boat", "--temperature=hot"], "--temperature hot: give a number"),
    (["generate", "a boat", "--batch", "1.5"], "--batch 1.5: give a whole number"),
    (["generate", "a boat", "--keep-rows", "3"],
     "--keep-rows needs --keep: the picture whose rows to keep"),
    (["generate", "a boat", "--size", "3by3"],
     "--size '3by3': write width x height, for example 384x384"),
    (["generate", "a", "red", "boat"], 'put the whole prompt in quotes: "a red boat"'),
    (["edit", "x.png", "a", "red", "boat"], 'put the whole prompt in quotes: "a red boat"'),
    (["compare", "a", "boat"], 'put the whole prompt in quotes: "a boat"'),
    (["plan", "a", "boat"], 'put the whole prompt in quotes: "a boat"')])
def test_a_wrong_value_is_told_by_the_flag_that_was_typed(ssd, arguments, said, monkeypatch):
    monkeypatch.setattr(session, "load_backbone", None)  # found before a model is loaded
    assert ssd(*arguments).err == f"error: {said}\n"


def test_methods_are_found_in_any_case(ssd):
    assert ssd("plan", "--method", "EXACT").code == 0
    assert parse_method("SSD:rounds=1") == SSD(rounds=1)
    assert len(parse_methods("ALL")) == len(parse_methods("all"))


def test_bad_grids_are_refused(ssd):
    for grid in ("0x4", "4", "axb"):
        assert ssd("plan", "--grid", grid, backbone=None).code == 2
    large = ssd("plan", "--grid", "1000000x1000000", backbone=None)
    assert (large.code, large.err) == (2, "error: --grid 1000000x1000000: at most 128 rows and "
                                          "128 columns\n")


def test_a_plan_is_in_plain_words(ssd):
    told = ssd("plan").out
    for figure in ("passes at most", "passes, usually", "passes by AR", "window", "usual on a"):
        assert figure in told
    paper = ssd("plan", "--grid", "24x24", "--method", "ssd", backbone=None).out
    assert "passes in the paper" in paper and "paper passes" not in paper


@pytest.mark.parametrize("out", ["folder.png", "file.txt/x.png"])
def test_unwritable_output_is_found_before_decoding(ssd, out):
    Path("folder.png").mkdir()
    Path("file.txt").write_text("")
    run = ssd("generate", "a boat", "--out", out, backbone="not even looked for")
    assert run.code == 2 and "cannot write" in run.err


@pytest.mark.parametrize("name, damage", [
    ("backbone.safetensors", "missing"), ("backbone.safetensors", "truncated"),
    ("backbone.safetensors", "mismatched"), ("heads.safetensors", "truncated"),
    ("heads.safetensors", "mismatched")])
def test_damaged_weights_are_refused_by_name(ssd, saved, tmp_path, name, damage):
    model = tmp_path / "damaged"
    model.mkdir()
    for file in saved.folder.iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    other = next(file for file in saved.folder.iterdir() if file.name != name)
    content = {"truncated": (model / name).read_bytes()[:-100], "mismatched": other.read_bytes()}
    if damage == "missing":
        (model / name).unlink()
    else:
        (model / name).write_bytes(content[damage])
    run = ssd("generate", "a boat", "--out", "x.png", backbone=model)
    assert run.code == 2 and len(run.err.splitlines()) == 1 and not Path("x.png").exists()


def test_a_backbone_without_heads_is_drawn_with_by_methods_that_need_none(ssd, saved):
    assert ssd("generate", "a boat", "--out", "x.png", backbone=saved.bare).code == 0
    assert read_recipe("x.png")["heads"] is None
    run = ssd("generate", "a boat", "--method", "ssd", "--out", "y.png", backbone=saved.bare)
    assert run.code == 2 and "heads" in run.err


def test_a_recipe_that_lies_is_refused(ssd):
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("ssd_recipe", '{"version": 1, "tokens": ' + "[" * 5000)
    Image.new("RGB", (384, 384)).save("bad.png", pnginfo=info)
    run = ssd("generate", "a boat", "--keep", "bad.png", "--keep-rows", 3)
    assert run.code == 2 and "bad.png" in run.err and len(run.err.splitlines()) == 1


def test_evaluate_calls_the_engine_and_prints_its_rows(ssd, monkeypatch):
    from ssd_lab.evaluate import quality as evaluate

    def fake(backbone, heads, methods, prompts, *how):
        return [{"method": label, "prompts": prompts, "nll": 1.0} for label, _ in methods]

    monkeypatch.setattr(evaluate, "evaluate", fake)
    run = ssd("evaluate", "--methods", "ar,exact", "--prompts", 3, "--json")
    assert [row["method"] for row in run.json["results"]] == ["ar", "exact"]


def test_a_suite_is_drawn_for_its_scorer_and_goes_on(ssd):
    Path("list.txt").write_text("a boat\na red house\n", encoding="utf-8")
    suite = ("evaluate", "--suite", "coco", "--prompts", "list.txt", "--out", "s", "--json")
    run = ssd(*suite, "--rounds", 0)
    assert run.json == {"suite": "coco", "method": "ssd", "backbone": "postcard", "prompts": 2,
                        "pictures": 2, "drawn_now": 2, "passes": run.json["passes"],
                        "folder": str(Path("s/images"))}
    assert run.json["passes"] < 40 and ssd(*suite, "--rounds", 0).json["drawn_now"] == 0
    other = ssd(*suite, "--rounds", 1)
    assert other.code == 2 and "ssd rounds 0, not 1" in other.err


@pytest.mark.parametrize("arguments, message", [
    (["--suite", "coca", "--prompts", ".", "--out", "s"], "choose one of geneval, dpg, coco"),
    (["--suite", "coco", "--out", "s"], "prompts 64: no such file or folder"),
    (["--suite", "coco", "--prompts", "."], "--suite needs --out"),
    (["--suite", "coco", "--methods", "ar"], "give --method"),
    (["--method", "ar"], "--method goes with --suite"),
    (["--prompts", "list.txt"], "a file of prompts goes with --suite"),
    (["--batch", "0"], "batch 0: must be at least 1")])
def test_a_suite_and_a_table_take_their_own_flags(ssd, arguments, message):
    run = ssd("evaluate", *arguments)
    assert run.code == 2 and message in run.err and len(run.err.splitlines()) == 1


def test_train_flags_are_the_recipes_fields(capsys, monkeypatch, tmp_path):
    from ssd_lab.train import tokenizer

    monkeypatch.setattr(tokenizer, "train", lambda recipe: {"steps": recipe.steps})
    assert main(["train", "tokenizer", "--out", str(tmp_path), "--steps", "3"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"steps": 3}
    assert main(["train", "tokenizer", "--out", str(tmp_path), "--stops", "3"]) == 2
    assert main(["train", "nothing"]) == 2


@pytest.mark.parametrize(("arguments", "line"), [
    ("classifier --reference 1", "reference 1: must be at least 2"),
    ("classifier --device x", "device 'x' cannot be used here"),
    ("backbone --batch 0", "batch 0: must be at least 1"),
    ("tokenizer --rate nan", "rate nan: must be a number"),
    ("tokenizer --seed -1", "seed -1: must lie in 0 .. 2^63 - 1"),
    ("tokenizer --crop 100", "crop 100: must be a multiple of 16, at most 288"),
    ("blend --backbone tiny.safetensors", "draws 8x8 cells, the pictures to learn from have")])
def test_numbers_that_no_stage_can_train_with_are_refused_before_it_paints(
        capsys, monkeypatch, tmp_path, arguments, line):
    monkeypatch.chdir(tmp_path)
    save(tiny_postcard(grid=Grid(8, 8)), Path("tiny.safetensors"))
    assert main(["train", *arguments.split(), "--out", "run"]) == 2
    assert line in capsys.readouterr().err and not Path("run").exists()


class Interrupted(session.Bars):
    """Ctrl-C as soon as the fourth row of the run `label` is done."""

    label = "ar"

    def __call__(self, label, event):
        if isinstance(event, FinalRows) and event.last > 3 and label == self.label:
            raise KeyboardInterrupt


def test_ctrl_c_keeps_the_rows_of_a_picture_that_was_begun(ssd, monkeypatch):
    ssd("generate", "a boat", "--method", "ar", "--batch", 2, "--no-expand", "--out", "whole.png")
    monkeypatch.setattr(session, "Bars", Interrupted)
    run = ssd("generate", "a boat", "--method", "ar", "--batch", 2, "--no-expand", "--out", "x.png")
    assert run.code == 130 and run.out == "" and "Traceback" not in run.err
    assert "x-1.png has the first 4 of 24 rows: --keep x-1.png --keep-rows 4" in run.err
    for number in range(2):
        stopped, whole = (read_recipe(f"{name}-{number}.png") for name in ("x", "whole"))
        assert stopped["stopped_rows"] == 4 and stopped["seconds"]["total"] > 0
        assert torch.equal(recipe_tokens(stopped)[:4], recipe_tokens(whole)[:4])
    monkeypatch.undo()


def test_ctrl_c_keeps_what_a_comparison_has_drawn(ssd, monkeypatch):
    monkeypatch.setattr(session, "Bars", Interrupted)
    run = ssd("compare", "a boat", "--methods", "rows:rounds=0,ar,exact", "--out", "c")
    assert run.code == 130 and "rows-rounds=0-0.png is whole" in run.err
    assert sorted(path.name for path in Path("c").iterdir()) == ["ar-0.png", "rows-rounds=0-0.png"]
    assert "stopped_rows" not in read_recipe(Path("c/rows-rounds=0-0.png"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["methods", "--json"], ["--help"]])
def test_output_that_cannot_be_written_is_one_line(monkeypatch, capsys, arguments):
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(arguments) == 2
        monkeypatch.undo()
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: the output cannot be written (No space left")


def test_a_models_folder_that_download_has_not_made_yet_is_empty(ssd):
    run = ssd("backbones", "--models-dir", "models", "--json", backbone=None)
    assert run.code == 0 and [row["name"] for row in run.json["results"]] == ["postcard"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_before_anything_has_begun_is_one_line():
    script = ("import os, signal, sys\n"
              "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
              "import ssd_core.__main__ as program\n"
              "assert 'torch' not in sys.modules\n"
              "with program.stopping_at_once():\n"
              "    try:\n"
              "        os.kill(os.getpid(), signal.SIGINT)\n"
              "    except KeyboardInterrupt:\n"
              "        pass\n")
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_interrupt_ends_with_130(saved, tmp_path):
    script = ("import os, signal, sys\n"
              "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
              "from ssd_core.cli import main\n"
              "from ssd_core.cli import session\n"
              "class Told(session.Bars):\n"
              "    def __call__(self, label, event):\n"
              "        os.kill(os.getpid(), signal.SIGINT)\n"
              "session.Bars = Told\n"
              "sys.exit(main(sys.argv[1:]))\n")
    command = [sys.executable, "-c", script, "generate", "a boat", "--backbone",
               str(saved.folder), "--method", "ar", "--out", str(tmp_path / "x.png")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 130 and done.stderr == "interrupted\n"
    assert not list(tmp_path.iterdir())
