"""README's table of backbones is what the catalogue and the estimate say today."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def script():
    spec = importlib.util.spec_from_file_location("backbone_table",
                                                  ROOT / "benchmarks" / "backbone_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("line", script().table().splitlines(), ids=lambda line: line[:30])
def test_a_row_of_the_table_is_in_the_readme(line):
    assert line in README.splitlines()


def test_the_readme_says_what_was_not_tried():
    assert "no real weights were at hand" in README
    assert "Nobody publishes draft heads" in README
