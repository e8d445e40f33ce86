"""Raster geometry: slots, cells and coordinates, with and without row ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssd_core import Grid, SSDError

grids = st.builds(Grid, st.integers(1, 12), st.integers(1, 12), st.booleans())


@given(grids)
def test_every_cell_has_a_slot_of_its_own_in_raster_order(grid):
    slots = [grid.slot(cell) for cell in range(grid.cells)]
    assert slots == sorted(set(slots))
    for cell, slot in enumerate(slots):
        assert grid.coordinates[slot].tolist() == [cell // grid.columns, cell % grid.columns]


@given(grids)
def test_slots_without_a_cell_are_the_row_ends(grid):
    cells = {grid.slot(cell) for cell in range(grid.cells)}
    ends = [slot for slot in range(grid.slots) if slot not in cells]
    assert ends == [y * grid.width + grid.columns for y in range(grid.rows) if grid.row_end]
    assert all(grid.coordinates[slot, 1] == grid.columns for slot in ends)


@given(grids)
def test_sizes(grid):
    assert grid.width == grid.columns + (1 if grid.row_end else 0)
    assert grid.cells == grid.rows * grid.columns
    assert grid.slots == grid.rows * grid.width == len(grid.coordinates)
    assert grid.slot(grid.cells) == grid.slots


@given(grids)
def test_parse_reads_what_is_written(grid):
    text = f"{grid.rows}x{grid.columns}"
    assert Grid.parse(text, grid.row_end) == Grid.parse(text.upper(), grid.row_end) == grid
    assert str(grid).startswith(text) and ("row end" in str(grid)) == grid.row_end


@pytest.mark.parametrize("text", ["", "24", "x", "24x", "x24", "24x24x24", "-1x4", "2.5x3", "axb",
                                  "24 by 24", "0x4", "4x0", "²x2"])
def test_parse_refuses_in_one_line(text):
    with pytest.raises(SSDError, match="grid") as refused:
        Grid.parse(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("rows, columns", [(0, 1), (1, 0), (-3, 4)])
def test_an_empty_grid_is_refused(rows, columns):
    with pytest.raises(SSDError, match="at least 1"):
        Grid(rows, columns)
