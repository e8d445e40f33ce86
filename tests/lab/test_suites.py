"""Suites of the papers: prompts are read, pictures lie where official scorers look, runs go on."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.requests import requested

from ssd_core import Sampling, SSDError
from ssd_core.backbones.postcard import Postcard
from ssd_core.engine.methods import SJD, Rows
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import DecoderShape
from ssd_core.output.recipe import read_recipe
from ssd_core.runs.batch.render import RenderSettings
from ssd_core.runs.batch.workers import LoadedModels, LocalWorker
from ssd_lab.evaluate.suites import SUITES
from ssd_lab.evaluate.suites.run import SuiteRun, require_square

SHAPE = DecoderShape(layers=1, hidden=32, heads=2, kv_heads=2, head_dim=16, ffn=64,
                     rotary="interleaved")
LINES = ['{"tag": "single_object", "include": [{"class": "boat", "count": 1}], "prompt": "a boat"}',
         '{"prompt":  "a red house", "tag": "colors", "include": [{"class": "house", "count": 1, '
         '"color": "red"}], "exclude": [{"class": "boat", "count": 1}]}']


@pytest.fixture(scope="module")
def loaded():
    backbone = Postcard(("a", "red", "house", "boat"), codes=32, shape=SHAPE, grid=Grid(4, 4))
    backbone.initialise(torch.Generator().manual_seed(0))
    return LoadedModels(backbone.freeze())


@pytest.fixture
def suite(loaded, tmp_path):
    """A run of a suite by `rows` without rounds, into a folder of the test's."""
    def run(name, prompts, rounds=0, samples=None, seed=7, method=None):
        first = requested(loaded.backbone, None, method or Rows(rounds=rounds), Sampling(seed=seed),
                        "")
        return SuiteRun.of(SUITES[name], prompts, tmp_path / "out",
                           RenderSettings(first.drawing.method, first.sampling), loaded, samples)
    return run


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def pixels(path: Path) -> np.ndarray:
    return np.array(Image.open(path))



# GenEval


@pytest.fixture
def metadata(tmp_path):
    return written(tmp_path / "evaluation_metadata.jsonl", "\n".join(LINES) + "\n")


def test_geneval_finds_its_line_and_its_samples(suite, loaded, metadata, tmp_path):
    run, out = suite("geneval", metadata, samples=2), tmp_path / "out"
    assert run.draw(LocalWorker(loaded), 3) == 4
    assert files(out) == [*(f"0000{i}/{name}" for i in (0, 1) for name in (
        "grid.png", "metadata.jsonl", "samples/0000.png", "samples/0001.png")), "suite.json"]
    for i, line in enumerate(LINES):
        told = (out / f"0000{i}/metadata.jsonl").read_text(encoding="utf-8")
        assert told == f"{line}\n" and json.loads(told)["tag"]
        samples = [out / f"0000{i}/samples/000{j}.png" for j in (0, 1)]
        recipes = [read_recipe(path) for path in samples]
        assert [one["prompt"] for one in recipes] == [json.loads(line)["prompt"]] * 2
        assert [one["seed"] for one in recipes] == [7 + 2 * i, 8 + 2 * i]
        both = np.concatenate([pixels(path) for path in samples], 1)
        assert np.array_equal(pixels(out / f"0000{i}/grid.png"), both)


def test_an_interrupted_suite_ends_with_the_same_pictures(suite, loaded, metadata, tmp_path):
    crew, lost = LocalWorker(loaded), tmp_path / "out/00001/samples/0000.png"
    assert suite("geneval", metadata, samples=2).draw(crew, 4) == 4
    before, others = pixels(lost), tmp_path / "out/00000/samples/0000.png"
    lost.unlink()
    written_at = others.stat().st_mtime_ns
    assert suite("geneval", metadata, samples=2).draw(crew, 2) == 1
    assert np.array_equal(pixels(lost), before) and others.stat().st_mtime_ns == written_at
    assert suite("geneval", metadata, samples=2).draw(crew, 2) == 0


def test_an_open_window_is_that_of_the_device_which_the_record_names(suite, loaded, metadata,
                                                                     tmp_path):
    """Another type of device has another window, and so would draw other pictures."""
    suite("geneval", metadata, samples=1, method=SJD()).draw(LocalWorker(loaded), 4)
    assert json.loads((tmp_path / "out/suite.json").read_text())["drawn_by"]["sjd window"] == 16
    other = suite("geneval", metadata, samples=1, method=SJD(window=8))
    with pytest.raises(SSDError, match="sjd window"):
        other.draw(LocalWorker(loaded), 4)


def test_pictures_of_another_run_are_not_taken(suite, loaded, metadata, tmp_path):
    def refused(told, **other):
        with pytest.raises(SSDError, match=told):
            suite("geneval", metadata, **{"samples": 1, **other}).draw(LocalWorker(loaded), 4)

    suite("geneval", metadata, samples=1).draw(LocalWorker(loaded), 4)
    refused("rows rounds 0, not 1: choose another", rounds=1)
    refused("samples 1, not 2", samples=2)
    written(metadata, LINES[0])
    refused("other prompts")
    (tmp_path / "out/suite.json").unlink()  # then the recipes tell
    refused("drawn with seed 7, now it is 8", seed=8)
    written(tmp_path / "out/suite.json", '{"version": 1, "suite": "geneval"}')
    refused("suite.json: damaged")
    written(tmp_path / "out/suite.json", '{"version": 2}')
    refused("suite.json: its format is ssd-suite/2, this program reads up to ssd-suite/1")


