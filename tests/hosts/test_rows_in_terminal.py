"""Rows in the terminal: half blocks in the cells' colours, two rows a line, above the bar."""

import io
import re

import numpy as np
import pytest
import torch
from rich.console import Console
from support.mock_backbone import tiny_postcard
from support.requests import requested

from ssd_core import FinalRows, Grid, Sampling, methods
from ssd_core.cli.session import HALF, RowsInTerminal
from ssd_core.engine.events import Finished
from ssd_core.output.palette import palette

CELL = re.compile(r"\x1b\[38;2;(\d+);(\d+);(\d+)(?:;48;2;(\d+);(\d+);(\d+))?m▀")


@pytest.fixture(scope="module")
def backbone():
    return tiny_postcard(grid=Grid(5, 6))


def printed(backbone, tokens, width=80, **console):
    """What a run that ends in these tokens [B, R, C] prints, its rows in two events."""
    out = io.StringIO()
    shown = Console(file=out, **{"force_terminal": True, "color_system": "truecolor",
                                 "width": width, "no_color": False, **console})
    request = requested(backbone, None, methods.AR(), Sampling(), "a boat", pictures=len(tokens))
    rows = RowsInTerminal(request, shown)
    for event in (FinalRows(0, 1, tokens[:, :1]), FinalRows(1, 5, tokens[:, 1:]),
                  Finished(tokens, {})):
        rows(event)
    return out.getvalue()


def colours_of(text):
    """[lines of cells, 2 * 3], NaN where nothing is below."""
    return [[[float(part or "nan") for part in cell] for cell in CELL.findall(line)]
            for line in text.splitlines() if HALF in line]


def test_every_cell_has_its_codes_colour(backbone):
    tokens = torch.randint(backbone.codes, (2, 5, 6), generator=torch.Generator().manual_seed(0))
    lines = np.array(colours_of(printed(backbone, tokens)))
    assert lines.shape == (3, 13, 6)  # two pictures of six cells, and a gap
    wanted = palette(backbone).of(tokens.numpy())
    for picture in range(2):
        found = lines[:, 7 * picture : 7 * picture + 6]
        assert np.array_equal(found[..., :3], wanted[picture, ::2])
        assert np.array_equal(found[:2, :, 3:], wanted[picture, 1::2])
    assert np.isnan(lines[2, :, 3:]).all()


def test_a_wide_picture_is_thinned_until_it_fits(backbone):
    lines = colours_of(printed(backbone, torch.zeros(1, 5, 6, dtype=torch.long), width=3))
    assert [len(line) for line in lines] == [3, 3]


@pytest.mark.parametrize("console", [{"force_terminal": False}, {"no_color": True},
                                     {"color_system": None}, {"color_system": "standard"}])
def test_without_colours_nothing_is_printed(backbone, console):
    assert printed(backbone, torch.zeros(1, 5, 6, dtype=torch.long), **console) == ""
