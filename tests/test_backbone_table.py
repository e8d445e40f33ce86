"""The table of backbones in docs/backbones.md is what the catalogue and the estimate say today."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "backbones.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def script():
    spec = importlib.util.spec_from_file_location("backbone_table",
                                                  ROOT / "benchmarks" / "backbone_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("line", script().table().splitlines(), ids=lambda line: line[:30])
def test_a_row_of_the_table_is_on_the_page(line):
    assert line in PAGE.splitlines()


@pytest.mark.parametrize("text", [PAGE, README], ids=["page", "readme"])
def test_what_was_not_tried_is_said(text):
    said = " ".join(text.split())
    assert "never with the real weights" in said and "one were at hand" in said
    assert "Nobody publishes draft heads" in said