@pytest.mark.parametrize("line, told", [
    ('{"tag": "x", "prompt": "a', "line 2: not JSON"),
    ('["a boat"]', "line 2: lacks what GenEval's scorer reads"),
    ('{"prompt": "a boat"}', "line 2: lacks"),
    ('{"tag": "x", "include": [{"class": "boat"}], "prompt": "a boat"}', "line 2: lacks"),
    ('{"tag": "x", "prompt": " "}', "line 2: has no prompt"),
    ('{"tag": "x", "prompt": "\\ud800"}', "line 2: character 1 is half of one")])
def test_bad_metadata_is_named_by_its_line(suite, tmp_path, line, told):
    with pytest.raises(SSDError, match=told) as refused:
        suite("geneval", written(tmp_path / "m.jsonl", f"{LINES[0]}\n{line}\n"))
    assert len(str(refused.value).splitlines()) == 1


# DPG-Bench


def test_dpg_cuts_four_samples_out_of_one_picture_named_as_its_prompt(suite, loaded, tmp_path):
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    written(prompts / "whoops9.txt", "a red house")
    assert suite("dpg", prompts).draw(LocalWorker(loaded), 4) == 4
    out = tmp_path / "out"
    assert files(out / "images") == ["whoops9.png"]  # its scorer opens whatever is there
    grid, side = pixels(out / "images/whoops9.png"), loaded.backbone.size[0]
    corners = ((0, 0), (0, side), (side, 0), (side, side))  # the scorer's order
    for i, (y, x) in enumerate(corners):
        sample = pixels(out / f"samples/whoops9/000{i}.png")
        assert np.array_equal(grid[y : y + side, x : x + side], sample)


def test_dpg_reads_its_table_of_questions(tmp_path):
    table = written(tmp_path / "dpg_bench.csv", 'item_id,text,proposition_id\n'
                    '12,"a boat , red",1\n12,"a boat , red",2\nwhoops9,a house,1\n')
    assert [(one.name, one.prompt) for one in SUITES["dpg"].read(table)] == [
        ("12", "a boat , red"), ("whoops9", "a house")]


@pytest.mark.parametrize("rows, told", [
    ("../x,a boat", r"line 2: '\.\./x' cannot name a picture"),
    ("x.txt,a boat", "cannot name"), ("/etc/x,a boat", "cannot name"), (",a boat", "cannot name"),
    ("a,a boat\na,a house", "line 3: 'a' has another prompt"),
    ("a,a boat\nA,a boat", "two prompts are named 'A'"),
    ("a,", "has no prompt"), ("", "holds no prompts")])
def test_names_that_would_lead_elsewhere_are_refused(suite, tmp_path, rows, told):
    with pytest.raises(SSDError, match=told):
        suite("dpg", written(tmp_path / "t.csv", f"item_id,text\n{rows}\n"))
    assert not (tmp_path / "out").exists()


def test_dpg_says_what_else_is_wrong(suite, tmp_path):
    with pytest.raises(SSDError, match="no columns item_id and text"):
        suite("dpg", written(tmp_path / "t.csv", "name,prompt\n"))
    with pytest.raises(SSDError, match="no such file"):
        suite("dpg", tmp_path / "missing.csv")
    with pytest.raises(SSDError, match="samples 5: the suite dpg takes 1 .. 4"):
        suite("dpg", written(tmp_path / "t.csv", "item_id,text\n1,a boat\n"), samples=5)
    with pytest.raises(SSDError, match="size 8x4: .* squares"):
        require_square(SUITES["dpg"], 8, 4)


# MS-COCO


def test_coco_names_a_picture_as_its_photograph(suite, loaded, tmp_path):
    captions = [{"id": 5, "image_id": 285, "caption": "A boat.\n"},
                {"id": 4, "image_id": 139, "caption": "a house"},
                {"id": 3, "image_id": 139, "caption": "a red house"}]
    path = written(tmp_path / "captions_val2017.json", json.dumps({"annotations": captions}))
    assert suite("coco", path).draw(LocalWorker(loaded), 4) == 2
    out = tmp_path / "out"
    assert files(out / "images") == ["000000000139.png", "000000000285.png"]
    assert json.loads((out / "captions.json").read_text()) == ["a red house", "A boat."]


@pytest.mark.parametrize("name, text", [("list.txt", "a boat\n\n# two\n a  house\n"),
                                        ("list.json", '["a boat", "a house"]')])
def test_coco_takes_any_list_of_prompts(tmp_path, name, text):
    items = SUITES["coco"].read(written(tmp_path / name, text))
    assert [(one.name, one.prompt) for one in items] == [("00000", "a boat"), ("00001", "a house")]


@pytest.mark.parametrize("text, told", [
    ("{", "not JSON"), ('{"images": []}', "no list of annotations"), ("[]", "holds no prompts"),
    ('["a boat", 3]', "entry 2: has no prompt"), ("[" * 100_000, "not JSON"),
    ('{"annotations": [{"id": 1, "image_id": -1, "caption": "x"}]}', "no list of annotations")])
def test_bad_lists_are_told_in_one_line(tmp_path, text, told):
    with pytest.raises(SSDError, match=told) as refused:
        SUITES["coco"].read(written(tmp_path / "x.json", text))
    assert len(str(refused.value).splitlines()) == 1


def test_a_prompt_that_the_backbone_cannot_draw_is_found_before_anything_is_drawn(
        suite, loaded, tmp_path, monkeypatch):
    def refuse(prompt):
        raise SSDError(f"cannot draw {prompt!r}")
    monkeypatch.setattr(loaded.backbone, "tokenize", refuse)
    with pytest.raises(SSDError, match="prompt 00000: cannot draw 'a boat'"):
        suite("coco", written(tmp_path / "x.txt", "a boat\n"))
    assert not (tmp_path / "out").exists()
