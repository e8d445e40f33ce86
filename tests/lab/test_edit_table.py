"""lab/benchmarks/run.py edit: cases with one change each, ISLock's rule, a table that goes on."""

import argparse
import json

import numpy as np
import pytest
from support import script_modules
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard, tokens

from ssd_core import Grid, Sampling, methods
from ssd_core.backbones.postcard.words.spelling import length_of
from ssd_lab.postcards import MAX_TOKENS, WORDS, is_valid, paint, read
from ssd_lab.postcards.claims import claims


def script(name: str):
    return script_modules.script("lab/benchmarks", name)


@pytest.fixture(scope="module")
def cases():
    module = script("edit_cases")
    return [module.case_of(kind, 3) for kind in module.CHANGES]


def test_captions_differ_in_the_change_alone(cases):
    for case in cases:
        assert case == script("edit_cases").case_of(case.kind, 3)
        assert is_valid(case.before) and is_valid(case.after)
        old, new = ({part.strip() for part in text.split(",")} for text in (case.old, case.new))
        assert max(len(old - new), len(new - old)) == 1, case
        assert (case.kind in script("edit_cases").SCENES) == (not case.places)
        moved = {"add": (0, 1), "remove": (1, 0), "move": (1, 1)}.get(case.kind, (1, 1))
        assert (len(old - new), len(new - old)) == moved
        assert claims(case.new)


def test_no_caption_is_longer_than_those_of_training():
    edits = script("edit_cases")
    long = [case for kind in edits.CHANGES for case in (edits.case_of(kind, n) for n in range(64))
            if max(map(length_of, (case.old, case.new))) > MAX_TOKENS]
    assert not long


def test_painted_pictures_show_the_change_and_lie_in_the_box(cases):
    for case in cases:
        before, after = paint(case.before), paint(case.after)
        assert case.done(read(after)) and not case.done(read(before)), case
        assert case.stay(read(before), read(before)) in (1.0, None)
        box = case.box()
        if case.kind in ("colour", "kind"):  # else the painter may move the other things
            outside = ~np.kron(box, np.ones((16, 16), bool))
            assert box.mean() < 0.4 and not (before != after).any(-1)[outside].any(), case


def test_islock_takes_the_sample_nearest_to_the_old_token(monkeypatch):
    module, model = script("islock"), MockBackbone(Grid(4, 5), codes=12)
    parent = tokens(model, methods.AR(), ["x"], sampling=Sampling(seed=8))
    monkeypatch.setattr(module, "SAMPLES", 1)
    one = module.islock(model, "a sun", parent, 3, threads=1)
    ar = tokens(model, methods.AR(), sampling=Sampling(seed=3, cfg=model.preset.cfg))
    assert one.tokens.equal(ar) and one.passes == 20
    monkeypatch.setattr(module, "SAMPLES", 256)  # among so many is the token itself
    many = module.islock(model, "a sun", parent, 3, threads=1).tokens
    assert many[:, 0].equal(parent[:, 0])
    assert (many == parent).float().mean() > (ar == parent).float().mean()


@pytest.fixture
def command(tmp_path, monkeypatch):
    module, backbone = script("edit"), tiny_postcard(words=WORDS)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(script("edit_table"), "RESULTS", tmp_path / "results")
    monkeypatch.setattr(module, "load_backbone", lambda *_: backbone)
    monkeypatch.setattr(module, "load_heads", lambda *_: random_heads(backbone))

    def run(**changes):
        return module.run(argparse.Namespace(**{
            "backbone": "tiny", "dtype": "fp32", "runs": tmp_path / "runs", "count": 1, "first": 0,
            "name": "edit", "kinds": ["colour", "time"], **changes}))

    return run


def test_a_table_and_a_sheet_of_every_way_and_nothing_is_drawn_twice(command, tmp_path,
                                                                   monkeypatch):
    table = script("edit_table")
    text = command(kinds=["colour"])
    rows = {row["way"]: row for row in json.loads(
        (tmp_path / "results" / "edit.json").read_text())}
    assert list(rows) == [table.BEFORE, table.AR, table.ANEW, table.WORDS, table.BOX,
                          table.ISLOCK]
    assert 1 > rows[table.BOX]["kept"] > 0.5 and rows[table.AR]["kept"] < 1
    assert rows[table.AR]["passes"] == rows[table.ISLOCK]["passes"] == 576
    assert rows[table.BOX]["passes"] < rows[table.ANEW]["passes"] < 576
    assert rows[table.AR]["kept"] == rows[table.ANEW]["kept"] and rows[table.AR]["of_ar"] == 1
    assert "Aims" in text and (tmp_path / "results" / "edit.webp").stat().st_size > 1000
    monkeypatch.setattr(script("edit"), "Edits", None)
    assert command(kinds=["colour"]).splitlines()[4:] == text.splitlines()[4:]


def test_a_missed_aim_is_named():
    aim, ar = script("edit_table").AIMS["ground"], {"claims": 0.95}
    row = {"claims": 0.95, "kept": 0.5, "stay": 0.8, "passes": 81.0}
    assert aim.missed(row, ar) == ["things stay 0.80, aim 0.90", "81 passes, aim 80"]
    assert aim.missed({**row, "stay": 0.91, "passes": 80.0, "claims": 0.925}, ar) == []
