"""`ssd send PICTURE`: a postcard as one HTML file beside the picture, or where it is wanted."""

import json
import os

import pytest
from test_letter import picture

from ssd_core.cli import main


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "house.png"
    path.write_bytes(picture("a red house"))
    os.utime(path, (1_790_000_000, 1_790_000_000))  # in September 2026
    return path


def test_a_postcard_is_written_beside_the_picture_and_none_is_overwritten(house, capsys):
    for name in ("house.html", "house_2.html"):
        assert main(["send", "house.png", "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["file"] == name and made["bytes"] == (house.parent / name).stat().st_size
    page = (house.parent / "house.html").read_text(encoding="utf-8")
    assert ">a red house<" in page and "September 2026" in page


def test_a_postcard_is_written_where_it_is_wanted(house, capsys):
    assert main(["send", "house.png", "--out", "cards/card.html"]) == 0
    assert "cards/card.html: 0." in capsys.readouterr().out.replace("\\", "/")
    assert (house.parent / "cards" / "card.html").stat().st_size > 50_000


@pytest.mark.parametrize(("arguments", "line"), [
    (["gone.png"], "gone.png: no such file"), (["."], "a folder, a pipe or a device"),
    (["house.png", "--out", "house.png"], "a postcard is a web page; end the name with .html"),
    (["notes.png"], "notes.png: not a whole picture")])
def test_what_cannot_be_sent_is_told_and_leaves_nothing(house, capsys, arguments, line):
    (house.parent / "notes.png").write_text("no picture")
    assert main(["send", *arguments]) == 2
    assert line in capsys.readouterr().err
    assert sorted(path.name for path in house.parent.iterdir()) == ["house.png", "notes.png"]
