"""The table of backbones in docs/backbones.md is what the catalogue and the estimate say today."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "backbones.md").read_text(encoding="utf-8")


def script():
    spec = importlib.util.spec_from_file_location("backbone_table",
                                                  ROOT / "benchmarks" / "backbone_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_row_of_the_table_is_on_the_page():
    rows = script().table().splitlines()
    assert rows and [row for row in rows if row not in PAGE.splitlines()] == []
