"""What is known before one draws: every row of the catalogue has it, with sources, in Chinese too.
"""

import re

import pytest

from ssd_core.output.chinese import in_chinese
from ssd_core.weights.advice import advice_lines, advice_on, sizes_text
from ssd_core.weights.catalogue import CATALOGUE

HAN = re.compile("[\u4e00-\u9fff]")


@pytest.mark.parametrize("row", CATALOGUE.values(), ids=CATALOGUE)
def test_sizes_prompts_and_weak_points_are_known_with_their_sources(row):
    known = advice_on(row)
    assert known.prompts.endswith(".") and known.weak.endswith(".")
    assert known.sources and all(link.startswith("https://") for _, link in known.sources)
    assert all(len(line.splitlines()) == 1 for line in advice_lines(row))
    assert sizes_text(row).startswith("{}x{}".format(*row.size))
    assert all(HAN.search(in_chinese(line)) for line in advice_lines(row)[1:]), (
        f"{row.family}: its advice has no Chinese in the notes of ssd_core/assets/chinese.json")


def test_all_shapes_are_counted_in_both_languages():
    assert sizes_text(CATALOGUE["Emu3.5-Image"]) == "1024x1024 and 7 other shapes"
    assert in_chinese("1024x1024 and 7 other shapes") == "1024x1024 以及另外 7 种形状"
    assert sizes_text(CATALOGUE["Janus-Pro-1B"]) == "384x384"
