"""Counting what stood, and the sheet that shows it."""

from __future__ import annotations

import numpy as np
import pytest
from support.mock_backbone import MockBackbone, random_heads

from ssd_core import Grid, Pass, generate, methods
from ssd_core.output.heatmap import RAMP, AcceptanceCount, acceptance_sheet, heat


def counted(backbone, method, prompts=("sun", "boat")):
    count, judged = AcceptanceCount(len(prompts), backbone.grid), []
    for event in generate(backbone, prompts, method, random_heads(backbone)):
        count(event)
        if isinstance(event, Pass) and event.accepted is not None:
            judged.append(event)
    return count.share(), judged


@pytest.mark.parametrize("method", [methods.SSD(k_v=2), methods.Strict(), methods.Exact(),
                                    methods.Rows()], ids=lambda m: m.name)
def test_the_share_is_what_the_passes_said(method):
    backbone = MockBackbone(Grid(3, 4, True))
    share, judged = counted(backbone, method)
    assert share.shape == (2, 3, 4)
    for picture, y, x in np.ndindex(share.shape):
        said = [bool(e.unchanged[picture, n]) for e in judged
                for n, cell in enumerate(e.cells[picture].tolist())
                if cell == [y, x] and n >= e.n_context]
        if said:
            assert share[picture, y, x] == pytest.approx(sum(said) / len(said))
        else:
            assert np.isnan(share[picture, y, x])


def test_rows_in_flight_are_counted_where_they_are():
    share, judged = counted(MockBackbone(Grid(4, 6)), methods.Wave(2, 3), ("sun",))
    drafts = {tuple(cell) for event in judged for cell in event.cells[0,
                                                                      event.n_context :].tolist()}
    assert {cell for cell in np.ndindex(4, 6) if not np.isnan(share[0][cell])} == drafts
    assert len({y for y, _ in drafts}) == 4 and 0 < np.nanmean(share) < 1


def test_ar_judges_nothing():
    assert np.isnan(counted(MockBackbone(), methods.AR())[0]).all()


def test_heat_runs_from_violet_to_yellow_and_leaves_the_unjudged_alone():
    share = np.array([[0.0, 1.0, np.nan]])
    tinted = np.asarray(heat(share, np.full((8, 24, 3), 255, np.uint8)))
    third = tinted.shape[1] // 3
    fell, unchanged, unjudged = (tinted[:, n * third : (n + 1) * third].mean((0,
                                                                              1)) for n in range(3))
    assert np.allclose(fell, 0.4 * 255 + 0.6 * RAMP[0], atol=1)
    assert np.allclose(unchanged, 0.4 * 255 + 0.6 * RAMP[-1], atol=1)
    assert (unjudged == 255).all()


@pytest.mark.parametrize("picture", [None, np.zeros((24, 24, 3), np.uint8)])
def test_a_sheet_shows_cells_and_curve(picture):
    share = np.random.default_rng(0).random((3, 3))
    flat = acceptance_sheet(share, {}, picture, "ssd")
    sheet = acceptance_sheet(share, {"vertical/1": 0.2, "vertical/2": 0.9}, picture, "ssd")
    assert sheet.size == flat.size and sheet.tobytes() != flat.tobytes()
    cells, chart = sheet.crop((0, 0, 390, 390)), sheet.crop((400, 0, *sheet.size))
    assert cells.tobytes() == flat.crop((0, 0, 390, 390)).tobytes()
    assert len(chart.getcolors(1 << 20)) > 5
