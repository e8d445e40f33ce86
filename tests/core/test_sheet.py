"""The labelled sheet: every picture whole, every word legible, on sheets of any size."""

import numpy as np
import pytest
from PIL import Image

from ssd_core.output import guarantees, sheet
from ssd_core.output.sheet import (
    CHIPS,
    SheetLayout,
    Tile,
    columns_for,
    contact_sheet,
    font_for,
    wrapped,
)


def plain(shade: int, width: int = 30, height: int = 20) -> np.ndarray:
    """A picture in a colour that no words have."""
    return np.full((height, width, 3), (255, shade, 0), np.uint8)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 13])
def test_every_picture_is_on_the_sheet_once_and_none_covers_another(count):
    tiles = [Tile(plain(5 + 10 * n), f"method {n}", "identical") for n in range(count)]
    pixels = np.array(contact_sheet(tiles))
    width, height = sheet.shown(tiles[0].picture).size
    for tile in tiles:
        assert (pixels == tile.picture[0, 0]).all(-1).sum() == width * height


@pytest.mark.parametrize(("count", "columns"), [
    (1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (6, 3), (7, 4), (8, 4), (9, 5), (12, 4), (13, 5)])
def test_rows_are_nearly_full(count, columns):
    assert columns_for(count) == columns


@pytest.mark.parametrize(("width", "height", "times"), [
    (192, 192, 2), (384, 384, 1), (30, 20, 11), (768, 768, 1)])
def test_small_pictures_are_enlarged_by_a_whole_number(width, height, times):
    assert sheet.shown(plain(9, width, height)).size == (width * times, height * times)


def test_large_pictures_are_shrunk():
    assert sheet.shown(plain(9, 1536, 1024)).size == (768, 512)


@pytest.mark.parametrize("side", [16, 192, 384, 1024])
def test_words_are_legible_and_stay_within_their_column(side):
    tile = Tile(plain(9, side, side), "ssd:rounds=1:acceptance=coupled:draft_temperature=0.5",
                "same distribution", ("a long line that says what was measured of this picture",))
    width, height = sheet.shown(tile.picture).size
    layout = SheetLayout(width, height, 4)
    words = layout.words(tile)
    assert all(line.width <= width for line in words)
    assert min(line.height for line in words) >= 17
    chips = [line.beside for line in words if line.beside]
    said = "".join(line.text.replace(" ", "") for line in [*words, *chips])
    for text in (tile.name, tile.guarantee, *tile.lines):
        assert text.replace(" ", "") in said


def test_the_guarantee_stands_beside_a_short_name_and_below_a_long_one():
    layout = SheetLayout(384, 384, 2)
    assert layout.words(Tile(plain(9), "sjd", "identical"))[0].beside.text == "identical"
    long = layout.words(Tile(plain(9), "a name that takes the whole line", "identical"))
    assert [line.text for line in long if line.chip] == ["identical"]


def test_title_conditions_and_notes_take_room_of_their_own():
    tiles = [Tile(plain(9), "ar", "identical")]
    bare = contact_sheet(tiles)
    full = contact_sheet(tiles, "a prompt", "seed 7", ["left out: ssd"])
    assert full.height > bare.height + 3 * 17
    assert full.width == bare.width


def test_every_guarantee_has_a_chip_whose_words_stand_out():
    assert set(CHIPS) == set(guarantees.GUARANTEES)
    for colours in CHIPS.values():
        ground, ink = (luminance(colour) for colour in colours)
        assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 7
    assert len(set(CHIPS.values())) == len(CHIPS)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    shares = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_chinese_breaks_between_characters():
    font = font_for("a", 16)
    lines = wrapped("左边有一座红色的房子，右边有一艘黄色的船", font, 100)
    assert len(lines) > 1 and "".join(lines) == "左边有一座红色的房子，右边有一艘黄色的船"


def test_chinese_takes_a_font_of_the_system_where_there_is_one(monkeypatch):
    monkeypatch.setattr(sheet, "east_asian_font", lambda: None)
    assert isinstance(contact_sheet([Tile(plain(9), "ar", "identical")], "红色"), Image.Image)
