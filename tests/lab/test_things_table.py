"""lab/benchmarks/run.py things: cases, truth, clicks and the table."""

import json

import numpy as np
import pytest
import torch
from support import script_modules

from ssd_core import Thing
from ssd_lab.postcards import SQUARE, paint, sample_scene
from ssd_lab.postcards.checker import outlined
from ssd_lab.postcards.objects import cells_of


def script(name: str):
    return script_modules.script("lab/benchmarks", name)


def cells(first: int, last: int) -> np.ndarray:
    shown = np.zeros((24, 24), dtype=bool)
    shown[4:8, first:last] = True
    return shown


def seen(kind: str, colour: str, place: str, first: int = 0):
    return script("things_cases").Seen(kind, colour, place, cells(first, first + 4))


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(4))
def test_the_checker_finds_the_cells_that_the_painter_covered(seed):
    scene = sample_scene(np.random.default_rng(seed))
    covered, found = cells_of(scene), outlined(paint(scene))
    places = [n for n, thing in enumerate(scene.things) if thing.place in found]
    assert places
    for n in places:
        own, truth = found[scene.things[n].place].cells(SQUARE), covered == n
        assert (own & truth).sum() > 0.7 * (own | truth).sum(), scene.things[n]


def test_phrases_get_the_cells_of_what_they_name():
    module = script("things_cases")
    left, right = seen("tower", "red", "left"), seen("tower", "red", "right", 18)
    def named(prompt, *shown):
        return [next((thing.place for thing in shown if thing.cells is found), None)
                for found in module.cells_named(prompt, shown)]

    assert named("a red tower on the right and a tower", right, left) == ["right", "left"]
    assert named("a red tower, a red tower", right, left) == ["left", "right"]
    assert named("a tower and a blue tower", left) == ["left", None]


def test_clicks_hit_the_right_thing_a_wrong_one_or_nothing():
    module = script("things")
    case = script("things_cases").Case(0, "painted", "a, b, c", torch.zeros(1, 24, 24),
                                       [cells(2, 6), cells(12, 16), None])
    shown = [Thing("a", torch.from_numpy(cells(2, 4)), 50.0, True),
             Thing("c", torch.from_numpy(cells(13, 16)), 20.0, True)]
    a, b, c = module.of_phrases(case, ["a", "b", "c"], shown)
    assert a["iou"] == 0.5 and (a["right"], a["nothing"]) == (0.75, 0.25)
    assert b["iou"] == 0 and b["wrong"] == 1 and not c["seen"] and c["strength"] == 20
    assert module.beside(case, shown) == 0


def test_the_table_says_which_aims_are_met(monkeypatch, tmp_path):
    module = script("things")
    phrase = {"seen": True, "strength": 50.0, "sure": True, "iou": 0.9, "half": 1.0,
              "right": 0.9, "wrong": 0.01, "nothing": 0.09}
    unseen = {"seen": False, "strength": None, "sure": False}
    pictures = [{"way": way, "beside": 0.01, "seconds": 0.3, "phrases": [phrase, phrase, unseen]}
                for way in ("exact", "painted")]
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    text = module.write("things", pictures, "here")
    assert "| **all** | 4 | 0.900 ± 0.000 |" in text
    assert "IoU 0.900, aim at least 0.80: met" in text
    assert "right thing 0.900, aim at least 0.95: missed" in text
    [whole, *_] = json.loads((tmp_path / "things.json").read_text(encoding="utf-8"))
    assert whole["unseen"] == 2 and whole["shown"] == 0


@pytest.mark.by_day(2)
@pytest.mark.parametrize("number", [1, 41, 7, 63], ids=["copies", "synonyms", "two", "boat"])
def test_the_bundled_postcard_outlines_what_its_words_name(number):
    """Painted pictures; those with "a bridge and a bridge" and "pink houses , pink cottages"."""
    loaded = script("script").postcard("int8")
    found = script("things").measured(loaded, number)
    assert min(phrase["iou"] for phrase in found["phrases"]) > 0.5, found
    assert max(phrase["wrong"] for phrase in found["phrases"]) < 0.1, found


def test_a_phrase_may_have_two_things():
    shown = [Thing(name, torch.from_numpy(cells(2, 4)), 50.0, True) for name in ("a", "b", "b")]
    assert script("things").named(["a", "b"], shown) == [0, 1, 1]
    assert script("things").named(["a", "b", "b"], shown) == [0, 1, 2]
