"""Names that others rely on stay: nodes, inputs, outputs, keys of recipes, templates."""

from copy import deepcopy

import pytest
from support.script_modules import script


@pytest.fixture(scope="module")
def tool():
    return script("tools", "golden")


@pytest.fixture(scope="module")
def known(tool):
    return tool.read(tool.PATH)


def test_names_are_those_of_the_golden_set(tool, known):
    for told in tool.complaints(known, tool.golden()):
        pytest.fail(told, pytrace=False)


def rename(new):
    new["recipe"]["keys"].remove("seed")
    new["recipe"]["keys"].append("number")


def remove(new):
    del new["SSD_RunInfo"]


def retype(new):
    new["SSD_SaveImage"]["outputs"][0] = "images MASK"


def move(new):
    new["SSD_Sampler"]["widgets"].reverse()


def insert(new):
    new["SSD_Sampler"]["widgets"].insert(3, "wish STRING")


@pytest.mark.parametrize("change, line", [
    (rename, "recipe: keys without seed: changed on purpose? before 0.1.0 run python tools/"),
    (remove, "SSD_RunInfo: outputs without "),
    (retype, "SSD_SaveImage: outputs without images IMAGE: "),
    (move, "SSD_Sampler: widgets in another order"), (insert, "SSD_Sampler: widgets in another ")])
def test_a_change_is_told_in_a_line_with_what_to_do(tool, known, change, line, monkeypatch):
    new = deepcopy(known)
    change(new)
    told = list(tool.complaints(known, new))
    assert any(one.startswith(line) for one in told) and all("\n" not in one for one in told)
    monkeypatch.setattr(tool, "golden", lambda: new)
    assert not tool.pages() and tool.pages(anew=True)


def test_what_is_added_last_is_written_with_the_texts(tool, known, monkeypatch):
    new = deepcopy(known)
    new["SSD_Sampler"]["widgets"].append("wish STRING")
    new["recipe"]["keys"].insert(0, "a_new_key")
    monkeypatch.setattr(tool, "golden", lambda: new)
    page, = tool.pages().values()
    assert "wish STRING" in page and "a_new_key" in page
