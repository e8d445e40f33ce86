"""Knobs: described once, enforced from the description, gathered for the hosts."""

import re
from dataclasses import dataclass, fields

import numpy as np
import pytest

from ssd_core import Grid, Sampling, SSDError, methods
from ssd_core.backbones.base import Preset
from ssd_core.backbones.sizes import EMU3_PATCH, emu3
from ssd_core.engine.methods import METHODS
from ssd_core.model.grid import LONGEST_SIDE
from ssd_core.model.knobs import LARGEST, KnobRecord, knob, specs
from ssd_core.output.knob_words import KNOB_WORDS, OWN_CHINESE
from ssd_core.output.knobs import all_knobs, sampling_knobs
from ssd_core.weights.catalogue import CATALOGUE

RECORDS = {**METHODS, "sampling": Sampling}


@dataclass(frozen=True)
class Record(KnobRecord):
    count: int | None = knob(None, "A count.", low=1, none_means="its own")
    share: float = knob(1.0, "A share.", above=0, high=1, step=0.1)
    choice: str = knob("a", "A choice.", choices=("a", "b"))
    switch: bool = knob(False, "A switch.")
    number: int = knob(0, "A number.", low=0, fresh=True)


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_every_field_is_described_and_its_default_is_legal(record):
    for entry in specs(record):
        assert entry.help.endswith(".") and "\n" not in entry.help
        assert entry.visibility in ("basic", "expert", "never")
        assert entry.none_means if entry.optional else entry.allows(entry.default), entry.name


@pytest.mark.parametrize("values, line", [
    ({"count": 0}, "count 0: must be at least 1"),
    ({"count": LARGEST + 1}, "count 1048577: must be at most 1,048,576"),
    ({"count": 1.5}, "count '1.5': must be a whole number"),
    ({"share": 0}, "share 0: must lie above 0, at most 1"),
    ({"share": 1.5}, "share 1.5: must lie above 0, at most 1"),
    ({"choice": "c"}, "choice 'c': choose one of a, b"),
    ({"switch": 1}, "switch '1': must be True or False")])
def test_an_illegal_value_is_refused_with_the_legal_ones(values, line):
    with pytest.raises(SSDError) as refused:
        Record(**values)
    assert str(refused.value) == line


def test_legal_values_and_none_pass():
    assert Record(3, 0.5).share == 0.5 and Record(number=-1).number >= 0
    with pytest.raises(TypeError):
        Record(1, 1.0, "a", True, 0, 7)
    for three in (np.int64(3), 3.0, np.float32(3)):
        assert type(Record(three).count) is int
    assert Record(count=LARGEST, share=0.1, choice="b", switch=True).count == LARGEST
    assert Record(count=None).count is None


def test_a_name_means_the_same_knob_in_every_method():
    for entry in all_knobs().values():
        for method in entry.methods:
            other = next(o for o in specs(METHODS[method]) if o.name == entry.name)
            assert other.kind is entry.kind
            assert (other.help, other.low, other.high, other.choices) == (
                entry.help, entry.low, entry.high, entry.choices)


def test_knobs_are_gathered_once_with_the_methods_that_have_them():
    knobs = all_knobs()
    assert set(knobs) == {f.name for method in METHODS.values() for f in fields(method)
                          if f.metadata.get("visibility") != "never"}
    assert knobs["k_h"].methods == ("mtp", "ssd", "strict", "rows", "hawk", "lantern")
    assert knobs["rounds"].default is None and knobs["rounds"].default_text == "the method's own"


def test_every_knob_has_words_in_english_and_chinese():
    knobs = {entry.name: entry for entry in [*all_knobs().values(), *sampling_knobs()]}
    assert set(KNOB_WORDS) == set(knobs), "see docs/add_a_knob.md"
    for words in KNOB_WORDS.values():
        assert re.search("[\u4e00-\u9fff]", words.help) and words.help.endswith("。")
        assert words.label and words.chinese.startswith(words.name)
    assert {entry.none_means for entry in knobs.values() if entry.optional} <= set(OWN_CHINESE)


def test_a_chinese_label_begins_with_the_name_of_the_widget():
    assert [KNOB_WORDS[name].name for name in ("rounds", "window", "cfg", "temperature")] == [
        "r", "窗口", "引导强度", "温度"]


def test_a_draft_is_no_longer_than_a_side_of_the_largest_picture():
    grids = [row.grid for row in CATALOGUE.values()]
    sides = [max(grid.rows, grid.columns) for grid in grids]
    sides += [max(size) // EMU3_PATCH for size in emu3()]
    assert max(sides) <= LONGEST_SIDE < 2 * max(sides)
    widest = methods.Rows(LONGEST_SIDE, LONGEST_SIDE).resolve(Preset())
    assert widest.plan(Grid(9, 9)).passes
    for name in ("k_h", "k_v"):
        with pytest.raises(SSDError, match=f"{name} 129: must lie in 1 .. 128"):
            methods.SSD(**{name: LONGEST_SIDE + 1})
